"""Scores of a model between two steps: lazy scales are applied to scores, not to the model."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..._arrays import is_device, namespace, thread_arguments
from .scores import HashedScores, linear_scores

# Norms of one in so many classes cost as much, class by class, as those of all by features (fb15k).
WHOLE_TABLE = 16


class ModelView:
    """Scores of what `state.settled` would return, without the copies and the rounding that settling brings.

    Parameters
    ----------
    state : SoftmaxState
    options : SamplingOptions

    Notes
    -----
    Classes stand in the order of the state's columns (see `codes`); ``rank`` and ``block`` are those of
    `LinearScores`, for `scores.rank`.
    """

    def __init__(self, state, options):
        self.n_threads = options.n_threads
        self.n_classes, self.shift = state.n_classes, state.shift
        table, self.factor, K = state.W, state.scale, state.n_classes
        self.table, bias = table, state.bias
        # what the ridge shrinks to, classes in the order of the columns; None: zeros
        self.center = None if state.center is None else state.center.weights
        self.by_feature = None
        if options.plan is not None:
            self.table = table[:, :K].T
            self.by_feature = None if is_device(table) else table
            bias = None if bias is None else bias[:K]
            self.factor = None if self.factor is None else self.factor[:K]
        self.threads = thread_arguments(table, options.n_threads)
        self.intercept = np.zeros(K, dtype=table.dtype, like=table)
        if bias is not None:
            self.intercept = self.intercept + (bias if self.factor is None else self.factor * bias)

    @staticmethod
    def dtype(X):
        """Type of the scores of rows X."""
        return np.result_type(X.dtype, np.float32)

    def rank(self, X, k, codes, normalize):
        """None: there is no kernel that goes without a block of scores."""
        return None

    def block(self, X, lo, hi):
        """Scores (n, hi - lo) of the rows X for classes lo .. hi, a new array."""
        dtype = self.dtype(X)
        scores = self._product(X, lo, hi, dtype)
        if self.factor is not None:
            scores = scores * self.factor[lo:hi]
        scores = scores + self.intercept[lo:hi]
        return namespace(scores=scores).ascontiguousarray(scores, dtype=dtype)

    def center_scores(self, X, lo, hi):
        """Scores (n, hi - lo) of the ridge's center, as `block`; 0 without one."""
        if self.center is None:
            return 0.0
        scores = X @ self.center[lo:hi].T
        return scores.toarray() if sp.issparse(scores) else scores

    def _product(self, X, lo, hi, dtype):
        table = self.table
        if self.shift:
            zeros = np.zeros(self.n_classes, dtype=table.dtype, like=table)
            return HashedScores(table.reshape(-1), zeros, self.shift, self.n_threads).block(X, lo, hi)
        if self.by_feature is not None and sp.issparse(X) and (lo, hi) == (0, self.n_classes):
            # without a copy of the table
            return (X.astype(dtype, copy=False) @ self.by_feature)[:, :hi]
        return linear_scores(X, table[lo:hi], dtype, self.n_threads)

    def squared_norms(self, classes):
        """Squared norms (n,) of these classes' distances to the ridge's center; not of hashed ones.

        Intercepts are included; their center is 0.
        """
        out = np.empty(len(classes), like=self.intercept)
        if self.by_feature is not None and len(classes) * WHOLE_TABLE >= self.n_classes:
            table = self.by_feature[:, : self.n_classes]
            squares = np.einsum("ij,ij->j", table, table, dtype=np.float64)
            if self.center is not None:  # (w - m)^2 = w^2 + m (m - 2 w)
                entries = self.center.tocoo()
                k, m = entries.row, entries.data.astype(np.float64)
                squares += np.bincount(k, m * (m - 2.0 * table[entries.col, k]), minlength=len(squares))
            if self.factor is not None:
                squares *= self.factor**2
            return (squares + self.intercept.astype(np.float64) ** 2)[classes]
        size = max(1, 2**22 // max(1, self.table.shape[1]))
        for begin in range(0, len(classes), size):
            chosen = np.asarray(classes[begin : begin + size], like=self.intercept)
            squares = self._squares(chosen)
            out[begin : begin + size] = squares + self.intercept[chosen].astype(np.float64) ** 2
        return out

    def _squares(self, chosen):
        part = self.table[chosen]
        if self.center is not None:
            part = part - self.center[chosen].toarray()
        squares = np.einsum("ij,ij->i", part, part, dtype=np.float64)
        return squares if self.factor is None else squares * self.factor[chosen] ** 2


def codes(labels, options):
    """Numbers of classes in the order of a view's."""
    return labels if options.plan is None else options.plan.place[labels]
