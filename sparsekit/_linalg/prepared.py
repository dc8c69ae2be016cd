"""X and the weights of its rows, prepared: means, products of centred columns, Gram matrices."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .as_design import as_design

# Part of the rows' weight above which a sparse column counts as full. The variance of a column that is zero
# in a part d of the weight is at least d of its mean square. Subtracting the means from the sums costs no
# more digits than that.
FULL = 0.99


class Prepared:
    """Products with B = X - 1 m^T, m the weighted means with an intercept, zero without, and S = diag(s).

    What costs a pass over X is made when it is first asked for, and kept.

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

    def __init__(self, X, s=None, centred=False, n_threads=1, means=None):
        self.s, self.centred = s, centred
        self.design = as_design(X, n_threads).private()
        self.X = self.design.X
        self.n, self.p = X.shape
        self.is_sparse = self.design.is_sparse
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
            at = at[self.design.counts()[at] == self.n]
        part = self.X[:, at].toarray() if self.is_sparse else self.X[:, at]
        return at[(part == few[0, at]).all(axis=0)]

    @cached_property
    def means(self):
        """m, (p,)."""
        if not self.centred:
            return np.zeros(self.p)
        means = self.design.rmatvec(self.weights) / self.total
        means[self.constant] = self._first(self.constant)
        return means

    def _first(self, columns):
        row = self.X[[0]][:, columns]
        return (row.toarray() if self.is_sparse else row)[0]

    @property
    def weights(self):
        """s, or ones, (n,)."""
        return np.ones(self.n) if self.s is None else self.s

    @cached_property
    def root(self):
        """Square roots of the weights, (n,), or None."""
        return None if self.s is None else np.sqrt(self.s)

    @cached_property
    def _filled(self):
        """Sum of the weights of the rows in which each column of a sparse X is stored, (p,)."""
        return self.design.with_values(np.ones(self.X.nnz)).rmatvec(self.weights)

    def _has_full_columns(self):
        """Whether products of centred sparse columns lose digits where means are subtracted from sums."""
        return self.centred and bool(self._filled.max(initial=0.0) > FULL * self.total)

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
        return self.centre(self.design.matvec(w))

    def centre(self, z):
        """z (n,) less its weighted mean, in place, and the mean; 0 without an intercept."""
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

    def squares(self):
        """Diagonal of B^T S B, (p,)."""
        return np.maximum(self.design.squares(self.weights) - self.total * self.means**2, 0.0)

    def gram(self, dtype):
        """B^T S B, (p, p), float64. Sums over dense blocks are in ``dtype``."""
        by_entries = self.is_sparse and self.design.has_few_entries(None)
        by_entries = by_entries and not self._has_full_columns()
        centre = self.means if self.centred else None
        return self.design.sandwich(self.s, centre=centre, dtype=dtype, by_entries=by_entries)

    def row_gram(self, scale, dtype, by_entries=False):
        """S^(1/2) B diag(scale) B^T S^(1/2), (n, n), in ``dtype``.

        ``by_entries``: a sparse X whose columns are mostly zero need not become dense. It costs digits.
        """
        centre = self.means if self.centred else None
        if by_entries:
            by_entries = self.is_sparse and self.design.has_few_entries(None)
            by_entries = by_entries and not self._has_full_columns()
        out = self.design.row_gram(scale, centre=centre, dtype=dtype, by_entries=by_entries)
        if self.root is not None:
            root = self.root.astype(dtype)
            out *= root
            out *= root[:, None]
        return out

    def add_intercept(self, K):
        """Add a multiple of r r^T, r = S^(1/2) 1, to a `row_gram` K, which has the eigenvalue zero there.

        The multiple is as large as the other eigenvalues: else a small diagonal is lost in rounding along r.
        """
        if self.centred and self.total > 0.0:
            root = np.ones(self.n, dtype=K.dtype) if self.root is None else self.root.astype(K.dtype)
            K += K.dtype.type(np.trace(K) / (self.n * self.total)) * np.outer(root, root)
