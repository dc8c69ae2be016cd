"""Working set of columns, and the Hessian of a row loss on it, reused from step to step."""

from __future__ import annotations

import numpy as np

from ..._linalg.as_design import as_design


class WorkingHessian:
    """Hessian A^T D A of some columns of X and the intercept, with fixed weights D of the rows.

    Parameters
    ----------
    design : DenseDesign, CSRDesign or CSCDesign
        X, of shape (n, p).
    has_intercept : bool

    Attributes
    ----------
    columns : ndarray of int of shape (m,)
    is_used : ndarray of bool of shape (p,)
        Whether a column is among them.
    part : DenseDesign or CompactRows
        X on these columns.
    matrix : ndarray of shape (m, m) or, with an intercept, (m + 1, m + 1)
        The Hessian, the intercept last; sums are in single precision.
    is_new : bool
        Whether D is that of the current point.
    """

    def __init__(self, design, has_intercept):
        self.design, self.has_intercept = design, has_intercept
        self.is_dense = not design.is_sparse
        self.columns, self.is_used = np.empty(0, dtype=np.intp), np.zeros(design.shape[1], dtype=bool)
        self.part = self.matrix = self.d = None
        self.is_new = False
        self._entries = self._buffer = None

    @property
    def variables(self):
        """The columns, and the intercept as the variable after all columns of X."""
        return np.append(self.columns, np.full(int(self.has_intercept), self.design.shape[1]))

    @property
    def n_bytes(self):
        """Memory in bytes, without X."""
        if self.matrix is None:
            return 0
        if self.part is self.design:
            part = 0
        elif self.is_dense:
            part = self._buffer.nbytes
        else:
            part = self.part.data.nbytes + self.part.indices.nbytes + self.part.indptr.nbytes
        return self.matrix.nbytes + self.d.nbytes + part

    def detach(self):
        """Forget X."""
        self.part = None if self.part is self.design else self.part
        self.design = None

    def attach(self, design):
        """Go on with the design of an equal X."""
        self.design = design
        if self.matrix is not None and self.part is None:
            self.part = design

    def count_with(self, joins):
        """Stored entries of the columns and of those of a sparse X that join; None of a dense one."""
        if self.is_dense:
            return None
        if self._entries is None:
            self._entries = self.design.counts()
        return int(self._entries[self.columns].sum() + self._entries[joins].sum())

    def add(self, joins, d):
        """Add columns; ``d`` (n,) are the weights of the current point."""
        n_old, self.is_used[joins] = len(self.columns), True
        if not self.is_dense:  # sums of some columns cost as much as those of all
            self.columns = np.flatnonzero(self.is_used)
            self.part = self.design.select(self.columns)
            self.renew(d)
            return
        self.columns = np.concatenate([self.columns, joins])
        if len(joins) == len(self.is_used):
            self.part = self.design  # all columns at once, which stay where they are
        else:
            self._copy(joins, n_old)
        if not n_old:
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
        self.matrix = whole

    def renew(self, d):
        """Take the weights d (n,) of the current point."""
        self.d, self.is_new = d.copy(), True
        if self.is_dense:
            self.matrix = self.part.sandwich(self.d, intercept=self.has_intercept, dtype=np.float32)
        else:
            self.matrix = self.part.gram(np.arange(len(self.columns)), self.d, self.has_intercept)

    def _copy(self, joins, n_old):
        """Append columns of a dense X to the copies of the others, which lie in rows of a buffer."""
        n, size = self.design.shape[0], n_old + len(joins)
        if self._buffer is None or size > len(self._buffer):
            grown = np.empty((2 * size, n), dtype=self.design.X.dtype)
            if n_old:
                grown[:n_old] = self._buffer[:n_old]
            self._buffer = grown
        self._buffer[n_old:size] = self.design.X[:, joins].T
        self.part = as_design(self._buffer[:size].T, self.design.n_threads)
