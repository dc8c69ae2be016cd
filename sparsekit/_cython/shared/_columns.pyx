"""A column-wise copy of sparse X, and the Hessian operator that lives on any choice of its columns.

The copy serves every model, so no columns are gathered for each, and coordinate descent comes
with it. Columns are cut into segments at blocks of rows that fit into a core's first cache.
"""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memcpy, memset

from ._operators cimport QuadOperator, soft_step
from ._orthant cimport below_zero

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef extern from "shared/kernels.h" nogil:
    double sk_segment_dot(const uint16_t*, const float*, Py_ssize_t, const double*)
    double sk_segment_square(const uint16_t*, const float*, Py_ssize_t, const double*)
    void sk_segment_add(const uint16_t*, const float*, Py_ssize_t, double, double*)
    double sk_pair_dot(const uint16_t*, const float*, Py_ssize_t, const double*)
    void sk_pair_add(const uint16_t*, const float*, Py_ssize_t, double, double*)


cdef class ColumnStore:
    """X (n, p) by columns: float32 values, and 16-bit row numbers within blocks of ``height`` rows.

    Segment b of column j is ``cut[b, j] .. cut[b + 1, j]``; a column's segments lie side by side.
    """
    cdef readonly Py_ssize_t n, p, height, blocks
    cdef int64_t[:, ::1] cut
    cdef uint16_t[::1] row
    cdef float[::1] val

    @property
    def counts(self):
        """Stored entries of each column, (p,)."""
        return np.asarray(self.cut)[self.blocks] - np.asarray(self.cut)[0]


def columns_from_csr(const index[::1] indptr, const index[::1] indices, const real[::1] data, Py_ssize_t p,
                     const int64_t[::1] counts, Py_ssize_t height, int n_threads):
    """The store of rows (indptr, indices, data); ``counts`` (p,) are the entries of each column."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, b, j, half, nnz = indptr[n]
    cdef ColumnStore store = ColumnStore()
    cdef int64_t at = 0
    cdef int64_t[:, ::1] cursor = np.empty((2, p), dtype=np.int64)
    if height < 1 or height > 65536:
        raise ValueError(f"height must be from 1 to 65536; got {height}")
    store.n, store.p, store.height = n, p, height
    store.blocks = (n + height - 1) // height
    store.cut = np.empty((store.blocks + 1, p), dtype=np.int64)
    # one spare entry, so that there is an address to take where X is empty
    store.row = np.empty(nnz + 1, dtype=np.uint16)
    store.val = np.empty(nnz + 1, dtype=np.float32)
    with nogil:
        for j in range(p):
            store.cut[0, j] = at
            at += counts[j]
            store.cut[store.blocks, j] = at
    if p == 0 or n == 0:
        return store
    # two threads at most: the first goes down from the top, the second up from the bottom
    half = store.blocks // 2 if n_threads > 1 else store.blocks
    for b in prange(2, nogil=True, num_threads=n_threads, schedule='static'):
        _turn(store, indptr, indices, data, half, b, &cursor[b, 0])
    return store


cdef void _turn(ColumnStore store, const index[::1] indptr, const index[::1] indices, const real[::1] data,
                Py_ssize_t half, Py_ssize_t part, int64_t* cursor) noexcept nogil:
    cdef Py_ssize_t i, k, b, lo, hi, p = store.p
    cdef int64_t at
    if part == 0:
        memcpy(cursor, &store.cut[0, 0], p * sizeof(int64_t))
        for b in range(half):
            if b > 0:
                memcpy(&store.cut[b, 0], cursor, p * sizeof(int64_t))
            lo = b * store.height
            hi = min(store.n, lo + store.height)
            for i in range(lo, hi):
                for k in range(indptr[i], indptr[i + 1]):
                    at = cursor[indices[k]]
                    store.row[at] = <uint16_t>(i - lo)
                    store.val[at] = <float>data[k]
                    cursor[indices[k]] = at + 1
    else:
        memcpy(cursor, &store.cut[store.blocks, 0], p * sizeof(int64_t))
        for b in range(store.blocks - 1, half - 1, -1):
            lo = b * store.height
            hi = min(store.n, lo + store.height)
            for i in range(hi - 1, lo - 1, -1):
                for k in range(indptr[i], indptr[i + 1]):
                    at = cursor[indices[k]] - 1
                    store.row[at] = <uint16_t>(i - lo)
                    store.val[at] = <float>data[k]
                    cursor[indices[k]] = at
            if b > 0:
                memcpy(&store.cut[b, 0], cursor, p * sizeof(int64_t))


cdef class ColumnOperator(QuadOperator):
    """H = A^T diag(d) A, A = X[:, cols] or [X[:, cols], 1], by columns of a store."""
    cdef ColumnStore store
    cdef const int32_t[::1] cols
    cdef const double[::1] d
    cdef int n_threads
    cdef double[:, ::1] sums, pairs
    cdef double[::1] t, entry
    cdef char[::1] idle
    # the columns on the face
    cdef int[::1] on
    cdef int n_on
    cdef readonly long n_sweeps
    cdef QuadOperator rows

    def __init__(self, ColumnStore store, const int32_t[::1] cols, const double[::1] d, bint intercept,
                 double ridge, QuadOperator rows, int n_threads):
        cdef Py_ssize_t m = cols.shape[0], n = store.n, j
        self.reads = "columns"
        self.store, self.cols, self.d = store, cols, d
        self.intercept, self.ridge, self.n_threads = intercept, ridge, n_threads
        self.rows = rows
        self.size = <int>(m + intercept)
        self.diagonal = np.empty(self.size)
        if intercept:
            self.diagonal[m] = np.sum(d)
            self.common, self.knows_common = np.empty(self.size), True
            self.common[m] = self.diagonal[m]
        for j in prange(m, nogil=True, num_threads=n_threads, schedule='static'):
            self.diagonal[j] = self._weigh(j, True)
            if self.intercept:
                self.common[j] = self._weigh(j, False)
        self.t = np.empty(n)
        self.sums = np.zeros((store.blocks, self.size))  # a product on a face writes to some of it
        self.pairs, self.entry = np.empty((n, 2)), np.empty(self.size)
        self.idle = np.empty(self.size, dtype=np.int8)
        self.on, self.n_on = np.empty(m + 1, dtype=np.int32), 0

    def add_diagonal(self, const double[::1] added):
        """Add a diagonal (m,) to H, and to that of the rows."""
        QuadOperator.add_diagonal(self, added)
        if self.rows is not None:
            self.rows.add_diagonal(added)

    cdef double _weigh(self, Py_ssize_t j, bint squared) noexcept nogil:
        # sum of d times the column's entries, or times their squares
        cdef Py_ssize_t b
        cdef int64_t at, n
        cdef const double* d
        cdef double total = 0.0
        for b in range(self.store.blocks):
            at = self.store.cut[b, self.cols[j]]
            n = self.store.cut[b + 1, self.cols[j]] - at
            d = &self.d[b * self.store.height]
            if squared:
                total += sk_segment_square(&self.store.row[at], &self.store.val[at], n, d)
            else:
                total += sk_segment_dot(&self.store.row[at], &self.store.val[at], n, d)
        return total

    cdef void face(self, const signed char* kind) noexcept nogil:
        cdef int j
        self.n_on = 0
        for j in range(self.cols.shape[0]):
            self.on[self.n_on] = j
            self.n_on += kind[j] == 1 or kind[j] == 2

    cdef void _block(self, Py_ssize_t b, const double* v, bint whole) noexcept nogil:
        # One block of rows of the Hessian product: t = d * (A v), then A^T t, while t is in the first cache.
        # For the columns of the active face, or for all of them (``whole``).
        cdef Py_ssize_t m = self.cols.shape[0], lo = b * self.store.height, i, j
        cdef Py_ssize_t rows = min(self.store.height, self.store.n - lo), k, many = m if whole else self.n_on
        cdef const int64_t* start = &self.store.cut[b, 0]
        cdef const int64_t* stop = &self.store.cut[b + 1, 0]
        cdef int64_t at
        cdef double* t = &self.t[lo]
        cdef double* out = &self.sums[b, 0]
        cdef double v0 = v[m] if self.intercept else 0.0, last = 0.0
        memset(t, 0, rows * sizeof(double))
        for k in range(many):
            j = k if whole else self.on[k]
            if v[j] != 0.0:
                at = start[self.cols[j]]
                sk_segment_add(&self.store.row[at], &self.store.val[at], stop[self.cols[j]] - at, v[j], t)
        for i in range(rows):
            t[i] = self.d[lo + i] * (t[i] + v0)
            last += t[i]
        for k in range(many):
            j = k if whole else self.on[k]
            at = start[self.cols[j]]
            out[j] = sk_segment_dot(&self.store.row[at], &self.store.val[at], stop[self.cols[j]] - at, t)
        if self.intercept:
            out[m] = last

    cdef void product(self, const double* v, double* out) noexcept nogil:
        self._product(v, True, out)

    cdef void product_on(self, const double* v, double* out) noexcept nogil:
        self._product(v, False, out)

    cdef void _product(self, const double* v, bint whole, double* out) noexcept nogil:
        cdef Py_ssize_t j, b
        self.n_products += 1
        if self.rows is not None:
            self.rows.product(v, out)
            return
        for b in prange(self.store.blocks, num_threads=self.n_threads, schedule='static'):
            self._block(b, v, whole)
        for j in range(self.size):
            out[j] = self.ridge * self.diagonal[j] * v[j]
        for b in range(self.store.blocks):
            for j in range(self.size):
                out[j] += self.sums[b, j]
        self.add_plus(v, out)

    cdef double _slope(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t b
        cdef int64_t at, end
        cdef double total = 0.0
        for b in range(self.store.blocks):
            at = self.store.cut[b, self.cols[j]]
            end = self.store.cut[b + 1, self.cols[j]]
            total += sk_pair_dot(&self.store.row[at], &self.store.val[at], end - at,
                                 &self.pairs[b * self.store.height, 0])
        return total

    cdef void _shift(self, Py_ssize_t j, double move) noexcept nogil:
        cdef Py_ssize_t b
        cdef int64_t at, end
        for b in range(self.store.blocks):
            at = self.store.cut[b, self.cols[j]]
            end = self.store.cut[b + 1, self.cols[j]]
            sk_pair_add(&self.store.row[at], &self.store.val[at], end - at, move,
                        &self.pairs[b * self.store.height, 0])

    cdef bint sweep(self, double* x, double* grad, const double* l1, int n_sweeps) noexcept nogil:
        cdef Py_ssize_t m = self.cols.shape[0], n = self.store.n, j, i
        cdef int k
        cdef double h, g, new, move, below, largest, first = 0.0, last = 0.0, shift = 0.0
        cdef bint together = self.intercept and self.diagonal[m] > 0.0 and l1[m] == 0.0
        if n == 0 or n_sweeps == 0:
            return False
        # pairs of d_i (A (x - x_at_entry))_i and d_i, side by side for one cache line
        for i in range(n):
            self.pairs[i, 0] = 0.0
            self.pairs[i, 1] = self.d[i]
        for j in range(self.size):
            self.entry[j] = x[j]
        # a free intercept is where it is best at every time: its shift follows from the sum of the pairs. As a
        # coordinate among others it would crawl along with every column that has a mean
        if together:
            last = self.diagonal[m]
            shift = -grad[m] / last
        for k in range(n_sweeps):
            largest = 0.0
            for j in range(m if together else self.size):
                h = self.diagonal[j] * self.ridge + (self.apart(j) if together else self.diagonal[j])
                if not (h > 0.0) or (k > 0 and self.idle[j]):
                    continue
                g = grad[j] + self.ridge * self.diagonal[j] * (x[j] - self.entry[j])
                if self.plus != NULL:
                    g += self.plus[j] * (x[j] - self.entry[j])
                if j < m:
                    g += self._slope(j)
                else:
                    for i in range(n):
                        g += self.pairs[i, 0]
                if together:
                    g += self.common[j] * shift
                below = below_zero(l1[j], self.one_sided)
                self.idle[j] = x[j] == 0.0 and -0.9 * l1[j] <= g <= 0.9 * below
                new = soft_step(h, x[j], g, l1[j], below)
                move = new - x[j]
                if move == 0.0:
                    continue
                x[j] = new
                if j < m:
                    self._shift(j, move)
                else:
                    for i in range(n):
                        self.pairs[i, 0] += self.pairs[i, 1] * move
                if together:
                    shift -= self.common[j] / last * move
                largest += h * move * move
            self.n_sweeps += 1
            if k == 0:
                first = largest
            if largest <= 1e-3 * first:
                break
        if together:
            x[m] += shift
            for i in range(n):
                self.pairs[i, 0] += self.pairs[i, 1] * shift
        for j in prange(m, num_threads=self.n_threads, schedule='static'):
            grad[j] += self._slope(j) + self.ridge * self.diagonal[j] * (x[j] - self.entry[j])
        if self.intercept:
            for i in range(n):
                grad[m] += self.pairs[i, 0]
            grad[m] += self.ridge * self.diagonal[m] * (x[m] - self.entry[m])
        if self.plus != NULL:
            for j in range(self.size):
                grad[j] += self.plus[j] * (x[j] - self.entry[j])
        return True
