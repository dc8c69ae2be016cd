"""Inference over labels and the losses of LPSparseMAPClassifier, against enumeration and exact programs."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_factor_graph import as_factor
from reference_lp_graphs import random_graph
from reference_lp_sparsemap import LOGICAL, make_factor, solve_exact
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

import sparsekit
from sparsekit import Budget, FactorGraph, Pair, Xor
from sparsekit._factor_graph.labels import label_loss
from sparsekit._factor_graph.labels.label_loss import LabelLoss, Labels
from sparsekit._factor_graph.solver.layout import GraphOptions

STRUCTURED = ("sparsemap", "hinge")
LOGIC = (*LOGICAL, "budget", "knapsack")
SHARP = dict(tol_primal=1e-10, tol_dual=1e-10)
USUAL = dict(tol_primal=1e-8, tol_dual=1e-8, quadratic=False)  # LP-MAP as the loss asks for it
graphs = given(
    seed=st.integers(0, 2**32 - 1), n_factors=st.integers(0, 3), integer=st.booleans(), both=st.booleans()
)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """The reference solves many small systems, which BLAS is slow to share out."""
    with threadpool_limits(1, user_api="blas"):
        yield


def random_labels(rng, K, n_factors=0, *, integer=False, both=False, density=0.6):
    """Labels, plus, minus, and the reference's logic factors."""
    every = np.array(list(itertools.combinations(range(K), 2))).reshape(-1, 2)
    pairs = every[rng.random(len(every)) < density]
    pairs = np.where(rng.random((len(pairs), 1)) < 0.5, pairs, pairs[:, ::-1])  # either order
    logic = random_graph(rng, K, n_factors, kinds=LOGIC, feasible=True)[1] if n_factors else []
    scores = rng.integers(-2, 3, len(pairs)) / 2.0 if integer else rng.normal(size=len(pairs))
    plus, minus = np.maximum(scores, 0.0), np.maximum(-scores, 0.0)
    if both:
        plus, minus = (side + np.abs(rng.normal(size=len(pairs))) for side in (plus, minus))
    variables = FactorGraph().variable((K,))
    return Labels(K, pairs, [as_factor(variables[f.variables], f) for f in logic]), plus, minus, logic


def pair_factors(labels, plus, minus):
    """Two of the reference's factors for each pair."""
    return [
        make_factor("pair", ends, [score])
        for side in (plus, -minus)
        for ends, score in zip(labels.pairs, side)
    ]


def pair_value(labels, plus, minus, mu):
    """What pairs add to the score: Proposition 10 for scores >= 0, and for scores <= 0."""
    first, second = mu[labels.pairs[:, 0]], mu[labels.pairs[:, 1]]
    return plus @ np.minimum(first, second) - minus @ np.maximum(first + second - 1.0, 0.0)


def draw_scores(rng, n, K, integer):
    return rng.integers(-3, 4, (n, K)) / 2.0 if integer else rng.normal(size=(n, K)) * rng.choice([0.5, 1, 3])


# ------------------------------------------------------------------------------------------- inference


@settings(max_examples=50)
@graphs
def test_marginals_are_the_exact_ones(seed, n_factors, integer, both):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    labels, plus, minus, logic = random_labels(rng, K, n_factors, integer=integer, both=both)
    eta = draw_scores(rng, 4, K, integer)
    mu, statuses = labels.marginals(eta, plus, minus, GraphOptions(**SHARP))
    assert not statuses.any()
    factors = logic + pair_factors(labels, plus, minus)
    for row, found in zip(eta, mu):
        np.testing.assert_allclose(found, solve_exact(row, factors)[0], atol=1e-7)


@settings(max_examples=50)
@graphs
def test_map_is_as_good_as_the_linear_program(seed, n_factors, integer, both):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    labels, plus, minus, logic = random_labels(rng, K, n_factors, integer=integer, both=both)
    eta = draw_scores(rng, 4, K, integer)
    mu, statuses = labels.marginals(eta, plus, minus, GraphOptions(**USUAL))
    assert not statuses.any() and mu.min() >= 0.0 and mu.max() <= 1.0
    factors = logic + pair_factors(labels, plus, minus)
    for row, found in zip(eta, mu):
        value = row @ found + pair_value(labels, plus, minus, found)
        assert value == pytest.approx(solve_exact(row, factors, quad=0), abs=1e-7)
        for f in logic:  # a mixture of allowed structures
            rest = nnls(np.vstack([f.M, np.ones(f.M.shape[1])]), np.append(found[f.variables], 1.0))[1]
            assert rest < 1e-7


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("n_factors", [0, 4])
def test_many_labels_like_a_factor_graph(quadratic, n_factors):
    """40 labels: rows of which nearly all, some and no labels are decided beforehand."""
    rng = np.random.default_rng(5)
    K = 40
    labels, plus, minus, logic = random_labels(rng, K, n_factors, density=0.15)
    keep = rng.random(len(plus)) < 0.7
    plus, minus = plus * keep * 0.3, minus * keep * 0.3
    eta = rng.normal(size=(9, K)) * np.repeat([3.0, 1.0, 0.2], 3)[:, None] - 0.2
    mu, statuses = labels.marginals(eta, plus, minus, GraphOptions(**(SHARP if quadratic else USUAL)))
    assert not statuses.any()
    for row, found in zip(eta, mu):
        if quadratic:
            graph = FactorGraph()
            u = graph.variable(row)
            for f in logic:
                graph.add(as_factor(u[f.variables], f))
            for side in (plus, -minus):
                graph.add(Pair(u[labels.pairs], side))
            np.testing.assert_allclose(found, graph.solve()[u], atol=1e-7)
        else:
            best = solve_exact(row, logic + pair_factors(labels, plus, minus), quad=0)
            value = row @ found + pair_value(labels, plus, minus, found)
            assert value == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("quadratic", [True, False])
def test_scores_on_the_limits_of_what_is_decided(quadratic):
    """Scores that are 0 or 1 exactly, with what pairs add and take."""
    labels = Labels(3, [[0, 1], [2, 1]])
    plus, minus = np.array([1.0, 0.0]), np.array([0.0, 0.5])
    eta = np.array(list(itertools.product([-1.0, 0.0, 0.5, 1.0, 1.5], repeat=3)))
    mu, _ = labels.marginals(eta, plus, minus, GraphOptions(**(SHARP if quadratic else USUAL)))
    factors = pair_factors(labels, plus, minus)
    for row, found in zip(eta, mu):
        if quadratic:
            np.testing.assert_allclose(found, solve_exact(row, factors)[0], atol=1e-8)
        else:
            value = row @ found + pair_value(labels, plus, minus, found)
            assert value == pytest.approx(solve_exact(row, factors, quad=0), abs=1e-8)


@pytest.mark.parametrize("gap", [1e-1, 1e-3, 5e-5, 1e-6])
def test_map_decides_near_ties(gap):
    """The first score falls behind the third by the gap: the third alone is on."""
    eta = np.array([[0.577, -0.155, 0.577 + gap], [0.0, 0.0, gap], [3.0, 3.0 - gap, 3.0 + gap]])
    u = FactorGraph().variable((3,))
    for factor in (Xor(u), Budget(u, 1)):
        labels = Labels(3, np.zeros((0, 2)), [factor])
        mu, statuses = labels.marginals(eta, np.zeros(0), np.zeros(0), GraphOptions(**USUAL))
        assert not statuses.any()
        assert ((eta * mu).sum(axis=1) > eta.max(axis=1) - 1e-7).all()


def test_infeasible_factors_are_named():
    u = FactorGraph().variable((4,))
    labels = Labels(4, np.zeros((0, 2)), [Budget(u, 1), sparsekit.Or(u[:2]), sparsekit.Or(u[2:])])
    with pytest.raises(ValueError, match="factors"):
        labels.marginals(np.ones((2, 4)), np.zeros(0), np.zeros(0), GraphOptions())
    # decided labels use up the budget of the others
    labels = Labels(4, np.zeros((0, 2)), [Budget(u, 4, exactly=True), Budget(u[:2], 1)])
    with pytest.raises(ValueError, match="factors"):
        labels.marginals(np.ones((2, 4)), np.zeros(0), np.zeros(0), GraphOptions())


@given(seed=st.integers(0, 2**32 - 1))
def test_violated_is_what_enumeration_says(seed):
    rng = np.random.default_rng(seed)
    K = 5
    labels, _, _, logic = random_labels(rng, K, 2)
    Y = np.array(list(itertools.product([0.0, 1.0], repeat=K)))
    for y in Y:
        allowed = all((y[f.variables] == f.M.T).all(axis=1).any() for f in logic)
        assert (labels.violated(y[None]) is None) == allowed
    first = labels.violated(Y)
    if first is not None:
        assert labels.violated(Y[first[0]][None]) is not None


@pytest.mark.parametrize("K", [1, 2, 6])
def test_pair_sums(K, monkeypatch):
    rng = np.random.default_rng(K)
    labels = random_labels(rng, K, density=0.8)[0]
    mu, weight = rng.random((9, K)).round(1), rng.random(9)
    mu[:, 0] = 0.0
    high, low = labels.pair_sums(mu, weight)
    first, second = mu[:, labels.pairs[:, 0]], mu[:, labels.pairs[:, 1]]
    np.testing.assert_allclose(high, weight @ np.minimum(first, second), atol=1e-14)
    np.testing.assert_allclose(low, weight @ np.maximum(first + second - 1.0, 0.0), atol=1e-14)
    # by calls of few rows, between which Ctrl-C is heard: the same bits
    monkeypatch.setattr(label_loss, "BUFFER", 2 * len(high) + 2)
    for found, wanted in zip(labels.pair_sums(mu, weight), (high, low)):
        np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------------------------------------- losses


def problem(loss, seed=0, n=8, p=3, K=4, n_factors=0, make=np.asarray, dtype=float, labels=None, **options):
    """A LabelLoss, its data, and the reference's logic."""
    rng = np.random.default_rng(seed)
    logic = []
    if labels is None:
        labels, _, _, logic = random_labels(rng, K, n_factors, density=0.8)
    X = (rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.7)).astype(dtype)
    every = np.array(list(itertools.product([0.0, 1.0], repeat=K)))
    allowed = every[[labels.violated(y[None]) is None for y in every]]
    if not len(allowed):  # feasible only in fractions
        return problem(loss, seed + 1, n, p, K, n_factors, make, dtype, **options)
    Y = allowed[rng.integers(len(allowed), size=n)]
    weight = rng.random(n)
    options = {"alpha": 0.1, "pair_alpha": 0.2, "fit_intercept": True} | options
    return LabelLoss(loss, labels, make(X), Y, weight / weight.sum(), **options), X, logic


def point(loss, seed, scale=0.7):
    x = np.random.default_rng(seed).normal(size=loss.n_variables) * scale
    tail = slice(loss.n_variables - 2 * loss.n_pairs, None)
    x[tail] = np.abs(x[tail])
    return x


def slow_value(loss, X, logic, x):
    """The objective by definition: eq. (16), or the structured hinge, row by row; and the mean's gradient."""
    table, plus, minus = loss.unpack(x)
    labels = loss.labels
    factors = logic + pair_factors(labels, plus, minus)
    total = 0.0
    for row, y, w in zip(X.astype(float), loss.Y, loss.weight):
        eta = row @ table[: len(row)] + (table[len(row)] if loss.fit_intercept else 0.0)
        truth = y @ eta + pair_value(labels, plus, minus, y)
        if loss.loss == "sparsemap":
            mu = solve_exact(eta, factors)[0]
            best = eta @ mu + pair_value(labels, plus, minus, mu) - mu @ mu / 2
            total += w * (best - (truth - y @ y / 2))
        else:
            total += w * (solve_exact(eta + 1.0 - 2.0 * y, factors, quad=0) + y.sum() - truth)
    W = table[: X.shape[1]]
    return total + loss.alpha / 2 * (W**2).sum() + loss.pair_alpha / 2 * (plus @ plus + minus @ minus)


@pytest.mark.parametrize("loss", STRUCTURED)
@pytest.mark.parametrize("n_factors", [0, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_value_is_the_definition(loss, n_factors, fit_intercept):
    for seed in range(3):
        made, X, logic = problem(loss, seed, n_factors=n_factors, fit_intercept=fit_intercept)
        x = point(made, seed)
        assert made.value_and_gradient(x)[0] == pytest.approx(slow_value(made, X, logic, x), abs=1e-7)


@pytest.mark.parametrize("loss", STRUCTURED)
@pytest.mark.parametrize("n_factors", [0, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gradient_is_that_of_the_value(loss, n_factors, fit_intercept):
    for seed in range(3):
        made, _, _ = problem(loss, seed, n_factors=n_factors, fit_intercept=fit_intercept)
        x, step = point(made, seed) + 1e-3, 1e-4  # values are good to 1e-9
        numeric = [
            (made.value_and_gradient(x + step * e)[0] - made.value_and_gradient(x - step * e)[0]) / (2 * step)
            for e in np.eye(made.n_variables)
        ]
        np.testing.assert_allclose(made.value_and_gradient(x)[1], numeric, atol=3e-5)


@pytest.mark.parametrize("loss", STRUCTURED)
@pytest.mark.parametrize("dtype, rtol, atol", [(np.float64, 1e-12, 1e-8), (np.float32, 1e-5, 1e-4)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_array, np.asfortranarray])
def test_containers_and_types_agree(loss, make, dtype, rtol, atol):
    dense, _, _ = problem(loss, n_factors=1)
    other, _, _ = problem(loss, n_factors=1, make=make, dtype=dtype)
    x = point(dense, 3)
    value, gradient = dense.value_and_gradient(x)
    assert other.value_and_gradient(x)[0] == pytest.approx(value, rel=rtol)
    np.testing.assert_allclose(other.value_and_gradient(x)[1], gradient, atol=atol)
