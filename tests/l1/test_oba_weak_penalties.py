"""Weak penalties: rows thrown far to the wrong side, ill-conditioned models, certificates that are tight."""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit._l1.losses.multinomial import MultinomialLoss
from sparsekit.optimize import LogisticLoss, OBAOptions, minimize_oba


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
    assert result.status == 0
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
