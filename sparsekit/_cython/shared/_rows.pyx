"""Model copies of chosen columns in short rows, and the Hessian operators that live on them."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memset

from ._operators cimport QuadOperator, soft_step
from ._orthant cimport below_zero

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef extern from "shared/kernels.h" nogil:
    void sk_hessian_rows_u16(const int64_t*, const int64_t*, const uint16_t*, const float*, const double*,
                             Py_ssize_t, Py_ssize_t, const double*, double*, Py_ssize_t, int)
    void sk_hessian_rows_i32(const int64_t*, const int64_t*, const int32_t*, const float*, const double*,
                             Py_ssize_t, Py_ssize_t, const double*, double*, Py_ssize_t, int)
    void sk_gram_rows_u16_double(const int64_t*, const int64_t*, const uint16_t*, const float*, const double*,
                          Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, int)
    void sk_gram_rows_u16_float(const int64_t*, const int64_t*, const uint16_t*, const float*, const double*,
                          Py_ssize_t, Py_ssize_t, float*, Py_ssize_t, int)
    void sk_gram_rows_i32_double(const int64_t*, const int64_t*, const int32_t*, const float*, const double*,
                          Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, int)
    void sk_gram_rows_i32_float(const int64_t*, const int64_t*, const int32_t*, const float*, const double*,
                          Py_ssize_t, Py_ssize_t, float*, Py_ssize_t, int)
    void sk_diagonal_rows_u16(const int64_t*, const int64_t*, const uint16_t*, const float*,
                              const double*, Py_ssize_t, Py_ssize_t, double*)
    void sk_diagonal_rows_i32(const int64_t*, const int64_t*, const int32_t*, const float*,
                              const double*, Py_ssize_t, Py_ssize_t, double*)
    void sk_count_rows_u16(const int64_t*, const int64_t*, const uint16_t*, Py_ssize_t, int64_t*)
    void sk_count_rows_i32(const int64_t*, const int64_t*, const int32_t*, Py_ssize_t, int64_t*)
    void sk_transpose_rows_u16(const int64_t*, const int64_t*, const uint16_t*, const float*, Py_ssize_t, int64_t*,
                               int32_t*, float*)
    void sk_transpose_rows_i32(const int64_t*, const int64_t*, const int32_t*, const float*, Py_ssize_t, int64_t*,
                               int32_t*, float*)
    double sk_pair_dot(const int32_t*, const float*, Py_ssize_t, const double*)
    void sk_pair_add(const int32_t*, const float*, Py_ssize_t, double, double*)
    void sk_select_i32_f64_u16(const int32_t*, const int32_t*, const double*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, uint16_t*, float*)
    void sk_select_i64_f64_u16(const int64_t*, const int64_t*, const double*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, uint16_t*, float*)
    void sk_select_i32_f32_u16(const int32_t*, const int32_t*, const float*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, uint16_t*, float*)
    void sk_select_i64_f32_u16(const int64_t*, const int64_t*, const float*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, uint16_t*, float*)
    void sk_select_i32_f64_i32(const int32_t*, const int32_t*, const double*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, int32_t*, float*)
    void sk_select_i64_f64_i32(const int64_t*, const int64_t*, const double*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, int32_t*, float*)
    void sk_select_i32_f32_i32(const int32_t*, const int32_t*, const float*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, int32_t*, float*)
    void sk_select_i64_f32_i32(const int64_t*, const int64_t*, const float*, const int32_t*, Py_ssize_t,
                               Py_ssize_t, int64_t, int64_t*, int64_t*, int32_t*, float*)


cdef class ModelRows:
    """X[:, cols] as rows with float32 values and 16-bit columns where they fit.

    ``parts`` divides the rows for threads and for sums. Each part is written from the offset of its rows in
    X, so no counting pass is needed. ``fill`` reuses the buffers.
    """
    cdef readonly Py_ssize_t n, m
    cdef readonly double nnz, square_work
    cdef int64_t[::1] start, stop
    cdef Py_ssize_t[::1] parts
    cdef uint16_t[::1] col16
    cdef int32_t[::1] col32
    cdef float[::1] val
    cdef int n_threads

    def __init__(self, Py_ssize_t n, Py_ssize_t capacity, parts, int n_threads):
        self.n = n
        self.parts = np.ascontiguousarray(parts, dtype=np.intp)
        self.start = np.empty(n, dtype=np.int64)
        self.stop = np.empty(n, dtype=np.int64)
        # one spare entry: the branch-free copy writes before the comparison
        self.val = np.empty(capacity + 1, dtype=np.float32)
        self.n_threads = n_threads

    def fill(self, const index[::1] indptr, const index[::1] indices, const real[::1] data,
             const int32_t[::1] position, Py_ssize_t m):
        """Copy the columns with ``position`` >= 0; m of them."""
        cdef Py_ssize_t b, blocks = self.parts.shape[0] - 1
        cdef bint small = m <= 65535
        self.m = m
        if small and self.col16.shape[0] == 0:
            self.col16 = np.empty(self.val.shape[0], dtype=np.uint16)
        if not small and self.col32.shape[0] == 0:
            self.col32 = np.empty(self.val.shape[0], dtype=np.int32)
        if self.n and data.shape[0]:
            for b in prange(blocks, nogil=True, num_threads=self.n_threads, schedule='static'):
                self._fill_part(indptr, indices, data, position, b, small)
        else:
            self.start[:] = 0
            self.stop[:] = 0
        self._count()

    def select(self, kept):
        """The rows ``kept``, in the same buffers; valid until the next `fill`."""
        cdef ModelRows part = ModelRows.__new__(ModelRows)
        start, stop = np.asarray(self.start)[kept], np.asarray(self.stop)[kept]
        ends = np.cumsum(stop - start)
        blocks = self.parts.shape[0] - 1
        cuts = np.searchsorted(ends, np.linspace(0, ends[-1] if len(ends) else 0, blocks + 1)).astype(np.intp)
        cuts[0], cuts[blocks] = 0, len(kept)
        part.n, part.m, part.n_threads = len(kept), self.m, self.n_threads
        part.start, part.stop, part.parts = start, stop, cuts
        part.col16, part.col32, part.val = self.col16, self.col32, self.val
        part._count()
        return part

    cdef void _count(self) noexcept nogil:
        cdef Py_ssize_t i
        cdef double r
        self.nnz = self.square_work = 0.0
        for i in range(self.n):
            r = <double>(self.stop[i] - self.start[i])
            self.nnz += r
            self.square_work += 0.5 * r * (r + 1.0)

    cdef void _fill_part(self, const index[::1] indptr, const index[::1] indices, const real[::1] data,
                         const int32_t[::1] position, Py_ssize_t b, bint small) noexcept nogil:
        cdef Py_ssize_t lo = self.parts[b], hi = self.parts[b + 1]
        cdef int64_t* start = &self.start[0]
        cdef int64_t* stop = &self.stop[0]
        if lo >= hi:
            return
        if small:
            if index is int32_t:
                if real is float:
                    sk_select_i32_f32_u16(&indptr[0], &indices[0], &data[0], &position[0], lo, hi, indptr[lo],
                                          start, stop, &self.col16[0], &self.val[0])
                else:
                    sk_select_i32_f64_u16(&indptr[0], &indices[0], &data[0], &position[0], lo, hi, indptr[lo],
                                          start, stop, &self.col16[0], &self.val[0])
            else:
                if real is float:
                    sk_select_i64_f32_u16(&indptr[0], &indices[0], &data[0],
                                          &position[0], lo, hi, indptr[lo], start, stop, &self.col16[0],
                                          &self.val[0])
                else:
                    sk_select_i64_f64_u16(&indptr[0], &indices[0], &data[0],
                                          &position[0], lo, hi, indptr[lo], start, stop, &self.col16[0],
                                          &self.val[0])
        else:
            if index is int32_t:
                if real is float:
                    sk_select_i32_f32_i32(&indptr[0], &indices[0], &data[0], &position[0], lo, hi, indptr[lo],
                                          start, stop, &self.col32[0], &self.val[0])
                else:
                    sk_select_i32_f64_i32(&indptr[0], &indices[0], &data[0], &position[0], lo, hi, indptr[lo],
                                          start, stop, &self.col32[0], &self.val[0])
            else:
                if real is float:
                    sk_select_i64_f32_i32(&indptr[0], &indices[0], &data[0],
                                          &position[0], lo, hi, indptr[lo], start, stop, &self.col32[0],
                                          &self.val[0])
                else:
                    sk_select_i64_f64_i32(&indptr[0], &indices[0], &data[0],
                                          &position[0], lo, hi, indptr[lo], start, stop, &self.col32[0],
                                          &self.val[0])

    cdef void hessian_part(self, Py_ssize_t b, const double* d, const double* v, double* out,
                           bint intercept) noexcept nogil:
        if self.m <= 65535:
            sk_hessian_rows_u16(&self.start[0], &self.stop[0], &self.col16[0], &self.val[0], d, self.parts[b],
                                self.parts[b + 1], v, out, self.m, intercept)
        else:
            sk_hessian_rows_i32(&self.start[0], &self.stop[0], &self.col32[0], &self.val[0], d, self.parts[b],
                                self.parts[b + 1], v, out, self.m, intercept)

    def gram(self, const double[::1] d, bint intercept, real[:, :, ::1] work):
        """work[0] = A^T diag(d) A, A = X or [X, 1]; ``work`` (one or all parts, size, size)."""
        cdef Py_ssize_t blocks = work.shape[0], parts = self.parts.shape[0] - 1, b, i, j
        cdef Py_ssize_t size = self.m + intercept
        cdef real* G
        cdef real* part
        if size == 0:
            return
        for b in prange(blocks, nogil=True, num_threads=self.n_threads, schedule='static'):
            memset(&work[b, 0, 0], 0, size * size * sizeof(real))
            if self.n:
                self._gram_part((parts * b) // blocks, (parts * (b + 1)) // blocks, &d[0], &work[b, 0, 0],
                                size, intercept)
        G = &work[0, 0, 0]
        with nogil:
            for b in range(1, blocks):
                part = &work[b, 0, 0]
                for i in range(size * size):
                    G[i] += part[i]
            # Each pair of entries was added once: below the diagonal if the row's columns ascend, else on
            # either side. The sum of both triangles is the matrix.
            for i in range(size):
                for j in range(i):
                    G[i * size + j] += G[j * size + i]
                    G[j * size + i] = G[i * size + j]

    cdef void _gram_part(self, Py_ssize_t first, Py_ssize_t last, const double* d, real* G, Py_ssize_t size,
                         bint intercept) noexcept nogil:
        cdef const int64_t* start = &self.start[0]
        cdef const int64_t* stop = &self.stop[0]
        cdef Py_ssize_t lo = self.parts[first], hi = self.parts[last]
        if self.m <= 65535:
            if real is double:
                sk_gram_rows_u16_double(start, stop, &self.col16[0], &self.val[0], d, lo, hi, G, size, intercept)
            else:
                sk_gram_rows_u16_float(start, stop, &self.col16[0], &self.val[0], d, lo, hi, G, size, intercept)
        elif real is double:
            sk_gram_rows_i32_double(start, stop, &self.col32[0], &self.val[0], d, lo, hi, G, size, intercept)
        else:
            sk_gram_rows_i32_float(start, stop, &self.col32[0], &self.val[0], d, lo, hi, G, size, intercept)

    def diagonal(self, const double[::1] d, bint intercept):
        """Diagonal of A^T diag(d) A, (m or m + 1,)."""
        out = np.zeros(self.m + intercept)
        cdef double[::1] view = out
        cdef Py_ssize_t i
        if self.n and out.shape[0]:
            if self.m <= 65535:
                sk_diagonal_rows_u16(&self.start[0], &self.stop[0], &self.col16[0], &self.val[0], &d[0], 0,
                                     self.n, &view[0])
            else:
                sk_diagonal_rows_i32(&self.start[0], &self.stop[0], &self.col32[0], &self.val[0], &d[0], 0,
                                     self.n, &view[0])
            if intercept:
                view[self.m] = 0.0
                for i in range(self.n):
                    view[self.m] += d[i]
        return out

    cdef void transpose(self, int64_t[::1] first, int32_t[::1] row, float[::1] val) noexcept nogil:
        # The entries by columns: those of column j are first[j] .. first[j + 1]; ``first`` (m + 3,) is zero before.
        cdef Py_ssize_t j
        # counts stand two places later, so that the cursors of the copy end as the starts of the next columns
        if self.m <= 65535:
            sk_count_rows_u16(&self.start[0], &self.stop[0], &self.col16[0], self.n, &first[2])
        else:
            sk_count_rows_i32(&self.start[0], &self.stop[0], &self.col32[0], self.n, &first[2])
        for j in range(2, self.m + 2):
            first[j] += first[j - 1]
        if self.m <= 65535:
            sk_transpose_rows_u16(&self.start[0], &self.stop[0], &self.col16[0], &self.val[0], self.n, &first[1],
                                  &row[0], &val[0])
        else:
            sk_transpose_rows_i32(&self.start[0], &self.stop[0], &self.col32[0], &self.val[0], self.n, &first[1],
                                  &row[0], &val[0])


cdef class RowOperator(QuadOperator):
    """H = A^T diag(d) A by one fused pass over model rows a product, and by columns in coordinate descent."""
    cdef ModelRows rows
    cdef const double[::1] d
    cdef double[:, ::1] work
    # the columns, written by the first sweep, and the pairs of `sk_pair_dot`
    cdef bint has_columns
    cdef int64_t[::1] first
    cdef int32_t[::1] row
    cdef float[::1] val
    cdef double[:, ::1] pairs
    cdef double[::1] entry

    def __init__(self, ModelRows rows, const double[::1] d, bint intercept, double ridge):
        self.reads = "rows"
        self.rows = rows
        self.d = d
        self.intercept = intercept
        self.diagonal = rows.diagonal(d, intercept)
        self.size = <int>self.diagonal.shape[0]
        self.ridge = ridge
        self.work = np.empty((rows.parts.shape[0] - 1, self.size))
        # only the pages that are written become memory
        nnz = int(rows.nnz)
        self.first = np.zeros(rows.m + 3, dtype=np.int64)
        self.row, self.val = np.empty(nnz + 1, dtype=np.int32), np.empty(nnz + 1, dtype=np.float32)
        self.pairs, self.entry = np.empty((rows.n, 2)), np.empty(self.size)

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef int m = self.size, i
        cdef Py_ssize_t b, parts = self.work.shape[0]
        cdef double acc
        self.n_products += 1
        for b in prange(parts, num_threads=self.rows.n_threads, schedule='static'):
            memset(&self.work[b, 0], 0, m * sizeof(double))
            if self.rows.n:
                self.rows.hessian_part(b, &self.d[0], v, &self.work[b, 0], self.intercept)
        for i in range(m):
            acc = self.ridge * self.diagonal[i] * v[i]
            for b in range(parts):
                acc += self.work[b, i]
            out[i] = acc
        self.add_plus(v, out)

    cdef double _slope(self, Py_ssize_t j, const double* x) noexcept nogil:
        # change of the gradient since the sweeps began, but for the intercept's
        cdef Py_ssize_t at, i
        cdef double g = self.ridge * self.diagonal[j] * (x[j] - self.entry[j])
        if self.plus != NULL:
            g += self.plus[j] * (x[j] - self.entry[j])
        if j == self.rows.m:
            for i in range(self.rows.n):
                g += self.pairs[i, 0]
            return g
        at = self.first[j]
        return g + sk_pair_dot(&self.row[at], &self.val[at], self.first[j + 1] - at, &self.pairs[0, 0])

    cdef void _shift(self, Py_ssize_t j, double move) noexcept nogil:
        cdef Py_ssize_t at, i
        if j == self.rows.m:
            for i in range(self.rows.n):
                self.pairs[i, 0] += self.pairs[i, 1] * move
            return
        at = self.first[j]
        sk_pair_add(&self.row[at], &self.val[at], self.first[j + 1] - at, move, &self.pairs[0, 0])

    cdef bint sweep(self, double* x, double* grad, const double* l1, int n_sweeps) noexcept nogil:
        cdef Py_ssize_t m = self.rows.m, n = self.rows.n, j, i
        cdef int k
        cdef double h, g, new, below, last = 0.0, shift = 0.0
        cdef bint together = self.intercept and self.diagonal[m] > 0.0 and l1[m] == 0.0
        if n == 0 or n_sweeps == 0:
            return False
        if not self.has_columns:
            self.rows.transpose(self.first, self.row, self.val)
            self.has_columns = True
        for i in range(n):
            self.pairs[i, 0] = 0.0
            self.pairs[i, 1] = self.d[i]
        for j in range(self.size):
            self.entry[j] = x[j]
        # A free intercept is at its minimum at all times: its shift follows from the other moves. As a coordinate
        # among others it would converge slowly with columns that have a mean.
        if together:
            last = self.diagonal[m]
            shift = -grad[m] / last
        for k in range(n_sweeps):
            for j in range(m if together else self.size):
                # columns that the first sweep left at zero are left there
                if k > 0 and x[j] == 0.0:
                    continue
                h = self.diagonal[j] * self.ridge + (self.apart(j) if together else self.diagonal[j])
                if not (h > 0.0):
                    continue
                g = grad[j] + self._slope(j, x) + (self.common[j] * shift if together else 0.0)
                below = below_zero(l1[j], self.one_sided)
                new = soft_step(h, x[j], g, l1[j], below)
                if new == x[j]:
                    continue
                self._shift(j, new - x[j])
                if together:
                    shift -= self.common[j] / last * (new - x[j])
                x[j] = new
        if together:
            x[m] += shift
            self._shift(m, shift)
        for j in range(self.size):
            grad[j] += self._slope(j, x)
        return True
