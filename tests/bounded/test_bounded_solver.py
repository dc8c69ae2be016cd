"""The solver of bounded linear models: Newton's step in a box, the certificate, every way to the end."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference_bounded as reference
import scipy.sparse as sp

from sparsekit import BoundedRegressor
from sparsekit._bounded import plan
from sparsekit._bounded.losses.losses import LossRows, classification_loss, regression_loss
from sparsekit._bounded.losses.problem import BoundedProblem
from sparsekit._bounded.solver.box_step import minimize_in_box
from sparsekit._bounded.solver.certificate import Certificate
from sparsekit._bounded.solver.minimize_bounded import minimize_bounded
from sparsekit._bounded.solver.refine import MIN_FIRST_DELTA, WARM_SMOOTHING, first_delta
from sparsekit._bounded.solver.run import BoundedOptions, BoundedRun
from sparsekit._linalg.dense_design import DenseDesign
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
def test_direction_minimises_on_the_bounds_that_it_meets(seed):
    rng = np.random.default_rng(seed)
    m = rng.integers(2, 12)
    B = rng.standard_normal((2 * m, m))
    H, g = B.T @ B, 3 * rng.standard_normal(m)
    low = np.where(rng.random(m) < 0.3, 0.0, -rng.random(m))
    high = np.where(rng.random(m) < 0.3, np.inf, rng.random(m))
    step = minimize_in_box(NewtonSystem(None, np.zeros(m), gram=H), g, low, high, np.zeros(m))
    assert (step >= low).all() and (step <= high).all()
    inside = (step > low) & (step < high)
    np.testing.assert_allclose((H @ step + g)[inside], 0.0, atol=1e-9)
    assert 0.5 * step @ H @ step + g @ step < 0.0


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
    """Newton alone, NQN before it, and NQN with multipliers where the matrix is too large."""
    ends = []
    for small, fits in ((10**9, True), (0, True), (0, False)):
        monkeypatch.setattr(plan, "MAX_NEWTON_ONLY_ENTRIES", small)
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
            # sweeps need a ridge, and come between
            assert methods == {"nqn"} if penalty[1] == 0.0 else "nqn" in methods and "newton" not in methods
        else:
            assert "nqn" in methods
        z = X @ w + result.x[-1]
        value = np.mean(reference.losses(name, z, y, 0.3, 0.5)) + problem.penalty(w)
        assert result.fun == pytest.approx(value, rel=1e-12)
        ends.append(result.fun)
    best = best_of(problem, X, y, name)
    assert max(ends) - best <= 1e-6 * best and min(ends) - best >= -1e-8 * best


def test_as_many_rows_as_variables_have_curvature_at_first():
    problem, _, y = make(n=400, p=6, seed=2)
    loss = problem.loss
    z = y + np.random.default_rng(3).permutation(np.linspace(-1.0, 1.0, 400)) * loss.spread
    distances = np.sort(loss.kink_distance(z)) / (loss.hi - loss.lo)
    assert distances[6] - 1e-12 <= first_delta(problem, z) <= distances[7] + 1e-12
    unit = loss.spread / (loss.hi - loss.lo)
    assert first_delta(problem, y) == MIN_FIRST_DELTA * unit
    assert first_delta(problem, y + 3.0 * loss.spread) == WARM_SMOOTHING * unit
    wide, _, y = make(n=20, p=19, seed=2)
    assert first_delta(wide, y) == WARM_SMOOTHING * wide.loss.spread / (loss.hi - loss.lo)


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
        run.begin(np.zeros(8), 0.0)
        assert run.allowed(1e-6) < 1e-5  # and not a millionth of 10^7
        ends.append(np.mean(np.abs(X[5:] @ result.x[:-1] + result.x[-1] - y[5:])))
    assert abs(ends[1] - ends[0]) < 1e-3 * ends[0]


@pytest.mark.parametrize("loss", ["absolute", "quantile"])
def test_a_nearly_perfect_fit_is_certified(loss):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((300, 20)), rng.random(20)
    y = X @ w + 1e-6 * rng.standard_normal(300)
    model = BoundedRegressor(loss=loss, alpha=0.0, bounds=(0, None), max_iter=2000).fit(X, y)
    assert model.dual_gap_ <= 0.01 * model.objective_


@pytest.mark.parametrize("start", ["zero", "warm"])
@pytest.mark.parametrize("name", ["squared", "log_loss", "quantile"])
def test_the_first_point_is_evaluated_once(name, start, monkeypatch):
    monkeypatch.setattr(plan, "MAX_NEWTON_ONLY_ENTRIES", 0)
    problem, _, _ = make(name, lower=0.0, l2=1e-3)
    w, b = np.zeros(problem.p), 0.0
    if start == "warm":
        w, b = minimize_bounded(problem, w, b, BoundedOptions(tol=1e-2)).x[:-1], 0.1
    points = []
    evaluate = type(problem).evaluate

    def watched(self, w, b, *args):
        points.append(np.append(w, b))
        return evaluate(self, w, b, *args)

    monkeypatch.setattr(type(problem), "evaluate", watched)
    result = minimize_bounded(problem, w, b, BoundedOptions(tol=1e-8))
    assert result.success
    np.testing.assert_array_equal(points[0], np.append(w, b))
    distances = np.abs(np.array(points[1:]) - points[0]).max(axis=1)
    assert distances.min() > 1e-9


@pytest.mark.parametrize("name", ["squared", "huber", "log_loss", "squared_hinge", "modified_huber"])
@pytest.mark.parametrize("iterations", [1, 10**9])
def test_when_newton_takes_over_changes_no_answer(name, iterations, monkeypatch):
    monkeypatch.setattr(plan, "MAX_NEWTON_ONLY_ENTRIES", 0)
    problem, X, y = make(name, lower=0.0, upper=0.4, l2=1e-3)
    monkeypatch.setattr(plan, "NQN_NEWTON_STEPS", 0.0)
    monkeypatch.setattr(plan, "MIN_NQN_ITERATIONS", iterations)
    result = minimize_bounded(problem, np.zeros(6), 0.0, BoundedOptions(tol=1e-8), history=True)
    best = best_of(problem, X, y, name)
    assert result.success and -1e-8 * best <= result.fun - best <= 1e-7 * best
    count = list(result.history["method"]).count("nqn")
    assert 1 <= count <= plan.NQN_LINEAR_FACTOR if iterations == 1 else count > 1


def test_nqn_gets_more_iterations_where_columns_are_many():
    rng = np.random.default_rng(0)

    def iterations(n, p, density=1.0, in_box=True):
        X = rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
        X = X if density == 1.0 else sp.csr_array(X)
        loss = regression_loss("squared", np.zeros(n), np.full(n, 1 / n), quantile=0.5, epsilon=1.0)
        free = np.full(p, np.inf)
        lower = np.zeros(p) if in_box else -free
        problem = BoundedProblem(X, loss, lower, free, 0.0, 0.0, fit_intercept=True)
        return plan.nqn_iterations(problem)

    assert iterations(2000, 10) == plan.MIN_NQN_ITERATIONS
    assert min(iterations(2000, 400), iterations(400, 2000)) > 40
    assert iterations(20000, 400, 0.01) < 0.5 * iterations(20000, 400)
    # without a box the solution is one step of Newton's method
    assert 4 * iterations(2000, 400, in_box=False) == pytest.approx(iterations(2000, 400), abs=4)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_nqn_goes_on_where_most_rows_have_no_curvature(scale):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 1000))
    y = scale * (X[:, :20].sum(axis=1) / 20**0.5 + rng.standard_normal(150))
    far = 0.1 * np.abs(y).max() / 1000**0.5
    model = BoundedRegressor("huber", alpha=0.0, bounds=(-far, 2.0 * far), history=True).fit(X, y)
    assert model.dual_gap_ <= 1e-5 * model.objective_
    count = list(model.history_["method"]).count("nqn")
    few = plan.nqn_iterations(SimpleNamespace(matrix=DenseDesign(X), is_ridge=False))
    assert count == few if scale == 1.0 else few < count <= plan.NQN_LINEAR_FACTOR * few
