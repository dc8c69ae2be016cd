"""The reference implementation itself: derivatives, certificates, and three solvers that must agree."""

import warnings

import numpy as np
import pytest
import reference_oba as ref
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import optimize, special
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.preprocessing import StandardScaler


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)


def small_problem(seed, kind, fit_intercept=False, weighted=False, n_free=0):
    """A problem with a minimiser: rows come with both labels wherever a variable is free."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 12), rng.integers(1, 8)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    s = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    if kind == "least_squares":
        y = rng.standard_normal(n)
    else:
        y = rng.choice([-1.0, 1.0], n)
        X, y, s = np.vstack([X, X]), np.concatenate([y, -y]), np.concatenate([s, 0.3 * s])
    smooth = getattr(ref, kind)(X, y, s, fit_intercept)
    largest = np.abs(smooth.grad(np.zeros(smooth.size))).max()
    l1 = np.append(rng.uniform(0.02, 1.2, p) * max(largest, 1e-3), np.zeros(int(fit_intercept)))
    l1[rng.permutation(p)[: min(n_free, p)]] = 0.0
    return X, y, s, smooth, l1


problems = st.tuples(
    st.integers(0, 10_000),
    st.sampled_from(["logistic", "least_squares", "probit"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
)


@given(problems)
def test_derivatives_by_finite_differences(drawn):
    _, _, _, smooth, _ = small_problem(*drawn)
    x = np.random.default_rng(drawn[0]).standard_normal(smooth.size)
    numeric = optimize.approx_fprime(x, smooth.value, 1e-6)
    assert_allclose(smooth.grad(x), numeric, atol=2e-4, rtol=1e-4)
    numeric = np.array(
        [optimize.approx_fprime(x, lambda v, j=j: smooth.grad(v)[j], 1e-6) for j in range(len(x))]
    )
    assert_allclose(smooth.hess(x), numeric, atol=2e-4, rtol=1e-4)
    # the Lipschitz constant is one
    assert np.linalg.eigvalsh(smooth.hess(x))[-1] <= smooth.lipschitz * (1 + 1e-10)


def test_multinomial_derivatives_and_two_classes():
    X, codes = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)[::5]
    codes, s = codes[::5], np.linspace(0.5, 2, len(X))
    smooth = ref.multinomial(X, codes, 3, s, fit_intercept=True)
    x = np.random.default_rng(0).standard_normal(smooth.size)
    assert_allclose(smooth.grad(x), optimize.approx_fprime(x, smooth.value, 1e-6), atol=1e-3)
    numeric = np.array(
        [optimize.approx_fprime(x, lambda v, j=j: smooth.grad(v)[j], 1e-6) for j in range(len(x))]
    )
    assert_allclose(smooth.hess(x), numeric, atol=1e-3)
    assert np.linalg.eigvalsh(smooth.hess(x))[-1] <= smooth.lipschitz
    # K = 2 is binary logistic regression in the difference of the columns
    two, binary = codes > 0, ref.logistic(X, np.where(codes > 0, 1.0, -1.0), s, fit_intercept=True)
    W = x.reshape(-1, 3)[:, :2]
    smooth = ref.multinomial(X, two.astype(int), 2, s, fit_intercept=True)
    assert_allclose(smooth.value(W.ravel()), binary.value(W[:, 1] - W[:, 0]), rtol=1e-12)


@given(problems)
def test_three_solvers_agree(drawn):
    _, _, _, smooth, l1 = small_problem(*drawn)
    x, info = ref.oba(smooth, l1)
    assert info["converged"]
    assert ref.relative_optimality(smooth, l1, x) <= 1e-10 or not smooth.grad(np.zeros(smooth.size)).any()
    value = ref.objective(smooth, l1, x)
    split = ref.split_lbfgsb(smooth, l1)
    assert value <= ref.objective(smooth, l1, split) + 1e-9 * max(1.0, value)
    # L-BFGS-B stops on flat directions a little early: it shows that nothing much lower exists
    assert value >= ref.objective(smooth, l1, split) - 1e-5 * max(1.0, value)
    descent = ref.coordinate_descent(smooth, l1, tol=1e-9, max_epochs=60)
    # coordinate descent may be slow on near-collinear columns, but it gets close to the same value
    at_origin = smooth.value(np.zeros(smooth.size))
    assert_allclose(ref.objective(smooth, l1, descent), value, rtol=0, atol=1e-3 * at_origin)
    # every step goes down, which is what the globalisation is for
    values = np.array(info["values"])
    assert np.all(np.diff(values) <= 1e-12 * np.maximum(1.0, np.abs(values[1:])))


@given(problems)
def test_optimality_measure_is_zero_exactly_at_solutions(drawn):
    _, _, _, smooth, l1 = small_problem(*drawn)
    x, _ = ref.oba(smooth, l1)
    value = ref.objective(smooth, l1, x)
    rng = np.random.default_rng(drawn[0])
    for size in (1e-2, 1.0):
        other = x + size * rng.standard_normal(len(x)) * (rng.random(len(x)) < 0.5)
        if ref.objective(smooth, l1, other) > value + 1e-8:
            assert ref.optimality(smooth, l1, other) > 1e-10


@given(problems)
def test_duality_gaps_bound_the_distance_to_the_optimum(drawn):
    seed, kind, fit_intercept, weighted, _ = drawn
    gap = {"logistic": ref.logistic_dual_gap, "least_squares": ref.least_squares_dual_gap}.get(kind)
    if gap is None:
        return
    X, y, s, smooth, l1 = small_problem(seed, kind, fit_intercept, weighted)
    best, _ = ref.oba(smooth, l1)
    lowest = ref.objective(smooth, l1, best)
    scale = max(1.0, lowest)
    assert -1e-9 * scale <= gap(X, y, l1, best, s, fit_intercept) <= 1e-6 * scale
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.1, 3.0):
        x = size * rng.standard_normal(smooth.size)
        above = ref.objective(smooth, l1, x) - lowest
        assert gap(X, y, l1, x, s, fit_intercept) >= above - 1e-9 * scale


@pytest.mark.parametrize("share", [0.1, 0.01])
def test_logistic_against_liblinear(cancer, share):
    X, y = cancer
    smooth = ref.logistic(X, y)
    l1 = share * np.abs(smooth.grad(np.zeros(smooth.size))).max()
    x, info = ref.oba(smooth, l1)
    with warnings.catch_warnings():
        # newer releases spell the penalty differently, older ones know only this
        warnings.simplefilter("ignore")
        peer = LogisticRegression(
            penalty="l1", solver="liblinear", C=1 / l1, fit_intercept=False, tol=1e-10, max_iter=100_000
        ).fit(X, y)
    assert info["converged"]
    assert_allclose(x, peer.coef_.ravel(), atol=1e-5)
    assert ref.objective(smooth, l1, x) <= ref.objective(smooth, l1, peer.coef_.ravel()) + 1e-10
    # Table 2.2: a handful of corrections at the most, and the ISTA point never needed
    assert max(info["corrections"]) <= 15 and info["ista"] == 0


def test_logistic_with_free_intercept_against_saga(cancer):
    X, y = cancer
    smooth = ref.logistic(X, y, fit_intercept=True)
    l1 = np.append(np.full(X.shape[1], 20.0), 0.0)
    x, info = ref.oba(smooth, l1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(
            penalty="l1", solver="saga", C=1 / 20.0, tol=1e-8, max_iter=50_000, random_state=0
        ).fit(X, y)
    assert info["converged"]
    assert_allclose(x[:-1], peer.coef_.ravel(), atol=1e-4)
    assert_allclose(x[-1], peer.intercept_[0], atol=1e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_least_squares_against_lasso(fit_intercept):
    X, y = load_diabetes(return_X_y=True, scaled=True)
    smooth = ref.least_squares(X, y, fit_intercept=fit_intercept)
    alpha = 0.3
    l1 = np.append(np.full(X.shape[1], alpha * len(y)), np.zeros(int(fit_intercept)))
    x, info = ref.oba(smooth, l1)
    peer = Lasso(alpha=alpha, fit_intercept=fit_intercept, tol=1e-14, max_iter=100_000).fit(X, y)
    assert info["converged"]
    assert_allclose(x[: X.shape[1]], peer.coef_, rtol=1e-6, atol=1e-5)
    if fit_intercept:
        assert_allclose(x[-1], peer.intercept_, rtol=1e-9)


def test_probit_without_penalty_is_the_maximum_likelihood_fit(cancer):
    X, y = cancer[0][:, :3], cancer[1]
    smooth = ref.probit(X, y, fit_intercept=True)
    x, info = ref.oba(smooth, 0.0)
    assert info["converged"]
    likelihood = special.ndtr(y * (ref.design(X, True) @ x))
    assert_allclose(-np.log(likelihood).sum(), smooth.value(x), rtol=1e-10)
    assert np.abs(smooth.grad(x)).max() < 1e-7


def test_warm_start_at_the_solution_takes_no_step(cancer):
    X, y = cancer
    smooth = ref.logistic(X, y)
    x, _ = ref.oba(smooth, 10.0)
    again, info = ref.oba(smooth, 10.0, x0=x)
    assert info["corrections"] == [] and np.array_equal(again, x)


def test_bfgs_matrix_has_the_secant_property_and_steps_solve_the_subspace_system():
    rng = np.random.default_rng(1)
    M = rng.standard_normal((8, 8))
    H = M @ M.T + np.eye(8)
    pairs = [(s, H @ s) for s in rng.standard_normal((4, 8))]
    B = ref.bfgs_matrix(pairs, 2.0, 8)
    assert_allclose(B @ pairs[-1][0], pairs[-1][1], rtol=1e-10)
    assert np.linalg.eigvalsh(B)[0] > 0
    free, g = np.arange(8) % 3 != 0, rng.standard_normal(8)
    d = ref.subspace_step(B, g, free)
    assert not d[~free].any()
    assert_allclose((g + B @ d)[free], 0.0, atol=1e-10)
