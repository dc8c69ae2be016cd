"""X less its column means, with the rows' weights: products in double precision and Gram matrices."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..._linalg.as_design import as_design
from .. import plan

# Entries that are converted and scaled at once: they stay in a core's second cache.
_BLOCK = 2**18
# Part of the rows' weight above which a sparse column counts as full. The variance of a column that is zero
# in a part d of the weight is at least d of its mean square: subtracting the means from the sums costs no
# more digits than that.
_FULL = 0.99


class CentredRows:
    """Products with B = X - 1 m^T, m the weighted means with an intercept, zero without, and S = diag(s).

    Parameters
    ----------
    X : {ndarray, CSR or CSC matrix} of shape (n, p), float32 or float64
    s : ndarray of shape (n,) or None
        Weights of the rows; None means ones.
    centred : bool
        Whether there is an intercept.
    n_threads : int
    means : ndarray of shape (p,)
        m, where it is known, or another centre.
    """

    def __init__(self, X, s, centred, n_threads=1, means=None):
        self.X, self.s, self.centred = X, s, centred
        self.design = as_design(X, n_threads).private()
        self.n, self.p = X.shape
        self.is_sparse = sp.issparse(X)
        self._centre = means
        if means is not None:
            self.means = means
        self.total = float(self.n) if s is None else float(s.sum())

    @cached_property
    def constant(self):
        """Columns that are constant, whose centred entries are zero and not rounding.

        About another centre than the means these are the columns whose constant it is.
        """
        if not self.centred or self.n == 0:
            return np.empty(0, dtype=np.intp)
        few = self.X[np.unique([0, self.n // 3, self.n // 2, self.n - 1])]
        few = few.toarray() if self.is_sparse else few
        at = np.flatnonzero((few == few[0]).all(axis=0) & (few[0] != 0.0))
        if self._centre is not None:
            at = at[few[0, at] == self._centre[at]]
        if self.is_sparse and at.size:
            at = at[self._entries[at] == self.n]
        part = self.X[:, at].toarray() if self.is_sparse else self.X[:, at]
        return at[(part == few[0, at]).all(axis=0)]

    @cached_property
    def means(self):
        """m, (p,)."""
        if not self.centred:
            return np.zeros(self.p)
        means = self.design.rmatvec(np.ones(self.n) if self.s is None else self.s) / self.total
        means[self.constant] = self._first(self.constant)
        return means

    def _first(self, columns):
        row = self.X[[0]][:, columns]
        return (row.toarray() if self.is_sparse else row)[0]

    @cached_property
    def root(self):
        """Square roots of the weights, (n,), or None."""
        return None if self.s is None else np.sqrt(self.s)

    @cached_property
    def _entries(self):
        """Stored entries of each column of a sparse X, (p,)."""
        return np.diff(self.X.indptr) if self.X.format == "csc" else self.design.counts()

    @cached_property
    def _filled(self):
        """Sum of the weights of the rows in which each column of a sparse X is stored, (p,)."""
        there = type(self.X)((np.ones(self.X.nnz), self.X.indices, self.X.indptr), shape=self.X.shape)
        return there.T @ (np.ones(self.n) if self.s is None else self.s)

    def weighted(self, u):
        """S u, (n,)."""
        return u if self.s is None else self.s * u

    def mean(self, z):
        """Weighted mean of z (n,); 0 without an intercept."""
        if not self.centred:
            return 0.0
        return float(z.sum() if self.s is None else self.s @ z) / self.total

    def product(self, w):
        """B w, (n,), and m^T w."""
        z = self.design.matvec(w)
        shift = self.mean(z)
        if self.centred:
            z -= shift
        return z, shift

    def transposed_product(self, u):
        """B^T u, (p,)."""
        out = self.design.rmatvec(u)
        if self.centred:
            out -= float(u.sum()) * self.means
            out[self.constant] = 0.0
        return out

    def count(self, columns):
        """Stored entries of columns of a sparse X; None of a dense one."""
        return int(self._entries[columns].sum()) if self.is_sparse else None

    def block(self, rows, columns, dtype):
        """S^(1/2) B in the given rows and columns as a new dense array."""
        part = self.X[rows]
        if columns is not None:
            part = part[:, columns]
        part = part.toarray() if self.is_sparse else part
        part = part.astype(dtype)
        if self.centred:
            means = self.means if columns is None else self.means[columns]
            part -= means.astype(dtype)
        if self.root is not None:
            part *= self.root[rows, None].astype(dtype)
        return part

    def gram(self, columns, n_new, dtype):
        """The last ``n_new`` rows of B_c^T S B_c for columns c in any order, (n_new, len(columns)), float64.

        Of all columns if ``columns`` is None. Sums are in ``dtype``; sparse entries are rounded to it.
        """
        size = self.p if columns is None else len(columns)
        first = size - n_new
        if self.is_sparse and self._is_thin(columns, size, dtype):
            return self._gram_of_entries(columns, dtype)[first:]
        out = np.zeros((n_new, size), dtype=dtype)
        X = self
        if self.is_sparse and columns is not None:
            X, columns = self._selected(columns), None
        for rows in self._blocks(size):
            A = X.block(rows, columns, dtype)
            out += A[:, first:].T @ A
        return out.astype(np.float64, copy=False)

    def _selected(self, columns):
        return CentredRows(self.X[:, columns].tocsr(), self.s, self.centred, means=self.means[columns])

    def _is_thin(self, columns, size, dtype):
        """Whether products of entries are fewer than those of dense rows, and no column is full."""
        columns = slice(None) if columns is None else columns
        per_row = float(self._entries[columns].sum()) / self.n
        dense = plan.DENSE_PART if dtype == np.float32 else plan.DENSE_PART_DOUBLE
        if per_row**2 > dense * size**2:
            return False
        return not self.centred or bool(self._filled[columns].max(initial=0.0) <= _FULL * self.total)

    def _gram_of_entries(self, columns, dtype):
        d = np.ones(self.n) if self.s is None else self.s
        if dtype == np.float64:
            A = (self.X if columns is None else self.X[:, columns]).tocsr().astype(np.float64)
            found = (A.T @ (A if self.s is None else sp.diags_array(self.s) @ A)).toarray()
        elif columns is None:
            found = self._gram_of_entries(np.arange(self.p), dtype)
            return found
        elif self.X.format == "csr":
            found = self.design.private().gram(columns, d, False)  # its buffers, of X's size, are freed
        else:
            found = self.design.select(columns).gram(np.arange(len(columns)), d, False)
        columns = slice(None) if columns is None else columns
        if self.centred:
            # about any centre, whose distance from the means loses no more digits
            sums, means = self.total_of(columns, d), self.means[columns]
            found -= np.outer(sums, means) + np.outer(means, sums - self.total * means)
        return found

    def total_of(self, columns, d):
        """Weighted sums of columns, (len(columns),)."""
        return self.design.rmatvec(d)[columns]

    def _blocks(self, width):
        size = max(_BLOCK // max(width, 1), 2 * width if width < 512 else 512, 1)
        return (slice(at, at + size) for at in range(0, self.n, size))
