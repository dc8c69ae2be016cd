"""The negative log-likelihood of a linear-chain CRF with an L2 penalty, and its gradient.

The variables are one vector: W (p, K), transitions (K, K) [previous, next], and then, where sequences' ends
have scores, start (K,) and stop (K,). The loss is a *sum* over the sequences,

    f(x) = sum_i c_i (log Z(x_i) - s(x_i, y_i)) + ridge / 2 |x|^2 .
"""

from typing import Any

import numpy as np

from .._linalg.class_products import class_sums, matmat
from .._linalg.design import DenseDesign
from .._linalg.threads import blas_threads
from .chains import add_ends, cuts, forward_backward, scored


def _square_sums(design, weights):
    """sum_i c_i x_ij^2, (p,)."""
    if isinstance(design, DenseDesign):
        return np.einsum("i,ij,ij->j", weights, design.X, design.X)
    each = np.square(design.data, dtype=np.float64) * np.repeat(weights, np.diff(design.indptr))
    return np.bincount(design.indices, each, design.shape[1])


class ChainLoss:
    """f of the variables, in the form that `minimize_oba` asks for as well.

    Parameters
    ----------
    design : design of shape (N, p)
        All positions of all sequences.
    starts : ndarray of int64 of shape (S + 1,)
        The first row of each sequence, and N.
    y : ndarray of int of shape (N,)
        Codes of the labels.
    allowed : Allowed
        Forbidden transitions keep the weight 0.
    weight : ndarray of shape (S,)
        c.
    ends : bool
        Whether there are start and stop scores.
    ridge : float
    n_threads : int
    """

    def __init__(self, design, starts, y, allowed, weight, *, ends=True, ridge=1.0, n_threads=1):
        self.design, self.starts, self.y, self.allowed = design, starts, y, allowed
        self.weight, self.ends, self.ridge, self.n_threads = weight, ends, ridge, n_threads
        self.p, self.K = design.shape[1], len(allowed.begin)
        self.n_variables = (self.p + self.K + 2 * ends) * self.K
        self.reach, self._parts = allowed.reach(), cuts(starts)
        self._weights = np.repeat(weight, np.diff(starts))
        self._rows = np.arange(len(y))
        full = np.flatnonzero(np.diff(starts))
        self._first, self._last = starts[full], starts[full + 1] - 1
        inner = np.ones(len(y), dtype=bool)
        inner[self._first] = False
        later = np.flatnonzero(inner)
        self._counts = np.bincount(
            y[later - 1] * self.K + y[later], self._weights[later], minlength=self.K**2
        ).reshape(self.K, self.K)
        self._seen: Any = None, np.nan, None
        self.n_evaluations = 0

    def unpack(self, x):
        """W (p, K), transitions (K, K), start (K,), stop (K,)."""
        p, K = self.p, self.K
        table = x.reshape(-1, K)
        if self.ends:
            return table[:p], table[p : p + K], table[p + K], table[p + K + 1]
        return table[:p], table[p:], np.zeros(K), np.zeros(K)

    def curvature(self):
        """A diagonal for L-BFGS, between that of the Hessian and one that is the same everywhere.

        The Hessian's is taken at scores that know how often each label is there, and nothing else. It is too
        large where features tell labels well, by factors that differ; its square root took half the steps of
        either (sets of 5 to 20 labels, C from 0.02 to 10).
        """
        total = np.bincount(self.y, self._weights, minlength=self.K)
        share = total / max(total.sum(), 1e-300)
        spread = share * (1.0 - share)
        squares = _square_sums(self.design, self._weights)
        both = np.outer(share, share) * len(self.y) * self.weight.mean()
        parts = [np.outer(squares, spread), both * (1.0 - np.outer(share, share))]
        if self.ends:
            parts.append(np.tile(spread * self.weight.sum(), (2, 1)))
        return np.sqrt(np.concatenate(parts).ravel() + self.ridge)

    def infer(self, unary, follow):
        """log Z (S,) and the sum of the weighted transition marginals; unary becomes weighted marginals."""
        return forward_backward(
            unary, self.starts, follow, self.weight, self.n_threads, reach=self.reach, parts=self._parts
        )

    def value_and_gradient(self, x):
        """f and its gradient (n_variables,)."""
        if self._seen[0] is not None and np.array_equal(self._seen[0], x):
            return self._seen[1:]
        self.n_evaluations += 1
        W, trans, start, stop = self.unpack(x)
        K, p = self.K, self.p
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
            unary = matmat(self.design, W)
            truth = unary[self._rows, self.y]
            follow, begin, end = scored(trans, start, stop, self.allowed)
            add_ends(unary, self.starts, begin, end)
            logs, pairs = self.infer(unary, follow)
            true = self._weights @ truth + np.vdot(self._counts, trans)
            value = self.weight @ logs - true
            unary[self._rows, self.y] -= self._weights
            gradient = np.empty((self.n_variables // K, K))
            gradient[:p] = class_sums(self.design, unary, False)
            gradient[p : p + K] = pairs - self._counts
            if self.ends:
                gradient[p + K] = unary[self._first].sum(axis=0)
                gradient[p + K + 1] = unary[self._last].sum(axis=0)
                w = self.weight[np.flatnonzero(np.diff(self.starts))]
                value -= w @ (start[self.y[self._first]] + stop[self.y[self._last]])
            gradient = gradient.ravel()
            value += 0.5 * self.ridge * (x @ x)
            gradient += self.ridge * x
        self._seen = x.copy(), float(value), gradient
        return self._seen[1:]

    def value(self, x):
        return self.value_and_gradient(x)[0]

    def gradient(self, x):
        return self.value_and_gradient(x)[1].copy()
