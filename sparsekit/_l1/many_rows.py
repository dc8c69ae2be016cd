"""Least squares of many dense rows as least squares of as many rows as there are columns.

With M = [A, y]^T diag(s) [A, y], A = X or [X, 1], and R^T R = M, the squares of R's rows are those of the
data: sum_i s_i (a_i . x - y_i)^2 = |R_x x - r_y|^2, whatever x is. M is made in one pass, and after that no
step, and no penalty of a path, looks at the data again.
"""

import numpy as np
from scipy.linalg import lapack

from .._linalg.design import DenseDesign
from .._linalg.threads import blas_threads
from .losses import LeastSquaresLoss

# rows for each column from which this pays, columns up to which it pays for one solve, and for several, and
# entries of X from which it does for one
_ROWS, _ONCE, _OFTEN, _LEAST = 3, 300, 600, 50000
# rows that are scaled, or widened, at once
_BLOCK = 4096
# part of half the squares of y below which rounding of M would show in those that are left
EXACT = 1e-6


def many_rows(loss, several):
    """The loss of few rows with the same values, and half the squares of y, or None where it does not pay.

    ``several``: it will be minimised for several penalties.

    Its intercept is a column like others: the variables are the same.
    """
    if type(loss) is not LeastSquaresLoss or not isinstance(loss.design, DenseDesign):
        return None
    n, p = loss.design.shape
    if loss.design.X.dtype != np.float64:  # others look at X in its own precision, and would find no optimum
        return None
    if not 0 < p <= _OFTEN or n < _ROWS * (p + 2):
        return None
    if not several and (p > _ONCE or n * p < _LEAST):
        return None
    if loss.short_form is None:
        with blas_threads(1):
            loss.short_form = _shortened(loss)
    return loss.short_form or None


def _shortened(loss):
    M = _products(loss.design.X, loss.y, loss.s, loss.fit_intercept)
    if not np.isfinite(M).all():
        return ()
    # columns of one length, so that rounding is relative to each of them
    length = np.sqrt(M.diagonal())
    length[length == 0.0] = 1.0
    M = M / length / length[:, None]
    R, failed = lapack.dpotrf(M, lower=0, clean=1)
    if failed:
        values, vectors = np.linalg.eigh(M)
        R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    R *= length
    short = LeastSquaresLoss(np.ascontiguousarray(R[:, :-1]), R[:, -1])
    return short, 0.5 * length[-1] ** 2


def _products(X, y, s, intercept):
    """[X, 1, y]^T diag(s) [X, 1, y], the ones only with an intercept; s empty is ones."""
    p, size = X.shape[1], X.shape[1] + intercept + 1
    out = np.zeros((size, size))
    block = np.empty((min(_BLOCK, len(X)), size))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller sees what is not finite
        for lo in range(0, len(X), _BLOCK):
            part = block[: len(X) - lo]
            part[:, :p], part[:, p:-1], part[:, -1] = X[lo : lo + _BLOCK], 1.0, y[lo : lo + _BLOCK]
            if s.size:
                part *= np.sqrt(s[lo : lo + _BLOCK])[:, None]
            out += part.T @ part
    return out
