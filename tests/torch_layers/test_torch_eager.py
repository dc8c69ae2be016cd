"""Plain calls go around PyTorch's operators, with the same results; whatever traces a program gets them."""

import pytest

import sparsekit as sk

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

from torch.autograd import forward_ad  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from sparsekit._torch import eager, graph_operators, operators  # noqa: E402
from sparsekit.torch import FactorGraphLayer, sparsemax, sparsemax_loss  # noqa: E402


def scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make_layer():
    graph = sk.FactorGraph()
    u = graph.variable((3, 2))
    graph.add(sk.Xor(u))
    graph.add(sk.Pair(u[[0, 2], 1], 0.2))
    return FactorGraphLayer(graph)


LAYER = make_layer()
FUNCTIONS = {
    "sparsemax": lambda z: sparsemax(2 * z),
    "loss": lambda z: sparsemax_loss(z, torch.softmax(z.flip(1), 1), reduction="none"),
    "graph": LAYER,
    "graph, both": lambda z: LAYER(z, z[:, :1]),
}


def test_what_is_plain():
    z = scores(2, 3)
    assert eager.is_plain(z, torch.nn.Parameter(z), z.clone().requires_grad_().exp(), z.T, z.long())
    with torch.inference_mode():
        assert eager.is_plain(z, z + 1)
    with forward_ad.dual_level():
        assert eager.is_plain(forward_ad.make_dual(z, z))

    class Own(torch.Tensor):
        pass

    other = [z.as_subclass(Own), z.to_sparse(), z.to("meta"), z.to(torch.complex64).conj()]
    assert not any(map(eager.is_plain, other)) and not eager.is_plain(z, other[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_ways_have_the_same_derivatives(name, monkeypatch):
    f, found = FUNCTIONS[name], []
    for known in (True, False):  # as with a version of PyTorch that does not say what is plain
        monkeypatch.setattr(eager, "_KNOWN", known)
        z = scores(4, 6).requires_grad_()
        out = f(z)
        (slope,) = torch.autograd.grad(out.pow(3).sum(), z, create_graph=True)
        (second,) = torch.autograd.grad((slope * scores(4, 6, seed=1)).sum(), z)
        with forward_ad.dual_level():
            moved = forward_ad.unpack_dual(f(forward_ad.make_dual(z.detach(), scores(4, 6, seed=2)))).tangent
        found.append((out, slope, second, moved))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
        assert one.abs().max() > 1e-3


def test_plain_calls_go_around_the_operators(monkeypatch):
    def refuse(*_):
        raise AssertionError("an operator was called")

    for module, names in (
        (operators, ("Sparsemax", "Product", "Loss")),
        (graph_operators, ("Solve", "Vjp", "Jvp")),
    ):
        for name in names:
            monkeypatch.setattr(getattr(module, name), "forward", staticmethod(refuse))
    monkeypatch.setattr(graph_operators, "own_scores", refuse)
    for f in FUNCTIONS.values():
        z = scores(4, 6).requires_grad_()
        (slope,) = torch.autograd.grad(f(z).pow(3).sum(), z, create_graph=True)
        assert torch.autograd.grad(slope.sum(), z)[0].shape == z.shape
        with pytest.raises(AssertionError, match="an operator was called"):
            torch.func.vmap(f)(scores(2, 4, 6))


def test_what_traces_a_program_gets_operators():
    """A trace of the values of one call would answer the next one with them."""
    z, other = scores(4, 6), scores(4, 6, seed=1)
    for name, wanted in (("sparsemax", "sparsekit.sparsemax"), ("graph", "sparsekit.factor_graph_solve")):
        f = FUNCTIONS[name]
        for mode in ("real", "fake"):
            traced = make_fx(f, tracing_mode=mode)(z)
            assert wanted in traced.code
            torch.testing.assert_close(traced(other), f(other))
    f = FUNCTIONS["sparsemax"]
    torch.testing.assert_close(torch.jit.trace(f, z, check_trace=False)(other), f(other))
