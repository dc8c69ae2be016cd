"""Kernels of quasi-Newton methods: compact L-BFGS on free variables and its operator for OBA."""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from ._blas cimport dgemv, dgesv

from ._operators cimport QuadOperator

cdef extern from "shared/pairs.h" nogil:
    Py_ssize_t ROWS_AT_ONCE "SK_ROWS_AT_ONCE"
    void sk_pairs_put(Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t, const double*, const double*,
                      const double*, const double*, double, double)
    void sk_pairs_products(Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t, Py_ssize_t, const unsigned char*,
                           double*, double*, double*)
    void sk_pairs_times(Py_ssize_t, Py_ssize_t, const double*, const unsigned char*, const double*, double*, double*)
    void sk_pairs_direction(Py_ssize_t, Py_ssize_t, const double*, const unsigned char*, const double*, const double*,
                            double, double*)
    void sk_pairs_gram(Py_ssize_t, const double*, const int64_t*, Py_ssize_t, double, double*)
    Py_ssize_t sk_correct(Py_ssize_t, const double*, const double*, const double*, const double*, unsigned char*,
                          int64_t*)
    void sk_pair_norms(Py_ssize_t, const double*, const double*, const double*, const double*, double*)


# initial capacity in pairs: large memories are seldom used
INITIAL_CAPACITY = 64


cdef class Pairs:
    """The last ``memory`` pairs (s, y) of n variables, and the steps of their compact L-BFGS matrix.

    B = theta I - V N V^T with V = [Y, theta S], N^-1 = [[-D, L^T], [L, theta S^T S]] (Byrd, Nocedal and
    Schnabel, 1994). D and L are the diagonal and the strictly lower part of S^T Y. Stored are the rows of S
    and Y side by side, and S^T S and S^T Y of all variables. The Gram matrix of the free rows is stored too.
    It is updated with the free set: a variable that enters or leaves costs O(memory^2), a pair O(memory n).
    Buffers begin with INITIAL_CAPACITY pairs at most, and double when they are full.
    """
    cdef Py_ssize_t n, most, memory, c  # most pairs, capacity, and twice the capacity
    cdef Py_ssize_t count  # of the stored pairs
    cdef double[:, ::1] W, sts, sty, gram, on_off
    cdef double[::1] buffer, times, v, rhs, system, scale, yty
    cdef unsigned char[::1] free
    cdef int64_t[::1] rows
    cdef int[::1] pivots
    cdef Py_ssize_t[::1] slots  # of the stored pairs, oldest first
    cdef readonly double unit  # of curvature, by which Y is divided

    def __init__(self, Py_ssize_t n, Py_ssize_t memory):
        self.n, self.most, self.memory, self.c, self.count, self.unit = n, memory, 0, 0, 0, 1.0
        self.W = np.zeros((n, 0))
        self.sts, self.sty, self.yty = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
        self.gram, self.slots = np.zeros((0, 0)), np.zeros(0, dtype=np.intp)
        self._grow(min(memory, INITIAL_CAPACITY))
        self._set_no_free()

    def _grow(self, Py_ssize_t capacity):
        cdef Py_ssize_t old = self.memory
        W, gram = np.asarray(self.W), np.asarray(self.gram)
        sts, sty, yty = np.asarray(self.sts), np.asarray(self.sty), np.asarray(self.yty)
        slots = np.asarray(self.slots)
        self.memory, self.c = capacity, 2 * capacity
        self.W, self.gram = np.zeros((self.n, self.c)), np.zeros((self.c, self.c))
        self.sts, self.sty, self.yty = np.zeros((capacity, capacity)), np.zeros((capacity, capacity)), np.zeros(capacity)
        # the steps' halves stay first; those of the gradients follow
        halves = (slice(0, old), slice(0, old)), (slice(capacity, capacity + old), slice(old, 2 * old))
        for here, there in halves:
            np.asarray(self.W)[:, here] = W[:, there]
            for also, too in halves:
                np.asarray(self.gram)[here, also] = gram[there, too]
        np.asarray(self.sts)[:old, :old], np.asarray(self.sty)[:old, :old] = sts, sty
        np.asarray(self.yty)[:old] = yty
        self.slots = np.zeros(capacity, dtype=np.intp)
        np.asarray(self.slots)[:old] = slots
        self._allocate_workspace()

    def _allocate_workspace(self):
        self.on_off, self.buffer = np.zeros((4, self.c)), np.zeros(4 * self.c)
        self.times, self.v, self.rhs = np.zeros((3, self.c))
        self.scale, self.system = np.zeros(self.c), np.zeros(self.c * self.c)
        self.pivots = np.zeros(max(1, self.c), dtype=np.int32)

    def _set_no_free(self):
        self.free, self.rows = np.zeros(self.n, dtype=np.uint8), np.zeros(self.n, dtype=np.int64)

    def __len__(self):
        return self.count

    def clear(self):
        """Remove all pairs."""
        self.count = 0
        self.W[:, :] = 0.0
        self.gram[:, :] = 0.0

    def put(self, const double[::1] x, const double[::1] x_new, const double[::1] g, const double[::1] g_new,
            double length=1.0, double unit=1.0):
        """Take the pair s = x_new - x, y = g_new - g (n,), replacing the oldest if the memory is full.

        The pair is divided by ``length``, a power of two near |s|. All y are divided by ``unit``, a power of
        four near the curvature y.s / s.s of the first pair. Products of any pairs stay finite, and no digit
        changes.
        """
        cdef Py_ssize_t slot, a, b, j, m, c, rows, row = 0
        if self.most == 0:
            return
        if self.count == self.most:
            slot = self.slots[0]
            self.count -= 1
            for j in range(self.count):
                self.slots[j] = self.slots[j + 1]
        else:
            slot = self.count
            if slot == self.memory:
                self._grow(min(2 * slot, self.most))
        if self.count == 0:
            self.unit = unit
        m, c = self.memory, self.c
        a, b = slot, m + slot
        with nogil:
            self.on_off[:, :] = 0.0
            while row < self.n:
                rows = min(self.n - row, ROWS_AT_ONCE)
                sk_pairs_put(rows, c, &self.W[row, 0], a, b, &x[row], &x_new[row], &g[row], &g_new[row], 1.0 / length,
                             1.0 / (length * self.unit))
                sk_pairs_products(rows, c, &self.W[row, 0], a, b, &self.free[row], &self.on_off[0, 0],
                                  &self.on_off[2, 0], &self.buffer[0])
                row += rows
            for j in range(m):
                self.sts[slot, j] = self.sts[j, slot] = self.on_off[0, j] + self.on_off[2, j]
                self.sty[slot, j] = self.on_off[0, m + j] + self.on_off[2, m + j]  # s_slot . y_j
                self.sty[j, slot] = self.on_off[1, j] + self.on_off[3, j]
            self.yty[slot] = self.on_off[1, b] + self.on_off[3, b]
            for j in range(c):
                self.gram[max(a, j), min(a, j)] = self.on_off[0, j]
                self.gram[max(b, j), min(b, j)] = self.on_off[1, j]
        self.slots[self.count] = slot
        self.count += 1

    def smallest_curvature(self):
        """The least y.y / s.y of the pairs: what B_0 is where f is smooth, kinks left aside; 0 without pairs."""
        cdef Py_ssize_t i, slot
        cdef double least = 0.0, t
        for i in range(self.count):
            slot = self.slots[i]
            t = self.yty[slot] / self.sty[slot, slot]
            if least == 0.0 or t < least:
                least = t
        return least * self.unit

    def newest_products(self):
        """(s.s, s.y, y.y) of the pair `newest`."""
        cdef Py_ssize_t slot = self.slots[self.count - 1]
        return self.sts[slot, slot], self.sty[slot, slot], self.yty[slot]

    def newest(self):
        """s and y (n,) of the last pair that was put, divided by its length, and y by ``unit``: views."""
        cdef Py_ssize_t slot = self.slots[self.count - 1]
        return np.asarray(self.W)[:, slot], np.asarray(self.W)[:, self.memory + slot]

    def restricted(self, rows):
        """A copy of the pairs on the variables ``rows`` (m,), all where it is None; none of them is free.

        S^T S and S^T Y stay those of all variables: the matrix of the copy is the block B[rows, rows].
        """
        cdef Pairs part = Pairs.__new__(Pairs)
        cdef Py_ssize_t i, j, row, slot, other, k = self.count, m = self.memory
        cdef const Py_ssize_t[::1] chosen = np.arange(self.n) if rows is None else np.ascontiguousarray(rows, np.intp)
        part.n, part.most, part.memory, part.c, part.count = chosen.shape[0], k, k, 2 * k, k
        part.unit, part.slots = self.unit, np.arange(k)
        part.W, part.gram = np.empty((part.n, part.c)), np.zeros((part.c, part.c))
        part.sts, part.sty, part.yty = np.empty((k, k)), np.empty((k, k)), np.empty(k)
        part._allocate_workspace()
        part._set_no_free()
        with nogil:
            for j in range(k):
                slot = self.slots[j]
                part.yty[j] = self.yty[slot]
                for i in range(k):
                    other = self.slots[i]
                    part.sts[i, j], part.sty[i, j] = self.sts[other, slot], self.sty[other, slot]
            for i in range(part.n):
                row = chosen[i]
                for j in range(k):
                    slot = self.slots[j]
                    part.W[i, j], part.W[i, k + j] = self.W[row, slot], self.W[row, m + slot]
        return part

    def operator(self, double theta, double ridge):
        """The `LBFGSOperator` of this copy."""
        return LBFGSOperator(self, theta, ridge)

    def set_free(self, const unsigned char[::1] free):
        """Make ``free`` (n,), of zeros and ones, the set of free variables."""
        if self.n:
            self.free_these(&free[0])

    cdef void free_these(self, const unsigned char* free) noexcept nogil:
        cdef Py_ssize_t i, entering = 0, leaving = 0, count = 0, c = self.c, n = self.n
        if self.count == 0:
            memcpy(&self.free[0], free, n)
            return
        for i in range(n):
            count += free[i]
            entering += free[i] > self.free[i]
            leaving += free[i] < self.free[i]
        if entering + leaving >= count:
            memset(&self.gram[0, 0], 0, c * c * sizeof(double))
            memset(&self.free[0], 0, n)
            entering, leaving = count, 0
        if leaving:
            leaving = 0
            for i in range(n):
                if free[i] < self.free[i]:
                    self.rows[leaving] = i
                    leaving += 1
            sk_pairs_gram(c, &self.W[0, 0], &self.rows[0], leaving, -1.0, &self.gram[0, 0])
        if entering:
            entering = 0
            for i in range(n):
                if free[i] > self.free[i]:
                    self.rows[entering] = i
                    entering += 1
            sk_pairs_gram(c, &self.W[0, 0], &self.rows[0], entering, 1.0, &self.gram[0, 0])
        memcpy(&self.free[0], free, n)

    def correct(self, const double[::1] x, const double[::1] p, const double[::1] lower, const double[::1] upper):
        """Step 8 of Algorithm 3: variables at a bound that p would leave are no longer free; returns their number."""
        cdef Py_ssize_t count
        with nogil:
            count = sk_correct(self.n, &x[0], &p[0], &lower[0], &upper[0], &self.free[0], &self.rows[0])
            if count:
                sk_pairs_gram(self.c, &self.W[0, 0], &self.rows[0], count, -1.0, &self.gram[0, 0])
        return count

    def free_set(self):
        """A copy of the free set (n,), of zeros and ones."""
        return np.array(self.free)

    def direction(self, const double[::1] g, double theta, double[::1] p):
        """p (n,) becomes the solution of (3.2): B_FF p_F = -g_F on the free set F, 0 elsewhere.

        Returns whether the small system could be solved.
        """
        cdef bint solved
        with nogil:
            solved = self.solve(&g[0], theta, 1.0, &p[0])
        return solved

    cdef bint solve(self, const double* g, double theta, double shift, double* p) noexcept nogil:
        # (B + (shift - 1) theta I)_FF p_F = -g_F by Sherman-Morrison-Woodbury; t is theta in the unit of Y
        cdef Py_ssize_t i, m = self.memory, c = self.c, k = self.count
        cdef int size = <int>(2 * k), one = 1, info = 0
        cdef double t = theta / self.unit
        memset(&self.v[0], 0, c * sizeof(double))
        if k:
            sk_pairs_times(self.n, c, &self.W[0, 0], &self.free[0], g, &self.times[0], &self.buffer[0])
            self.assemble(t, shift, 1.0)
            for i in range(k):
                self.rhs[i] = self.scale[i] * self.times[m + self.slots[i]]
                self.rhs[k + i] = self.scale[k + i] * t * self.times[self.slots[i]]
            dgesv(&size, &one, &self.system[0], &size, &self.pivots[0], &self.rhs[0], &size, &info)
            if info != 0:
                return False
            for i in range(k):
                self.v[m + self.slots[i]] = self.rhs[i] * self.scale[i] / (t * shift)
                self.v[self.slots[i]] = self.rhs[k + i] * self.scale[k + i] / shift
        sk_pairs_direction(self.n, c, &self.W[0, 0], &self.free[0], g, &self.v[0], theta * shift, p)
        return True

    cdef void assemble(self, double t, double shift, double of_free) noexcept nogil:
        # system (2k, 2k) = N^-1 - of_free V_F^T V_F / (t shift) of theta = t. It is symmetric, so its order
        # in memory does not matter. Rows and columns are multiplied by scale, which brings the diagonals -D
        # and t S^T S to 1.
        cdef Py_ssize_t i, j, si, sj, m = self.memory, k = self.count, size = 2 * k
        for i in range(k):
            si = self.slots[i]
            self.scale[i] = 1.0 / sqrt(self.sty[si, si])
            self.scale[k + i] = 1.0 / sqrt(t * self.sts[si, si])
        for i in range(k):
            si = self.slots[i]
            for j in range(k):
                sj = self.slots[j]
                self.system[i * size + j] = (
                    (-self.sty[si, si] if i == j else 0.0)
                    - of_free * self.gram[m + max(si, sj), m + min(si, sj)] / (t * shift)
                ) * self.scale[i] * self.scale[j]
                # row s_i, column y_j: L has what is below the diagonal
                self.system[(k + i) * size + j] = (
                    (self.sty[si, sj] if i > j else 0.0) - of_free * self.gram[m + sj, si] / shift
                ) * self.scale[k + i] * self.scale[j]
                self.system[j * size + k + i] = self.system[(k + i) * size + j]
                self.system[(k + i) * size + k + j] = t * (
                    self.sts[si, sj] - of_free * self.gram[max(si, sj), min(si, sj)] / shift
                ) * self.scale[k + i] * self.scale[k + j]


cdef class LBFGSOperator(QuadOperator):
    """B + ridge theta I of ``pairs``, a copy of `Pairs.restricted`; its free set changes with each solve.

    A product costs O(m memory). A solve on f free variables costs O(f memory), and O(memory^2) for each variable that
    joins or leaves the free set. ``diag`` is theta (1 + ridge) throughout. LinAlgError where N is singular by rounding.
    """
    cdef Pairs pairs
    cdef double[:, ::1] middle
    cdef double[::1] times, short, full, step
    cdef unsigned char[::1] every, chosen
    cdef double theta, shift

    def __init__(self, Pairs pairs, double theta, double ridge):
        cdef Py_ssize_t i, j, k = pairs.count
        cdef int size = <int>(2 * k), info = 0
        cdef double[:, ::1] inverse = np.eye(size)
        self.pairs, self.size, self.theta = pairs, <int>pairs.n, theta
        self.ridge, self.shift, self.always_direct = ridge, 1.0 + ridge, True
        self.middle = np.empty((size, size))
        if k:
            pairs.assemble(theta / pairs.unit, 1.0, 0.0)
            dgesv(&size, &size, &pairs.system[0], &size, &pairs.pivots[0], &inverse[0, 0], &size, &info)
            for i in range(k):
                pairs.scale[k + i] *= theta / pairs.unit
            # the halves are swapped: S comes first in W
            for i in range(size):
                for j in range(size):
                    self.middle[(i + k) % size, (j + k) % size] = (
                        inverse[i, j] * pairs.scale[i] * pairs.scale[j] * pairs.unit
                    )
        if info != 0 or not np.isfinite(self.middle).all():
            raise np.linalg.LinAlgError("the middle matrix of the L-BFGS pairs is singular")
        self.diagonal = np.full(self.size, theta * self.shift)
        self.times, self.short = np.empty(pairs.c), np.empty(pairs.c)
        self.full, self.step = np.empty(self.size), np.empty(self.size)
        self.every, self.chosen = np.ones(self.size, dtype=np.uint8), np.empty(self.size, dtype=np.uint8)

    cdef void product(self, const double* v, double* out) noexcept nogil:
        cdef int c = <int>self.pairs.c, one = 1
        cdef double minus = -1.0 / (self.theta * self.shift), zero = 0.0
        cdef char no = b'N'
        self.n_products += 1
        if self.size == 0:
            return
        if c:
            sk_pairs_times(self.size, c, &self.pairs.W[0, 0], &self.every[0], v, &self.times[0], &self.pairs.buffer[0])
            dgemv(&no, &c, &c, &minus, &self.middle[0, 0], &c, &self.times[0], &one, &zero, &self.short[0], &one)
        # with minus instead of theta this is (v + W short) theta (1 + ridge)
        sk_pairs_direction(self.size, c, &self.pairs.W[0, 0], &self.every[0], v, &self.short[0], minus, out)

    cdef bint factor(self, const int* free, int n_free, double* rhs, double* work) noexcept nogil:
        cdef int i
        cdef double along = 0.0
        if n_free == 0:
            return True
        memset(&self.chosen[0], 0, self.size)
        memset(&self.full[0], 0, self.size * sizeof(double))
        for i in range(n_free):
            self.chosen[free[i]] = 1
            self.full[free[i]] = -rhs[i]
        self.pairs.free_these(&self.chosen[0])
        if not self.pairs.solve(&self.full[0], self.theta, self.shift, &self.step[0]):
            return False
        for i in range(n_free):
            along += self.step[free[i]] * rhs[i]
        if not along > 0.0:  # rounding has left no positive definite matrix, or rhs is zero
            for i in range(n_free):
                if rhs[i] != 0.0:
                    return False
        for i in range(n_free):
            rhs[i] = self.step[free[i]]
        return True

    def solve(self, rhs, free=None):
        """Solve B[free, free] x = rhs, (f,); all variables where ``free`` is None.

        Raises LinAlgError where the matrix is not positive definite by rounding.
        """
        index = np.arange(self.size) if free is None else np.asarray(free)
        cdef int[::1] chosen = np.ascontiguousarray(index, dtype=np.int32)
        cdef double[::1] x = np.array(rhs, dtype=np.float64)
        cdef int nf = <int>chosen.shape[0]
        cdef bint good
        if x.shape[0] != nf:
            raise ValueError(f"rhs must have length {nf}, one entry a free variable; got {x.shape[0]}")
        if nf and (np.min(index) < 0 or np.max(index) >= self.size or nf > self.size):
            raise ValueError(f"free must hold distinct numbers from 0 to {self.size - 1}")
        if nf == 0:
            return np.asarray(x)
        with nogil:
            good = self.factor(&chosen[0], nf, &x[0], NULL)
        if not good:
            raise np.linalg.LinAlgError("the reduced L-BFGS matrix is not positive definite")
        return np.asarray(x)


def pair_norms(const double[::1] x, const double[::1] x_new, const double[::1] g, const double[::1] g_new):
    """(s.y, s.s, y.y) of s = x_new - x and y = g_new - g."""
    cdef double out[3]
    sk_pair_norms(x.shape[0], &x[0], &x_new[0], &g[0], &g_new[0], out)
    return out[0], out[1], out[2]
