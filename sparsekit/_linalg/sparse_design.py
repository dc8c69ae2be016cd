"""Sparse design matrices, CSR and CSC, with the methods of `dense_design`."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._cython.shared import _multinomial, _sparse
from .._cython.shared._operators import GramOperator
from .._cython.shared._rows import ModelRows, RowOperator
from .cost import HOST
from .matrix import Columns, Matrix, sparse_sandwich
from .special import largest

# Weight of a row, as a part of the mean, below which a model has only the diagonal of its curvature.
# With 0 15 fits to five unseen sets of text take 1.19 times the time, up to 1.6.
NEGLIGIBLE = 1e-4
# All rows stay where the others have more than this part of a column's curvature.
MAX_REST = 1e-2


def _same_index(indptr, indices):
    # kernels take one index type; a mixed pair is widened, which copies only then
    if indptr.dtype == indices.dtype and indptr.dtype in (np.int32, np.int64):
        return indptr, indices
    return indptr.astype(np.int64), indices.astype(np.int64)


def next_weights(out):
    """The next v > 0 of a Collatz-Wielandt bound from M v, brought near to 1 by a power of two."""
    top = largest(out)
    if 0.0 < top < np.inf:  # else products of the next round overflow, or vanish
        out = out * 2.0 ** -min(max(int(np.frexp(top)[1]), -1000), 1000)
    return np.maximum(out, largest(out) * 1e-3 + 1e-300)


class _Sparse(Matrix):
    """What CSR and CSC share: (indptr, indices, data)."""

    is_sparse = sums_pairs = True
    _format: Any = sp.csr_array

    @property
    def X(self):
        """The same arrays as SciPy's matrix."""
        return self._format((self.data, self.indices, self.indptr), shape=self.shape)

    def with_values(self, data):
        """The same entries with other values (nnz,)."""
        return type(self)(self.indptr, self.indices, data, self.shape, self.n_threads)

    def _sum_entries(self, d, columns, rows):
        """The sandwich, and the weighted sums of the columns."""
        A = self.X
        if A.format == "csc":
            A, columns = (A if columns is None else A[:, columns]).tocsr(), None
        return sparse_sandwich(A, d, rows, columns, np.float64)

    def lines(self):
        """Pointers, int64, indices and values, as kernels of several classes take them."""
        return self.indptr.astype(np.int64, copy=False), self.indices, self.data


class CSRDesign(_Sparse):
    """Rows in CSR. ``cols`` of a selection keep their order, so sorted rows stay sorted."""

    def __init__(self, indptr, indices, data, shape, n_threads=1):
        self.indptr, self.indices = _same_index(indptr, indices)
        self.data, self.shape, self.n_threads = data, shape, n_threads
        self.nnz = int(self.indptr[-1])
        self._work = self._rows = None

    def matmat(self, W, Z):
        """Z (n, K) = X W."""
        _multinomial.matmat(*self.lines(), W, Z, self.n_threads)

    def rmatmat(self, U, G):
        """G (p, K) = X^T U."""
        _multinomial.rmatmat(*self.lines(), U, G, self.n_threads)

    def squares_rmatmat(self, U, G):
        """G (p, K) = (X^2)^T U."""
        indptr, indices, data = self.lines()
        _multinomial.rmatmat(indptr, indices, np.square(data), U, G, self.n_threads)

    def single(self):
        """Rows and columns in single precision, each as pointers, indices and values; made once."""
        if self._single is None:
            rows = sp.csr_matrix(
                (self.data.astype(np.float32, copy=False), self.indices, self.indptr), shape=self.shape
            )
            self._single = tuple(
                (A.indptr.astype(np.int64), A.indices.astype(np.int32, copy=False), A.data)
                for A in (rows, rows.tocsc())
            )
        return self._single

    def matvec(self, w, out=None):
        out = np.empty(self.shape[0]) if out is None else out
        _sparse.csr_matvec(self.indptr, self.indices, self.data, w, out, self.n_threads)
        return out

    def rmatvec(self, u, out=None):
        p = self.shape[1]
        out = np.empty(p) if out is None else out
        if self._work is None:
            # as many partial sums as pay for their clearing; a function of the data alone
            blocks = min(max(self.nnz // (4 * max(p, 1)), 2), 8) if self.nnz > 50000 else 0
            self._work = np.empty((blocks, p if blocks else 0))
        _sparse.csr_rmatvec(self.indptr, self.indices, self.data, u, out, self._work, self.n_threads)
        return out

    def slope_range(self, c):
        """Bounds of X^T u over all u between 0 and c, and entries a column: (p, 3)."""
        p = self.shape[1]
        out = np.empty((p, 3))
        blocks = 2 if self.nnz > 50000 and self.nnz > 16 * p else 0
        work = np.empty((blocks, p, 3))
        _sparse.csr_slope_range(self.indptr, self.indices, self.data, c, out, work, self.n_threads)
        return out

    def select(self, cols):
        position = np.full(self.shape[1], -1, dtype=np.int32)
        position[cols] = np.arange(len(cols), dtype=np.int32)
        indptr = np.empty_like(self.indptr)
        # memory for all of X is reserved, but only the pages that are written become memory
        indices = np.empty(self.nnz + 1, dtype=np.int32)
        data = np.empty(self.nnz + 1, dtype=self.data.dtype)
        _sparse.csr_select(self.indptr, self.indices, self.data, position, indptr, indices, data)
        indices, data = indices[: indptr[-1]], data[: indptr[-1]]
        if indptr[-1] < np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32, copy=False)
        part = CompactRows(indptr, indices, data, (self.shape[0], len(cols)), self.n_threads)
        if self._counts is not None:
            part._counts = self._counts[cols]
        return part

    def counts(self):
        """Stored entries of each column, (p,)."""
        if self._counts is None:
            self._counts = np.bincount(self.indices, minlength=self.shape[1])
        return self._counts

    def model(self, cols, d, intercept, ridge):
        """Operator on columns ``cols`` (and the intercept), and the design of their moves.

        The operator is a Gram matrix where that costs less than the products it saves.
        """
        rows, d, rest = _of_weight(self._model_rows(cols), d, intercept)
        size = len(cols) + intercept
        if self._rows_pay(rows, size):
            # two partial sums if the matrix is small relative to the work that fills it
            G = np.empty((2 if 4 * size * size < rows.square_work else 1, size, size))
            rows.gram(d, intercept, G)
            operator = GramOperator(G[0], ridge)
        else:
            operator = RowOperator(rows, d, intercept, ridge)
        if rest is not None:
            operator.add_diagonal(rest)
        return operator, Columns(self, cols)

    def gram_pays(self, cols, intercept, products=0):
        """Whether a Gram matrix of columns ``cols`` costs less than ``products`` with them."""
        return self._rows_pay(self._model_rows(cols), len(cols) + intercept, products)

    def _rows_pay(self, rows, size, products=0):
        return HOST.gram_pays(HOST.pair * rows.square_work, size, 2.0 * rows.nnz * HOST.entry, products)

    def gram(self, cols, d, intercept):
        """A^T diag(d) A, of X in single precision, for columns ``cols`` in any order (and the intercept)."""
        rows = self._model_rows(cols)
        size = len(cols) + intercept
        G = np.empty((1, size, size))
        rows.gram(d, intercept, G)
        return G[0]

    def _model_rows(self, cols):
        """The columns ``cols`` as short rows, in buffers that every model shares."""
        n, p = self.shape
        if self._rows is None:
            # the parts depend on the data alone, so that sums do not depend on the threads
            parts = min(max(self.nnz // 50000, 1), 8)
            cuts = np.searchsorted(self.indptr, np.linspace(0, self.nnz, parts + 1)).astype(np.intp)
            cuts[0], cuts[-1] = 0, n
            self._rows = ModelRows(n, self.nnz, cuts, self.n_threads)
        rows = self._rows
        position = np.full(p, -1, dtype=np.int32)
        position[cols] = np.arange(len(cols), dtype=np.int32)
        rows.fill(self.indptr, self.indices, self.data, position, len(cols))
        return rows

    def norm_bound(self, d, intercept):
        m = self.shape[1] + intercept
        v, out = np.ones(m), np.empty(m)
        for _ in range(2):
            # Collatz-Wielandt: for a matrix M >= 0 and any v > 0, max (Mv)_j / v_j bounds its
            # largest eigenvalue, and |X|^T D |X| bounds X^T D X
            _sparse.csr_absolute_bound(self.indptr, self.indices, self.data, d, v, out, intercept)
            bound = float(np.max(out / v)) if m else 0.0
            v = next_weights(out)
        return bound


def _of_weight(rows, d, intercept):
    """Rows of a model that are not negligible, their weights d, and the Hessian's diagonal of the others."""
    is_kept = d >= NEGLIGIBLE * (d.sum() / max(len(d), 1))
    if is_kept.all():
        return rows, d, None
    kept, others = np.flatnonzero(is_kept), np.flatnonzero(~is_kept)
    part, weights = rows.select(kept), d[kept]
    rest = rows.select(others).diagonal(d[others], intercept)
    if (rest > MAX_REST * part.diagonal(weights, intercept)).any():
        return rows, d, None
    return part, weights, rest


class CompactRows(CSRDesign):
    """A column selection: int32 column numbers, made to be multiplied often."""

    def __init__(self, indptr, indices, data, shape, n_threads=1):
        self.nnz = int(indptr[-1])
        # the kernels take one index type; a selection of an int64 matrix mostly fits into int32
        if self.nnz < 2**31:
            indptr = indptr.astype(np.int32, copy=False)
        else:
            indices = indices.astype(np.int64)
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape
        self.n_threads = n_threads
        self._work = self._rows = None


class CSCDesign(_Sparse):
    """Columns in CSC; a selection becomes compact rows."""

    _format = sp.csc_array

    def __init__(self, indptr, indices, data, shape, n_threads=1):
        self.indptr, self.indices = _same_index(indptr, indices)
        self.data, self.shape, self.n_threads = data, shape, n_threads
        self.nnz = int(self.indptr[-1])

    def matmat(self, W, Z):
        """Z (n, K) = X W."""
        _multinomial.rmatmat(*self.lines(), W, Z, self.n_threads)

    def rmatmat(self, U, G):
        """G (p, K) = X^T U."""
        _multinomial.matmat(*self.lines(), U, G, self.n_threads)

    def matvec(self, w, out=None):
        out = np.empty(self.shape[0]) if out is None else out
        _sparse.csc_matvec(self.indptr, self.indices, self.data, w, out)
        return out

    def rmatvec(self, u, out=None):
        out = np.empty(self.shape[1]) if out is None else out
        # X^T in CSR is X in CSC
        _sparse.csr_matvec(self.indptr, self.indices, self.data, u, out, self.n_threads)
        return out

    def counts(self):
        """Stored entries of each column, (p,)."""
        return np.diff(self.indptr)

    def gram(self, cols, d, intercept):
        """As `CSRDesign.gram`."""
        return self.select(cols).gram(np.arange(len(cols)), d, intercept)

    def gram_pays(self, cols, intercept, products=0):
        """As `CSRDesign.gram_pays`."""
        return self.select(cols).gram_pays(np.arange(len(cols)), intercept, products)

    def slope_range(self, c):
        """Bounds of X^T u over all u between 0 and c, and entries a column: (p, 3)."""
        out = np.empty((self.shape[1], 3))
        _sparse.csc_slope_range(self.indptr, self.indices, self.data, c, out, self.n_threads)
        return out

    def select(self, cols):
        cols = np.asarray(cols, dtype=np.int32)
        indptr = np.zeros(self.shape[0] + 1, dtype=np.int64)
        _sparse.csc_select_count(self.indptr, self.indices, cols, indptr)
        nnz = int(indptr[-1])
        indices, data = np.empty(nnz, dtype=np.int32), np.empty(nnz, dtype=self.data.dtype)
        _sparse.csc_select_fill(self.indptr, self.indices, self.data, cols, indptr[:-1].copy(), indices, data)
        if nnz < np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        return CompactRows(indptr, indices, data, (self.shape[0], len(cols)), self.n_threads)

    def model(self, cols, d, intercept, ridge):
        """Operator on columns ``cols`` (and the intercept), and the design of their moves."""
        part = self.select(cols)
        return part.model(np.arange(len(cols)), d, intercept, ridge)[0], part

    def norm_bound(self, d, intercept):
        """The same as CSRDesign.norm_bound, from the transpose's point of view."""
        m = self.shape[1] + intercept
        A = sp.csc_matrix((np.abs(self.data), self.indices, self.indptr), shape=self.shape, copy=False)
        v = np.ones(m)
        bound = 0.0
        for _ in range(2):
            z = d * (A @ v[: self.shape[1]] + (v[-1] if intercept else 0.0))
            out = np.append(A.T @ z, z.sum()) if intercept else A.T @ z
            bound = float(np.max(out / v)) if m else 0.0
            v = next_weights(out)
        return bound
