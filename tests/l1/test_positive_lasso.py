"""Coefficients >= 0, and the compiled paths of least squares: optima, KKT conditions, certificates."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet, ElasticNetCV

from sparsekit import LassoOBA, LassoOBACV, StabilitySelection, lasso_path
from sparsekit._l1.solver.gram_path import GramPath, moments

TIGHT = dict(tol=1e-10, max_iter=500)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 3.0, 80) * (np.arange(80) > 4)


def problem(kind):
    """X, y and weights of the rows."""
    rng = np.random.default_rng(1)
    if kind == "wide":
        X = rng.standard_normal((30, 90)) + 0.5
        return X, X[:, :4].sum(axis=1) + rng.standard_normal(30), None
    X, y = load_diabetes(return_X_y=True)
    X, y = 20 * X[:80] + 1.0, y[:80]
    return X, y, WEIGHTS if kind == "weights" else None


def objective(X, y, s, w, b, alpha, v, ratio):
    s = np.ones(len(y)) if s is None else s
    squares = float(s @ (y - X @ w - b) ** 2) / (2 * s.sum())
    return squares + alpha * float(v @ (ratio * np.abs(w) + 0.5 * (1 - ratio) * w**2))


def kkt(X, y, s, w, b, alpha, v, ratio):
    """The largest violation of the optimality conditions of w >= 0."""
    s = np.ones(len(y)) if s is None else s
    r = s * (y - X @ w - b) / s.sum()
    slope = -X.T @ r + alpha * v * (ratio + (1 - ratio) * w)
    return max(abs(r.sum()), np.abs(slope[w > 0]).max(initial=0.0), -slope.min())


@pytest.mark.parametrize("kind", ["plain", "weights", "wide"])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scikit_learn_finds_no_better(kind, ratio, fit_intercept):
    X, y, s = problem(kind)
    v, alpha = np.ones(X.shape[1]), 0.2 if kind == "wide" else 1.3
    for container in (np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array):
        model = LassoOBA(alpha, l1_ratio=ratio, positive=True, fit_intercept=fit_intercept, **TIGHT)
        model.fit(container(X), y, s)
        assert (model.coef_ >= 0).all() and model.coef_.any()
        found = objective(X, y, s, model.coef_, model.intercept_, alpha, v, ratio)
        assert model.objective_ == pytest.approx(found, rel=1e-10)
        peer = ElasticNet(alpha, l1_ratio=ratio, positive=True, fit_intercept=fit_intercept, tol=1e-12)
        peer.set_params(max_iter=10**4).fit(X, y, s)
        best = objective(X, y, s, peer.coef_, peer.intercept_, alpha, v, ratio)
        assert abs(found - best) <= 1e-8 * best
        assert found - best <= model.dual_gap_ + 1e-13 * best and model.dual_gap_ <= 1e-8 * best
        b = model.intercept_ if fit_intercept else np.average(y - X @ model.coef_, weights=s)
        if fit_intercept:
            assert kkt(X, y, s, model.coef_, b, alpha, v, ratio) <= 1e-6 * np.abs(y).max()


def test_without_a_penalty_it_is_nonnegative_least_squares():
    X, y, _ = problem("plain")
    model = LassoOBA(0.0, positive=True, fit_intercept=False, **TIGHT).fit(X, y)
    assert_allclose(model.coef_, nnls(X, y)[0], atol=1e-5)
    assert 0 <= model.dual_gap_ <= 1e-8 * model.objective_
    free = LassoOBA(5.0, positive=True, penalty_weights={2: 0.0, 4: 3.0}, **TIGHT).fit(X, y)
    v = np.ones(10)
    v[[2, 4]] = 0.0, 3.0
    assert kkt(X, y, None, free.coef_, free.intercept_, 5.0, v, 1.0) <= 1e-5
    assert free.coef_[2] > 0 and free.dual_gap_ <= 1e-8 * free.objective_


@pytest.mark.parametrize("ratio", [1.0, [0.5, 1.0]])
def test_cross_validation_and_paths_are_those_of_scikit_learn(ratio):
    X, y, s = problem("weights")
    ours = LassoOBACV(10, l1_ratio=ratio, positive=True, cv=4, tol=1e-12).fit(X, y, s)
    theirs = ElasticNetCV(positive=True, l1_ratio=ratio, cv=4, tol=1e-11, max_iter=10**4)
    name = "alphas" if "n_alphas" not in theirs.get_params() else "n_alphas"
    theirs.set_params(**{name: 10}).fit(X, y, sample_weight=s)
    assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-9)
    assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-5)
    assert ours.alpha_ == pytest.approx(theirs.alpha_) and (ours.coef_ >= 0).all()
    path = lasso_path(X, y, alphas=[30.0, 1.0], positive=True, sample_weight=s, **TIGHT)
    one = LassoOBA(1.0, positive=True, **TIGHT).fit(X, y, s)
    assert_allclose(path.coefs[:, 1], one.coef_, atol=1e-5)
    assert path.intercepts[1] == pytest.approx(one.intercept_, rel=1e-6)
    assert path.objectives[1] == pytest.approx(one.objective_, rel=1e-9)
    ends = lasso_path(X, y, n_lambdas=3, positive=True)
    assert ends.n_nonzero[0] == 0 < ends.n_nonzero[1]
    seen = []

    def third(now):
        seen.append(now)
        return len(seen) == 3

    stopped = lasso_path(X, y, n_lambdas=9, positive=True, callback=third)
    assert len(stopped.lambdas) < 9 and stopped.statuses[-1] == 3


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_report_of_a_path_is_that_of_plain_sums(weighted, positive):
    """Value, gap and optimality where few rounds end, and a solution where they do not."""
    X, y, s = problem("weights" if weighted else "plain")
    weight = np.ones(80) if s is None else s
    y = y - np.average(y, weights=weight)
    path = GramPath(moments(X, y, s, np.zeros(10), 0.0), np.zeros(10), True, positive)
    assert_allclose(path.means, np.average(X, axis=0, weights=weight))
    centred, lam = X - path.means, 0.1 * path.origin_scale
    loose, tight = (dict(tol=tol, max_iter=rounds) for tol, rounds in ((0.3, 1), (1e-10, 500)))
    for ratio in (1.0, 0.6):
        [found], [best] = (
            list(path.iterate(np.ones(10), [lam], np.zeros(10), options, l1_ratio=ratio))
            for options in (loose, tight)
        )
        w, l1, l2 = found.x[:10], ratio * lam, (1 - ratio) * lam
        r = y - centred @ w
        assert found.fun == pytest.approx(0.5 * weight @ r**2 + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w)
        g = -centred.T @ (weight * r) + l2 * w
        low = np.full(10, -np.inf) if positive else g - l1
        worst = np.abs(np.median([low, w, g + l1], axis=0)).max()
        assert found.optimality == pytest.approx(worst / path.origin_scale, abs=1e-9)
        assert found.fun - best.fun <= found.dual_gap * (1 + 1e-9)
        assert best.dual_gap <= 1e-9 * best.fun and best.success


def test_stability_selection_selects_positive_effects_only():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    y = 3.0 * X[:, 0] - 3.0 * X[:, 1] + 0.1 * rng.standard_normal(120)
    found = {
        positive: StabilitySelection(LassoOBA(positive=positive), n_pairs=3, random_state=0)
        .fit(X, y)
        .get_support()
        for positive in (False, True)
    }
    assert found[False][:2].all()
    assert found[True][0] and not found[True][1]


def test_where_it_is_not_to_be_had():
    X, y, _ = problem("plain")
    for call in (
        lambda: lasso_path(X, y, positive=True, hessian="lbfgs"),
        lambda: LassoOBACV(positive=True, hessian="lbfgs").fit(X, y),
    ):
        with pytest.raises(ValueError, match="positive must be False where hessian is 'lbfgs'"):
            call()
    with pytest.raises(ValueError, match="overflow"):
        LassoOBA(positive=True).fit(X * 1e160, y)
