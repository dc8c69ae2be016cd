"""Design matrices on a GPU: dense in C order, CSR and CSC, as in `dense_design` and `sparse_design`.

The data keeps its type; every vector and every sum is float64. A sparse design holds X by rows and, from
the first product with its transpose on, by columns too, so that no sum needs atomics.
"""

from __future__ import annotations

import functools
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from .._arrays import DEVICE_BLOCK, namespace
from .._messages import shown
from .._typing import CompressedParts, DeviceArray, DeviceMatrix
from ..gpu.shared import _dense, _sparse
from ..gpu.shared._operators import MAX_FACTOR_SIDE, GramOperator
from ..gpu.shared._rows import DenseOperator, RowOperator
from ..gpu.shared._sparse import Lines
from .cost import DEVICE
from .matrix import Columns, Matrix, is_all
from .sparse_design import next_weights


def as_device_design(X: DeviceArray | DeviceMatrix) -> DeviceSparse | DeviceDense:
    """Wrap a CuPy array or a CSR or CSC matrix; float32 and float64 are not copied, but to C order."""
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)  # counts and booleans: products in their own type would overflow
    if not hasattr(X, "nnz"):
        return DeviceDense(namespace(X=X).ascontiguousarray(X))
    if X.format not in ("csr", "csc"):
        raise TypeError(f"X must be dense, CSR or CSC; got sparse format {shown(X.format)}")
    lines = *_one_type(X.indptr, X.indices), X.data
    if X.format == "csr":
        return DeviceSparse(X.shape, lines)
    # the rows of X are the columns of its transpose
    return DeviceSparse(X.shape, _sparse.transpose(*lines, X.shape[0]), lines)


def _one_type(indptr: DeviceArray, indices: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Pointers and indices in one type, int32 where the pointers were so or their values fit."""
    dtype = np.int32 if indptr.dtype == np.int32 or len(indices) < 2**31 else np.int64
    return indptr.astype(dtype, copy=False), indices.astype(dtype, copy=False)


class _Device(Matrix):
    """What matrices on a GPU share."""

    is_on_device = True
    factors_rows = False
    block_entries = DEVICE_BLOCK
    threads = ()  # of kernels that have versions in main memory

    def private(self) -> Self:
        """Itself: it has no buffers."""
        return self

    def has_few_entries(self, columns: DeviceArray | None) -> bool:
        """False: sums of products of entries would need atomics."""
        return False


class DeviceSparse(_Device):
    """Rows in CSR, (indptr, indices, data), and the same by columns once they are asked for."""

    is_sparse = True

    def __init__(
        self, shape: tuple[int, int], rows: CompressedParts, columns: CompressedParts | None = None
    ) -> None:
        self.indptr, self.indices, self.data = rows
        self.shape, self.nnz = shape, int(self.data.size)
        self._columns = columns

    @functools.cached_property
    def by_rows(self) -> Lines:
        """X by rows."""
        return Lines(self.indptr, self.indices, self.data)

    @functools.cached_property
    def by_columns(self) -> Lines:
        """X by columns."""
        turned = self._columns or _sparse.transpose(self.indptr, self.indices, self.data, self.shape[1])
        return Lines(*turned)

    @property
    def X(self) -> DeviceMatrix:
        """The same arrays as CuPy's matrix."""
        from cupyx.scipy.sparse import csr_matrix

        return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)

    def with_values(self, data: DeviceArray) -> DeviceSparse:
        """The same entries with other values (nnz,)."""
        return DeviceSparse(self.shape, (self.indptr, self.indices, data))

    def with_ones(self, rows: DeviceArray, columns: DeviceArray | None = None) -> DeviceMatrix:
        from cupyx.scipy.sparse import csr_matrix, hstack

        A = self.part(rows, columns)
        ones = np.ones_like(A.data, shape=(A.shape[0], 1))
        return hstack([A, csr_matrix(ones)], format="csr")

    def matvec(self, w: DeviceArray, out: DeviceArray | None = None) -> DeviceArray:
        out = np.empty(self.shape[0], like=w) if out is None else out
        self.by_rows.product(w, out)
        return out

    def rmatvec(self, u: DeviceArray, out: DeviceArray | None = None) -> DeviceArray:
        out = np.empty(self.shape[1], like=u) if out is None else out
        self.by_columns.product(u, out)
        return out

    def select(self, cols: DeviceArray) -> DeviceSparse:
        """The columns ``cols`` as a design of their own, in rows and in columns."""
        rows = _sparse.select(self.indptr, self.indices, self.data, self._position(cols))
        indptr, indices = _one_type(*rows[:2])
        columns = _sparse.gather(*self.by_columns.parts, cols, len(rows[2]))
        return DeviceSparse((self.shape[0], len(cols)), (indptr, indices, rows[2]), columns)

    def counts(self) -> DeviceArray:
        """Stored entries of each column, (p,)."""
        return self.by_columns.counts

    def _position(self, cols: DeviceArray) -> DeviceArray:
        position = np.full_like(cols, -1, dtype=np.int32, shape=self.shape[1])
        position[cols] = np.arange(len(cols), dtype=np.int32, like=cols)
        return position

    def model(
        self, cols: DeviceArray, d: DeviceArray, intercept: bool, ridge: float
    ) -> tuple[GramOperator | RowOperator, Columns]:
        """Operator on columns ``cols`` (and the intercept), and the design of their moves."""
        A, size = self.select(cols), len(cols) + bool(intercept)
        gram, product = self.shape[0] * size**2 * DEVICE.dense, 2.0 * A.nnz * DEVICE.entry
        if 0 < size <= MAX_FACTOR_SIDE and DEVICE.gram_pays(gram, size, product):
            return GramOperator(A.sandwich(d, intercept=bool(intercept)), ridge), Columns(self, cols)
        return RowOperator(A.by_rows, A.by_columns, d, intercept, ridge), Columns(self, cols)

    def norm_bound(self, d: DeviceArray, intercept: bool) -> float:
        """As `CSRDesign.norm_bound`: Collatz-Wielandt ratios of |A|^T D |A|, A = X or [X, 1]."""
        p = self.shape[1]
        m = p + bool(intercept)
        if not m:
            return 0.0
        rows, columns = (x.with_values(np.abs(x.data)) for x in (self.by_rows, self.by_columns))
        v, out, bound = np.ones_like(d, shape=m), np.empty_like(d, shape=m), 0.0
        t = np.empty_like(d)
        for _ in range(2):
            rows.product(v, t)
            t += v[p] if intercept else 0.0
            t *= d
            columns.product(t, out)
            out[p:] = t.sum()
            bound = float(np.max(out / v))
            v = next_weights(out)
        return bound


class DeviceDense(_Device):
    """Dense X in C order."""

    def __init__(self, X: DeviceArray) -> None:
        self.X, self.shape, self.nnz = X, X.shape, X.size

    def matvec(self, w: DeviceArray, out: DeviceArray | None = None) -> DeviceArray:
        out = np.empty(self.shape[0], like=w) if out is None else out
        _dense.matvec(self.X, w, out)
        return out

    def rmatvec(self, u: DeviceArray, out: DeviceArray | None = None) -> DeviceArray:
        out = np.empty(self.shape[1], like=u) if out is None else out
        _dense.rmatvec(self.X, u, out)
        return out

    def select(self, cols: DeviceArray) -> DeviceDense:
        """The columns ``cols`` as a design of their own."""
        return self if is_all(cols, self.shape[1]) else DeviceDense(np.take(self.X, cols, axis=1))

    def squares(self, weight: DeviceArray) -> DeviceArray:
        out = np.empty(self.shape[1], like=weight)
        _dense.rmatvec(self.X, weight, out, square=True)
        return out

    def absolute_sums(self, weight: DeviceArray) -> DeviceArray:
        return DeviceDense(abs(self.X)).rmatvec(weight)

    def part(
        self, rows: slice | DeviceArray, columns: DeviceArray | None = None, dtype: DTypeLike = np.float64
    ) -> DeviceArray:
        """Rows and columns of X, slices or index arrays (None: all columns), as a new array."""
        A, has_all = self.X[rows], is_all(columns, self.shape[1])
        return (A if has_all else A[:, columns]).astype(dtype, copy=has_all and isinstance(rows, slice))

    def norm_bound(self, d: DeviceArray, intercept: bool) -> float:
        # the trace: loose, but one pass without a copy, and most steps never ask for it
        return float(self.squares(d).sum() + (d.sum() if intercept else 0.0))

    def model(
        self, cols: DeviceArray, d: DeviceArray, intercept: bool, ridge: float
    ) -> tuple[GramOperator | DenseOperator, Columns]:
        """Operator on columns ``cols`` (and the intercept), and the design of their moves."""
        m = len(cols)
        size = m + bool(intercept)
        if 0 < size <= MAX_FACTOR_SIDE:
            G = self.sandwich(d, cols, intercept=bool(intercept), dtype=self.X.dtype)
            return GramOperator(G, ridge), Columns(self, cols)
        part = self.X
        if not is_all(cols, self.shape[1]):
            part = np.take(self.X, cols, axis=1).astype(np.float32, copy=False)
        diagonal = np.empty(size, like=d)
        if m:
            _dense.rmatvec(part, d, diagonal, square=True)
        if intercept:
            diagonal[-1] = d.sum()
        return DenseOperator(part, d, diagonal, intercept, ridge), Columns(self, cols)
