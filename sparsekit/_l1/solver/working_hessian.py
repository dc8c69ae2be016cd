"""Working set of columns, and the Hessian of a row loss on it, reused from step to step."""

from __future__ import annotations

import numpy as np

from ..._linalg.matrix import BLOCK
from .. import plan
from .working_set import WorkingColumns


class WorkingHessian(WorkingColumns):
    """Hessian A^T D A of some columns of X and the intercept, with fixed weights D of the rows.

    Parameters
    ----------
    design : DenseDesign, CSRDesign or CSCDesign
        X, of shape (n, p).
    has_intercept : bool

    Attributes
    ----------
    reduced : ndarray of shape (m, m)
        That of the columns where the intercept follows them: the Schur complement of the intercept's entry.
        Sums of many columns are in single precision.
    ratios : ndarray of shape (m,)
        What the intercept follows each column's coefficient by, with the sign changed: weighted means.
    curvature : float
        The intercept's entry.
    is_new : bool
        Whether D is that of the current point.
    """

    def __init__(self, design, has_intercept):
        super().__init__(design)
        self.has_intercept, self.d, self.is_new = has_intercept, None, False

    def clear(self):
        """Remove all columns."""
        super().clear()
        self.reduced = self.ratios = None
        self.curvature = 0.0

    @property
    def variables(self):
        """The columns, and the intercept as the variable after all columns of X."""
        return np.append(self.columns, np.full(int(self.has_intercept), len(self.is_used)))

    @property
    def is_finite(self):
        """Whether no product has overflowed; those of sparse columns are in single precision."""
        most = np.finfo(np.float64 if self.is_dense else np.float32).max
        return bool((self.reduced.diagonal() < most).all())

    @property
    def n_bytes(self):
        """Memory in bytes, without X."""
        return 0 if self.reduced is None else self.reduced.nbytes + self.d.nbytes

    def add(self, joins, d):
        """Add columns; ``d`` (n,) are the weights of the current point."""
        n_old = len(self.columns)
        self.join(joins)
        if not (n_old and self.is_dense):  # sums of some sparse columns cost as much as those of all
            self.renew(d)
            return
        size = len(self.columns)
        new, whole = self._buffer[n_old:size] * self.d, np.empty((size, size))
        whole[:n_old, :n_old], whole[n_old:] = self.reduced, new @ self.part.X
        along = new.sum(axis=1)
        self.ratios = np.concatenate([self.ratios, self._ratios(along)])
        if self.has_intercept:
            whole[n_old:] -= np.outer(along, self.ratios)
        whole[:n_old, n_old:] = whole[n_old:, :n_old].T
        self.reduced = whole

    def renew(self, d, kept=None):
        """Take the weights d (n,) of the current point; ``kept`` (m,): which columns stay, by default all."""
        if kept is not None:
            self.keep(kept)
        self.d, self.is_new = d.copy(), True
        if self.is_dense:
            dtype = np.float64 if len(self.columns) <= plan.SMALL_GRAM else np.float32
            matrix = self.part.sandwich(self.d, intercept=self.has_intercept, dtype=dtype)
            if dtype == np.float32 and not np.isfinite(matrix.diagonal()).all():
                matrix = self.part.sandwich(self.d, intercept=self.has_intercept)
        else:
            matrix = self.part.gram(np.arange(len(self.columns)), self.d, self.has_intercept)
        self._reduce(matrix)

    def _ratios(self, along):
        return along / self.curvature if self.curvature > 0.0 else np.zeros_like(along)

    def _reduce(self, matrix):
        """Take the Hessian with the intercept last; its memory becomes that of the reduced one."""
        m = len(self.columns)
        self.reduced, self.ratios = matrix, np.zeros(m)
        if not self.has_intercept:
            return
        along, self.curvature = matrix[m, :m].copy(), float(matrix[m, m])
        self.ratios, flat, step = self._ratios(along), matrix.reshape(-1), max(BLOCK // (m + 1), 1)
        for at in range(0, m, step):  # a block's new place ends before the next block
            rows = slice(at, min(at + step, m))
            block = matrix[rows, :m] - np.outer(along[rows], self.ratios)
            flat[at * m : at * m + block.size] = block.reshape(-1)
        self.reduced = flat[: m * m].reshape(m, m)
