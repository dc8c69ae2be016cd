r"""Proportional odds: the loss of ordered classes as one of a linear predictor, on more rows.

With rising thresholds :math:`\theta_k`, :math:`z = x^T w + o` and :math:`P(y \le k) = \sigma(\theta_k - z)`
the negative log-likelihood of a row is, s+ being log(1 + exp),

.. math:: s^+(z - \theta_k) + s^+(\theta_{k-1} - z) - \log(1 - e^{-(\theta_k - \theta_{k-1})}).

The first two terms are logistic losses of whether y is above a threshold. The last term keeps the thresholds
in order and is the same for all rows of a class. So the loss is one of a linear predictor in (w, theta). Its
design has two rows for each row of X, or one if the class is the first or the last. It also has one row for
each inner class, with the weight of that class.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..._linalg.special import entropies
from ..._messages import shown
from ..._solver.tolerances import ROUNDING
from .families.family import xlogx
from .linear_loss import LinearLoss


class OrdinalLoss(LinearLoss):
    """Sum of the weighted negative log-likelihoods of proportional odds, over [w, theta - null].

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n, p)
    codes : ndarray of int of shape (n,)
        Classes, 0 to K - 1, each with a row of positive weight.
    weight : ndarray of shape (n,) or None
    n_threads : int
    offset : ndarray of shape (n,) or None
        Known part of the scores.

    Attributes
    ----------
    null : ndarray of shape (K - 1,)
        Thresholds of the model without features, at the mean of the offset.

    Raises
    ------
    ValueError
        If thresholds are equal after rounding.
    """

    curvature = 0.25  # of the logistic rows; that of the others has no bound, and failed steps double it
    lower_bound = 0.0

    def __init__(self, X, codes, weight, n_threads=1, offset=None):
        totals = np.bincount(codes, weights=weight).astype(np.float64)
        below = np.cumsum(totals)[:-1]
        self.null, self.n_own = np.log(below / (totals.sum() - below)), X.shape[1]
        if offset is not None:
            self.null += np.average(offset, weights=weight)
        if not (np.diff(self.null) > 0.0).all():
            raise ValueError(
                "thresholds are equal after rounding: the offset is too large, or the weights of classes, "
                f"from {shown(float(totals.min()))} to {shown(float(totals.max()))}, differ too much. "
                "Subtract the mean of the offset, or leave out classes of no weight."
            )
        rows, design, s, signs = _rows_of_thresholds(X, codes, weight, totals)
        self.n_logistic = len(rows)
        # where all variables are zero the thresholds are ``null``
        shift = np.asarray(design[:, self.n_own :] @ self.null, dtype=np.float64)
        if offset is not None:
            shift[: len(rows)] += offset[rows]
        self._set(design, signs, s, False, n_threads, shift)

    def l1_vector(self, l1):
        out = np.zeros(self.n_variables)
        out[: self.n_own] = l1
        return out

    def _value(self, z, y, s):
        m = self.n_logistic
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = _log_of_step(z[m:]) @ s[m:]
        return self._kernels.logistic_value(z[:m], y[:m], s[:m]) - steps if (z[m:] > 0.0).all() else np.inf

    def _derivatives(self, z, y, s, u, d):
        m = self.n_logistic
        value = self._kernels.logistic_derivatives(z[:m], y[:m], s[:m], u[:m], d[:m])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inverse = 1.0 / np.expm1(z[m:])
            u[m:] = -s[m:] * inverse
            d[m:] = s[m:] * (inverse + inverse**2)
            steps = _log_of_step(z[m:]) @ s[m:]
        return value - steps if (z[m:] > 0.0).all() else np.inf

    def behind(self, z):
        return np.where(np.arange(len(z)) < self.n_logistic, -self.y * z, 0.0)

    def _steepest(self, z, radius):
        return np.sign(z) * np.maximum(np.abs(z) - radius, 0.0)

    def dual_value(self, theta):
        m = self.n_logistic
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(theta == 0.0, 0.0, -theta * self.y / self.s)
        if not (np.all(t >= -ROUNDING) and np.all(t[:m] <= 1.0 + ROUNDING)):
            return -np.inf
        t = np.maximum(t, 0.0)
        p, t = np.minimum(t[:m], 1.0), t[m:]
        own = np.concatenate([entropies(p) + entropies(1.0 - p), xlogx(1.0 + t) - xlogx(t)])
        # added by row: with large thresholds both are large, and nearly cancel
        return float(np.sum(self.s * own + theta * self.offset))


def _log_of_step(step):
    """log(1 - exp(-step)), with all digits at small steps between two thresholds."""
    return np.log(-np.expm1(-step))


def _rows_of_thresholds(X, codes, weight, totals):
    """Rows of X behind the logistic rows, the design of all, their weights, and signs, +1 for the last."""
    K, weight = len(totals), np.ones(len(codes)) if weight is None else weight
    below, above = np.flatnonzero(codes < K - 1), np.flatnonzero(codes > 0)
    rows, threshold = np.concatenate([below, above]), np.concatenate([codes[below], codes[above] - 1])
    m, inner = len(rows), np.arange(1, K - 1)
    s = np.concatenate([weight[rows], totals[inner]])
    signs = np.concatenate([-np.ones(len(below)), np.ones(len(above) + K - 2)])
    at = np.concatenate([np.arange(m), m + inner - 1, m + inner - 1])
    values = np.concatenate([-np.ones(m), np.ones(K - 2), -np.ones(K - 2)]).astype(X.dtype)
    thresholds = sp.csr_array(
        (values, (at, np.concatenate([threshold, inner, inner - 1]))), (m + K - 2, K - 1)
    )
    if sp.issparse(X):
        own = sp.vstack([sp.csr_array(X)[rows], sp.csr_array((K - 2, X.shape[1]), dtype=X.dtype)])
        design = sp.csr_array(sp.hstack([own, thresholds], format="csr"))
        design.sort_indices()
        return rows, design, s, signs
    design = np.zeros((m + K - 2, X.shape[1] + K - 1), dtype=X.dtype)
    design[:m, : X.shape[1]] = X[rows]
    design[:, X.shape[1] :] = thresholds.toarray()
    return rows, design, s, signs


def log_probabilities(z, thresholds):
    """Logarithms of the probabilities of the classes, (n, K), at scores (n,)."""
    ends = np.array([-np.inf]), np.array([np.inf])
    edges = np.concatenate([ends[0], thresholds, ends[1]])
    above, below = edges[:-1] - z[:, None], z[:, None] - edges[1:]
    with np.errstate(divide="ignore"):  # two thresholds may be equal after rounding
        inner = np.concatenate([np.zeros(1), _log_of_step(np.diff(thresholds)), np.zeros(1)])
    return inner - np.logaddexp(0.0, above) - np.logaddexp(0.0, below)
