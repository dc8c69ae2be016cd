"""The factor graph layer: against the array functions, finite differences, and in use."""

import copy
import gc
import io
import pickle
import warnings
import weakref

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import sparsekit as sk

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from sparsekit.torch import FactorGraphLayer  # noqa: E402


def scores(*shape, dtype=torch.float64, seed=0, scale=1.0):
    return scale * torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def tagger():
    """4 x 3 tags in a chain, a Budget on the first tag, a variable in no factor; 27 + 1 additional scores."""
    graph = sk.FactorGraph()
    u, free = graph.variable((4, 3)), graph.variable((1,))
    graph.add(sk.Sequence(u, 0.3 * np.random.default_rng(0).normal(size=(3, 3, 3))))
    graph.add(sk.Budget(u[:, 0], 2))
    graph.add(sk.Pair(u[[0, 3], 1], 0.2))
    return graph, free


def table(n=4):
    graph = sk.FactorGraph()
    u = graph.variable((n, n))
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    return graph


def kinds():
    """Small graphs of every kind of factor, with shared variables."""

    def graph(n, *factors):
        g = sk.FactorGraph()
        u = g.variable((n,))
        for factor in factors:
            g.add(factor(u))
        return g

    class AllOrNone(sk.Factor):
        def maximize(self, s, c):
            on = s.sum() + c[0] > 0
            return np.full(s.shape, float(on)), np.array([float(on)])

    pair = lambda u: sk.Pair(u[[0, 2]], 0.4)  # noqa: E731
    yield "matching", table(3)
    yield "chain", graph(6, lambda u: sk.Sequence(u.reshape(3, 2), 0.3 * np.eye(2)), pair)
    yield "or", graph(4, sk.Or, pair, lambda u: sk.AndOut(u[1:], negated=[True, False, False]))
    yield "out", graph(4, sk.OrOut, lambda u: sk.XorOut(u[:3]), pair)
    yield "knapsack", graph(4, lambda u: sk.Knapsack(u, [1.0, 2.0, 0.5, 1.5], 2.0), pair, sk.Imply)
    yield "dense", graph(5, lambda u: sk.Dense([u[:2], u[2:]]), lambda u: sk.AtMostOne(u[[0, 2]]))
    yield "tree", graph(9, lambda u: sk.DepTree(u.reshape(3, 3)), lambda u: sk.Budget(u[[0, 3, 6]], 1))
    yield "projective", graph(9, lambda u: sk.DepTree(u.reshape(3, 3), projective=True), pair)
    yield "users", graph(3, lambda u: AllOrNone(u, [0.1]), lambda u: sk.AtMostOne(u[:2]))
    ends, both = [[0, 1], [1, 2], [2, 3], [0, 3]], [0.5, -0.9, 0.3, -0.8]
    yield "pairs", graph(4, lambda u: sk.Pair(u[np.array(ends)], both))
    yield "alone", graph(3, sk.Xor)
    yield "none", graph(3)


KINDS = dict(kinds())


@pytest.mark.parametrize("name", KINDS)
def test_derivatives(name):
    graph = KINDS[name]
    layer = FactorGraphLayer(graph)
    z = scores(2, graph.n_variables, scale=0.4, seed=1) + (0.5 if name == "pairs" else 0.0)
    z.requires_grad_()
    c = torch.as_tensor(graph.additional_scores) + scores(2, graph.n_additional, scale=0.1, seed=2)
    c.requires_grad_()
    assert gradcheck(layer, (z, c), eps=1e-5, atol=1e-5)
    assert gradgradcheck(layer, (z, c), eps=1e-5, atol=1e-5, fast_mode=True)
    jacobian = torch.autograd.functional.jacobian(layer, z.detach())
    assert abs(jacobian).max() > 0.1  # something moves
    assert not jacobian[0, :, 1].any()  # graphs of a batch are independent


@pytest.mark.parametrize("factor", [sk.Sequence, sk.Matching, sk.DepTree, sk.Xor])
def test_derivatives_at_zero(factor):
    """Where a layer starts whose weights are 0."""
    graph = sk.FactorGraph()
    # any number of roots would be a kink: with all arcs alike there is one, the fewest
    options = {"single_root": True} if factor is sk.DepTree else {}
    graph.add(factor(graph.variable((3, 3)), **options))
    layer = FactorGraphLayer(graph)
    z = torch.zeros((2, 3, 3), dtype=torch.float64, requires_grad=True)
    assert gradcheck(layer, (z,), eps=1e-5, atol=1e-5)
    assert gradgradcheck(layer, (z,), eps=1e-5, atol=1e-5, fast_mode=True)


def test_forward_is_the_array_function():
    graph, _ = tagger()
    layer = FactorGraphLayer(graph)
    for dtype in (torch.float32, torch.float64):
        z, extra = scores(6, 13, dtype=dtype), scores(6, 28, dtype=dtype, seed=1)
        found = graph.solve_batch(z.numpy(), extra.numpy())
        mu = layer(z, extra)
        assert mu.dtype == dtype
        np.testing.assert_array_equal(mu.numpy(), found.x)
        np.testing.assert_array_equal(layer(z.T.contiguous().T, extra).numpy(), found.x)
        np.testing.assert_allclose(layer(z).numpy(), graph.solve_batch(z.numpy()).x, rtol=0, atol=1e-6)
        z.requires_grad_()
        extra.requires_grad_()
        d = scores(6, 13, dtype=dtype, seed=2)
        (layer(z, extra) * d).sum().backward()
        expected = found.vjp(d.numpy())
        assert z.grad.dtype == extra.grad.dtype == dtype
        np.testing.assert_allclose(z.grad.numpy(), expected.scores, rtol=0, atol=1e-6)
        np.testing.assert_allclose(extra.grad.numpy(), expected.additional_scores, rtol=0, atol=1e-6)
        assert abs(expected.additional_scores).max() > 1e-2


def test_batch_shapes():
    graph = table()
    layer = FactorGraphLayer(graph)
    flat = scores(6, 16)
    expected = layer(flat)
    for shape in ((6, 16), (2, 3, 16), (6, 4, 4), (3, 2, 4, 4), (1, 6, 1, 16)):
        z = flat.reshape(shape).requires_grad_()
        mu = layer(z)
        assert mu.shape == shape
        torch.testing.assert_close(mu.reshape(6, 16), expected, rtol=0, atol=0)
        mu[..., 0].sum().backward()
        assert z.grad.shape == shape
    for shape in ((16,), (4, 4)):
        z = flat[0].reshape(shape).clone().requires_grad_()
        assert layer(z).shape == shape
        torch.testing.assert_close(layer(z).ravel(), expected[0], rtol=0, atol=0)
        layer(z).square().sum().backward()
        assert z.grad.shape == shape and z.grad.any()
    assert layer(scores(0, 16)).shape == (0, 16) and layer(scores(2, 0, 4, 4)).shape == (2, 0, 4, 4)
    for shape in ((15,), (4, 3), (2, 17), ()):
        with pytest.raises(ValueError, match="16 variables in the last dimension"):
            layer(scores(*shape))
    assert FactorGraphLayer(sk.FactorGraph())(scores(3, 0)).shape == (3, 0)


def test_additional_scores_broadcast():
    graph, _ = tagger()
    layer = FactorGraphLayer(graph)
    z, extra = scores(2, 3, 13), scores(28, seed=1, scale=0.3)
    for shape in ((28,), (1, 28), (3, 28), (2, 1, 28), (2, 3, 28)):
        given = extra.expand(*shape[:-1], 28).clone().requires_grad_()
        mu = layer(z, given)
        torch.testing.assert_close(mu, layer(z, extra), rtol=0, atol=0)
        (mu * z).sum().backward()
        full = extra.expand(2, 3, 28).clone().requires_grad_()
        (layer(z, full) * z).sum().backward()
        torch.testing.assert_close(given.grad, full.grad.sum_to_size(shape))
    own = torch.as_tensor(graph.additional_scores)
    torch.testing.assert_close(layer(z), layer(z, own), rtol=0, atol=0)
    for shape in ((27,), (29,), (28, 1)):
        with pytest.raises(ValueError, match="additional_scores must have 28 in the last dimension"):
            layer(z, scores(*shape))
    with pytest.raises((ValueError, RuntimeError)):
        layer(z, scores(5, 28))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    layer = FactorGraphLayer(table())
    z = scores(3, 4, 4, dtype=torch.float32).to(dtype).requires_grad_()
    mu = layer(z)
    assert mu.dtype == dtype
    torch.testing.assert_close(mu.float(), layer(z.float()), atol=4e-3, rtol=1e-2)
    (mu * mu).sum().backward()
    assert z.grad.dtype == dtype and torch.isfinite(z.grad).all() and z.grad.any()
    for bad in (torch.zeros(2, 16, dtype=torch.int64), torch.zeros(2, 16, dtype=torch.bool)):
        with pytest.raises(TypeError, match="floating point"):
            layer(bad)
    with pytest.raises(TypeError, match="must be a tensor; got numpy"):
        layer(np.zeros((2, 4, 4)))


def test_forbidden_and_bad_scores():
    layer = FactorGraphLayer(table())
    z = scores(2, 4, 4)
    z[:, 0, 1:3] = -torch.inf
    z.requires_grad_()
    mu = layer(z)
    (mu * scores(2, 4, 4, seed=1)).sum().backward()
    assert not mu[:, 0, 1:3].any() and torch.isfinite(z.grad).all()
    assert abs(z.grad[:, 0, 1:3]).max() < 1e-12 < abs(z.grad).max()
    torch.testing.assert_close(mu.sum(-1), torch.ones(2, 4, dtype=torch.float64))
    for bad in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match="scores"):
            layer(torch.full((2, 16), bad))


def test_infeasible():
    layer = FactorGraphLayer(table())
    z = scores(3, 4, 4)
    z[1, 2] = -torch.inf
    with pytest.raises(ValueError, match=r"no assignment satisfies all factors in graphs \[1\]"):
        layer(z)
    graph = table()
    graph.add(sk.Budget(graph.factors[0].graph.variable((2,)), 2, exactly=True))
    graph.add(sk.AtMostOne(graph.variable((1,))))
    assert FactorGraphLayer(graph)(scores(2, 19)).shape == (2, 19)
    u = sk.FactorGraph().variable((3,))
    u.graph.add(sk.Xor(u))
    u.graph.add(sk.Budget(u, 2, exactly=True))
    with pytest.raises(ValueError, match="no assignment"):
        FactorGraphLayer(u.graph)(scores(2, 3))


def test_unconverged():
    z = scores(5, 4, 4, scale=3.0)
    with pytest.warns(ConvergenceWarning, match="of 5 graphs stopped at max_iter") as caught:
        FactorGraphLayer(table(), max_iter=2)(z)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = FactorGraphLayer(table(), exact=False, max_iter=10)(z)
        whole = FactorGraphLayer(table())(z)
    assert 1e-6 < abs(few - whole).max() <= 1
    assert few.min() >= 0 and few.max() <= 1


def test_what_a_layer_is_made_of():
    with pytest.raises(TypeError, match="graph must be a FactorGraph"):
        FactorGraphLayer("graph")
    for bad in ({"tolerance": 1}, {"max_iter": 0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            FactorGraphLayer(table(), **bad)(scores(1, 16))
    layer = FactorGraphLayer(table())
    assert "n_variables=16" in repr(layer) and "n_factors=2" in repr(layer)
    assert not list(layer.parameters()) and not layer.state_dict()


def test_graph_is_kept_for_several_backward_passes():
    """Solving again, elsewhere or in the same layer, does not touch what a backward pass needs."""
    graph, _ = tagger()
    layer = FactorGraphLayer(graph)
    z = scores(2, 13).requires_grad_()
    d = scores(2, 13, seed=1)
    (expected,) = torch.autograd.grad((layer(z) * d).sum(), z)
    mu = layer(z)
    layer(scores(7, 13, seed=2))
    graph.solve()
    graph.solve(warm_start=True)
    loss = (mu * d).sum()
    for _ in range(2):
        (got,) = torch.autograd.grad(loss, z, retain_graph=True)
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    # what was returned may be changed in place without harm to others
    with torch.no_grad():
        other = layer(z)
        layer(z).zero_()
        torch.testing.assert_close(layer(z), other, rtol=0, atol=0)
        assert not layer(z).requires_grad


def test_threads_change_nothing():
    graph, _ = tagger()
    layer, z, n = FactorGraphLayer(graph), scores(9, 13), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            x = z.clone().requires_grad_()
            mu = layer(x)
            mu.square().sum().backward()
            found.append((mu.detach(), x.grad))
    finally:
        torch.set_num_threads(n)
    for one, two in zip(*found):
        torch.testing.assert_close(one, two, rtol=0, atol=0)


def network():
    return torch.nn.Sequential(
        torch.nn.Linear(5, 16),
        torch.nn.Unflatten(-1, (4, 4)),
        FactorGraphLayer(table()),
        torch.nn.Flatten(-2),
    )


def test_copies():
    torch.manual_seed(0)
    net, X = network(), torch.randn(20, 5)
    expected = net(X)
    stored = io.BytesIO()
    torch.save(net, stored)
    stored.seek(0)
    for copied in (
        copy.deepcopy(net),
        pickle.loads(pickle.dumps(net)),
        torch.load(stored, weights_only=False),
    ):
        torch.testing.assert_close(copied(X), expected, rtol=0, atol=0)
        assert copied[2].graph is not net[2].graph
    blank = network()
    blank.load_state_dict(net.state_dict())
    torch.testing.assert_close(blank(X), expected, rtol=0, atol=0)


def test_additional_scores_of_one_factor_have_its_shape():
    graph = sk.FactorGraph()
    tags = graph.variable((4, 3))
    graph.add(sk.Sequence(tags))
    layer = FactorGraphLayer(graph)
    z, transitions = scores(2, 4, 3), scores(2, 3, 3, 3, seed=1).requires_grad_()
    found = layer(z, transitions)
    torch.testing.assert_close(found, layer(z, transitions.reshape(2, 27)))
    (slope,) = torch.autograd.grad(found.square().sum(), transitions)
    assert slope.shape == transitions.shape and slope.any()
    torch.testing.assert_close(layer(z, transitions[0])[0], found[0].detach(), check_dtype=False)
    # transitions for all positions are not told from a batch of them
    with pytest.raises(ValueError, match=r"27 in the last dimension, .* shapes \(3, 3, 3\); got \(3, 3\)"):
        layer(z, torch.zeros(3, 3, dtype=z.dtype))
    with pytest.raises(ValueError, match=r"12 variables in .* end with the shape \(4, 3\); got \(2, 3, 3\)"):
        layer(z[:, 1:])


def test_a_loss_outlives_the_layer():
    """As where a function makes a graph for each sentence, and what it returns is differentiated later."""

    def loss(z):
        return FactorGraphLayer(table())(z).square().sum()

    z = scores(2, 4, 4).requires_grad_()
    layer = FactorGraphLayer(table())
    (expected,) = torch.autograd.grad(layer(z).square().sum(), z, create_graph=True)
    (found,) = torch.autograd.grad(loss(z), z, create_graph=True)
    torch.testing.assert_close(found, expected)
    twice = [torch.autograd.grad(g.square().sum(), z)[0] for g in (found, expected)]
    torch.testing.assert_close(*twice)
    mapped = torch.func.vmap(torch.func.grad(loss))(z)
    torch.testing.assert_close(mapped, expected.detach())


def test_a_layer_is_gone_with_its_last_loss():
    layer = FactorGraphLayer(table())
    there = weakref.ref(layer)
    loss = layer(scores(2, 4, 4).requires_grad_()).sum()
    del layer
    assert there() is not None
    loss.backward()
    del loss
    gc.collect()
    assert there() is None
