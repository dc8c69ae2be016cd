"""The reference implementation itself: derivatives, and two solvers that must agree."""

import numpy as np
import pytest
import reference_oba as ref
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import optimize, special
from sklearn.datasets import load_breast_cancer, load_iris
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
def test_two_solvers_agree(drawn):
    _, _, _, smooth, l1 = small_problem(*drawn)
    x, info = ref.oba(smooth, l1)
    assert info["converged"]
    assert ref.relative_optimality(smooth, l1, x) <= 1e-10 or not smooth.grad(np.zeros(smooth.size)).any()
    value = ref.objective(smooth, l1, x)
    split = ref.split_lbfgsb(smooth, l1)
    assert value <= ref.objective(smooth, l1, split) + 1e-9 * max(1.0, value)
    # L-BFGS-B stops on flat directions a little early: it shows that nothing much lower exists
    assert value >= ref.objective(smooth, l1, split) - 1e-5 * max(1.0, value)
    # every step goes down, which is what the globalisation is for
    values = np.array(info["values"])
    assert np.all(np.diff(values) <= 1e-12 * np.maximum(1.0, np.abs(values[1:])))


def test_probit_without_penalty_is_the_maximum_likelihood_fit(cancer):
    X, y = cancer[0][:, :3], cancer[1]
    smooth = ref.probit(X, y, fit_intercept=True)
    x, info = ref.oba(smooth, 0.0)
    assert info["converged"]
    likelihood = special.ndtr(y * (ref.design(X, True) @ x))
    assert_allclose(-np.log(likelihood).sum(), smooth.value(x), rtol=1e-10)
    assert np.abs(smooth.grad(x)).max() < 1e-7
