"""Kernels of the bound-constrained quasi-Newton method: compact L-BFGS on free variables, steps in a box."""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset
from ._blas cimport dgesv

cdef extern from "pairs.h" nogil:
    void sk_pairs_put(Py_ssize_t, Py_ssize_t, double*, Py_ssize_t, Py_ssize_t, const double*, const double*,
                      const double*, const double*)
    void sk_pairs_products(Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t, Py_ssize_t, const unsigned char*,
                           double*, double*, double*)
    void sk_pairs_times(Py_ssize_t, Py_ssize_t, const double*, const unsigned char*, const double*, double*, double*)
    void sk_pairs_direction(Py_ssize_t, Py_ssize_t, const double*, const unsigned char*, const double*, const double*,
                            double, double*)
    void sk_pairs_gram(Py_ssize_t, const double*, const int64_t*, Py_ssize_t, double, double*)
    Py_ssize_t sk_free_variables(Py_ssize_t, const double*, const double*, const double*, const double*,
                                 unsigned char*)
    double sk_feasible_part(Py_ssize_t, const double*, const double*, const double*, const double*, const double*,
                            double*)
    double sk_feasible_slope(Py_ssize_t, const double*, const double*, const double*, const double*, const double*)
    double sk_optimality(Py_ssize_t, const double*, const double*, const double*, const double*)
    void sk_trial_point(Py_ssize_t, const double*, const double*, double, const double*, const double*, double*)
    double sk_longest_step(Py_ssize_t, const double*, const double*, const double*, const double*)
    Py_ssize_t sk_correct(Py_ssize_t, const double*, const double*, const double*, const double*, unsigned char*,
                          int64_t*)
    void sk_pair_norms(Py_ssize_t, const double*, const double*, const double*, const double*, double*)


# pairs that there is room for at first: who asks for very many mostly needs few
ROOM = 64


cdef class Pairs:
    """The last ``memory`` pairs (s, y) of n variables, and the steps of their compact L-BFGS matrix.

    B = theta I - V N V^T with V = [Y, theta S] (Byrd, Nocedal and Schnabel, 1994). What is kept: the rows of
    S and Y side by side, S^T S and S^T Y of all variables, and the Gram matrix of the rows of the free ones, which
    follows the free set: a variable that enters or leaves costs O(memory^2), a pair O(memory n). Of a large
    ``memory`` there is room for ROOM pairs at first, and for twice as many whenever they need it.
    """
    cdef Py_ssize_t n, most, memory, c  # the pairs to keep, those that there is room for, and twice these
    cdef double[:, ::1] W, sts, sty, gram, on_off
    cdef double[::1] room, times, v, rhs, system, scale, yty
    cdef unsigned char[::1] free
    cdef int64_t[::1] rows
    cdef int[::1] pivots
    cdef list order  # slots, the oldest first

    def __init__(self, Py_ssize_t n, Py_ssize_t memory):
        self.n, self.most, self.memory, self.c = n, memory, 0, 0
        self.W = np.zeros((n, 0))
        self.sts, self.sty, self.yty = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
        self.gram = np.zeros((0, 0))
        self._make_room(min(memory, ROOM))
        self.free = np.zeros(n, dtype=np.uint8)
        self.rows = np.zeros(n, dtype=np.int64)
        self.order = []

    def _make_room(self, Py_ssize_t room):
        cdef Py_ssize_t old = self.memory
        W, gram = np.asarray(self.W), np.asarray(self.gram)
        sts, sty, yty = np.asarray(self.sts), np.asarray(self.sty), np.asarray(self.yty)
        self.memory, self.c = room, 2 * room
        self.W, self.gram = np.zeros((self.n, self.c)), np.zeros((self.c, self.c))
        self.sts, self.sty, self.yty = np.zeros((room, room)), np.zeros((room, room)), np.zeros(room)
        # the steps' halves stay first, those of the gradients come after the new room
        halves = (slice(0, old), slice(0, old)), (slice(room, room + old), slice(old, 2 * old))
        for here, there in halves:
            np.asarray(self.W)[:, here] = W[:, there]
            for also, too in halves:
                np.asarray(self.gram)[here, also] = gram[there, too]
        np.asarray(self.sts)[:old, :old], np.asarray(self.sty)[:old, :old] = sts, sty
        np.asarray(self.yty)[:old] = yty
        self.on_off, self.room = np.zeros((4, self.c)), np.zeros(4 * self.c)
        self.times, self.v, self.rhs = np.zeros(self.c), np.zeros(self.c), np.zeros(self.c)
        self.scale, self.system = np.zeros(self.c), np.zeros(self.c * self.c)
        self.pivots = np.zeros(max(1, self.c), dtype=np.int32)

    def __len__(self):
        return len(self.order)

    def clear(self):
        """Forget all pairs."""
        self.order = []
        self.W[:, :] = 0.0
        self.gram[:, :] = 0.0

    def put(self, const double[::1] x, const double[::1] x_new, const double[::1] g, const double[::1] g_new):
        """Take the pair s = x_new - x, y = g_new - g (n,), in place of the oldest if there is no room."""
        cdef Py_ssize_t slot, a, b, j, m, c
        if self.most == 0:
            return
        if len(self.order) == self.most:
            slot = self.order.pop(0)
        else:
            slot = len(self.order)
            if slot == self.memory:
                self._make_room(min(2 * slot, self.most))
        m, c = self.memory, self.c
        a, b = slot, m + slot
        with nogil:
            sk_pairs_put(self.n, c, &self.W[0, 0], a, b, &x[0], &x_new[0], &g[0], &g_new[0])
            self.on_off[:, :] = 0.0
            sk_pairs_products(self.n, c, &self.W[0, 0], a, b, &self.free[0], &self.on_off[0, 0],
                              &self.on_off[2, 0], &self.room[0])
            for j in range(m):
                self.sts[slot, j] = self.sts[j, slot] = self.on_off[0, j] + self.on_off[2, j]
                self.sty[slot, j] = self.on_off[0, m + j] + self.on_off[2, m + j]  # s_slot . y_j
                self.sty[j, slot] = self.on_off[1, j] + self.on_off[3, j]
            self.yty[slot] = self.on_off[1, b] + self.on_off[3, b]
            for j in range(c):
                self.gram[max(a, j), min(a, j)] = self.on_off[0, j]
                self.gram[max(b, j), min(b, j)] = self.on_off[1, j]
        self.order.append(slot)

    def smallest_curvature(self):
        """The least y.y / s.y of the pairs: what B_0 is where f is smooth, kinks left aside; 0 without pairs."""
        cdef double least = 0.0, t
        for slot in self.order:
            t = self.yty[slot] / self.sty[slot, slot]
            if least == 0.0 or t < least:
                least = t
        return least

    def set_free(self, const unsigned char[::1] free):
        """Make ``free`` (n,), of zeros and ones, the set of free variables."""
        cdef Py_ssize_t i, entering = 0, leaving = 0, count = 0, c = self.c
        if not len(self.order):
            self.free[:] = free
            return
        with nogil:
            for i in range(self.n):
                count += free[i]
                entering += free[i] > self.free[i]
                leaving += free[i] < self.free[i]
            if entering + leaving >= count:
                memset(&self.gram[0, 0], 0, c * c * sizeof(double))
                self.free[:] = 0
                entering, leaving = count, 0
            if leaving:
                leaving = 0
                for i in range(self.n):
                    if free[i] < self.free[i]:
                        self.rows[leaving] = i
                        leaving += 1
                sk_pairs_gram(c, &self.W[0, 0], &self.rows[0], leaving, -1.0, &self.gram[0, 0])
            if entering:
                entering = 0
                for i in range(self.n):
                    if free[i] > self.free[i]:
                        self.rows[entering] = i
                        entering += 1
                sk_pairs_gram(c, &self.W[0, 0], &self.rows[0], entering, 1.0, &self.gram[0, 0])
            self.free[:] = free

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
        cdef Py_ssize_t i, j, si, sj, m = self.memory, c = self.c, k = len(self.order)
        cdef int size = <int>(2 * k), one = 1, info = 0
        cdef Py_ssize_t[::1] slots
        self.v[:] = 0.0
        if k:
            slots = np.array(self.order, dtype=np.intp)
            with nogil:
                sk_pairs_times(self.n, c, &self.W[0, 0], &self.free[0], &g[0], &self.times[0], &self.room[0])
                for i in range(k):  # brings the diagonals -D and theta S^T S to size 1
                    si = slots[i]
                    self.scale[i] = 1.0 / sqrt(self.sty[si, si])
                    self.scale[k + i] = 1.0 / sqrt(theta * self.sts[si, si])
                    self.rhs[i] = self.scale[i] * self.times[m + si]
                    self.rhs[k + i] = self.scale[k + i] * theta * self.times[si]
                # M^-1 - V_F^T V_F / theta, symmetric: rows or columns first is the same
                for i in range(k):
                    si = slots[i]
                    for j in range(k):
                        sj = slots[j]
                        self.system[i * size + j] = (
                            (-self.sty[si, si] if i == j else 0.0) - self.gram[m + max(si, sj), m + min(si, sj)] / theta
                        ) * self.scale[i] * self.scale[j]
                        # row s_i, column y_j: L has what is below the diagonal
                        self.system[(k + i) * size + j] = (
                            (self.sty[si, sj] if i > j else 0.0) - self.gram[m + sj, si]
                        ) * self.scale[k + i] * self.scale[j]
                        self.system[j * size + k + i] = self.system[(k + i) * size + j]
                        self.system[(k + i) * size + k + j] = theta * (
                            self.sts[si, sj] - self.gram[max(si, sj), min(si, sj)]
                        ) * self.scale[k + i] * self.scale[k + j]
                dgesv(&size, &one, &self.system[0], &size, &self.pivots[0], &self.rhs[0], &size, &info)
                for i in range(k):
                    self.v[m + slots[i]] = self.rhs[i] * self.scale[i] / theta
                    self.v[slots[i]] = self.rhs[k + i] * self.scale[k + i]
            if info != 0:
                return False
        with nogil:
            sk_pairs_direction(self.n, c, &self.W[0, 0], &self.free[0], &g[0], &self.v[0], theta, &p[0])
        return True


def free_variables(const double[::1] x, const double[::1] g, const double[::1] lower, const double[::1] upper,
                   unsigned char[::1] free):
    """free (n,) becomes 1 outside B(g) of (3.4), else 0; returns the number of free variables."""
    return sk_free_variables(x.shape[0], &x[0], &g[0], &lower[0], &upper[0], &free[0])


def feasible_part(const double[::1] x, const double[::1] p, const double[::1] g, const double[::1] lower,
                  const double[::1] upper, double[::1] out):
    """out (n,) becomes T(x, p) of (3.3); returns g . T(x, p)."""
    return sk_feasible_part(x.shape[0], &x[0], &p[0], &g[0], &lower[0], &upper[0], &out[0])


def feasible_slope(const double[::1] x, const double[::1] p, const double[::1] g, const double[::1] lower,
                   const double[::1] upper):
    """g . T(x, p)."""
    return sk_feasible_slope(x.shape[0], &x[0], &p[0], &g[0], &lower[0], &upper[0])


def optimality(const double[::1] x, const double[::1] g, const double[::1] lower, const double[::1] upper):
    """max_i |T(x, -g)_i|."""
    return sk_optimality(x.shape[0], &x[0], &g[0], &lower[0], &upper[0])


def trial_point(const double[::1] x, const double[::1] p, double alpha, const double[::1] lower,
                const double[::1] upper, double[::1] out):
    """out (n,) becomes P(x + alpha p)."""
    sk_trial_point(x.shape[0], &x[0], &p[0], alpha, &lower[0], &upper[0], &out[0])


def longest_step(const double[::1] x, const double[::1] p, const double[::1] lower, const double[::1] upper):
    """The largest step at which some variable is still on its way to its bound; p = T(x, p), x in the box."""
    return sk_longest_step(x.shape[0], &x[0], &p[0], &lower[0], &upper[0])


def pair_norms(const double[::1] x, const double[::1] x_new, const double[::1] g, const double[::1] g_new):
    """(s.y, s.s, y.y) of s = x_new - x and y = g_new - g."""
    cdef double out[3]
    sk_pair_norms(x.shape[0], &x[0], &x_new[0], &g[0], &g_new[0], out)
    return out[0], out[1], out[2]
