"""CUDA tensors on sparsekit's kernels. Without a GPU: tensors of the CPU lent to the emulated device."""

import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

from sparsekit import torch as layers  # noqa: E402
from sparsekit._torch import operators  # noqa: E402
from sparsekit._torch import sparsemax as _torch_device  # noqa: E402


@pytest.fixture
def run(cupy, monkeypatch):
    """``run(operator, *tensors, dim)`` calls the operator's CUDA kernel.

    In the emulation no memory is shared: what PyTorch hands over by DLPack is copied to the emulated device,
    and back into the tensor afterwards.
    """
    if not hasattr(cupy, "emulation"):
        return lambda operator, *args: operators.CUDA[operator](*args)
    lent = []

    def from_dlpack(tensor):
        assert not tensor.requires_grad  # PyTorch refuses to export these
        lent.append((tensor, cupy.asarray(tensor.numpy())))
        return lent[-1][1]

    monkeypatch.setattr(cupy, "from_dlpack", from_dlpack)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: types.SimpleNamespace(cuda_stream=0))

    def call(operator, *args):
        found = operators.CUDA[operator](*args)
        while lent:
            tensor, array = lent.pop()
            tensor.copy_(torch.from_numpy(array.get()))
        return found

    return call


def tensors(cupy, *arrays):
    device = "cpu" if hasattr(cupy, "emulation") else "cuda"
    return [torch.from_numpy(x).to(device) for x in arrays]


def same(found, expected, tol):
    assert found.is_contiguous() and found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operators(cupy, run, dim, dtype):
    rng = np.random.default_rng(0)
    Z, V = rng.standard_normal((2, 3, 5, 7)).astype(dtype)
    Z[1, 2] = -np.inf
    Z[1, 2, 3] = 0.0
    tol = 2e-6 if dtype == np.float32 else 1e-14
    q = np.abs(V) / np.abs(V).sum(axis=dim, keepdims=True)
    y = rng.integers(3, size=np.delete(Z.shape, dim % 3))
    z, v, q_, y_ = tensors(cupy, Z, V, q, y)
    z.requires_grad_()
    host = [torch.from_numpy(x) for x in (Z, V, q, y)]
    p = operators.sparsemax(host[0], dim)
    same(run(operators.sparsemax, z, dim), p, tol)
    same(run(operators.product, *tensors(cupy, p.numpy()), v, dim), operators.product(p, host[1], dim), tol)
    for target, other in ((q_, host[2]), (y_, host[3])):
        for a, b in zip(run(operators.loss, z, target, dim), operators.loss(host[0], other, dim)):
            same(a, b, tol)
    # tensors of other layouts, and vectors, whose loss is a scalar
    same(
        run(operators.sparsemax, z.permute(2, 0, 1), dim),
        operators.sparsemax(host[0].permute(2, 0, 1), dim),
        tol,
    )
    vector = run(operators.loss, z[0, 0], y_.new_tensor(1), 0)
    same(vector[0], operators.loss(host[0][0, 0], torch.tensor(1), 0)[0], tol)


def test_bad_targets(cupy, run):
    z, q, y = tensors(cupy, np.zeros((2, 3)), np.full((2, 3), 0.3), np.array([0, 3]))
    with pytest.raises(ValueError, match="sum to 1"):
        run(operators.loss, z, q, 1)
    with pytest.raises(ValueError, match="class 3; classes lie in 0"):
        run(operators.loss, z, y, 1)


def test_without_cupy_the_sort_runs(monkeypatch):
    chosen = _torch_device.with_cupy(lambda x: ("kernel", x), lambda x: ("sort", x))
    for there, expected in ((True, "kernel"), (False, "sort")):
        monkeypatch.setattr(_torch_device, "has_cupy", lambda there=there: there)
        assert chosen(5) == (expected, 5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device")
def test_autograd_on_a_device():
    z = torch.randn(5, 40, dtype=torch.float64, device="cuda", requires_grad=True)
    y = torch.arange(5, device="cuda")
    for f in (layers.sparsemax, lambda x: layers.sparsemax_loss(x, y)):
        assert torch.autograd.gradcheck(f, (z,)) and torch.autograd.gradgradcheck(f, (z,))
    # on a stream of its own
    with torch.cuda.stream(torch.cuda.Stream()):
        p = layers.sparsemax(z * 2)
    torch.cuda.synchronize()
    torch.testing.assert_close(p.cpu(), layers.sparsemax((z * 2).cpu()))
