"""FactorGraphLayer on CUDA tensors. Without a GPU: tensors of the CPU lent to the emulated device."""

import types

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

import sparsekit as sk  # noqa: E402
from sparsekit._torch import factor_graph as _torch_factor_graph  # noqa: E402
from sparsekit.torch import FactorGraphLayer  # noqa: E402


@pytest.fixture
def on_device(cupy, monkeypatch):
    """``on_device(tensor)`` is it on the GPU; the emulated device works in the tensors' own memory."""
    if not hasattr(cupy, "emulation"):
        return lambda tensor: tensor.cuda()

    def from_dlpack(tensor):
        assert not tensor.requires_grad and tensor.is_contiguous()
        array = cupy.asarray(tensor.numpy())
        array._array = tensor.numpy()
        return array

    monkeypatch.setattr(cupy, "from_dlpack", from_dlpack)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(_torch_factor_graph, "is_cuda", lambda tensor: True)
    return lambda tensor: tensor


def graph():
    graph = sk.FactorGraph()
    u = graph.variable((2, 3))
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    graph.add(sk.Pair([u[0, 0], u[1, 1]], 0.3))
    return graph


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layer(on_device, monkeypatch, dtype):
    torch.manual_seed(0)
    layer = FactorGraphLayer(graph())
    scores, extra = torch.randn(3, 2, 3, dtype=dtype), torch.randn(3, 1, dtype=dtype)
    direction = torch.randn(3, 2, 3, dtype=dtype)
    found = []
    for device in (on_device, lambda tensor: tensor):
        given = [device(part).requires_grad_() for part in (scores.clone(), extra.clone())]
        out = layer(*given)
        along = device(direction.clone()).requires_grad_()
        first = torch.autograd.grad((out * along).sum(), given, create_graph=True)
        found.append([part.detach().cpu() for part in (out, *first)])
        # the layer's own additional scores
        found[-1].append(layer(given[0].detach()).cpu())
        # the backward's own derivative, in its direction
        found[-1].append(torch.autograd.grad(sum(part.square().sum() for part in first), along)[0].cpu())
        # and now on the CPU
        monkeypatch.setattr(_torch_factor_graph, "is_cuda", lambda tensor: tensor.is_cuda)
    tol = 1e-5 if dtype == torch.float32 else 1e-9
    for ours, theirs in zip(*found):
        assert ours.dtype == dtype and ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tol)


def test_factors_with_an_oracle_stay_on_the_cpu(on_device):
    chain = sk.FactorGraph()
    chain.add(sk.Sequence(chain.variable((2, 2))))
    scores = on_device(torch.tensor([[0.5, 0.0, 0.1, 0.3]]))
    assert _torch_factor_graph.device_of(scores, chain) == "cpu"
    assert _torch_factor_graph.device_of(scores, graph()) == scores.device
