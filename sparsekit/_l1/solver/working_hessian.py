"""Working set of columns, and the Hessian of a row loss on it, reused from step to step."""

from __future__ import annotations

import numpy as np

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
    matrix : ndarray of shape (m, m) or, with an intercept, (m + 1, m + 1)
        The Hessian, the intercept last; sums of many columns are in single precision.
    reduced : ndarray of shape (m, m)
        That of the columns where the intercept follows them: the Schur complement of its entry.
    ratios : ndarray of shape (m,)
        What the intercept follows each column's coefficient by, with the sign changed: weighted means.
    is_new : bool
        Whether D is that of the current point.
    """

    def __init__(self, design, has_intercept):
        super().__init__(design)
        self.has_intercept, self.d, self.is_new = has_intercept, None, False

    def _set_matrix(self, matrix):
        m = len(self.columns)
        self.matrix, self.ratios, self.reduced = matrix, np.zeros(m), matrix
        if self.has_intercept:
            along, curvature = matrix[:m, m], matrix[m, m]
            if curvature > 0.0:
                self.ratios = along / curvature
            self.reduced = matrix[:m, :m] - np.outer(along, self.ratios)

    def clear(self):
        """Remove all columns."""
        super().clear()
        self.matrix = self.reduced = self.ratios = None

    def detach(self):
        """Forget X and what follows from the matrix."""
        super().detach()
        self.reduced = None

    def attach(self, design):
        """Go on with the design of an equal X."""
        super().attach(design)
        if self.matrix is not None:
            self._set_matrix(self.matrix)

    @property
    def variables(self):
        """The columns, and the intercept as the variable after all columns of X."""
        return np.append(self.columns, np.full(int(self.has_intercept), len(self.is_used)))

    @property
    def is_finite(self):
        """Whether no product has overflowed; those of sparse columns are in single precision."""
        most = np.finfo(np.float64 if self.is_dense else np.float32).max
        return bool((self.matrix.diagonal() < most).all())

    @property
    def n_bytes(self):
        """Memory in bytes, without X."""
        return 0 if self.matrix is None else self.matrix.nbytes + self.d.nbytes

    def add(self, joins, d):
        """Add columns; ``d`` (n,) are the weights of the current point."""
        n_old = len(self.columns)
        self.join(joins)
        if not (n_old and self.is_dense):  # sums of some sparse columns cost as much as those of all
            self.renew(d)
            return
        size = len(self.columns)
        new = self._buffer[n_old:size] * self.d
        whole = np.empty((len(self.variables),) * 2)
        whole[:n_old, :n_old] = self.matrix[:n_old, :n_old]
        whole[n_old:size, :size] = new @ self.part.X
        whole[:n_old, n_old:size] = whole[n_old:size, :n_old].T
        if self.has_intercept:
            whole[:n_old, size], whole[n_old:size, size] = self.matrix[:n_old, n_old], new.sum(axis=1)
            whole[size, :size], whole[size, size] = whole[:size, size], self.matrix[n_old, n_old]
        self._set_matrix(whole)

    def renew(self, d):
        """Take the weights d (n,) of the current point."""
        self.d, self.is_new = d.copy(), True
        if self.is_dense:
            dtype = np.float64 if len(self.columns) <= plan.SMALL_GRAM else np.float32
            matrix = self.part.sandwich(self.d, intercept=self.has_intercept, dtype=dtype)
            if dtype == np.float32 and not np.isfinite(matrix.diagonal()).all():
                matrix = self.part.sandwich(self.d, intercept=self.has_intercept)
            self._set_matrix(matrix)
        else:
            self._set_matrix(self.part.gram(np.arange(len(self.columns)), self.d, self.has_intercept))
