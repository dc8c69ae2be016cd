"""The solver of bounded linear models: Newton's step in a box, the certificate, every way to the end."""

import numpy as np
import pytest
import reference_bounded as reference
import scipy.sparse as sp
from scipy import optimize

from sparsekit._bounded.losses.losses import (
    LossRows,
    classification_loss,
    regression_loss,
)
from sparsekit._bounded.losses.problem import BoundedProblem
from sparsekit._bounded.solver import run as run_module
from sparsekit._bounded.solver.box_step import minimize_in_box
from sparsekit._bounded.solver.certificate import Certificate
from sparsekit._bounded.solver.minimize_bounded import minimize_bounded
from sparsekit._bounded.solver.run import BoundedOptions, BoundedRun
from sparsekit._linalg.newton import NewtonSystem


def make(
    name="quantile",
    n=200,
    p=6,
    lower=-np.inf,
    upper=np.inf,
    l1=0.0,
    l2=0.0,
    intercept=True,
    seed=0,
    wrap=np.asarray,
):
    """(problem, X, y) of random data with correlated columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1)) + 3.0
    y = X @ rng.standard_normal(p) + rng.standard_t(3, n)
    s = np.full(n, 1.0 / n)
    if name in reference.REGRESSION:
        loss = regression_loss(name, y, s, quantile=0.3, epsilon=0.5)
    else:
        y = np.where(y > np.median(y), 1.0, -1.0)
        loss = classification_loss(name, y, s)
    box = np.full(p, float(lower)), np.full(p, float(upper))
    problem = BoundedProblem(wrap(X), loss, *box, l1, l2, fit_intercept=intercept)
    return problem, X, y


def best_of(problem, X, y, name):
    alpha = problem.l1 + problem.l2
    return reference.solve(
        X, y, name, (problem.lower, problem.upper), alpha=alpha, l1_ratio=problem.l1 / alpha if alpha else
        0.0, fit_intercept=problem.fit_intercept, quantile=0.3, epsilon=0.5,
    )[2]  # fmt: skip


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_matrix_from_either_side(wrap, intercept):
    problem, X, _ = make("squared", n=40, p=30, l2=0.3, intercept=intercept, wrap=wrap)
    rng = np.random.default_rng(3)
    rows, cols = np.sort(rng.choice(40, 12, replace=False)), np.sort(rng.choice(30, 20, replace=False))
    curvature = rng.random(40)
    A = X[np.ix_(rows, cols)]
    l2 = np.full(20, 0.3)
    if intercept:
        A, l2 = np.column_stack([A, np.ones(12)]), np.append(l2, 0.0)
    H = (A.T * curvature[rows]) @ A + np.diag(l2)
    matrix, d = problem.matrix, curvature[rows]
    primal = NewtonSystem(d, l2, gram=matrix.sandwich(d, cols, rows=rows, intercept=intercept))
    dual = NewtonSystem(d, l2, A=(matrix.with_ones if intercept else matrix.part)(rows, cols))
    v, ridge = rng.standard_normal(len(l2)), np.full(len(l2), 1e-2)
    loose = np.array([0, 3, 4, 9, len(l2) - 1])
    for system in (primal, dual):
        np.testing.assert_allclose(system.product(v), H @ v, rtol=1e-10)
        expected = np.linalg.solve((H + np.diag(ridge))[np.ix_(loose, loose)], v[loose])
        np.testing.assert_allclose(system.factor(loose, ridge)(v[loose]), expected, rtol=1e-7)


def test_the_dual_system_solves_where_a_column_has_no_ridge():
    rng = np.random.default_rng(4)
    A, d, v = rng.standard_normal((6, 9)), rng.random(6) + 0.5, rng.standard_normal(6)
    l2, ridge, free = np.zeros(9), np.full(9, 1e-2), np.arange(9)
    ridge[-1] = 0.0
    right = A.T @ v
    found = NewtonSystem(d, l2, A=A).factor(free, ridge)(right)
    expected = np.linalg.solve((A.T * d) @ A + np.diag(ridge), right)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_direction_minimises_in_the_box(seed):
    rng = np.random.default_rng(seed)
    m = rng.integers(2, 12)
    B = rng.standard_normal((2 * m, m))
    H, g = B.T @ B, 3 * rng.standard_normal(m)
    low = np.where(rng.random(m) < 0.3, 0.0, -rng.random(m))
    high = np.where(rng.random(m) < 0.3, np.inf, rng.random(m))
    system = NewtonSystem(None, np.zeros(m), gram=H)
    step = minimize_in_box(system, g, low, high, np.zeros(m), releases=10)
    assert (step >= low).all() and (step <= high).all()
    box = optimize.Bounds(low, high)
    best = optimize.minimize(
        lambda x: (0.5 * x @ H @ x + g @ x, H @ x + g), np.zeros(m), jac=True, bounds=box,
        method="L-BFGS-B", options=dict(ftol=0, gtol=1e-12),
    )  # fmt: skip
    assert 0.5 * step @ H @ step + g @ step <= best.fun + 1e-8 * abs(best.fun)


def test_direction_of_a_matrix_that_is_not_definite():
    system = NewtonSystem(None, np.zeros(2), gram=np.array([[1.0, 2.0], [2.0, 1.0]]))
    step = minimize_in_box(system, np.ones(2), np.full(2, -np.inf), np.full(2, np.inf), np.zeros(2))
    assert np.isnan(step).all()


@pytest.mark.parametrize("name", [*reference.REGRESSION, *reference.CLASSIFICATION])
@pytest.mark.parametrize("box", [(-np.inf, np.inf), (0.0, np.inf), (-0.2, 0.3), (0.1, 0.4)])
def test_no_dual_point_is_above_the_minimum(name, box):
    """The gap that `Certificate` gives holds at any point, far from the solution or near."""
    problem, X, y = make(name, n=60, p=4, lower=box[0], upper=box[1], l2=1e-3)
    best = best_of(problem, X, y, name)
    rng = np.random.default_rng(5)
    certificate = Certificate(problem)
    for scale in (0.0, 0.1, 1.0, 5.0):
        w, b = np.clip(scale * rng.standard_normal(4), *box), scale * rng.standard_normal()
        z = problem.predictor(w, b)
        rows = problem.loss.evaluate(z, LossRows.empty(60))
        primal = rows.f + problem.penalty(w)
        gap = certificate.update(w, b, z, rows, problem.transposed(rows.u), primal)
        assert primal - gap <= best * (1 + 1e-7) + 1e-12 and primal >= best * (1 - 1e-7)


@pytest.mark.parametrize("name", ["quantile", "epsilon_insensitive", "hinge", "huber", "log_loss"])
@pytest.mark.parametrize("penalty", [(0.0, 1e-3), (1e-2, 0.0), (1e-2, 1e-2)])
@pytest.mark.thorough(keep=5)
def test_every_way_to_the_end(name, penalty, monkeypatch):
    """Newton alone, NQN and Newton, and NQN with multipliers where the matrix is too large."""
    ends = []
    for small, fits in ((10**9, True), (0, True), (0, False)):
        monkeypatch.setattr(run_module, "MAX_NEWTON_ONLY_ENTRIES", small)
        if not fits:
            monkeypatch.setattr(NewtonSystem, "build", lambda *args: None)
        problem, X, y = make(name, lower=-0.5, upper=0.4, l1=penalty[0], l2=penalty[1])
        result = minimize_bounded(problem, np.zeros(6), 0.0, BoundedOptions(tol=1e-6), history=True)
        methods = set(result.history["method"])
        assert result.status == 0 and result.optimality <= 1e-6
        w = result.x[:-1]
        assert (w >= -0.5).all() and (w <= 0.4).all()
        if small:
            assert methods == {"newton"}
        elif not fits:
            assert methods == {"nqn"}
        else:
            assert "nqn" in methods
        z = X @ w + result.x[-1]
        value = np.mean(reference.losses(name, z, y, 0.3, 0.5)) + problem.penalty(w)
        assert result.fun == pytest.approx(value, rel=1e-12)
        ends.append(result.fun)
    best = best_of(problem, X, y, name)
    assert max(ends) - best <= 1e-6 * best and min(ends) - best >= -1e-8 * best


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_float32_data_are_in_double_precision(order):
    problem, X, _ = make("absolute", n=50, p=6, wrap=lambda X: X.astype(np.float32, order=order))
    w, u = np.arange(6.0) + 0.1, np.linspace(-1, 1, 50)
    exact = X.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(problem.predictor(w, 0.5), exact @ w + 0.5, rtol=1e-14)
    np.testing.assert_allclose(problem.transposed(u), exact.T @ u, rtol=1e-12)
    rows = LossRows.empty(50)
    z, gradient = problem.evaluate(w, 0.5, rows)
    np.testing.assert_allclose(z, exact @ w + 0.5, rtol=1e-14)
    np.testing.assert_allclose(gradient, exact.T @ rows.u, rtol=1e-12, atol=1e-14)


def test_coefficients_at_a_bound_equal_it():
    """Also where NQN, whose variables are scaled, has the last word."""
    for lower, upper in ((0.1, 0.3), (-0.7, -0.3), (1 / 3, np.inf)):
        for name in ("squared", "log_loss"):
            problem, _, _ = make(name, n=3000, p=12, lower=lower, upper=upper, l2=1e-3)
            result = minimize_bounded(problem, np.clip(np.zeros(12), lower, upper), 0.0, history=True)
            w = result.x[:-1]
            near = np.isclose(w, lower, rtol=1e-9, atol=0) | np.isclose(w, upper, rtol=1e-9, atol=0)
            assert result.status == 0 and near.any() and "nqn" in result.history["method"]
            assert ((w == lower) | (w == upper))[near].all()


def test_numbers_too_large():
    for scale in (1e200, 1e-200):
        for wrap in (np.asarray, sp.csr_matrix):
            problem, _, _ = make("squared", n=50, p=3, wrap=lambda X, wrap=wrap, scale=scale: wrap(X * scale))
            with pytest.raises(ValueError, match="column 0"):
                minimize_bounded(problem, np.ones(3), 0.0)
    problem, _, y = make("squared", n=50, p=3)
    problem.loss = regression_loss("squared", y * 1e200, np.full(50, 0.02), quantile=0.5, epsilon=1.0)
    with np.errstate(all="ignore"):
        result = minimize_bounded(problem, np.ones(3), 0.0, BoundedOptions(max_iter=20))
    assert not result.success and result.status != 0 and np.isfinite(result.x).all()


@pytest.mark.parametrize("wrap", [np.ascontiguousarray, np.asfortranarray])
def test_last_digits_of_dense_float32(wrap):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((6000, 60)) + 0.5 * rng.standard_normal((6000, 1))).astype(np.float32)
    y = X @ rng.standard_normal(60) + 2 * rng.standard_normal(6000)
    loss = regression_loss("quantile", y, np.full(6000, 1 / 6000), quantile=0.5, epsilon=1.0)
    free = np.full(60, np.inf)
    problem = BoundedProblem(wrap(X), loss, -free, free, 0.0, 0.0, fit_intercept=True)
    result = minimize_bounded(problem, np.zeros(60), 0.0, BoundedOptions(tol=1e-6))
    assert result.status == 0 and result.n_newton < 100
    exact = BoundedProblem(X.astype(float), loss, -free, free, 0.0, 0.0, fit_intercept=True)
    best = minimize_bounded(exact, np.zeros(60), 0.0, BoundedOptions(tol=1e-9))
    assert best.status == 0 and abs(result.fun - best.fun) <= 1.1e-6 * best.fun


def test_outliers_do_not_loosen_the_tolerance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 8))
    y = X @ rng.standard_normal(8) + rng.standard_t(3, 4000)
    free = np.full(8, np.inf)
    ends = []
    for far in (0.0, 1e10):
        y[:5] = far + np.arange(5)
        loss = regression_loss("absolute", y, np.full(4000, 1 / 4000), quantile=0.5, epsilon=1.0)
        problem = BoundedProblem(X, loss, -free, free, 0.0, 0.0, fit_intercept=True)
        result = minimize_bounded(problem, np.zeros(8), 0.0, BoundedOptions(tol=1e-6))
        assert result.status == 0
        run = BoundedRun(problem, BoundedOptions(), Certificate(problem), w=np.zeros(8))
        run.begin_at(np.zeros(8), 0.0)
        assert run.allowed(1e-6) < 1e-5  # and not a millionth of 10^7
        ends.append(np.mean(np.abs(X[5:] @ result.x[:-1] + result.x[-1] - y[5:])))
    assert abs(ends[1] - ends[0]) < 1e-3 * ends[0]


def test_rare_features_of_a_calm_target():
    """Most rows are near 0, a few far: the spread of the quartiles says little of the coefficients."""
    rng = np.random.default_rng(0)
    X = sp.random(3000, 20, density=0.01, random_state=0, format="csr", data_rvs=np.ones)
    y = X @ rng.uniform(1, 5, 20) + 0.01 * rng.normal(size=3000)
    for name, lower, upper, l1, intercept in (
        ("absolute", 0.0, 100.0, 1e-4, True), ("absolute", -np.inf, np.inf, 0.0, False),
        ("epsilon_insensitive", -np.inf, np.inf, 0.0, True), ("quantile", 0.0, np.inf, 0.0, True),
    ):  # fmt: skip
        loss = regression_loss(name, y, np.full(3000, 1 / 3000), quantile=0.9, epsilon=0.005)
        ends = []
        for small in (0, 10**9):
            problem = BoundedProblem(
                X, loss, np.full(20, lower), np.full(20, upper), l1, 0.0, fit_intercept=intercept
            )
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(run_module, "MAX_NEWTON_ONLY_ENTRIES", small)
                result = minimize_bounded(problem, np.zeros(20), 0.0)
            assert result.status == 0 and result.dual_gap >= 0
            ends.append(result.fun)
        truth = problem.loss.evaluate(
            X @ np.clip(np.linalg.lstsq(X.toarray(), y)[0], lower, upper), LossRows.empty(3000)
        )
        assert abs(ends[0] - ends[1]) <= 1.1e-6 * ends[1] and ends[0] <= truth.f + 30 * l1 * 20


def test_no_intercept_and_an_offset():
    """The natural size of a coefficient is that of the targets, not of their spread."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((3000, 10)), np.ones(3000)])
    for offset in (20.0, 1000.0):
        y = X[:, :10] @ np.full(10, 0.1) + offset + rng.standard_normal(3000)
        free = np.full(11, np.inf)
        ends = []
        for intercept in (False, True):
            loss = regression_loss("absolute", y, np.full(3000, 1 / 3000), quantile=0.5, epsilon=1.0)
            problem = BoundedProblem(X, loss, -free, free, 0.0, 0.0, fit_intercept=intercept)
            result = minimize_bounded(problem, np.zeros(11), 0.0)
            assert result.status == 0
            ends.append(result.fun)
        assert abs(ends[0] - ends[1]) <= 1.1e-6 * ends[1]
    loss = regression_loss("squared", np.full(500, 3.3), np.full(500, 1 / 500), quantile=0.5, epsilon=1.0)
    X = rng.standard_normal((500, 3)) + 1
    problem = BoundedProblem(X, loss, np.full(3, -9.0), np.full(3, 9.0), 0.0, 0.0, fit_intercept=False)
    best = X @ np.linalg.lstsq(X, np.full(500, 3.3))[0] - 3.3
    assert minimize_bounded(problem, np.zeros(3), 0.0).fun == pytest.approx(0.5 * np.mean(best**2), rel=1e-6)
