"""Newton's method for labels that are apart, beside L-BFGS on the same loss."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from sparsekit import AtMostOne, FactorGraph, LPSparseMAPClassifier
from sparsekit._factor_graph.labels import label_newton
from sparsekit._factor_graph.labels.label_loss import LabelLoss, Labels
from sparsekit._factor_graph.labels.label_newton import are_apart, minimize_apart
from sparsekit._factor_graph.labels.label_solver import minimize_labels
from sparsekit._solver import outcome

LOSSES = ("sparsemap", "logistic")


def problem(
    loss="sparsemap", n=120, p=15, K=4, alpha=1e-2, intercept=True, sparse=False, seed=0, weight=None
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.5) * rng.exponential(size=p)
    Y = (X @ rng.normal(size=(p, K)) + rng.normal(size=(n, K)) > rng.normal(size=K)).astype(float)
    weight = np.ones(n) if weight is None else weight
    return LabelLoss(
        loss, Labels(K, np.zeros((0, 2))), sp.csr_matrix(X) if sparse else X, Y, weight / weight.sum(),
        fit_intercept=intercept, alpha=alpha,
    )  # fmt: skip


def by_lbfgs(loss):
    return minimize(
        loss.value_and_gradient, np.zeros(loss.n_variables), jac=True, method="L-BFGS-B",
        options=dict(maxiter=20000, maxfun=40000, ftol=1e-16, gtol=1e-8),
    )  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("p", [15, 80])
def test_optimum_is_that_of_another_optimiser(loss, alpha, intercept, p, monkeypatch):
    f = problem(loss, alpha=alpha, intercept=intercept, sparse=intercept, p=p)
    theirs = by_lbfgs(f)
    # by a factor, or by both; by products of 80 columns alone
    for factors in (512, 0)[: 1 + (p > 64)]:
        monkeypatch.setattr(label_newton, "_FACTORS", factors)
        found = minimize_apart(f, None, tol=1e-9, max_iter=100)
        assert found.status == outcome.CONVERGED and found.optimality <= 1e-9
        assert found.nit <= 60  # 44 on some processors
        assert found.fun == pytest.approx(theirs.fun, rel=1e-9)
        value, gradient = f.value_and_gradient(found.x)
        assert value == pytest.approx(found.fun, rel=1e-12)
        unit = abs(f.value_and_gradient(np.zeros(f.n_variables))[1]).max()
        assert abs(gradient).max() / unit == pytest.approx(found.optimality, abs=1e-12)
        if intercept:
            assert np.isnan(found.dual_gap)
        else:
            assert -1e-12 <= found.fun - theirs.fun <= found.dual_gap + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_result_is_that_of_the_general_solver(loss):
    rng = np.random.default_rng(1)
    f = problem(loss, weight=rng.random(120) * (rng.random(120) < 0.8))
    ours, other = (run(f, None, tol=1e-7, max_iter=2000) for run in (minimize_apart, minimize_labels))
    assert ours.fun == pytest.approx(other.fun, rel=1e-8)
    np.testing.assert_allclose(ours.x, other.x, atol=1e-4)
    # from there nothing is left to do
    again = minimize_apart(f, ours.x, tol=1e-6, max_iter=10)
    assert again.nit == 0 and again.status == outcome.CONVERGED


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_are_constant_or_apart_by_a_plane(loss):
    """Rows of a constant label are all decided: only the least curvature holds its intercept."""
    f = problem(loss, alpha=1e-3)
    f.Y[:, 0], f.Y[:, 1], f.Y[:, 2] = 0.0, 1.0, 0.0
    f.Y[7, 2] = 1.0
    found = minimize_apart(f, None, tol=1e-4, max_iter=200)
    assert found.status == outcome.CONVERGED
    table, _, _ = f.unpack(found.x)
    eta = f.scores(table)
    assert (eta[:, 0] < 0.2).all() and (eta[:, 1] > 0.8).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_limits_callbacks_and_history(loss):
    f = problem(loss, alpha=1e-4)
    full = minimize_apart(f, None, tol=1e-8, max_iter=100, history=True)
    assert len(full.history["fun"]) == full.nit and (np.diff(full.history["fun"]) <= 1e-12).all()
    for n in range(1, full.nit):
        cut = minimize_apart(f, None, tol=1e-8, max_iter=n)
        assert (cut.status, cut.nit) == (outcome.MAX_ITER, n)
        assert cut.fun == full.history["fun"][n - 1]
        assert f.value_and_gradient(cut.x)[0] == pytest.approx(cut.fun, rel=1e-9)
    seen = []

    def stop(report):
        seen.append(report.nit)
        report.x[:] = np.nan
        return report.nit == 2

    found = minimize_apart(f, None, tol=1e-8, max_iter=100, callback=stop)
    assert found.status == outcome.STOPPED and seen == [1, 2] and np.isfinite(found.x).all()
    assert minimize_apart(f, None, tol=1e-8, max_iter=100, max_time=1e-12).status == outcome.MAX_TIME
    # as near as rounding lets it come
    assert minimize_apart(f, None, tol=1e-30, max_iter=500).status == outcome.NO_PROGRESS


def test_who_is_apart():
    f = problem("logistic")
    assert are_apart(f) and are_apart(problem())
    for labels in (Labels(4, [[0, 1]]), Labels(4, [], [AtMostOne(FactorGraph().variable((4,)))])):
        args = labels, np.eye(4), np.eye(4), np.full(4, 0.25)
        assert not are_apart(LabelLoss("sparsemap", *args))
    assert not are_apart(LabelLoss("hinge", Labels(4, []), *args[1:]))


def test_estimator_takes_few_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    Y = X @ rng.normal(size=(40, 6)) + rng.normal(size=(300, 6)) > 0
    for loss in LOSSES:
        model = LPSparseMAPClassifier(1e-3, loss=loss).fit(X, Y)
        assert model.n_iter_[0] <= 15 and model.optimality_ <= 1e-4


def test_labels_almost_apart_are_solved_by_factors_of_few_rows(monkeypatch):
    """After steps by products, since the first one has all rows, and to the optimum without the factors."""
    taken, newton = [], label_newton.ApartLabels._newton

    def watched(self, G, D):
        taken.append(np.count_nonzero(self.loss.weight[:, None] * 1e-3 < D))
        return newton(self, G, D)

    monkeypatch.setattr(label_newton.ApartLabels, "_newton", watched)
    f = problem(n=400, p=80, alpha=1e-5)
    found = minimize_apart(f, None, tol=1e-7, max_iter=200)
    assert found.status == outcome.CONVERGED
    assert 0 < len(taken) < found.nit and max(taken) < 400
    monkeypatch.setattr(label_newton, "_FACTORS", 0)
    before, other = len(taken), minimize_apart(f, None, tol=1e-7, max_iter=200)
    assert len(taken) == before
    assert found.fun == pytest.approx(other.fun, rel=1e-7)
