"""Least squares with a weighted elastic net, by coordinate descent and Newton steps on faces.

The objective is 1/2 sum_i s_i r_i^2 + sum_j l1_j |x_j| + l2_j / 2 x_j^2 for the residuals r of `_square_columns`, with
x >= 0 where ``positive``. Sweeps go over a working set, and mostly over what is not zero in it; where they have cost
as much as one, there comes a step to the minimiser on the orthant's face (`_square_faces`).
"""
import time

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, sqrt

from ..shared._operators cimport soft_step
from ..shared._orthant cimport median
from ._square_columns cimport GramColumns
from ._square_faces cimport step_on_faces, sweeps_of_a_face


# how a penalty of `Descent.path` ended
CONVERGED, WORKED, STALLED, OUT_OF_TIME = range(4)
cdef int _CONVERGED = 0, _WORKED = 1, _STALLED = 2, _OUT_OF_TIME = 3
# sweeps between two looks at what is left, looks at what is not zero before the set is swept again, and sweeps of
# one round at the most
cdef int _LOOK = 4, _MOST_LOOKS = 100
cdef int _MOST_SWEEPS = 20000
# nanoseconds, about, between two looks at the interpreter
cdef double _PATIENCE = 2e6
# largest face to whose minimiser a solution is taken
cdef int _POLISHED = 300
# part of what is allowed that a working set may leave of gap and optimality
cdef double _PART = 0.5
# part of the residuals' sum that is rounding in a derivative that has to be zero
cdef double _ROUNDING = 1e-10
# part of its penalty from which a variable's pull lets it into the first set of a penalty without one before, and
# rounds in a row in which nothing moved
cdef double _NEAR = 0.8
cdef int _STALLS = 2


cdef class Descent:
    """The method, on `GramColumns`, which hold the point."""

    cdef readonly GramColumns columns

    def __init__(self, GramColumns columns):
        self.columns = columns

    def _check(self, const double[::1] l1, const double[::1] l2):
        if l1.shape[0] != self.columns.m or l2.shape[0] != self.columns.m:
            raise ValueError(f"l1 and l2 must have shape ({self.columns.m},)")
        if self.columns.x is None:
            raise ValueError("set_point comes first")

    cdef void _look(self, const double[::1] l1, const double[::1] l2, bint positive, const int* some, int n_some,
                    double* fun, double* gap, double* worst) noexcept nogil:
        # of all variables, or of ``some``: the others are at zero, and are taken to stay there
        cdef Py_ssize_t k, j, count = self.columns.m if some == NULL else n_some
        cdef double half = 0.0, along = 0.0, penalty = 0.0, reach = INFINITY, reach_soft = INFINITY, ridge = 0.0
        cdef double g, p, size, r, t, beyond, dual, best, bound, open_pull = 0.0
        cdef bint curved = False
        self.columns.half_and_along_y(&half, &along)
        worst[0] = 0.0
        for k in range(count):
            j = k if some == NULL else some[k]
            p = self.columns.correlations[j]
            g = l2[j] * self.columns.x[j] - p
            size = max(p, 0.0) if positive else fabs(p)
            if self.columns.x[j] == 0.0:
                r = size - l1[j]
            else:
                penalty += l1[j] * fabs(self.columns.x[j])
                ridge += l2[j] * self.columns.x[j] * self.columns.x[j]
                r = min(self.columns.x[j], fabs(g + l1[j])) if positive else fabs(median(g - l1[j], self.columns.x[j], g + l1[j]))
            if r > worst[0]:
                worst[0] = r
            if l2[j] > 0.0:
                curved = True
                if l1[j] > 0.0 and size > 0.0:
                    reach_soft = min(reach_soft, l1[j] / size)
            elif l1[j] > 0.0:
                if size > 0.0:
                    reach = min(reach, l1[j] / size)
            elif size > open_pull:
                open_pull = size
        fun[0] = half + penalty + 0.5 * ridge
        if open_pull > 0.0 and open_pull > _ROUNDING * max(1.0, sqrt(max(self.columns.yy, 0.0))):
            gap[0] = INFINITY
            return
        # dual values at multiples t of the residuals: t along - t^2 half, less the ridge's conjugate
        bound = along / (2.0 * half) if half > 0.0 else 1.0
        best = 0.0
        for k in range(3):
            t = min(bound, reach)
            if k == 1:
                t = min(t, 1.0)
            elif k == 2:
                t = min(t, reach_soft)
            dual = t * along - t * t * half
            beyond = self._beyond(l1, l2, positive, some, count, t) if curved else 0.0
            best = max(best, dual - beyond)
            if not curved:
                break
        gap[0] = max(fun[0] - best, 0.0) + self.columns.rounding()

    cdef double _beyond(self, const double[::1] l1, const double[::1] l2, bint positive, const int* some,
                        Py_ssize_t count, double t) noexcept nogil:
        cdef Py_ssize_t k, j
        cdef double total = 0.0, size
        for k in range(count):
            j = k if some == NULL else some[k]
            if l2[j] > 0.0:
                size = t * (max(self.columns.correlations[j], 0.0) if positive else fabs(self.columns.correlations[j])) - l1[j]
                if size > 0.0:
                    total += size * size / (2.0 * l2[j])
        return total

    def path(self, const double[::1] v, const double[::1] lambdas, double l1_ratio, double before, bint positive,
             double tol, double gap_tol, long max_rounds, double end, double[:, :] points, double[:, ::1] report,
             bint polish=False):
        """Minimise for one lambda after the other, each from the last one's point.

        A round is sweeps over a working set until it is solved, and a look at all variables.

        Parameters
        ----------
        v : weights of the penalties (m,)
        lambdas : penalties (k,)
        l1_ratio : part of the penalty that is L1
        before : penalty that x solves, or 0
        positive : whether x >= 0
        tol : optimality measure that is asked for, not relative
        gap_tol : duality gap that is asked for, in parts of the objective
        end : when to stop, by `time.perf_counter`
        polish : whether a solution is taken on to the minimiser on its face
        max_rounds : rounds of each penalty at the most
        points : gets the solutions (k, m)
        report : gets (status, objective, gap, optimality, rounds) of each (k, 5); the status is CONVERGED, WORKED
            where another round is of use, STALLED where nothing moved, or OUT_OF_TIME
        """
        cdef Py_ssize_t k, j, n = lambdas.shape[0]
        cdef double fun = 0.0, gap = 0.0, worst = 0.0, lam
        cdef int how = 0, stalls
        cdef long rounds
        cdef double[::1] l1 = np.empty(self.columns.m), l2 = np.empty(self.columns.m), near = np.empty(self.columns.m)
        cdef int[::1] room = np.empty(2 * self.columns.m + 2, dtype=np.intc)
        self._check(l1, l2)
        if v.shape[0] != self.columns.m or points.shape[0] != n or points.shape[1] != self.columns.m:
            raise ValueError(f"v must have shape ({self.columns.m},), points ({n}, {self.columns.m})")
        if report.shape[0] != n or report.shape[1] != 5:
            raise ValueError(f"report must have shape ({n}, 5)")
        with nogil:
            for k in range(n):
                lam = lambdas[k]
                for j in range(self.columns.m):
                    l1[j], l2[j] = l1_ratio * lam * v[j], (1.0 - l1_ratio) * lam * v[j]
                    near[j] = max(l1_ratio * (2.0 * lam - before) * v[j], 0.0) if before > 0.0 else _NEAR * l1[j]
                rounds = stalls = 0
                while True:
                    how = self._round(l1, l2, near, positive, tol, gap_tol, end, &room[0], &fun, &gap, &worst)
                    rounds += 1
                    stalls = stalls + 1 if how == _STALLED else 0
                    if how == _CONVERGED or how == _OUT_OF_TIME or stalls == _STALLS or rounds >= max_rounds:
                        break
                    near[:] = l1
                if how == _CONVERGED and polish:
                    self._polish(l1, l2, positive, &room[0], &fun, &gap, &worst)
                points[k, :] = self.columns.x
                report[k, 0], report[k, 1], report[k, 2], report[k, 3], report[k, 4] = how, fun, gap, worst, rounds
                before = lam

    cdef int _round(self, const double[::1] l1, const double[::1] l2, const double[::1] near, bint positive,
                    double tol, double gap_tol, double end, int* room, double* fun, double* gap,
                    double* worst) except -1 nogil:
        # room (2 m + 2): work
        cdef int n_set = 0, status
        cdef Py_ssize_t j
        self._look(l1, l2, positive, NULL, 0, fun, gap, worst)
        if worst[0] <= tol and gap[0] <= gap_tol * fun[0]:
            return _CONVERGED
        for j in range(self.columns.m):
            if self.columns.x[j] != 0.0 or (
                    self.columns.correlations[j] if positive else fabs(self.columns.correlations[j])) > min(near[j], l1[j]):
                room[n_set] = <int>j
                n_set += 1
        status = self._descend(l1, l2, positive, room, n_set, room + self.columns.m + 1, tol, gap_tol, end)
        self._begin(l1, l2, positive, fun, gap, worst)
        if worst[0] <= tol and gap[0] <= gap_tol * fun[0]:
            return _CONVERGED
        return _WORKED if status == _CONVERGED else status

    cdef void _begin(self, const double[::1] l1, const double[::1] l2, bint positive, double* fun, double* gap,
                     double* worst) noexcept nogil:
        # moves leave rounding behind
        self.columns.begin()
        self._look(l1, l2, positive, NULL, 0, fun, gap, worst)

    cdef int _polish(self, const double[::1] l1, const double[::1] l2, bint positive, int* face, double* fun,
                     double* gap, double* worst) except -1 nogil:
        # where sweeps happened to end is no matter then: data that mean the same give the same
        cdef int k = 0
        cdef Py_ssize_t j
        for j in range(self.columns.m):
            if self.columns.x[j] != 0.0:
                face[k] = <int>j
                k += 1
        if k == 0 or k > _POLISHED:
            return 0
        step_on_faces(self.columns, l1, l2, positive, face, k)
        self._begin(l1, l2, positive, fun, gap, worst)
        return 0

    cdef int _descend(self, const double[::1] l1, const double[::1] l2, bint positive, const int* some, int n_some,
                      int* active, double tol, double gap_tol, double end) except -1 nogil:
        # Sweeps over the set, each followed by sweeps and steps on what is not zero until that is solved. Without
        # the interpreter for as long as others can wait for it: folds in threads would stand in each other's way.
        cdef int sweeps = 0, k, n_active = 0, since = 0, looks
        cdef double fun = 0.0, gap = 0.0, worst = 0.0, moved = 0.0, moved_on = 0.0, spent = INFINITY, face
        cdef bint may_step = True, stepped
        while sweeps < _MOST_SWEEPS:
            moved = self._sweep(l1, l2, positive, some, n_some)
            spent += self._length(n_some)
            n_active = 0
            for k in range(n_some):
                if self.columns.x[some[k]] != 0.0:
                    active[n_active] = some[k]
                    n_active += 1
            sweeps += 1
            stepped = False
            for looks in range(_MOST_LOOKS):
                moved_on = 0.0
                for k in range(_LOOK):
                    moved_on = self._sweep(l1, l2, positive, active, n_active)
                    if moved_on == 0.0:
                        break
                sweeps += _LOOK
                since += _LOOK
                spent += (_LOOK + 1) * self._length(n_active)
                self._look(l1, l2, positive, active, n_active, &fun, &gap, &worst)
                if moved_on == 0.0 and stepped:
                    break
                if worst <= _PART * _PART * tol and gap <= _PART * _PART * gap_tol * fun:
                    break
                face = sweeps_of_a_face(self.columns, n_active)
                if may_step and n_active and (moved_on == 0.0 or since >= face):
                    may_step = step_on_faces(self.columns, l1, l2, positive, active, n_active)
                    since, stepped = 0, may_step
                    spent += face * self._length(n_active)
                elif moved_on == 0.0:
                    break
                if spent >= _PATIENCE:
                    spent = 0.0
                    with gil:
                        PyErr_CheckSignals()
                        if time.perf_counter() >= end:
                            return _OUT_OF_TIME
                if sweeps >= _MOST_SWEEPS:
                    break
            self._look(l1, l2, positive, some, n_some, &fun, &gap, &worst)
            if worst <= _PART * tol and gap <= _PART * gap_tol * fun:
                return _CONVERGED
            if moved == 0.0 and moved_on == 0.0:
                return _STALLED
        return _STALLED

    cdef double _length(self, int n_some) noexcept nogil:
        # of a sweep, in nanoseconds, about
        return n_some * (0.5 * self.columns.m + 20.0)

    cdef double _sweep(self, const double[::1] l1, const double[::1] l2, bint positive, const int* some,
                       int n_some) noexcept nogil:
        # the largest decrease of the objective, about
        cdef int k
        cdef Py_ssize_t j
        cdef double h, t, move, p, largest = 0.0
        for k in range(n_some):
            j = some[k]
            h = self.columns.curvature[j] + l2[j]
            p = self.columns.correlations[j]
            if not h > 0.0 or (self.columns.x[j] == 0.0 and (p if positive else fabs(p)) <= l1[j]):
                continue
            t = soft_step(h, self.columns.x[j], l2[j] * self.columns.x[j] - p, l1[j], l1[j])
            if positive and t < 0.0:
                t = 0.0
            move = t - self.columns.x[j]
            if move != 0.0:
                self.columns.move(j, move)
                self.columns.x[j] = t
                largest = max(largest, h * move * move)
        return largest
