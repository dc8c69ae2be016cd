"""Matrix: what every kind of X can do, dense or sparse, in main memory or on a GPU.

A matrix keeps the data in its own type; every vector and every sum is float64. Each kind has

* ``matvec(w)`` = X w and ``rmatvec(u)`` = X^T u, by kernels;
* ``select(columns)``, a matrix of these columns;
* ``model(columns, d, intercept, ridge)``, the operator of a quadratic model;
* ``part(rows, columns)``, rows and columns in float64, dense or CSR;

and from here `sandwich`, `squares`, `absolute_sums`. `as_design.as_design` chooses the kind, once for each X.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._arrays import DEVICE_BLOCK, full, is_device
from .._cython.shared import _sparse

# Entries of a block of rows that are converted and scaled at once: they stay in a core's second cache.
BLOCK = 2**18
# Numbers of a buffer that is made for one call: partial sums, factors of a Hessian, solutions of a path.
BUFFER = 2**22
# Sparse columns become dense blocks where the square of the part of a row's entries is larger than this. On
# 100 matrices of 30 to 1000 columns and parts of them products of entries take 0.06 to 0.9 of the time of
# dense blocks below it, one 1.2 times; above it 0.2 to 4.5 times, with up to 100 columns at most 1.4.
DENSE_PART = 0.03


def buffer_size(like):
    """`BUFFER`, or what such buffers have on a GPU where ``like`` is there."""
    return DEVICE_BLOCK if is_device(like) else BUFFER


class Matrix:
    """X of shape (n, p), float32 or float64; ``X`` is the array, or SciPy's or CuPy's matrix."""

    is_sparse = False
    is_on_device = False
    sums_pairs = False  # whether kernels sum a Gram matrix of classes over pairs of a row's entries
    factors_rows = True  # whether X diag(d) X^T can be factored with pivots
    block_entries = BLOCK
    # buffers of products: partial sums, rows of models, a copy in single precision
    _work: Any = None
    _rows: Any = None
    _single: Any = None
    # stored entries of each column
    _counts: Any = None

    @property
    def threads(self):
        """Last arguments of kernels that have a CUDA version, which has none."""
        return (self.n_threads,)

    def private(self):
        """The same data with buffers of its own."""
        other = copy.copy(self)
        other._work = other._rows = other._single = None
        return other

    def row_blocks(self):
        """Slices of rows, each of as many as a block has entries for."""
        step = max(self.block_entries // max(self.shape[1], 1), 1)
        return (slice(at, at + step) for at in range(0, self.shape[0], step))

    @property
    def nbytes(self):
        """Bytes of the data, wherever they are."""
        X = self.X
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if self.is_sparse else X.nbytes

    def squares(self, weight):
        """sum_i weight_i X_ij^2, (p,)."""
        with np.errstate(over="ignore", under="ignore"):
            return self.with_values(self.data.astype(np.float64) ** 2).rmatvec(weight)

    def absolute_sums(self, weight):
        """sum_i weight_i |X_ij|, (p,)."""
        return self.with_values(abs(self.data)).rmatvec(weight)

    def part(self, rows, columns=None, dtype=np.float64):
        """Rows and columns of X, slices or index arrays (None: all columns), as a new matrix in CSR."""
        A, has_all = self.X, is_all(columns, self.shape[1])
        if A.format == "csr":  # the cheaper selection first
            A = A[rows]
            return (A if has_all else A[:, columns]).astype(dtype)
        return (A if has_all else A[:, columns]).tocsr()[rows].astype(dtype)

    def with_ones(self, rows, columns=None):
        """`part` and a column of ones."""
        A = self.part(rows, columns)
        if self.is_sparse:
            return sp.hstack([A, np.ones((A.shape[0], 1))], format="csr")
        return np.hstack([A, np.ones_like(A, shape=(len(A), 1))])

    def dense_part(self, rows, columns=None, dtype=np.float64):
        """`part` as a new dense array."""
        A = self.part(rows, columns, dtype)
        return A.toarray() if self.is_sparse else A

    def sandwich(
        self, d=None, columns=None, *, rows=None, intercept=False, centre=None, dtype=np.float64,
        by_entries=None,
    ):  # fmt: skip
        """B^T diag(d) B of columns of B = X - 1 centre^T, as float64.

        Parameters
        ----------
        d : ndarray of shape (n,), or (len(rows),), or None
            Weights >= 0; None means ones.
        columns : ndarray of int or None
            Distinct ones, in any order; None means all.
        rows : ndarray of int or None
            Distinct rows, to which the sums are limited; None means all.
        intercept : bool
            Whether B ends with a column of ones; without a centre.
        centre : ndarray of shape (len(columns),) or None
            None means zeros.
        dtype : dtype
            Of the sums over dense blocks; those of products of entries are float64.
        by_entries : bool or None
            Whether products of entries of a sparse X in main memory are summed, and not those of dense
            blocks. None means that their numbers decide.

        Returns
        -------
        ndarray of shape (m, m)
        """
        size = self.shape[1] if columns is None else len(columns)
        n = self.shape[0] if rows is None else len(rows)
        if by_entries is None:
            by_entries = self.is_sparse and self.has_few_entries(columns)
        if by_entries:
            out, sums = self._sum_entries(d, columns, rows)
            if centre is not None:
                # about any centre, whose distance from the means loses no more digits
                total = float(n if d is None else d.sum())
                out -= np.outer(sums, centre) + np.outer(centre, sums - total * centre)
        else:
            out, sums = self._sum_blocks(d, columns, rows, centre, dtype)
        if not intercept:
            return out
        whole = np.empty_like(out, shape=(size + 1, size + 1))
        whole[:size, :size], whole[size, :size], whole[:size, size] = out, sums, sums
        whole[size, size] = n if d is None else d.sum()
        return whole

    def row_gram(self, scale, *, centre=None, dtype=np.float64, by_entries=False):
        """B diag(scale) B^T for B = X - 1 centre^T, (n, n), with scale (p,) >= 0; sums are in ``dtype``.

        ``by_entries``: a sparse X stays sparse with a centre too, which costs digits where columns are far
        from zero.
        """
        n, p = self.shape
        if self.is_sparse and (centre is None or by_entries):
            out = row_products(self.part(slice(None), dtype=dtype), scale)
            if centre is not None:
                along = self.matvec(scale * centre)
                out += float(scale @ centre**2) - along - along[:, None]
            return out
        out = np.zeros((n, n), dtype=dtype)
        step = max(self.block_entries // max(n, 1), 2 * n, 1)
        for at in range(0, p, step):
            columns = np.arange(at, min(at + step, p))
            A = self.dense_part(slice(None), columns, dtype)
            if centre is not None:
                A -= centre[columns].astype(dtype)
            A *= np.sqrt(scale[columns]).astype(dtype)
            out += A @ A.T
        return out

    def gram_pays(self, columns, intercept, products=0):
        """Whether a Gram matrix of ``columns`` costs less than ``products`` with them.

        False where its cost is not known.
        """
        return False

    def has_few_entries(self, columns):
        """Whether products of a sparse X's entries are fewer than those of dense rows."""
        counts = self.counts() if columns is None else self.counts()[columns]
        return (float(counts.sum()) / max(self.shape[0], 1)) ** 2 <= DENSE_PART * len(counts) ** 2

    def _sum_blocks(self, d, columns, rows, centre, dtype):
        """The sandwich, and the weighted sums of the columns."""
        matrix = self
        if self.is_sparse and columns is not None:
            matrix, columns = self.select(columns), None
        size = matrix.shape[1] if columns is None else len(columns)
        n = self.shape[0] if rows is None else len(rows)
        out, sums = (np.zeros(shape, dtype=dtype, like=d) for shape in ((size, size), size))
        root = full(n, 1.0, dtype, like=d) if d is None else np.sqrt(d).astype(dtype)
        step = max(self.block_entries // max(size, 1), 2 * size if size < 512 else 512, 1)
        for at in range(0, n, step):
            some = slice(at, at + step)
            A = matrix.dense_part(some if rows is None else rows[some], columns, dtype)
            if centre is not None:
                A -= centre.astype(dtype)
            if d is not None:
                A *= root[some, None]
            out += A.T @ A
            sums += root[some] @ A
        return out.astype(np.float64, copy=False), sums.astype(np.float64, copy=False)


class Columns:
    """Chosen columns of a design, not copied: their product goes through the whole matrix."""

    def __init__(self, design, cols):
        self.design, self.cols = design, cols
        self.shape = (design.shape[0], len(cols))

    def matvec(self, w):
        full = np.zeros(self.design.shape[1], like=w)
        full[self.cols] = w
        return self.design.matvec(full)


def is_all(columns, p):
    """Whether distinct ``columns`` are all p of them in their order; None means that they are."""
    return columns is None or (len(columns) == p and bool((columns[1:] > columns[:-1]).all()))


def row_products(A, scale):
    """A diag(scale) A^T of a dense or CSR array A, dense."""
    if not hasattr(A, "nnz"):
        return (A * scale) @ A.T
    columns = A.T
    if is_device(A):
        return (columns.multiply(scale.astype(A.dtype, copy=False)[:, None]).T @ columns).toarray()
    # symmetric, and in the order of LAPACK, which copies others
    return sparse_sandwich(columns.tocsr(), scale)[0].T


def sparse_sandwich(A, d=None, rows=None, columns=None, dtype=None):
    """B^T diag(d) B as a dense array (m, m), and B^T d, for rows and columns B of a sparse matrix.

    Parameters
    ----------
    A : CSR matrix of shape (n, p), in main memory
    d : ndarray of shape (len(rows),) or None
        None means ones.
    rows, columns : ndarray of int or None
        Distinct ones, in any order; None means all.
    dtype : dtype or None
        Of the sums; None means that of A.
    """
    n, p = A.shape
    rows = np.arange(n) if rows is None else np.asarray(rows, dtype=np.int64)
    d = np.ones(len(rows)) if d is None else np.ascontiguousarray(d, dtype=np.float64)
    m = p if columns is None else len(columns)
    position = np.full(p, -1, dtype=np.int32)
    position[slice(None) if columns is None else columns] = np.arange(m, dtype=np.int32)
    out, sums = np.empty((m, m), dtype=dtype or A.dtype), np.empty(m)
    _sparse.csr_sandwich(A.indptr, A.indices, A.data, rows, d, position, out, sums)
    return out, sums
