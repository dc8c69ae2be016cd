"""The logistic model without features: its intercept alone, from where paths begin."""

import numpy as np
from scipy import optimize, special

from .._linalg.special import expit
from .multinomial import MultinomialLoss
from .oba import minimize_oba

# classes up to which the Hessian of the intercepts is a small matrix
_FEW = 200
# the largest penalty of a path is read off the null model, so that it is found nearly to rounding
_TOL = 1e-10
_MAX_STEPS = 200


def null_intercept(codes, sample_weight, n_classes, offset=None):
    """Intercept of the logistic model without features: (1,) for two classes, else (n_classes,), centred.

    Without an offset it is the log-odds, or the log-frequencies; with one, (n,) or (n, n_classes), what makes
    the probabilities of each class add up to its weight. All arrays are in main memory.
    """
    totals = np.bincount(codes, weights=sample_weight, minlength=n_classes)
    # a class without weight has intercept -inf; the smallest normal number keeps it finite
    log_totals = np.log(np.maximum(totals / totals.sum(), np.finfo(np.float64).tiny))
    if n_classes == 2:
        odds = log_totals[1:] - log_totals[:1]
        return odds if offset is None else _root(codes == 1, sample_weight, offset, float(odds[0]))
    centred = log_totals - log_totals.mean()
    return centred if offset is None else _balanced(codes, sample_weight, n_classes, offset, centred)


def _root(positive, weight, offset, odds):
    """Where the derivative along the intercept, which rises, is zero: Newton's method between two bounds."""
    s = np.ones(len(offset)) if weight is None else weight
    # at the one every row's probability is at most the frequency, at the other at least
    low, high = odds - offset.max(), odds - offset.min()
    b = min(max(odds - float(np.average(offset, weights=s)), low), high)
    for _ in range(_MAX_STEPS):
        p, q = expit(b + offset), expit(-b - offset)
        # each row's own term is small where its probability is right, and keeps its digits
        slope = float(np.sum(s * np.where(positive, -q, p)))
        if slope == 0.0:
            break
        low, high = (low, b) if slope > 0.0 else (b, high)
        curvature = float(np.sum(s * p * q))
        step = b - slope / curvature if curvature > 0.0 else np.inf
        new = step if low < step < high else 0.5 * (low + high)
        if abs(new - b) <= _TOL * max(1.0, abs(b)):
            b = new
            break
        b = new
    return np.array([b])


def _balanced(codes, weight, n_classes, offset, centred):
    """Intercepts of several classes, which count by their differences alone.

    By Newton's method in a trust region, since large offsets leave the loss all but straight; of very many
    classes by the solver of the fits.
    """
    if n_classes <= _FEW:
        return _by_trust_region(codes, weight, n_classes, offset, centred - offset.mean(axis=0))
    loss = MultinomialLoss(
        np.zeros((len(codes), 0)), codes, n_classes, weight, fit_intercept=True, offset=offset
    )
    start = centred - offset.mean(axis=0)
    x = minimize_oba(loss, np.zeros(n_classes), start, tol=_TOL, gap=False).x
    return x - x.mean()


def _by_trust_region(codes, weight, n_classes, offset, start):
    n = len(codes)
    s = np.ones(n) if weight is None else weight
    totals = np.bincount(codes, weights=weight, minlength=n_classes)

    def value(b):
        logs = special.log_softmax(offset + b, axis=1)
        return -float(s @ logs[np.arange(n), codes]), s @ np.exp(logs) - totals

    def hessian(b):
        P = special.softmax(offset + b, axis=1)
        return np.diag(s @ P) - (P * s[:, None]).T @ P

    options = {"gtol": _TOL * float(totals.sum()), "maxiter": _MAX_STEPS}
    x = optimize.minimize(value, start, jac=True, hess=hessian, method="trust-exact", options=options).x
    return x - x.mean()


def unless_zero(offset):
    """An offset, or None for zeros too: they are as good as none, and so give the same bits."""
    return offset if offset is not None and bool(offset.any()) else None
