"""Derivatives where scores tie: all zero, equal, cut off at zero, whole numbers. Against enumeration."""

import numpy as np
import pytest
import reference_lp_sparsemap as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_factor_graph import EXAMPLES, Enumerated, build, example, random_graph
from reference_ties import jacobian_at_ties

import sparsekit as sk

NAMES = list(EXAMPLES)
SCORES = ("zero", "cut off", "few values", "whole")


def tie(how, rng, eta, factors):
    """Scores with many ties; in every other call additional scores of 0, or of few values."""
    if how == "zero":
        eta = np.zeros(len(eta))
    elif how == "cut off":
        eta = np.maximum(0.7 * rng.normal(size=len(eta)), 0)
    elif how == "few values":
        eta = rng.choice([0.25, 0.5, 0.3], size=len(eta))
    if rng.integers(2):
        for f in factors:
            f.scores = 0.5 * np.round(f.scores) * rng.integers(2)
    return eta


def check(eta, factors, rng, generic=False):
    """One direction."""
    mu, J = jacobian_at_ties(eta, factors)
    solution = build(eta, factors, generic)[0].solve()
    np.testing.assert_allclose(solution.x, mu, rtol=0, atol=1e-9)
    d = rng.normal(size=len(eta))
    np.testing.assert_allclose(solution.vjp(d).scores, J @ d, rtol=0, atol=1e-7)
    np.testing.assert_allclose(solution.jvp(d), J @ d, rtol=0, atol=1e-7)


@pytest.mark.parametrize("how", SCORES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thorough(keep=40)
def test_every_factor(name, how):
    rng = np.random.default_rng([NAMES.index(name), SCORES.index(how)])
    for generic in (False, True):
        eta, f = example(name, rng, 1.0, integer=True)
        eta = tie(how, rng, eta, [f])
        check(eta, [f], rng, generic)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_graphs(seed):
    rng = np.random.default_rng(seed)
    eta, factors = random_graph(seed, integer=True, most=5)
    eta = tie(SCORES[seed % 4], rng, eta, factors)
    if ref.solve_exact(eta, factors)[0] is not None:
        check(eta, factors, rng, rng.integers(3, size=len(factors)) == 0)


def test_zero_scores_have_the_whole_polytope():
    """The point in its middle moves freely in it, however large it is."""
    rng = np.random.default_rng(0)

    def moves(factor, shape):
        graph = sk.FactorGraph()
        u = graph.variable(np.zeros(shape))
        graph.add(factor(u))
        d = rng.normal(size=shape)
        return d, graph.solve().vjp({u: d})[u]

    d, got = moves(sk.Sequence, (2, 2))
    np.testing.assert_allclose(got, d - d.mean(axis=1, keepdims=True), atol=1e-12)
    for factor, shape in ((sk.Sequence, (30, 20)), (sk.Matching, (6, 40))):
        d, got = moves(factor, shape)
        np.testing.assert_allclose(got, d - d.mean(axis=1, keepdims=True), atol=1e-10)
    d, got = moves(sk.Matching, (40, 40))
    expected = d - d.mean(axis=0) - d.mean(axis=1, keepdims=True) + d.mean()
    np.testing.assert_allclose(got, expected, atol=1e-10)
    # with all arcs alike one word hangs on the root: no fewer can
    d, got = moves(sk.DepTree, (25, 25))
    A = np.vstack([np.kron(np.eye(25), np.ones(25)), np.eye(25).ravel()])
    expected = d.ravel() - np.linalg.pinv(A) @ (A @ d.ravel())
    np.testing.assert_allclose(got.ravel(), expected, atol=1e-10)


LARGER = {
    "tree": ("dep_tree", 25, 0, {"n": 5, "projective": False, "single_root": False}),
    "single": ("dep_tree", 25, 0, {"n": 5, "projective": False, "single_root": True}),
    "sequence": ("sequence", 16, 48, {"T": 4, "K": 4}),
    "matching": ("matching", 20, 0, {"m": 4, "n": 5}),
    "dense": ("dense", 10, 36, {"sizes": [3, 3, 4]}),
}


@pytest.mark.parametrize("name", LARGER)
def test_faces_by_equations_and_by_structures(name):
    """Of our own structures and of the same ones as a user's; and in additional scores by differences."""
    kind, d, n_add, params = LARGER[name]
    both, step = 0, 1e-6
    for seed in range(12):
        rng = np.random.default_rng(seed)
        f = ref.make_factor(kind, np.arange(d), 0.5 * rng.integers(-1, 2, size=n_add), **params)
        scale = rng.choice([0.1, 0.3, 1.0])
        eta = scale * tie(SCORES[seed % 4], rng, rng.integers(-2, 3, size=d), [f])
        graph, _, _ = build(eta, [f])
        solution, e = graph.solve(), rng.normal(size=d)
        gradients = solution.vjp(e)
        generic = build(eta, [f], True)[0].solve().vjp(e)
        np.testing.assert_allclose(gradients.scores, generic.scores, rtol=0, atol=1e-7)
        a, b = rng.normal(size=d), rng.normal(size=n_add)
        moved = solution.jvp(a, b)
        assert abs(e @ moved - gradients.scores @ a - gradients.additional_scores @ b) < 1e-9
        x = graph.solve_batch(
            eta + step * np.outer([0, 1, -1], a), f.scores + step * np.outer([0, 1, -1], b)
        ).x
        ahead, back = (x[1] - x[0]) / step, (x[0] - x[2]) / step
        if abs(ahead - back).max() < 1e-4:
            both += 1
            np.testing.assert_allclose(moved, ahead, rtol=0, atol=1e-4)
    assert both >= 1


def test_additional_scores_that_are_equal():
    """Many mixtures are best; what parts move by is the least that adds up."""
    graph = sk.FactorGraph()
    u = graph.variable(np.zeros((2, 2)))
    tags = sk.Sequence(u)
    graph.add(tags)
    got = graph.solve().vjp({u: [[1, 0], [0, 0]]})[tags]
    np.testing.assert_allclose(got, [[[0.25, 0.25], [-0.25, -0.25]]], atol=1e-12)


def test_later_solves_do_not_know_of_derivatives():
    rng = np.random.default_rng(3)
    found = []
    for differentiate in (False, True):
        graph = sk.FactorGraph()
        u = graph.variable(np.zeros((4, 4)))
        tree, tags = sk.DepTree(u, projective=True), sk.Sequence(u)
        graph.add(tree)
        graph.add(tags)
        solution = graph.solve()
        if differentiate:
            solution.vjp(np.ones(16))
        weights = [len(solution.local(f)["weights"]) for f in (tree, tags)]
        graph.set_scores(u, np.random.default_rng(4).normal(size=(4, 4)))
        found.append((weights, graph.solve(warm_start=True)))
    (weights, before), (weights_too, after) = found
    assert weights == weights_too
    np.testing.assert_allclose(after.x, before.x, rtol=0, atol=1e-10)
    d = rng.normal(size=16)
    np.testing.assert_allclose(after.vjp(d).scores, before.vjp(d).scores, rtol=0, atol=1e-9)


def test_users_factor_that_fails_in_a_derivative():
    class Moody(Enumerated):
        fails = False

        def maximize(self, scores, additional_scores):
            if self.fails:
                raise ArithmeticError("not now")
            return super().maximize(scores, additional_scores)

    graph = sk.FactorGraph()
    u = graph.variable(np.zeros(3))
    moody = Moody(u, np.eye(3), np.zeros((0, 3)))
    graph.add(moody)
    solution = graph.solve()
    moody.fails = True
    with pytest.raises(ArithmeticError, match="not now"):
        solution.vjp(np.ones(3))
    with pytest.raises(ArithmeticError, match="not now"):
        solution.jvp(np.ones(3))
    moody.fails = False
    d = np.array([1.0, 0.0, -1.0])
    np.testing.assert_allclose(solution.vjp(d).scores, d, atol=1e-12)


def test_a_bound_that_is_met_without_a_multiplier():
    """At most two, and two it is by itself: it stays so, as scores that ask for more make it."""
    graph = sk.FactorGraph()
    u = graph.variable([0.5, 0.75, 0.75])
    graph.add(sk.Budget(u, 2))
    solution = graph.solve()
    np.testing.assert_allclose(solution.vjp(np.ones(3)).scores, 0, atol=1e-12)
    np.testing.assert_allclose(solution.vjp([1.0, -1.0, 0.0]).scores, [1, -1, 0], atol=1e-12)
