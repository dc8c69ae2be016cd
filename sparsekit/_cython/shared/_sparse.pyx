"""Loops over CSR and CSC buffers: products, column selection, Gram matrices.

Every function writes into arrays that the caller owns. Sums over rows are added in blocks that depend on the
data alone, in a fixed order. The result is therefore the same for any number of threads.
"""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

ctypedef fused real:
    float
    double

ctypedef fused total:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


# side of a tile of a matrix that is read across and along
cdef Py_ssize_t _TILE = 32


cdef inline Py_ssize_t _block_start(const index[::1] indptr, Py_ssize_t n, Py_ssize_t block,
                                    Py_ssize_t n_blocks) noexcept nogil:
    # first row of a block: blocks hold about equal numbers of non-zeros
    cdef long long target
    cdef Py_ssize_t lo = 0, hi = n, mid
    if block <= 0:
        return 0
    if block >= n_blocks:
        return n
    target = (<long long>indptr[n] * block) // n_blocks
    while lo < hi:
        mid = (lo + hi) // 2
        if indptr[mid] < target:
            lo = mid + 1
        else:
            hi = mid
    return lo


def csr_matvec(const index[::1] indptr, const index[::1] indices, const real[::1] data,
               const double[::1] w, double[::1] out, int n_threads):
    """out[i] = sum_j X[i, j] w[j]; ``out`` (n,) is overwritten."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i
    for i in prange(n, nogil=True, num_threads=n_threads, schedule='static'):
        out[i] = _row_dot(indptr[i], indptr[i + 1], indices, data, w)


cdef inline double _row_dot(Py_ssize_t start, Py_ssize_t stop, const index[::1] indices,
                            const real[::1] data, const double[::1] w) noexcept nogil:
    cdef double acc = 0.0
    cdef Py_ssize_t k
    for k in range(start, stop):
        acc += data[k] * w[indices[k]]
    return acc


cdef inline void _scatter_rows(Py_ssize_t lo, Py_ssize_t hi, const index[::1] indptr,
                               const index[::1] indices, const real[::1] data,
                               const double[::1] u, double* out) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef double ui
    for i in range(lo, hi):
        ui = u[i]
        if ui != 0.0:
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += data[k] * ui


def csr_rmatvec(const index[::1] indptr, const index[::1] indices, const real[::1] data,
                const double[::1] u, double[::1] out, double[:, ::1] work, int n_threads):
    """out[j] = sum_i X[i, j] u[i]; ``out`` (p,) and ``work`` (blocks, p) are overwritten."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, p = out.shape[0], b, j
    cdef Py_ssize_t n_blocks = work.shape[0]
    cdef double acc
    if n_blocks == 0:
        with nogil:
            if p:
                memset(&out[0], 0, p * sizeof(double))
                _scatter_rows(0, n, indptr, indices, data, u, &out[0])
        return
    if p == 0:
        return
    for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule='static'):
        memset(&work[b, 0], 0, p * sizeof(double))
        _scatter_rows(_block_start(indptr, n, b, n_blocks), _block_start(indptr, n, b + 1, n_blocks),
                      indptr, indices, data, u, &work[b, 0])
    for j in prange(p, nogil=True, num_threads=n_threads, schedule='static'):
        acc = 0.0
        for b in range(n_blocks):
            acc = acc + work[b, j]
        out[j] = acc


def csr_slope_range(const index[::1] indptr, const index[::1] indices, const real[::1] data,
                    const double[::1] c, double[:, ::1] out, double[:, :, ::1] work, int n_threads):
    """Bounds of sum_i X[i, j] u_i over all u with u_i between 0 and c_i, and entries a column.

    ``out`` (p, 3) gets minus the lower bound, the upper bound and the number of entries. ``work`` (blocks, p,
    3) is overwritten; without blocks it is not used.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, p = out.shape[0], b, j, n_blocks = work.shape[0]
    out[:] = 0.0
    if p == 0 or n == 0:
        return
    if n_blocks == 0:
        with nogil:
            _slopes(0, n, indptr, indices, data, c, &out[0, 0])
        return
    for b in prange(n_blocks, nogil=True, num_threads=n_threads, schedule='static'):
        memset(&work[b, 0, 0], 0, 3 * p * sizeof(double))
        _slopes(_block_start(indptr, n, b, n_blocks), _block_start(indptr, n, b + 1, n_blocks), indptr, indices,
                data, c, &work[b, 0, 0])
    with nogil:
        for b in range(n_blocks):
            for j in range(p):
                out[j, 0] += work[b, j, 0]
                out[j, 1] += work[b, j, 1]
                out[j, 2] += work[b, j, 2]


cdef inline void _slopes(Py_ssize_t lo, Py_ssize_t hi, const index[::1] indptr, const index[::1] indices,
                         const real[::1] data, const double[::1] c, double* out) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef double v, ci
    cdef double* at
    for i in range(lo, hi):
        ci = c[i]
        for k in range(indptr[i], indptr[i + 1]):
            v = data[k] * ci
            at = out + 3 * <Py_ssize_t>indices[k]
            at[v > 0.0] += fabs(v)
            at[2] += 1.0


def csc_slope_range(const index[::1] indptr, const index[::1] indices, const real[::1] data,
                    const double[::1] c, double[:, ::1] out, int n_threads):
    """The same as csr_slope_range by columns."""
    cdef Py_ssize_t p = out.shape[0], j
    for j in prange(p, nogil=True, num_threads=n_threads, schedule='static'):
        _column_slopes(indptr[j], indptr[j + 1], indices, data, c, &out[j, 0])


cdef inline void _column_slopes(Py_ssize_t start, Py_ssize_t stop, const index[::1] indices,
                                const real[::1] data, const double[::1] c, double* out) noexcept nogil:
    cdef Py_ssize_t k
    cdef double v
    out[0] = out[1] = 0.0
    out[2] = <double>(stop - start)
    for k in range(start, stop):
        v = data[k] * c[indices[k]]
        out[v > 0.0] += fabs(v)


def csr_select(const index[::1] indptr, const index[::1] indices, const real[::1] data,
               const int32_t[::1] position, index[::1] out_indptr, int32_t[::1] out_indices,
               real[::1] out_data):
    """X[:, cols] in CSR, where position[j] is column j's new index or -1.

    The outputs are one entry longer than X's; what they hold past ``out_indptr[n]`` is
    undefined. Every entry is written and the cursor moves past those that stay: a branch would
    be a coin toss a non-zero.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, k
    cdef index at = 0
    cdef int32_t new
    out_indptr[0] = 0
    with nogil:
        for i in range(n):
            for k in range(indptr[i], indptr[i + 1]):
                new = position[indices[k]]
                out_indices[at] = new
                out_data[at] = data[k]
                at += new >= 0
            out_indptr[i + 1] = at


def csc_matvec(const index[::1] indptr, const index[::1] indices, const real[::1] data,
               const double[::1] w, double[::1] out):
    """out[i] = sum_j X[i, j] w[j] by columns, zeros of w skipped; ``out`` (n,) is overwritten."""
    cdef Py_ssize_t p = indptr.shape[0] - 1, j, k
    cdef double wj
    out[:] = 0.0
    with nogil:
        for j in range(p):
            wj = w[j]
            if wj != 0.0:
                for k in range(indptr[j], indptr[j + 1]):
                    out[indices[k]] += data[k] * wj


def csc_select_count(const index[::1] indptr, const index[::1] indices, const int32_t[::1] cols,
                     int64_t[::1] out_indptr):
    """Row pointers of the CSR form of X[:, cols]; ``out_indptr`` (n + 1,) must be zero."""
    cdef Py_ssize_t n = out_indptr.shape[0] - 1, m = cols.shape[0], i, j, k
    with nogil:
        for j in range(m):
            for k in range(indptr[cols[j]], indptr[cols[j] + 1]):
                out_indptr[indices[k] + 1] += 1
        for i in range(n):
            out_indptr[i + 1] += out_indptr[i]


def csc_select_fill(const index[::1] indptr, const index[::1] indices, const real[::1] data,
                    const int32_t[::1] cols, int64_t[::1] cursor, int32_t[::1] out_indices,
                    real[::1] out_data):
    """Fill the CSR form of X[:, cols]; ``cursor`` (a copy of the row pointers) is consumed."""
    cdef Py_ssize_t m = cols.shape[0], j, k, at
    with nogil:
        for j in range(m):
            for k in range(indptr[cols[j]], indptr[cols[j] + 1]):
                at = cursor[indices[k]]
                out_indices[at] = <int32_t>j
                out_data[at] = data[k]
                cursor[indices[k]] = at + 1


def csr_sandwich(const index[::1] indptr, const index[::1] indices, const real[::1] data, const int64_t[::1] rows,
                 const double[::1] d, const int32_t[::1] position, total[:, ::1] out, double[::1] sums):
    """out = A^T diag(d) A and sums = A^T d, for these rows and for columns with a position >= 0 in ``out``.

    d (len(rows),); ``position`` (p,); ``out`` (m, m) and ``sums`` (m,) are overwritten. A row may have a column
    more than once.
    """
    cdef Py_ssize_t m = out.shape[0], at, to, r, i, j, a, b, count
    cdef total t
    cdef total* line
    # a row's entries, and the index of a column's last one, which is of this row where its target is the column
    cdef total[::1] values = np.empty(m, dtype=np.asarray(out).dtype)
    cdef int32_t[::1] targets = np.empty(m, dtype=np.int32), last = np.zeros(m, dtype=np.int32)
    out[:, :] = 0
    sums[:] = 0
    with nogil:
        for r in range(rows.shape[0]):
            i = rows[r]
            count = 0
            for a in range(indptr[i], indptr[i + 1]):
                j = position[indices[a]]
                if j >= 0:
                    b = last[j]
                    if b < count and targets[b] == j:
                        values[b] += <total>data[a]
                    else:
                        last[j] = <int32_t>count
                        targets[count] = <int32_t>j
                        values[count] = <total>data[a]
                        count += 1
            for a in range(count):
                t = <total>(d[r] * values[a])
                sums[targets[a]] += t
                line = &out[targets[a], 0]
                for b in range(a + 1):
                    line[targets[b]] += t * values[b]
        # A pair of entries was added once, on either side of the diagonal. Tiles of both sides fit into a cache.
        at = 0
        while at < m:
            to = 0
            while to <= at:
                for i in range(at, min(at + _TILE, m)):
                    for j in range(to, min(to + _TILE, i)):
                        out[i, j] += out[j, i]
                        out[j, i] = out[i, j]
                to += _TILE
            at += _TILE


def csr_absolute_bound(const index[::1] indptr, const index[::1] indices, const real[::1] data,
                       const double[::1] d, const double[::1] v, double[::1] out, bint intercept):
    """out = |A|^T diag(d) |A| v with A = X or [X, 1]: Collatz-Wielandt ratios bound the norm."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, m = out.shape[0], i, k
    cdef double acc
    out[:] = 0.0
    with nogil:
        for i in range(n):
            acc = v[m - 1] if intercept else 0.0
            for k in range(indptr[i], indptr[i + 1]):
                acc += fabs(<double>data[k]) * v[indices[k]]
            acc *= d[i]
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += fabs(<double>data[k]) * acc
            if intercept:
                out[m - 1] += acc


def dense_count(const real[:, ::1] X, int64_t[::1] counts, int n_threads):
    """counts[i] = non-zeros of row i."""
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], i, j
    cdef int64_t c
    for i in prange(n, nogil=True, num_threads=n_threads, schedule='static'):
        c = 0
        for j in range(p):
            c = c + (X[i, j] != 0)
        counts[i] = c


def dense_compress(const real[:, ::1] X, const int64_t[::1] indptr, int32_t[::1] indices, real[::1] data,
                   int n_threads):
    """Rows of X in CSR."""
    cdef Py_ssize_t i
    for i in prange(X.shape[0], nogil=True, num_threads=n_threads, schedule='static'):
        _compress_row(X, i, indptr[i], indptr[i + 1], indices, data)


cdef inline void _compress_row(const real[:, ::1] X, Py_ssize_t i, int64_t e, int64_t stop, int32_t[::1] indices,
                               real[::1] data) noexcept nogil:
    cdef Py_ssize_t j = 0
    # branch-free, but never past the row's own entries: the next row may be another thread's
    while e < stop:
        indices[e] = <int32_t>j
        data[e] = X[i, j]
        e += X[i, j] != 0
        j += 1
