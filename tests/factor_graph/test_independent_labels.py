"""Independent labels by Newton's method for all at once, against L-BFGS and solvers of single labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from scipy.special import expit

from sparsekit import BoundedClassifier, Budget, FactorGraph
from sparsekit._bounded.losses.output_rows import LogisticRows, clipped_square_rows, hinge_rows
from sparsekit._bounded.solver import output_systems
from sparsekit._bounded.solver.output_systems import OutputSystems
from sparsekit._factor_graph.labels.coupled_hinge import minimize_coupled_hinge
from sparsekit._factor_graph.labels.independent import minimize_independent
from sparsekit._factor_graph.labels.label_loss import LabelLoss, Labels
from sparsekit._linalg.class_design import design_of
from sparsekit._solver import outcome

SMOOTH = ("sparsemap", "logistic")
LOSSES = (*SMOOTH, "hinge")


def problem(
    loss="sparsemap", n=120, p=15, K=4, alpha=1e-2, intercept=True, sparse=False, seed=0, weight=None, far=0.0
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.5) * rng.exponential(size=p)
    Y = (X @ rng.normal(size=(p, K)) + rng.normal(size=(n, K)) > rng.normal(size=K)).astype(float)
    weight = np.ones(n) if weight is None else weight
    return LabelLoss(
        loss, Labels(K, np.zeros((0, 2))), sp.csr_matrix(X) if sparse else X + far, Y, weight / weight.sum(),
        fit_intercept=intercept, alpha=alpha,
    )  # fmt: skip


def rows_of(loss, z, Y):
    """Losses and slopes (n, K) at scores z, by definition."""
    sign, inside = 2 * Y - 1, np.clip(z, 0, 1)
    return {
        "sparsemap": lambda: (inside * (z - inside / 2) - Y * (z - 0.5), inside - Y),
        "hinge": lambda: (np.maximum(0.0, 1.0 - sign * z), -sign * (sign * z < 1.0)),
        "logistic": lambda: (np.logaddexp(0.0, -sign * z), expit(z) - Y),
    }[loss]()


def objective(f, x):
    """Value and gradient of a `LabelLoss` of independent labels, by definition."""
    X = f.design.X.toarray() if sp.issparse(f.design.X) else f.design.X
    A = np.column_stack([X, np.ones(len(X))]) if f.fit_intercept else X
    table = x.reshape(f.shape)
    values, slopes = rows_of(f.loss, A @ table, f.Y)
    ridge = f.alpha * table * (np.arange(len(table)) < X.shape[1])[:, None]
    gradient = A.T @ (f.weight[:, None] * slopes) + ridge
    return f.weight @ values.sum(axis=1) + 0.5 * (ridge * table).sum(), gradient.ravel()


def by_lbfgs(f):
    return minimize(
        lambda x: objective(f, x), np.zeros(f.n_variables), jac=True, method="L-BFGS-B",
        options=dict(maxiter=2000, maxfun=4000, ftol=1e-16, gtol=1e-8),
    )  # fmt: skip


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n, p", [(120, 15), (120, 80), (30, 80)])
def test_optimum_is_that_of_another_optimiser(loss, alpha, intercept, n, p):
    weight = np.random.default_rng(1).random(n) * (np.arange(n) % 5 > 0)
    f = problem(loss, alpha=alpha, intercept=intercept, sparse=intercept, n=n, p=p, weight=weight)
    theirs = by_lbfgs(f)
    found = minimize_independent(f, None, tol=1e-9, max_iter=100)
    assert found.status == outcome.CONVERGED and found.optimality <= 1e-9
    assert found.fun <= theirs.fun * (1.0 + 2e-9) and theirs.fun <= found.fun * (1.0 + 1e-4)
    assert objective(f, found.x)[0] == pytest.approx(found.fun, rel=1e-12)
    assert found.dual_gap == pytest.approx(found.optimality * found.fun)
    assert found.fun - found.dual_gap <= theirs.fun + 1e-12
    # from there nothing is left to do
    again = minimize_independent(f, found.x, tol=1e-6, max_iter=10)
    assert again.nit == 0 and again.status == outcome.CONVERGED


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_are_maxima_over_slopes(loss):
    """Slopes and curvatures are derivatives; a loss and its conjugate meet at the slope (Fenchel, Young)."""
    rng = np.random.default_rng(0)
    Y = (rng.random((50, 3)) < 0.5).astype(float)
    rows = {"sparsemap": clipped_square_rows, "hinge": hinge_rows, "logistic": LogisticRows}[loss](Y)
    eta, every, h = 2.0 * rng.normal(size=Y.shape), np.arange(3), 1e-6
    exact = rows_of(loss, eta, Y)[0]
    np.testing.assert_allclose(rows.exact_values(eta), exact, atol=1e-12)
    if loss == "hinge":
        rows.smoothing, rows.centre = 0.5, np.where(Y > 0, -1.0, 1.0) * rng.random(Y.shape)
        assert (rows.values(eta, every) <= rows.exact_values(eta) + 1e-12).all()
    slope = (rows.values(eta + h, every) - rows.values(eta - h, every)) / (2 * h)
    u = rows.slopes(eta, every)
    np.testing.assert_allclose(u, slope, atol=1e-6)
    bend = (rows.slopes(eta + h, every) - rows.slopes(eta - h, every)) / (2 * h)
    np.testing.assert_allclose(rows.curvatures(eta, every), bend, atol=1e-5)
    if loss != "hinge":
        np.testing.assert_allclose(rows.conjugates(u), u * eta - exact, atol=1e-12)
    else:
        assert (rows.conjugates(u) >= u * eta - exact - 1e-12).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("far", [0.0, 50.0])
def test_systems_are_solved_alike_by_rows_columns_and_products(sparse, intercept, far, monkeypatch):
    rng = np.random.default_rng(0)
    n, p, K = 60, 6, 4
    X = rng.normal(size=(n, p)) + far
    X = sp.csr_matrix(X) if sparse else X
    weight = rng.random(n) / n
    systems = OutputSystems(design_of(X, 1), weight, 0.05, intercept)
    G = rng.normal(size=(p + intercept, K))
    D = rng.random((n, K)) * (rng.random((n, K)) < 0.7) * weight[:, None]
    monkeypatch.setattr(output_systems, "MAX_PRODUCTS", 500)
    A = np.column_stack([X.toarray() if sparse else X, np.ones((n, int(intercept)))])
    ways = [systems._by_columns, systems._by_rows, systems._by_products]
    # large means leave products, and a matrix of rows without centred columns, few digits
    for solve in ways[: 3 if far == 0.0 else 2 - sparse]:
        d = solve(G, D, np.full(K, 1e-12))
        # the ridge of the intercept is one of that of centred columns, where they are centred
        back = np.eye(p + intercept)
        back[p:, :p] = -systems.shift if solve == systems._by_rows else 0.0
        for k in range(K):
            ridge = np.r_[np.full(p, 0.05), np.full(int(intercept), 1e-6 * D[:, k].sum())]
            B = A @ back
            wanted = back @ np.linalg.solve((B.T * D[:, k]) @ B + np.diag(ridge), -back.T @ G[:, k])
            np.testing.assert_allclose(d[:, k], wanted, rtol=1e-5, atol=1e-6 * abs(wanted).max())


@pytest.mark.parametrize(
    "case",
    [
        {}, dict(p=200, n=60), dict(sparse=True), dict(intercept=False), dict(p=400, n=60, sparse=True),
        dict(p=400, n=60, intercept=False), dict(p=400, n=60, far=20.0), dict(p=400, n=60),
    ],
)  # fmt: skip
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_hinge_is_that_of_the_solver_with_bounds(case, alpha):
    f = problem("hinge", alpha=alpha, K=3, **case)
    found = minimize_independent(f, None, tol=1e-6, max_iter=2000)
    assert found.status == outcome.CONVERGED
    fun, gap = 0.0, 0.0
    for y in f.Y.T:
        X = (
            sp.csr_matrix((f.design.data, f.design.indices, f.design.indptr), f.design.shape)
            if case.get("sparse")
            else f.design.X
        )
        bounds = np.full(X.shape[1], -1e9), np.full(X.shape[1], 1e9)
        model = BoundedClassifier(
            "hinge", bounds=bounds, alpha=alpha, fit_intercept=f.fit_intercept, tol=1e-7
        )
        model.fit(X, y)
        fun, gap = fun + model.objective_[0], gap + model.dual_gap_[0]
    assert fun - gap - 1e-12 <= found.fun <= fun * (1.0 + 2e-6)


@pytest.mark.parametrize("loss, alpha", [("logistic", 1e-7), ("sparsemap", 1e-4)])
@pytest.mark.parametrize("shape", [(60, 300), (300, 60)])
def test_weak_penalties_are_certified_in_few_steps(loss, alpha, shape):
    f = problem(loss, n=shape[0], p=shape[1], alpha=alpha)
    found = minimize_independent(f, None, tol=1e-4, max_iter=60)
    assert found.status == outcome.CONVERGED and found.dual_gap <= 1e-4 * found.fun


@pytest.mark.parametrize("loss", LOSSES)
def test_means_of_columns_do_not_matter(loss):
    near, far = (
        minimize_independent(problem(loss, n=60, p=8, far=by), None, tol=1e-6, max_iter=1000)
        for by in (0.0, 100.0)
    )
    assert far.status == outcome.CONVERGED and far.fun == pytest.approx(near.fun, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_are_constant_or_separable(loss):
    """Rows of a constant label are all decided: only the intercept's own ridge keeps its system regular."""
    f = problem(loss, alpha=1e-3)
    f.Y[:, 0], f.Y[:, 1], f.Y[:, 2] = 0.0, 1.0, 0.0
    f.Y[7, 2] = 1.0
    found = minimize_independent(f, None, tol=1e-4, max_iter=200)
    assert found.status == outcome.CONVERGED
    table, _, _ = f.unpack(found.x)
    eta = f.scores(table)
    assert (eta[:, 0] < 0.2).all() and (eta[:, 1] > 0.8).all()


def test_hinge_without_penalty_is_a_linear_program():
    f = problem("hinge", K=2, n=30, p=2, alpha=0.0, seed=3)
    best = 0.0
    for y in f.Y.T:
        A = (1.0 - 2.0 * y)[:, None] * np.column_stack([f.design.X, np.ones(30)])
        c = np.r_[np.zeros(3), np.full(30, 1 / 30)]
        bounds = [(None, None)] * 3 + [(0, None)] * 30
        best += linprog(c, np.column_stack([A, -np.eye(30)]), -np.ones(30), bounds=bounds).fun
    found = minimize_independent(f, None, tol=1e-6, max_iter=1000)
    assert np.isnan(found.dual_gap) and found.status == outcome.CONVERGED
    assert found.fun == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("loss", SMOOTH)
def test_no_penalty_is_the_limit_of_little(loss):
    found, near = (
        minimize_independent(problem(loss, n=400, p=5, alpha=alpha), None, tol=1e-6, max_iter=200)
        for alpha in (0.0, 1e-8)
    )
    assert np.isnan(found.dual_gap) and found.status == near.status == outcome.CONVERGED
    assert found.fun == pytest.approx(near.fun, rel=1e-4)


# hinges of more than 20000 entries have coordinate ascent
@pytest.mark.parametrize("loss, p", [*((loss, 15) for loss in LOSSES), ("hinge", 170)])
def test_limits_callbacks_and_history(loss, p):
    f = problem(loss, p=p, alpha=1e-4)
    full = minimize_independent(f, None, tol=1e-8, max_iter=1000, history=True)
    assert full.status == outcome.CONVERGED and len(full.history["fun"]) == full.nit
    if loss != "hinge":
        assert (np.diff(full.history["fun"]) <= 1e-12).all()
    for n in range(1, full.nit, max(1, full.nit // 8)):
        cut = minimize_independent(f, None, tol=1e-8, max_iter=n)
        # the bounds are computed where it is cut short, so that fewer steps may suffice
        assert cut.nit == n and (cut.status == outcome.MAX_ITER) == (cut.optimality > 1e-8)
        assert objective(f, cut.x)[0] == pytest.approx(cut.fun, rel=1e-9)
        assert full.fun - full.dual_gap <= cut.fun <= full.fun + cut.dual_gap
    seen = []

    def stop(report):
        seen.append(report.nit)
        if p == 170:
            assert objective(f, report.x)[0] == pytest.approx(report.fun, rel=1e-9)
        report.x[:] = np.nan
        return report.nit == 2

    found = minimize_independent(f, None, tol=1e-8, max_iter=100, callback=stop)
    assert found.status == outcome.STOPPED and seen == [1, 2] and np.isfinite(found.x).all()
    assert minimize_independent(f, None, tol=1e-8, max_iter=100, max_time=1e-12).status == outcome.MAX_TIME
    # as near as rounding lets it come
    end = minimize_independent(f, None, tol=1e-30, max_iter=2000)
    assert end.status == outcome.NO_PROGRESS or end.dual_gap == 0.0


def test_coordinate_ascent_begins_at_other_coefficients():
    f = problem("hinge", n=60, p=400, alpha=1e-2)
    cold = minimize_independent(f, None, tol=1e-8, max_iter=1000)
    warm = minimize_independent(f, cold.x, tol=1e-6, max_iter=1000)
    assert warm.status == outcome.CONVERGED and warm.nit < cold.nit
    assert warm.fun == pytest.approx(cold.fun, rel=2e-6)


def test_proximal_steps_after_the_ascent_begin_anew():
    """Large means make sweeps slow. From the last dual variables these steps take 45 in all."""
    found = minimize_independent(
        problem("hinge", n=60, p=400, K=3, far=20.0, alpha=1e-3), None, tol=1e-6, max_iter=35
    )
    assert found.status == outcome.CONVERGED and found.optimality <= 1e-6


def test_proximal_steps_after_the_ascent_go_on_from_a_good_point():
    """From the point before it these steps take 91 in all."""
    rng = np.random.default_rng(0)
    one, centres = rng.integers(0, 3, 500), rng.standard_normal((3, 60))
    X, Y = 0.35 * centres[one] + rng.standard_normal((500, 60)), np.eye(3)[one]
    weight, labels = np.full(500, 1 / 500), Labels(3, np.zeros((0, 2)))
    f = LabelLoss("hinge", labels, X, Y, weight, fit_intercept=True, alpha=1e-4)
    found = minimize_independent(f, None, tol=1e-4, max_iter=70)
    assert found.status == outcome.CONVERGED and found.optimality <= 1e-4


def test_nothing_is_left_to_do_at_a_loose_tolerance():
    found = minimize_independent(problem("hinge", n=60, p=400), None, tol=1.0, max_iter=10)
    assert found.nit == 0 and found.status == outcome.CONVERGED


def test_a_factor_that_changes_nothing_changes_no_objective():
    f = problem("hinge", K=2, n=40, p=3)
    labels = Labels(2, np.zeros((0, 2)), [Budget(FactorGraph().variable((2,)), 2)])
    tied = LabelLoss("hinge", labels, f.design.X, f.Y, f.weight, alpha=f.alpha)
    ours = minimize_independent(f, None, tol=1e-6, max_iter=1000)
    coupled = minimize_coupled_hinge(tied, None, tol=1e-6, max_iter=1000)
    assert ours.fun == pytest.approx(coupled.fun, rel=2e-6)
