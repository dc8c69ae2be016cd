"""Scores of a model between two steps: lazy scales and averages are applied to scores, not to the model."""

from __future__ import annotations

import numpy as np

from ..._arrays import full, namespace, thread_arguments
from .scores import HashedScores, linear_scores


class ModelView:
    """Scores of what `state.averaged` would return, without the copies and the rounding that settling brings.

    Parameters
    ----------
    state : SoftmaxState
    options : SamplingOptions
    columns : ndarray, default=None
        The features that columns of the rows to score stand for; None: all of them.

    Notes
    -----
    Classes stand in the order of the state's columns (see `codes`); ``rank`` and ``block`` are those of
    `LinearScores`, for `scores.rank`.
    """

    def __init__(self, state, options, columns=None):
        self.columns, self.n_threads = columns, options.n_threads
        self.n_classes, self.shift = state.n_classes, state.shift
        self.parts = _parts(state, options)
        table = state.W
        self.threads = thread_arguments(table, options.n_threads)
        self.intercept = np.zeros(self.n_classes, dtype=table.dtype, like=table)
        for _, bias, factor in self.parts:
            if bias is not None:
                self.intercept = self.intercept + (bias if factor is None else factor * bias)

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
        scores = 0.0
        for table, _, factor in self.parts:
            part = self._product(X, table, lo, hi, dtype)
            scores = scores + (part if factor is None else part * factor[lo:hi])
        scores = scores + self.intercept[lo:hi]
        return namespace(scores=scores).ascontiguousarray(scores, dtype=dtype)

    def _product(self, X, table, lo, hi, dtype):
        if self.shift:
            zeros = np.zeros(self.n_classes, dtype=table.dtype, like=table)
            return HashedScores(table.reshape(-1), zeros, self.shift, self.n_threads).block(X, lo, hi)
        coef = table[lo:hi]
        if self.columns is not None:
            coef = coef[:, self.columns]
        return linear_scores(X, coef, dtype, self.n_threads)

    def squared_norms(self, classes):
        """Squared norms (n,) of the weights of these classes, intercepts included; not of hashed ones."""
        out = np.empty(len(classes), like=self.intercept)
        size = max(1, 2**22 // max(1, self.parts[0][0].shape[1]))
        for begin in range(0, len(classes), size):
            chosen = np.asarray(classes[begin : begin + size], like=self.intercept)
            squares = self._squares(chosen)
            out[begin : begin + size] = squares + self.intercept[chosen].astype(np.float64) ** 2
        return out

    def _squares(self, chosen):
        table, _, factor = self.parts[0]
        part = table[chosen]
        if len(self.parts) == 1:  # no further copies
            squares = np.einsum("ij,ij->i", part, part, dtype=np.float64)
            return squares if factor is None else squares * factor[chosen] ** 2
        rows = part if factor is None else part * factor[chosen][:, None]
        for table, _, factor in self.parts[1:]:
            rows = rows + table[chosen] * factor[chosen][:, None]
        return (rows.astype(np.float64) ** 2).sum(axis=1)


def codes(labels, options):
    """Numbers of classes in the order of a view's."""
    return labels if options.plan is None else options.plan.place[labels]


def _parts(state, options):
    """[(table (K, d) or hashed, bias or None, factor (K,) or None)], whose sum is the model."""
    K, scale = state.n_classes, state.scale
    if options.plan is not None:
        bias = None if state.bias is None else state.bias[:K]
        return [(state.W[:, :K].T, bias, None if scale is None else scale[:K])]
    begin = options.average_from
    n = state.steps - begin if options.average is not None else 0
    if n <= 0:
        return [(state.W, state.bias, scale)]
    # as `state.settle` and then `state.averaged` do it
    factor = None
    if state.tau is not None:
        since = np.maximum(0, state.steps - np.maximum(state.last, begin))
        factor = (state.tau + since * (1.0 if scale is None else scale)) / n
    return [
        (state.W, state.bias, factor),
        (state.total, state.total_bias, full(K, -1.0 / n, like=state.W)),
    ]
