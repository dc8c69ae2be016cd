"""Proportional odds by plain formulas, and its L1 solution by SciPy on the two halves of each coefficient."""

import numpy as np
from scipy import optimize
from scipy.special import expit


def probabilities(z, thresholds):
    """(n, K), as differences of cumulative probabilities."""
    below = expit(np.asarray(thresholds)[None, :] - z[:, None])
    n = len(z)
    return np.diff(np.hstack([np.zeros((n, 1)), below, np.ones((n, 1))]), axis=1)


def objective(coef, thresholds, X, codes, weight, alpha, l1_ratio=1.0, penalty_weights=1.0, offset=0.0):
    """Mean negative log-likelihood and penalty."""
    p = probabilities(X @ coef + offset, thresholds)[np.arange(len(codes)), codes]
    penalty = l1_ratio * np.abs(coef) + 0.5 * (1.0 - l1_ratio) * coef**2
    return -np.average(np.log(p), weights=weight) + alpha * float(np.sum(penalty_weights * penalty))


def solve(X, codes, weight, alpha, l1_ratio=1.0, penalty_weights=1.0, offset=0.0):
    """Coefficients and thresholds: L-BFGS-B over positive and negative parts and logarithms of the steps."""
    p, K = X.shape[1], codes.max() + 1

    def parts(v):
        steps = np.concatenate([v[2 * p : 2 * p + 1], np.exp(v[2 * p + 1 :])])
        return v[:p], v[p : 2 * p], np.cumsum(steps)

    def value(v):
        up, down, thresholds = parts(v)
        ridge = alpha * (1.0 - l1_ratio)
        smooth = objective(up - down, thresholds, X, codes, weight, ridge, 0.0, penalty_weights, offset)
        return smooth + alpha * l1_ratio * float(np.sum(penalty_weights * (up + down)))

    start = np.concatenate([np.zeros(2 * p), [-1.0], np.zeros(K - 2)])
    bounds = [(0.0, None)] * (2 * p) + [(None, None)] * (K - 1)
    options = dict(maxiter=5000, maxfun=10**6, ftol=1e-15, gtol=1e-9)
    found = optimize.minimize(value, start, method="L-BFGS-B", bounds=bounds, options=options)
    up, down, thresholds = parts(found.x)
    return up - down, thresholds, found.fun
