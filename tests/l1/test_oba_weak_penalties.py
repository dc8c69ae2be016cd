"""Weak penalties: rows thrown far to the wrong side, ill-conditioned models, certificates that are tight."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import L1LogisticOBA
from sparsekit._l1.losses.multinomial import MultinomialLoss
from sparsekit.optimize import LogisticLoss, OBAOptions, minimize_oba


def separable(n=3000, p=12, seed=0):
    """Rows that two columns tell apart well, so that zero is worse than one row at margin -1000."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    X[:, :2] += 2.0 * y[:, None]
    X[:, -1] = 0.0
    X[0, -1] = 1.0  # one row's own column
    return X, y


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_row_deep_in_the_straight_part_comes_back(layout, fit_intercept):
    X, y = separable()
    loss = LogisticLoss(sp.csr_matrix(X) if layout == "csr" else X, y, fit_intercept=fit_intercept)
    l1 = loss.l1_vector(0.01)
    best = minimize_oba(loss, l1, tol=1e-10)
    start = best.x.copy()
    start[X.shape[1] - 1] -= y[0] * (1000.0 + y[0] * loss.predictor(best.x)[0])
    assert y[0] * loss.predictor(start)[0] == pytest.approx(-1000.0)
    result = minimize_oba(loss, l1, start, history=True)
    assert result.history["fun"][0] > 1000.0  # it was not replaced by zero
    assert result.status == 0 and result.nit <= 20
    assert result.fun <= best.fun * (1 + 1e-4) and result.fun - best.fun <= result.dual_gap


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_whose_class_is_far_behind_comes_back(n_classes):
    rng = np.random.default_rng(1)
    n, p = 1500, 9
    codes = rng.integers(0, n_classes, n)
    X = rng.standard_normal((n, p))
    X[np.arange(n), codes] += 3.0
    X[:, -1] = 0.0
    X[0, -1] = 1.0
    loss = MultinomialLoss(X, codes, n_classes)
    l1 = loss.l1_vector(0.01)
    best = minimize_oba(loss, l1, tol=1e-8)
    start = best.x.copy()
    start[(p - 1) * n_classes + codes[0]] -= 1000.0
    scores = loss.predictor(start)[0]
    assert scores.max() - scores[codes[0]] > 900
    result = minimize_oba(loss, l1, start, history=True)
    assert result.history["fun"][0] > 900.0
    assert result.status == 0 and result.nit <= 15
    assert result.fun - best.fun <= max(result.dual_gap, 1e-12)


def text(n, p, seed, length=40):
    """Counts of words by Zipf's law, some of which say something of the label."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, p + 1)
    rows = np.repeat(np.arange(n), length)
    X = sp.csr_matrix(
        (np.ones(n * length), (rows, rng.choice(p, n * length, p=share / share.sum()))), shape=(n, p)
    )
    w = rng.standard_normal(p) * (rng.random(p) < 0.2)
    z = X @ w + 0.3 * rng.standard_normal(n)
    return X, np.where(z > np.median(z), 1.0, -1.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1.0, 30.0, 1e3])
def test_a_default_fit_is_certified(C, fit_intercept):
    X, y = text(1500, 3000, 0)
    loss = LogisticLoss(X, y, fit_intercept=fit_intercept)
    result = minimize_oba(loss, loss.l1_vector(1 / C))
    assert result.status == 0
    assert 0 <= result.dual_gap <= 1e-4 * result.fun
    tight = minimize_oba(loss, loss.l1_vector(1 / C), tol=1e-9)
    assert result.fun - tight.fun <= result.dual_gap + 1e-12 * result.fun
    # a bound that is far from the truth would be of no use
    error = result.fun - tight.fun
    assert error <= 1e-6 * result.fun or result.dual_gap <= 100 * error


def test_a_looser_tol_gives_a_looser_gap():
    X, y = text(800, 1500, 1)
    loss = LogisticLoss(X, y)
    loose, default = (minimize_oba(loss, loss.l1_vector(0.01), tol=tol) for tol in (1e-3, 1e-5))
    assert default.dual_gap < loose.dual_gap <= 1e-2 * loose.fun and loose.nit <= default.nit
    uncertified = minimize_oba(loss, loss.l1_vector(0.01), gap=False)
    assert np.isnan(uncertified.dual_gap) and uncertified.nit <= default.nit


@pytest.mark.parametrize("strength", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("shape", [(2000, 300), (1500, 3000)])
def test_a_small_predicted_reduction_ends_a_run_near_the_minimum(shape, strength):
    X, y = text(*shape, 4)
    loss = LogisticLoss(X, y, fit_intercept=True)
    l1 = loss.l1_vector(strength)
    best = minimize_oba(loss, l1, tol=1e-9)
    short = minimize_oba(loss, l1, options=OBAOptions(predicted_tol=3e-4))
    assert short.success and short.n_products < best.n_products
    assert short.fun <= best.fun * (1 + 3e-3)
    # no gap is claimed that was not computed
    assert short.dual_gap >= short.fun - best.fun


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [600, 5000])
def test_models_of_few_columns_are_exact_enough_for_nearly_equal_ones(n):
    """In single precision they end with gaps of up to half of the objective."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((n, 5))
    X = np.hstack([common + 1e-4 * rng.standard_normal((n, 5)) for _ in range(5)])
    y = common[:, 0] + X[:, 7] + rng.logistic(size=n) > 0
    model = L1LogisticOBA(C=1e4).fit(X, y)
    assert model.dual_gap_ <= 1e-4 * model.objective_
