"""The elastic net of the L1 estimators: equal to scikit-learn's, and certified, down to the ridge."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA, StabilitySelection, l1_logistic_path
from sparsekit._l1.losses.losses import LeastSquaresLoss, LogisticLoss
from sparsekit._l1.solver.oba import minimize_oba
from sparsekit.metrics import kkt_violation
from sparsekit.optimize import minimize_oba as public_oba


def data(n=60, p=25, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.6)
    scores = X[:, :n_classes] + 0.5 * rng.normal(size=(n, n_classes))
    return X, X[:, :4].sum(axis=1) + 0.3 * rng.normal(size=n) + 1.0, scores.argmax(axis=1)


def penalty(w, ratio, v=1.0):
    return float(np.sum(v * (ratio * np.abs(w) + 0.5 * (1.0 - ratio) * w**2)))


def test_weights_of_both_parts_and_a_free_intercept():
    # glmnet's penalty.factor: variables without l1 or without l2, or neither, side by side
    from scipy.optimize import minimize

    X, _, codes = data(80, 12)
    loss = LogisticLoss(sp.csr_matrix(X), 2.0 * codes - 1.0, fit_intercept=True)
    l1, l2 = np.tile([0.0, 0.5, 2.0], 5)[:13], np.repeat([0.0, 0.1, 3.0, 1.0], 4)[:13]
    l1[-1] = l2[-1] = 0.0
    result = minimize_oba(loss, l1, tol=1e-9, l2=l2)

    def split(x):
        full = x[:13] - x[13:]
        g = loss.gradient(full) + l2 * full
        value = loss.value(full) + l1 @ x[:13] + l1 @ x[13:] + 0.5 * l2 @ full**2
        return value, np.concatenate([g + l1, l1 - g])

    peer = minimize(split, np.zeros(26), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 26,
                    options=dict(ftol=1e-15, gtol=1e-10, maxiter=10**4, maxfun=10**5))  # fmt: skip
    assert_allclose(result.fun, peer.fun, rtol=1e-8)
    assert 0 <= result.dual_gap + 1e-12 <= 1e-7


def test_cross_validation_chooses_the_ratio_too():
    X, _, codes = data(120, 10, 3)
    cv = list(StratifiedKFold(3).split(X, codes))
    options = dict(cv=cv, scoring="neg_log_loss", tol=1e-7)
    several = L1LogisticOBACV([1.0, 0.1, 3.0], l1_ratio=[1.0, 0.0, 0.4], **options).fit(X, codes)
    alone = {
        r: L1LogisticOBACV([0.1, 1.0, 3.0], l1_ratio=r, **options).fit(X, codes) for r in (0.0, 0.4, 1.0)
    }
    assert several.l1_ratios_.tolist() == [0.0, 0.4, 1.0]
    assert_allclose(several.l1_ratio_scores_, [one.mean_score_.max() for one in alone.values()], rtol=1e-6)
    best = alone[several.l1_ratio_]
    assert best.mean_score_.max() == max(one.mean_score_.max() for one in alone.values())
    for name in ("scores_", "se_", "C_", "C_1se_", "coef_", "objective_"):
        assert_allclose(getattr(several, name), getattr(best, name), rtol=1e-6, atol=1e-9)
    for j, C in enumerate(best.Cs_):
        single = L1LogisticOBA(C, l1_ratio=several.l1_ratio_, tol=1e-7)
        expected = cross_val_score(single, X, codes, cv=cv, scoring="neg_log_loss")
        assert_allclose(several.scores_[:, j], expected, rtol=1e-4)
    assert_allclose(several.objective_, single.set_params(C=several.C_).fit(X, codes).objective_)
    # folds alone, and a tie, which the sparser penalty has
    folds = clone(several).set_params(refit=False).fit(X, codes)
    assert_allclose(
        folds.coef_, alone[several.l1_ratio_].set_params(refit=False).fit(X, codes).coef_, atol=1e-9
    )
    tied = L1LogisticOBACV([1e-9], l1_ratio=[0.5, 1.0], cv=3).fit(X, codes)
    assert tied.l1_ratio_ == 1.0 and not tied.coef_.any()


def test_cross_validation_has_a_grid_for_each_ratio():
    X, _, codes = data()
    for ratio in (0.2, 1.0, [0.2, 1.0]):
        model = L1LogisticOBACV(3, l1_ratio=ratio, cv=2).fit(X, codes)
        path = l1_logistic_path(X, codes, n_lambdas=3, l1_ratio=model.l1_ratio_)
        assert_allclose(model.Cs_[:3], path.Cs)  # it goes on where the last is the best
    # that of the ridge reaches the weak penalties of the Lasso
    ridge, lasso = (l1_logistic_path(X, codes, n_lambdas=3, l1_ratio=r).Cs for r in (0.0, 1.0))
    assert_allclose([ridge[0], ridge[-1]], [1e-3 * lasso[0], lasso[-1]])
    assert_allclose(L1LogisticOBACV(3, l1_ratio=[0.0, 1.0], cv=2).fit(X, codes).Cs_[2], lasso[-1])
    with pytest.warns(ConvergenceWarning, match=r"fold 0 at C=1, l1_ratio=0.2"):
        L1LogisticOBACV([1.0], l1_ratio=[0.2, 1.0], cv=2, max_iter=1, tol=1e-12).fit(X, codes)
    for bad in ([], [0.5, 1.5], np.nan, [np.nan], [[0.5]], -0.1, ["a"]):
        with pytest.raises(ValueError, match="l1_ratio"):
            L1LogisticOBACV(l1_ratio=bad).fit(X, codes)


def test_stability_selection_has_the_same_penalty():
    X, y, codes = data(60, 10)
    for one, target in ((L1LogisticOBA(), codes), (LassoOBA(), y)):
        highest = []
        for ratio in (1.0, 0.5):
            model = StabilitySelection(one.set_params(l1_ratio=ratio), random_state=0).fit(X, target)
            penalties = model.penalties_
            highest.append((1.0 / penalties if isinstance(one, L1LogisticOBA) else penalties).max())
        assert_allclose(highest[1], 2.0 * highest[0])


def test_bad_weights_are_refused_by_name():
    X, y, _ = data()
    loss = LeastSquaresLoss(X, y)
    for bad in (-1.0, np.nan, np.ones(3)):
        with pytest.raises(ValueError, match="l2 must be"):
            public_oba(loss, 1.0, l2=bad)


class Quadratic:
    """A user's loss: half of x^T A x less b^T x."""

    def __init__(self, n=8):
        rng = np.random.default_rng(3)
        root = rng.normal(size=(n, n))
        self.A, self.b, self.n_variables = root @ root.T, rng.normal(size=n), n

    def value(self, x):
        return float(0.5 * x @ self.A @ x - self.b @ x)

    def gradient(self, x):
        return self.A @ x - self.b

    def hessian_product(self, x, subset, v):
        return self.A[np.ix_(subset, subset)] @ v


@pytest.mark.parametrize("hessian", ["exact", "lbfgs"])
def test_the_public_solver_takes_a_ridge_of_any_loss(hessian):
    loss, l2 = Quadratic(), np.arange(8.0)
    found = public_oba(loss, 0.3, l2=l2, tol=1e-9, hessian=hessian)
    grad = loss.gradient(found.x) + l2 * found.x
    assert found.success and np.isnan(found.dual_gap)
    assert_allclose(found.grad, grad, atol=1e-9)
    assert kkt_violation(found.x, grad, 0.3) <= 1e-8
    assert_allclose(found.fun, loss.value(found.x) + 0.3 * np.abs(found.x).sum() + 0.5 * l2 @ found.x**2)
    alone = public_oba(loss, 0.0, l2=2.0, tol=1e-9, hessian=hessian)
    assert_allclose(alone.x, np.linalg.solve(loss.A + 2.0 * np.eye(8), loss.b), atol=1e-6)
    X, y, _ = data()
    squares = public_oba(LeastSquaresLoss(X, y), 1.0, l2=[2.0] * 25, hessian=hessian)
    assert 0.0 <= squares.dual_gap <= 1e-4 * squares.fun
