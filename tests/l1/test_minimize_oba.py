"""minimize_oba against the dense reference, over losses, starts and stops."""

import time

import numpy as np
import pytest
import reference_oba as ref
import scipy.sparse as sp
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from reference_oba import problems, small_problem
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import StandardScaler

from sparsekit._l1.losses.losses import LeastSquaresLoss, LogisticLoss
from sparsekit._l1.losses.probit import ProbitLoss
from sparsekit._l1.solver.oba import minimize_oba

LOSSES = {
    "logistic": (LogisticLoss, ref.logistic),
    "least_squares": (LeastSquaresLoss, ref.least_squares),
    "probit": (ProbitLoss, ref.probit),
}


@pytest.fixture(scope="module")
def digits():
    """Even against odd digits: 64 columns, some of them all zero, about half of the entries zero."""
    X, digit = load_digits(return_X_y=True)
    return X[:600] / 16.0, np.where(digit[:600] % 2 == 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)


def fraction_of_largest(smooth, share):
    return share * np.abs(smooth.grad(np.zeros(smooth.size))).max()


def check_certificate(result, smooth, l1):
    """What the result says of its own x is true."""
    fun = ref.objective(smooth, l1, result.x)
    assert_allclose(result.fun, fun, rtol=1e-9, atol=1e-12)
    assert_allclose(result.optimality, ref.relative_optimality(smooth, l1, result.x), rtol=1e-3, atol=1e-11)
    return fun


@given(problems)
def test_small_problems_against_the_reference(drawn):
    _, kind, fit_intercept, _, _ = drawn
    X, y, s, smooth, l1 = small_problem(*drawn)
    if not smooth.grad(np.zeros(smooth.size)).any():
        return
    best, info = ref.oba(smooth, l1)
    assert info["converged"]
    loss = LOSSES[kind][0](X, y, s, fit_intercept=fit_intercept)
    result = minimize_oba(loss, l1, tol=1e-9)
    assert result.status == 0 and result.success, result.message
    fun = check_certificate(result, smooth, l1)
    lowest = ref.objective(smooth, l1, best)
    at_origin = smooth.value(np.zeros(smooth.size))
    assert fun <= lowest + 1e-9 * at_origin
    # -0.0 or 1e-30 instead of a zero would be counted as a non-zero
    assert not np.any((result.x != 0) & (np.abs(result.x) < 1e-14) & (l1 > 0))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", list(LOSSES))
@pytest.mark.parametrize("share", [0.3, 0.01])
def test_real_data_against_the_reference(kind, fit_intercept, share, cancer):
    if kind == "least_squares":
        X, y = load_diabetes(return_X_y=True)
    else:
        X, y = cancer
    make, reference = LOSSES[kind]
    smooth = reference(X, y, fit_intercept=fit_intercept)
    loss = make(X, y, fit_intercept=fit_intercept)
    l1 = loss.l1_vector(fraction_of_largest(reference(X, y), share))
    assert len(l1) == loss.n_variables and (not fit_intercept or l1[-1] == 0)
    best, _ = ref.oba(smooth, l1)
    result = minimize_oba(loss, l1, tol=1e-9)
    assert result.status == 0
    check_certificate(result, smooth, l1)
    assert_allclose(result.x, best, atol=1e-6 * np.abs(best).max())
    assert_array_equal(result.x != 0, best != 0)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_iter", [0, 1, 3, 200])
def test_dual_gap_bounds_the_distance_at_any_point(cancer, fit_intercept, weighted, max_iter):
    X, y = cancer
    rng = np.random.default_rng(0)
    s = rng.uniform(0, 2, len(y)) * (rng.random(len(y)) < 0.9) if weighted else None
    target = X[:, 0] + 0.3 * rng.standard_normal(len(y))
    for kind, t in (("logistic", y), ("least_squares", target)):
        make, reference = LOSSES[kind]
        smooth, loss = reference(X, t, s, fit_intercept), make(X, t, s, fit_intercept=fit_intercept)
        l1 = loss.l1_vector(5.0)
        lowest = ref.objective(smooth, l1, ref.oba(smooth, l1)[0])
        result = minimize_oba(loss, l1, tol=1e-8, max_iter=max_iter)
        assert result.dual_gap >= result.fun - lowest - 1e-9 * lowest
        if result.status == 0:
            assert result.dual_gap <= 1e-6 * lowest
        else:
            assert result.status == 1 and result.nit == max_iter


def test_warm_start(digits):
    X, y = digits
    loss = LogisticLoss(sp.csr_matrix(X), y)
    cold = minimize_oba(loss, 0.5, tol=1e-7)
    again = minimize_oba(loss, 0.5, cold.x, tol=1e-7)
    assert again.nit == 0 and again.status == 0
    assert_array_equal(again.x, cold.x)
    near = minimize_oba(loss, 0.5, minimize_oba(loss, 0.55, tol=1e-7).x, tol=1e-7)
    assert near.nit < cold.nit
    assert_allclose(near.x, cold.x, atol=1e-4)
    # a far and dense start reaches the same point
    far = minimize_oba(loss, 0.5, np.full(X.shape[1], 3.0), tol=1e-7)
    assert far.status == 0
    assert_allclose(far.fun, cold.fun, rtol=1e-8)


def test_history_records_the_run(digits):
    X, y = digits
    smooth = ref.logistic(X, y)
    result = minimize_oba(LogisticLoss(X, y), 0.5, tol=1e-8, history=True)
    history = result.history
    assert set(history) == {"time", "fun", "optimality", "nnz", "n_free", "n_corrections"}
    assert {len(column) for column in history.values()} == {result.nit + 1}
    assert_allclose(history["fun"][0], smooth.value(np.zeros(64)), rtol=1e-12)
    assert history["fun"][-1] == result.fun and history["optimality"][-1] == result.optimality
    assert np.all(np.diff(history["time"]) >= 0) and np.all(np.diff(history["fun"]) <= 0)
    assert history["nnz"][-1] == np.count_nonzero(result.x)
    assert np.all(history["nnz"] <= np.maximum(history["n_free"], history["nnz"][0]))
    assert_array_equal(history["n_corrections"][1:], result.n_corrections)
    assert len(result.n_corrections) == result.nit and min(result.n_corrections) >= 1
    assert minimize_oba(LogisticLoss(X, y), 0.5).history is None


def test_max_iter_and_max_time_stop_with_their_status(digits):
    X, y = digits
    loss = LogisticLoss(X, y)
    smooth = ref.logistic(X, y)
    for max_iter in (0, 1, 2):
        result = minimize_oba(loss, 0.5, tol=1e-12, max_iter=max_iter)
        assert result.status == 1 and not result.success and result.nit == max_iter
        assert "max_iter" in result.message
        check_certificate(result, smooth, 0.5)
    result = minimize_oba(loss, 0.5, tol=1e-12, max_time=0.0)
    assert result.status == 2 and not result.success and "max_time" in result.message

    def slow(_):
        time.sleep(0.05)

    result = minimize_oba(loss, 0.5, tol=1e-12, max_time=0.08, callback=slow)
    assert result.status == 2 and 1 <= result.nit <= 3


@pytest.mark.parametrize("how", ["return", "raise"])
def test_callback_stops_and_gets_copies(digits, how):
    X, y = digits
    smooth = ref.logistic(X, y)
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun, intermediate_result.x.copy()))
        assert_allclose(
            intermediate_result.fun, ref.objective(smooth, 0.5, intermediate_result.x), rtol=1e-10
        )
        assert intermediate_result.nnz == np.count_nonzero(intermediate_result.x)
        assert intermediate_result.time >= 0 and intermediate_result.optimality > 0
        intermediate_result.x[:] = np.nan  # must not reach the solver
        if len(seen) == 3:
            if how == "raise":
                raise StopIteration
            return True
        return None

    result = minimize_oba(LogisticLoss(X, y), 0.5, tol=1e-12, callback=callback)
    assert result.status == 3 and not result.success and result.nit == 3
    assert [nit for nit, _, _ in seen] == [1, 2, 3]
    assert_array_equal(result.x, seen[-1][2])
    check_certificate(result, smooth, 0.5)


def test_impossible_tolerance_ends_with_status_4(cancer):
    X, y = cancer
    result = minimize_oba(LogisticLoss(X, y), 1.0, tol=0.0, max_iter=10_000)
    assert result.status == 4 and not result.success
    assert result.optimality < 1e-10 and result.nit < 200


@pytest.mark.parametrize(
    "l1, x0, match",
    [
        (-1.0, None, "l1"),
        (np.nan, None, "l1"),
        (np.inf, None, "l1"),
        (np.ones(3), None, r"l1 .*\(64,\)"),
        (1.0, np.zeros(3), r"x0 .*\(64,\)"),
        (1.0, np.full(64, np.nan), "x0 .*finite"),
    ],
)
def test_bad_arguments_are_named(digits, l1, x0, match):
    X, y = digits
    with pytest.raises(ValueError, match=match):
        minimize_oba(LogisticLoss(X, y), l1, x0)


@pytest.mark.parametrize(
    "name, value",
    [
        ("tol", -1.0),
        ("tol", np.nan),
        ("max_iter", -1),
        ("max_time", -1.0),
        ("hessian", "none"),
        ("memory", 0),
    ],
)
def test_bad_options_are_named(digits, name, value):
    X, y = digits
    with pytest.raises(ValueError, match=name):
        minimize_oba(LogisticLoss(X, y), 1.0, **{name: value})
