"""Whole paths of elastic nets of squares: LassoOBA.path against scikit-learn's, at the defaults of both."""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.linear_model import enet_path

from sparsekit import LassoOBA

N_ALPHAS = 50


def _timed(fit, rounds):
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            start = time.process_time()
            found = fit()
            seconds.append(time.process_time() - start)
            if seconds[-1] > 10.0:
                break
    return float(np.median(seconds)), found


def _worst(X, y, coefs, alphas, ratio, best):
    gaps = []
    for w, alpha, lowest in zip(coefs.T, alphas, best):
        penalty = ratio * np.abs(w).sum() + 0.5 * (1.0 - ratio) * float(w @ w)
        value = 0.5 * float(np.mean((y - X @ w) ** 2)) + alpha * penalty
        gaps.append(value / lowest - 1.0)
    return max(gaps)


def measure(X, y, ratio, rounds):
    """Seconds and worst relative gap of both paths of 50 penalties without an intercept, y centred."""
    y = y - y.mean()
    rows = X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X)
    columns = X.tocsc() if sparse.issparse(X) else np.asfortranarray(X)
    options = dict(l1_ratio=ratio, n_lambdas=N_ALPHAS, fit_intercept=False, coefs="dense")
    best = LassoOBA.path(rows, y, tol=1e-9, **options)
    alphas = best.alphas
    ours, found = _timed(lambda: LassoOBA.path(rows, y, **options), rounds)
    theirs, peer = _timed(lambda: enet_path(columns, y, l1_ratio=ratio, alphas=alphas), rounds)
    lowest = best.objectives
    return {
        "ours": ours,
        "gap": _worst(X, y, found.coefs, alphas, ratio, lowest),
        "enet_path": theirs,
        "its gap": _worst(X, y, peer[1], alphas, ratio, lowest),
    }
