"""torch.compile, torch.export and torch.func with the layers: as without them, and without a graph break."""

import copy
import gc

import numpy as np
import pytest

import sparsekit as sk

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

from torch.autograd import gradcheck  # noqa: E402

from sparsekit._torch import graph_operators  # noqa: E402
from sparsekit.torch import FactorGraphLayer, Sparsemax, SparsemaxLoss, sparsemax_loss  # noqa: E402

func = torch.func


def scores(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def chain():
    """3 x 2 tags in a chain, a Budget and a Pair: 6 variables, 8 + 1 additional scores."""
    graph = sk.FactorGraph()
    u = graph.variable((3, 2))
    graph.add(sk.Sequence(u, 0.3 * np.random.default_rng(0).normal(size=(2, 2, 2))))
    graph.add(sk.Budget(u[:, 0], 2))
    graph.add(sk.Pair(u[[0, 2], 1], 0.2))
    return graph


def matching():
    graph = sk.FactorGraph()
    u = graph.variable((2, 3))
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    return graph


CODES = torch.tensor([0, 2, 1, 0])
CHAIN, MATCHING = FactorGraphLayer(chain()), FactorGraphLayer(matching())
FUNCTIONS = {
    "sparsemax": lambda z: Sparsemax(0)(2 * z),
    "sparsemax, masked": lambda z: Sparsemax()(z, mask=z > -0.5),
    "loss": lambda z: SparsemaxLoss(reduction="none")(2 * z[:, :3], CODES[: len(z)]),
    "loss, soft": lambda z: sparsemax_loss(z, torch.softmax(z.flip(1), 1), reduction="none"),
    "graph": CHAIN,
    "graph, both": lambda z: CHAIN(z, 0.3 * torch.cat([z, z[:, :3]], 1)),
    "matching": lambda z: MATCHING(z.reshape(-1, 2, 3)),
}


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_agree_with_loops(name):
    """Directions, Jacobians both ways and second derivatives, against autograd without torch.func."""
    f, z, v = FUNCTIONS[name], scores(4, 6), scores(4, 6, seed=1)
    assert gradcheck(f, (z.clone().requires_grad_(),), check_forward_ad=True, check_batched_grad=True)
    jacobian = torch.autograd.functional.jacobian(f, z)
    assert abs(jacobian).max() > 0.1
    same(func.jacrev(f)(z), jacobian)
    same(func.jacfwd(f)(z), jacobian)
    value, moved = func.jvp(f, (z,), (v,))
    same(value, f(z))
    same(moved, (jacobian * v).sum((-1, -2)))
    value, vjp = func.vjp(f, z)
    same(vjp(value)[0], (jacobian * value[..., None, None]).flatten(0, value.ndim - 1).sum(0))
    # more problems at a time, alone and with gradients of their own
    many = scores(3, 4, 6, seed=2)
    same(func.vmap(f)(many), torch.stack([f(one) for one in many]))
    same(func.vmap(f, in_dims=1)(many.movedim(0, 1)), torch.stack([f(one) for one in many]))
    total = lambda z: f(z).pow(3).sum()  # noqa: E731
    same(func.vmap(func.grad(total))(many), torch.stack([func.grad(total)(one) for one in many]))
    same(func.vmap(func.jacrev(f))(many), torch.stack([func.jacrev(f)(one) for one in many]))
    second = torch.autograd.functional.hessian(total, z)
    for outer, inner in ((func.jacfwd, func.jacrev), (func.jacrev, func.jacfwd), (func.jacrev, func.jacrev)):
        same(outer(inner(total))(z), second)


def test_one_of_two_is_mapped():
    """Scores for all problems and additional scores for each, and the other way round."""
    layer, z, extra = FactorGraphLayer(chain()), scores(2, 6), 0.3 * scores(3, 9, seed=1)
    weights = scores(2, 6, seed=2)
    f = lambda z, extra: (layer(z, extra) * weights).sum()  # noqa: E731
    both = func.grad(f, argnums=(0, 1))
    for dims, given in (((None, 0), (z, extra)), ((0, None), (torch.stack([z, 2 * z, -z]), extra[0]))):
        found = func.vmap(both, in_dims=dims)(*given)
        for i in range(3):
            one = both(*(part if dim is None else part[i] for part, dim in zip(given, dims)))
            for a, b in zip(found, one):
                same(a[i], b)


class Net(torch.nn.Module):
    """Something before, between and behind the layers."""

    def __init__(self, layer, dtype=torch.float64):
        super().__init__()
        self.linear = torch.nn.Linear(5, 6, dtype=dtype)
        self.layer, self.sparsemax = layer, Sparsemax()

    def forward(self, x):
        return self.layer(3 * self.sparsemax(self.linear(x)) + self.linear(x)) ** 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_is_eager(backend, dtype):
    """Without a graph break; gradients; any batch; a layer that changes its own scores."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    graph = chain()
    net = Net(FactorGraphLayer(graph), dtype)
    compiled = torch.compile(net, fullgraph=True, backend=backend, dynamic=True)
    for n in (4, 7):
        x, found = scores(n, 5, dtype=dtype), []
        for f in (net, compiled):
            net.zero_grad()
            out = f(x)
            out.sum().backward()
            found.append([out.detach(), net.linear.weight.grad.clone()])
            assert found[-1][1].any()
        for a, b in zip(*found):
            torch.testing.assert_close(a, b)
    graph.set_scores(graph.factors[2], 3.0)
    torch.testing.assert_close(compiled(x), net(x))
    assert abs(net(x) - found[0][0]).max() > 0.01


def test_inductor_is_eager(tmp_path, monkeypatch):
    """The default backend, which calls the layers' operators from code of its own; no C++ to compile."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", "0")  # is put back
    torch._dynamo.reset()
    graph, simplex, z = FactorGraphLayer(chain()), Sparsemax(), scores(4, 6)
    found = []

    def both(z):
        return simplex(graph(z))

    compiled = torch.compile(both, fullgraph=True, backend="inductor", options={"compile_threads": 1})
    for f in (both, compiled):
        given = z.clone().requires_grad_()
        out = f(given)
        found.append((out.detach(), *torch.autograd.grad(out, given, z)))
    assert any("sparsekit" in path.read_text() for path in tmp_path.rglob("*.py"))
    assert (found[0][0] == 0).any() and found[0][1].any()
    for a, b in zip(*found):
        same(a, b)


@pytest.mark.parametrize("name", ["sparsemax", "loss, soft", "graph"])
def test_compiled_transforms(name):
    f, z = FUNCTIONS[name], scores(4, 6)
    torch._dynamo.reset()

    def all_of_it(z):
        jacobian = func.jacrev(f)(z)
        return jacobian, func.jvp(f, (z,), (z,))[1], func.vmap(f)(torch.stack([z, -z]))

    for a, b in zip(torch.compile(all_of_it, fullgraph=True, backend="aot_eager")(z), all_of_it(z)):
        same(a, b)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_is_eager(strict):
    """With a batch of any size; the program can be differentiated."""
    torch.manual_seed(0)
    net, x = Net(FactorGraphLayer(chain())), scores(4, 5)
    program = torch.export.export(
        net, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=strict
    ).module()
    for n in (4, 9):
        x, found = scores(n, 5, seed=n), []
        for f in (net, program):
            given = x.clone().requires_grad_()
            out = f(given)
            found.append((out.detach(), *torch.autograd.grad(out.sum(), given)))
        for a, b in zip(*found):
            same(a, b)
    assert abs(found[0][1]).max() > 1e-3


def test_operators_keep_pytorchs_rules():
    layer, z, extra = FactorGraphLayer(chain()), scores(4, 6), scores(4, 9)
    _, ticket = graph_operators.solve(z, extra, layer._key)
    for op, args in (
        (graph_operators.vjp, (scores(2, 4, 6).requires_grad_(), z, extra, ticket, layer._key)),
        (graph_operators.jvp, (scores(2, 4, 6), scores(2, 4, 9), z, extra, ticket, layer._key)),
        (graph_operators.own_scores, (9, layer._key, torch.float32, torch.device("cpu"))),
    ):
        assert set(torch.library.opcheck(op, args).values()) == {"SUCCESS"}


def test_solutions_live_as_long_as_their_tickets():
    layer = FactorGraphLayer(chain())
    z, d = scores(4, 6).requires_grad_(), scores(1, 4, 6, seed=1)
    gc.collect()
    before = len(graph_operators._TICKETS)
    marginals = layer(z)
    assert len(graph_operators._TICKETS) == before + 1
    marginals.sum().backward()
    assert len(graph_operators._TICKETS) == before
    with pytest.raises(RuntimeError, match="second time"):
        marginals.sum().backward()
    del marginals
    layer(z.detach())
    gc.collect()
    assert len(graph_operators._TICKETS) == before
    # a ticket that was copied, or is for other scores, costs a solve
    extra = scores(4, 9, seed=2)
    _, ticket = graph_operators.solve(z, extra, layer._key)
    expected = graph_operators.vjp(d, z, extra, ticket, layer._key)
    other = graph_operators.vjp(d, -z, extra, ticket, layer._key)
    assert abs(other[0] - expected[0]).max() > 0.1
    ticket = ticket.clone()
    for a, b in zip(graph_operators.vjp(d, z, extra, ticket, layer._key), expected):
        same(a, b)


def test_copies_are_other_layers_and_lost_ones_are_named():
    graph = chain()
    layer = FactorGraphLayer(graph)
    deep_copy = copy.deepcopy(layer)
    z = scores(2, 6)
    graph.set_scores(graph.factors[2], 3.0)
    assert abs(layer(z) - deep_copy(z)).max() > 0.01
    key = deep_copy._key
    del deep_copy
    gc.collect()
    with pytest.raises(RuntimeError, match="Keep it alive as long"):
        graph_operators.solve(z, scores(2, 9), key)
