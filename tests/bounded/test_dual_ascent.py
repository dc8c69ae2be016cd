"""Fits by coordinate ascent on the dual: against the reference, its plan and its limits."""

import numpy as np
import pytest
import reference_bounded as reference
import scipy.sparse as sp

from sparsekit import BoundedClassifier, BoundedRegressor
from sparsekit._bounded import plan
from sparsekit._bounded.losses.losses import classification_loss, regression_loss
from sparsekit._bounded.losses.problem import BoundedProblem
from sparsekit._bounded.solver import dual_ascent
from sparsekit._bounded.solver.certificate import Certificate
from sparsekit._bounded.solver.run import BoundedOptions, BoundedRun
from sparsekit._solver import outcome
from sparsekit._solver.outcome import Stop

LOSSES = (
    "absolute", "epsilon_insensitive", "hinge", "huber", "modified_huber", "quantile", "squared",
    "squared_hinge",
)  # fmt: skip


SHAPES = {"quantile": 0.3, "epsilon": 0.2}


def make(loss, **parameters):
    if loss in reference.CLASSIFICATION:
        return BoundedClassifier(loss, history=True, **parameters)
    return BoundedRegressor(loss, history=True, **SHAPES, **parameters)


def wide(loss, seed=0, n=90, p=300):
    """More columns than rows, some of them empty, with an empty row; the targets of ``loss``."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.2)
    X[3], X[:, 5] = 0.0, 0.0
    y = X[:, :10].sum(axis=1) + rng.standard_normal(n) + 0.7
    return X, np.where(y > 0.5, 1.0, -1.0) if loss in reference.CLASSIFICATION else y


def methods(model):
    return set(model.history_["method"])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_solution_is_that_of_the_reference(loss, fit_intercept):
    X, y = wide(loss)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    keep = weight > 0
    model = make(loss, alpha=0.02, fit_intercept=fit_intercept, tol=1e-9).fit(X, y, sample_weight=weight)
    assert methods(model) == {"dual"}
    options = {"loss": loss, "alpha": 0.02, "sample_weight": weight[keep].astype(float), **SHAPES}
    w, _, best = reference.solve(X[keep], y[keep], fit_intercept=fit_intercept, **options)
    fun = np.ravel(model.objective_)[0]
    own = reference.objective(
        X[keep], y[keep], np.ravel(model.coef_), np.ravel(model.intercept_)[0], **options
    )
    assert own == pytest.approx(fun, rel=1e-10)
    assert fun == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(np.ravel(model.coef_), w, atol=2e-4)


@pytest.mark.parametrize("mean, is_alone", [(0.0, True), (3.0, False)])
def test_large_sparse_least_squares_have_sweeps(mean, is_alone):
    """Columns of large means leave the last digits to Newton's method."""
    X = sp.random(1200, 1500, 0.02, "csr", random_state=3)
    X.data += mean
    y = X @ np.random.default_rng(3).standard_normal(1500)
    model = make("squared", alpha=1e-3, tol=1e-8).fit(X, y)
    assert (methods(model) == {"dual"}) == is_alone and "dual" in methods(model)
    A = X.toarray() - np.ravel(X.mean(axis=0))
    u = np.linalg.solve(A @ A.T + 1.2 * np.eye(1200), y - y.mean())
    np.testing.assert_allclose(model.coef_, A.T @ u, atol=1e-3 * np.abs(A.T @ u).max())


BOXES = {
    "nonnegative": {"bounds": (0, None)},
    "narrow": {"bounds": (-0.02, 0.05)},
    "away from zero": {"bounds": (0.01, 0.2)},
    "L1": {"l1_ratio": 0.4},
    "L1 and box": {"bounds": (-0.1, None), "l1_ratio": 0.4},
}


def sweeps(X, y, loss, box, alpha, fit_intercept):
    """The run of sweeps alone, from zero, and the options of the reference."""
    weight, l1_ratio = np.full(len(y), 1.0 / len(y)), box.get("l1_ratio", 0.0)
    if loss in reference.CLASSIFICATION:
        rows = classification_loss(loss, y, weight)
    else:
        rows = regression_loss(loss, y, weight, **SHAPES)
    bounds = box.get("bounds", (None, None))
    low, high = reference.as_bounds(bounds, X.shape[1])
    l1, l2 = alpha * l1_ratio, alpha * (1.0 - l1_ratio)
    problem = BoundedProblem(X, rows, low, high, l1, l2, fit_intercept=fit_intercept)
    run = BoundedRun(problem, BoundedOptions(tol=1e-8), Certificate(problem), keep=True)
    w = np.clip(np.zeros(X.shape[1]), low, high)
    run.begin(w, 0.0)
    with pytest.raises(Stop) as stop:
        dual_ascent.ascend(run, w, 0.0, cost=1e12)
    assert stop.value.status == outcome.CONVERGED
    return run, dict(bounds=bounds, alpha=alpha, l1_ratio=l1_ratio, fit_intercept=fit_intercept, **SHAPES)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.thorough(keep=12)
def test_solution_in_a_box_is_that_of_the_reference(loss, box):
    X, y = wide(loss, n=101, p=200)
    form = sp.csr_array(X) if loss < "h" else X.astype(np.float32) if loss == "hinge" else X
    run, options = sweeps(form, y, loss, BOXES[box], 0.02, fit_intercept=box != "narrow")
    assert set(run.history.columns()["method"]) == {"dual"}
    w, _, best = reference.solve(np.asarray(X if loss != "hinge" else form, dtype=float), y, loss, **options)
    assert run.primal == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(run.w, w, atol=5e-4)
    low, high = reference.as_bounds(options["bounds"], X.shape[1])
    assert (run.w >= low).all() and (run.w <= high).all()


@pytest.mark.parametrize("form", ["C", "F", "csc", "csr", "int64", "float32"])
def test_every_form_of_X_has_the_same_solution(form):
    X, y = wide("hinge", n=101, p=200)
    given = {
        "C": X,
        "F": np.asfortranarray(X),
        "csc": sp.csc_matrix(X),
        "csr": sp.csr_array(X),
        "int64": sp.csr_array(X),
        "float32": X.astype(np.float32),
    }[form]
    if form == "int64":
        given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    model = make("hinge", alpha=0.01).fit(given, y)
    known = make("hinge", alpha=0.01, tol=1e-9).fit(X, y)
    assert methods(model) == {"dual"} and model.optimality_ <= 1e-6
    assert model.objective_[0] == pytest.approx(known.objective_[0], rel=2e-6)
    for box in BOXES.values():
        run, known = (sweeps(one, y, "hinge", box, 0.01, True)[0] for one in (given, X))
        assert run.primal == pytest.approx(known.primal, rel=2e-6)


@pytest.mark.parametrize("loss", ["absolute", "hinge", "squared_hinge"])
def test_no_entries(loss):
    y = wide(loss)[1]
    dense = make(loss, alpha=0.01).fit(np.zeros((90, 300)), y)
    for form in (sp.csr_array, sp.csc_array):
        model = make(loss, alpha=0.01).fit(form((90, 300)), y)
        assert not model.coef_.any()
        np.testing.assert_allclose(model.objective_, dense.objective_, rtol=2e-6)


def test_entries_of_one_place_are_summed():
    X, y = wide("hinge")
    X = sp.coo_array(X)
    twice = sp.csr_array(
        (np.repeat(X.data / 2, 2), (np.repeat(X.coords[0], 2), np.repeat(X.coords[1], 2))), shape=X.shape
    )
    given = sp.csr_array((np.repeat(twice.data / 2, 2), np.repeat(twice.indices, 2), 2 * twice.indptr))
    assert given.nnz == 2 * X.nnz and not given.has_canonical_format
    model, known = (make("hinge", alpha=0.01).fit(A, y) for A in (given, X.tocsr()))
    np.testing.assert_allclose(model.objective_, known.objective_, rtol=3e-6)
    assert model.n_iter_[0] <= 2 * known.n_iter_[0]


def test_equal_calls_have_equal_bits():
    X, y = wide("hinge")
    first, second = (make("hinge").fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.n_iter_ == second.n_iter_


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
def test_weights_are_repeated_rows(loss):
    X, y = wide(loss)
    weight = np.random.default_rng(2).integers(0, 3, len(y))
    one = make(loss, alpha=0.01, tol=1e-10).fit(X, y, sample_weight=weight)
    other = make(loss, alpha=0.01, tol=1e-10).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(np.ravel(one.coef_), np.ravel(other.coef_), atol=1e-5)


def test_a_free_intercept_converges_where_every_row_is_at_a_bound():
    """Then no step changes anything but the multiplier of the intercept."""
    rng = np.random.default_rng(3)
    X = sp.random(400, 500, 0.02, format="csr", random_state=4)
    y = np.where(rng.random(400) < 0.2, 1.0, -1.0)
    model = make("hinge", alpha=10.0).fit(X, y)
    assert "dual" in methods(model) and model.optimality_ <= 1e-6
    assert model.objective_[0] == pytest.approx(2 * np.mean(y > 0), rel=1e-2)


def test_a_strong_ridge_takes_few_rounds():
    """The intercept goes to its best value: by its multiplier alone it takes 43 rounds."""
    X = sp.random(2000, 300, 0.03, format="csr", random_state=1)
    y = np.where(X @ np.random.default_rng(8).standard_normal(300) < 0, -1.0, 1.0)
    model = make("hinge", alpha=1.0).fit(X, y)
    assert methods(model) == {"dual"} and model.n_iter_[0] <= 25


def test_fits_go_on_from_the_last_solution():
    X, y = wide("squared_hinge")
    model = make("squared_hinge", alpha=0.01, tol=1e-10, warm_start=True).fit(X, y)
    assert model.n_iter_[0] > 9
    assert model.fit(X, y).n_iter_[0] <= 3


@pytest.mark.parametrize("loss, alpha", [("hinge", 1e-4), ("squared", 1e-2)])
def test_columns_with_large_means_are_left_to_other_methods(loss, alpha):
    X, y = wide(loss)
    X = X + 100.0
    model = make(loss, alpha=alpha).fit(X, y)
    assert methods(model) > {"dual"} and model.optimality_ <= 1e-6
    assert np.count_nonzero(model.history_["method"] == "dual") < 20


def test_limits_and_callbacks_end_it():
    X, y = wide("absolute")
    with pytest.warns(UserWarning, match="max_iter"):
        assert make("absolute", alpha=1e-4, tol=1e-12, max_iter=3).fit(X, y).n_iter_ == 3
    seen = []

    def stop(report):
        seen.append(report.x.copy())
        return len(seen) == 2

    model = make("absolute", alpha=1e-4, tol=1e-12, callback=stop).fit(X, y)
    assert model.n_iter_ == 2
    np.testing.assert_array_equal(model.coef_, seen[-1][0, :-1])


@pytest.mark.parametrize(
    "parameters, first, is_used",
    [
        ({}, "dual", True),
        ({"bounds": (0, None)}, "nqn", True),
        ({"bounds": (None, 1)}, "nqn", True),
        ({"l1_ratio": 0.5}, "nqn", True),
        ({"alpha": 0.0, "bounds": (0, 1)}, "nqn", False),
        ({"loss": "log_loss"}, "nqn", False),
        ({"loss": "squared"}, "dual", True),
        ({"loss": "squared", "bounds": (-0.02, 0.02)}, "nqn", False),
    ],
)
def test_plan_of_more_columns_than_rows(parameters, first, is_used):
    loss = parameters.get("loss", "hinge")
    X, y = wide(loss, n=260, p=500)
    model = make(**{"loss": loss, "alpha": 1e-3, **parameters}).fit(X, y)
    assert model.history_["method"][0] == first and ("dual" in methods(model)) == is_used
    assert model.optimality_ <= 1e-6


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize(
    "loss, n, p, expected",
    [("hinge", 400, 320, True), ("hinge", 400, 60, True), ("hinge", 12000, 40, False),
     ("squared_hinge", 400, 320, False)],
)  # fmt: skip
def test_plan_of_more_rows_than_columns(loss, n, p, is_sparse, expected):
    X = sp.random(n, p, 0.8 if n > 400 else 0.1, format="csr", random_state=5)
    y = np.where(np.random.default_rng(5).random(n) < 0.5, 1.0, -1.0)
    model = make(loss, alpha=1e-2, max_iter=1)
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X if is_sparse else X.toarray(), y)
    assert ("dual" in methods(model)) == expected


@pytest.mark.parametrize(
    "name",
    [
        "ASCENT_NEWTON_STEPS",
        "NQN_COST",
        "INTERCEPT",
        "MIN_NEWTON_COST",
        "MIN_SWEEPS",
        "MORE_SWEEPS",
        "SWEEP_COST",
        "ASCENT_TRIAL",
    ],
)  # fmt: skip
@pytest.mark.parametrize("extreme", ["large", "small"])
def test_answers_do_not_depend_on_limits(monkeypatch, name, extreme):
    values = {
        "NQN_COST": (0.0, 1e12), "INTERCEPT": (0.03, 3.0), "MIN_NEWTON_COST": (0.0, np.inf),
        "MIN_SWEEPS": (1, 90), "MORE_SWEEPS": (0.0, 2.0), "ASCENT_NEWTON_STEPS": (0.0, 1e6),
        "SWEEP_COST": (0.0, 1e9), "ASCENT_TRIAL": (0.0, np.inf),
    }  # fmt: skip
    X = sp.random(400, 350, 0.05, format="csr", random_state=6)
    rng = np.random.default_rng(6)
    y = X[:, :20] @ rng.standard_normal(20) + 0.1 * rng.standard_normal(400)
    boxes = (None, None), (0, None)
    known = [make("absolute", alpha=1e-2, bounds=box).fit(X, y).objective_ for box in boxes]
    monkeypatch.setattr(plan if hasattr(plan, name) else dual_ascent, name, values[name][extreme == "large"])
    for box, objective in zip(boxes, known):
        model = make("absolute", alpha=1e-2, bounds=box).fit(X, y)
        assert model.optimality_ <= 1e-6
        assert model.objective_ == pytest.approx(objective, rel=3e-6)
