"""Least squares with a weighted elastic net, by coordinate descent and Newton steps on faces.

The objective is 1/2 sum_i s_i r_i^2 + sum_j l1_j |x_j| + l2_j / 2 x_j^2 for the residuals r of `_square_columns`, with
x >= 0 where ``positive``. Sweeps go over a working set, and mostly over its non-zero variables. When sweeps have cost
as much as a Newton step, one goes to the minimiser on the orthant's face (`_square_faces`).
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
# sweeps over the non-zero variables between two evaluations of their optimality
cdef int _SWEEPS_A_CHECK = 4
# Sweeps of one round, at most. With 20000 cross-validation over 240 x 300 with a correlation of 0.9 takes 15 times as
# long: its faces are singular.
cdef int _MOST_SWEEPS = 200
# nanoseconds, roughly, between two checks for signals and for the time limit
cdef double _NS_WITHOUT_CHECK = 2e6
# variables of the largest face on which a solution is polished
cdef int _MOST_POLISHED = 300
# gap and optimality of a solved working set, as a part of what is allowed for all variables
cdef double _PART_OF_TOL = 0.5
# a derivative without a penalty counts as zero below this part of ||y||
cdef double _ROUNDING = 1e-10
# a variable enters the first working set if its correlation exceeds this part of its penalty, where no penalty was
# solved before
cdef double _NEAR = 0.8
# rounds in a row without any move, or with the most sweeps, after which the status is STALLED
cdef int _MOST_STALLS = 2


def certify(const double[::1] x, const double[::1] correlations, const double[::1] l1, const double[::1] l2,
            bint positive, double half, double along, double rounding):
    """Objective, duality gap and largest violation of the optimality conditions at a point of least squares.

    Where a derivative without a penalty is not zero the gap is the objective: no dual point is at hand.

    Parameters
    ----------
    x : the point (m,)
    correlations : negative gradient of the loss (m,)
    l1, l2 : penalties (m,)
    positive : whether x >= 0
    half, along : 1/2 r^T S r and r^T S y for the residuals r
    rounding : a derivative without a penalty counts as zero up to this size
    """
    cdef Measures found
    with nogil:
        _certify(x, correlations, l1, l2, positive, NULL, x.shape[0], half, along, rounding, &found)
    return found.fun, found.gap, found.worst


cdef struct Measures:
    # objective, duality gap and largest violation of the optimality conditions
    double fun, gap, worst


cdef void _certify(const double[::1] x, const double[::1] correlations, const double[::1] l1, const double[::1] l2,
                   bint positive, const int* some, Py_ssize_t count, double half, double along, double rounding,
                   Measures* found) noexcept nogil:
    # Only the variables ``some`` count, if the others stay at zero; all do where it is NULL.
    cdef Py_ssize_t k, j
    cdef double penalty = 0.0, reach = INFINITY, reach_soft = INFINITY, ridge = 0.0
    cdef double g, p, size, r, t, best = 0.0, unpenalized = 0.0, spoilt = 0.0
    cdef bint curved = False
    found.worst = 0.0
    for k in range(count):
        j = k if some == NULL else some[k]
        p = correlations[j]
        g = l2[j] * x[j] - p
        size = max(p, 0.0) if positive else fabs(p)
        if x[j] == 0.0:
            r = size - l1[j]
        else:
            penalty += l1[j] * fabs(x[j])
            ridge += l2[j] * x[j] * x[j]
            r = fabs(min(x[j], g + l1[j])) if positive else fabs(median(g - l1[j], x[j], g + l1[j]))
        spoilt += p - p  # NaN if p is, which no comparison shows
        if r > found.worst:
            found.worst = r
        if l2[j] > 0.0:
            curved = True
            if 0.0 < l1[j] < reach_soft * size:
                reach_soft = l1[j] / size
        elif l1[j] > 0.0:
            if l1[j] < reach * size:
                reach = l1[j] / size
        elif size > unpenalized:
            unpenalized = size
    found.worst += spoilt
    found.fun = found.gap = half + penalty + 0.5 * ridge  # no objective is below zero
    if unpenalized > rounding:
        return
    # dual values at multiples t of the residuals: t along - t^2 half, less the ridge's conjugate
    reach = min(max(along, 0.0) / (2.0 * half) if half > 0.0 else 1.0, reach)
    for k in range(3):
        t = reach
        if k == 1:
            t = min(t, 1.0)
        elif k == 2:
            t = min(t, reach_soft)
        best = max(best, t * along - t * t * half - _beyond(correlations, l1, l2, positive, some, count, t))
        if not curved:
            break
    found.gap = max(found.fun - best, 0.0)


cdef double _beyond(const double[::1] correlations, const double[::1] l1, const double[::1] l2, bint positive,
                    const int* some, Py_ssize_t count, double t) noexcept nogil:
    # the conjugate of the penalty on variables with a ridge, at t times the correlations
    cdef Py_ssize_t k, j
    cdef double total = 0.0, size
    for k in range(count):
        j = k if some == NULL else some[k]
        if l2[j] > 0.0:
            size = t * (max(correlations[j], 0.0) if positive else fabs(correlations[j])) - l1[j]
            if size > 0.0:
                total += size * size / (2.0 * l2[j])
    return total


cdef class Descent:
    """The method, on `GramColumns`, which hold the point; with x >= 0 where ``positive``."""

    cdef readonly GramColumns columns
    cdef bint positive

    def __init__(self, GramColumns columns, bint positive=False):
        self.columns, self.positive = columns, positive

    def _check(self, const double[::1] l1, const double[::1] l2):
        if l1.shape[0] != self.columns.m or l2.shape[0] != self.columns.m:
            raise ValueError(f"l1 and l2 must have shape ({self.columns.m},)")
        if self.columns.x is None:
            raise ValueError("set_point comes first")

    cdef void _evaluate(self, const double[::1] l1, const double[::1] l2, const int* some, int n_some,
                        Measures* found) noexcept nogil:
        # measures of all variables, or of ``some`` if the others stay at zero
        cdef double half = 0.0, along = 0.0
        self.columns.half_and_along_y(&half, &along)
        _certify(self.columns.x, self.columns.correlations, l1, l2, self.positive, some,
                 self.columns.m if some == NULL else n_some, half, along,
                 _ROUNDING * max(1.0, sqrt(max(self.columns.yy, 0.0))), found)
        found.gap += self.columns.rounding()

    def path(self, const double[::1] v, const double[::1] lambdas, double l1_ratio, double before, double tol,
             double gap_tol, long max_rounds, double end, double[:, :] points, double[:, ::1] report,
             bint polish=False):
        """Minimise for one lambda after the other, each from the last one's point.

        A round is sweeps over a working set until it is solved, and an evaluation of all variables.

        Parameters
        ----------
        v : weights of the penalties (m,)
        lambdas : penalties (k,)
        l1_ratio : part of the penalty that is L1
        before : penalty that x solves, or 0
        tol : optimality measure that is asked for, not relative
        gap_tol : duality gap that is asked for, in parts of the objective
        end : when to stop, by `time.perf_counter`
        polish : whether a solution is taken on to the minimiser on its face
        max_rounds : rounds of each penalty at the most
        points : gets the solutions (k, m)
        report : gets (status, objective, gap, optimality, rounds) of each (k, 5); the status is CONVERGED, WORKED
            where another round is of use, STALLED where nothing moved or sweeps did not end, or OUT_OF_TIME
        """
        cdef Py_ssize_t k, j, n = lambdas.shape[0]
        cdef Measures found
        cdef double lam
        cdef int how = 0, stalls
        cdef long rounds
        cdef double[::1] l1 = np.empty(self.columns.m), l2 = np.empty(self.columns.m), near = np.empty(self.columns.m)
        cdef int[::1] work = np.empty(2 * self.columns.m + 2, dtype=np.intc)
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
                    how = self._round(l1, l2, near, tol, gap_tol, end, &work[0], &found)
                    rounds += 1
                    stalls = stalls + 1 if how == _STALLED else 0
                    if how == _CONVERGED or how == _OUT_OF_TIME or stalls == _MOST_STALLS or rounds >= max_rounds:
                        break
                    near[:] = l1
                if how == _CONVERGED and polish:
                    self._polish(l1, l2, &work[0], &found)
                points[k, :] = self.columns.x
                report[k, 0], report[k, 1], report[k, 2] = how, found.fun, found.gap
                report[k, 3], report[k, 4] = found.worst, rounds
                before = lam

    cdef int _round(self, const double[::1] l1, const double[::1] l2, const double[::1] near, double tol,
                    double gap_tol, double end, int* work, Measures* found) except -1 nogil:
        # sweeps over one working set, until it is solved; work (2 m + 2)
        cdef int n_set = 0, status
        cdef Py_ssize_t j
        self._evaluate(l1, l2, NULL, 0, found)
        if found.worst <= tol and found.gap <= gap_tol * found.fun:
            return _CONVERGED
        for j in range(self.columns.m):
            if self.columns.x[j] != 0.0 or (
                    self.columns.correlations[j] if self.positive else fabs(self.columns.correlations[j])
                    ) > min(near[j], l1[j]):
                work[n_set] = <int>j
                n_set += 1
        status = self._descend(l1, l2, work, n_set, work + self.columns.m + 1, tol, gap_tol, end)
        self._begin(l1, l2, found)
        if found.worst <= tol and found.gap <= gap_tol * found.fun:
            return _CONVERGED
        return _WORKED if status == _CONVERGED else status

    cdef void _begin(self, const double[::1] l1, const double[::1] l2, Measures* found) noexcept nogil:
        # recompute the residual: moves accumulate rounding
        self.columns.begin()
        self._evaluate(l1, l2, NULL, 0, found)

    cdef int _polish(self, const double[::1] l1, const double[::1] l2, int* face,
                     Measures* found) except -1 nogil:
        # then the solution does not depend on where sweeps ended: equal problems get equal solutions
        cdef int k = 0
        cdef Py_ssize_t j
        for j in range(self.columns.m):
            if self.columns.x[j] != 0.0:
                face[k] = <int>j
                k += 1
        if k == 0 or k > _MOST_POLISHED:
            return 0
        step_on_faces(self.columns, l1, l2, self.positive, face, k)
        self._begin(l1, l2, found)
        return 0

    cdef int _descend(self, const double[::1] l1, const double[::1] l2, const int* some, int n_some, int* active,
                      double tol, double gap_tol, double end) except -1 nogil:
        # Sweeps over the set, each followed by sweeps and steps on its non-zero variables until these are solved.
        # The interpreter's lock is taken only every _NS_WITHOUT_CHECK: folds in threads would block each other.
        cdef int sweeps = 0, k, n_active = 0, since = 0
        cdef double moved = 0.0, moved_on = 0.0, spent = INFINITY, face
        cdef Measures found
        cdef bint may_step = True, stepped
        while sweeps < _MOST_SWEEPS:
            moved = self._sweep(l1, l2, some, n_some)
            spent += self._length(n_some)
            n_active = 0
            for k in range(n_some):
                if self.columns.x[some[k]] != 0.0:
                    active[n_active] = some[k]
                    n_active += 1
            sweeps += 1
            stepped = False
            while sweeps < _MOST_SWEEPS:
                moved_on = 0.0
                for k in range(_SWEEPS_A_CHECK):
                    moved_on = self._sweep(l1, l2, active, n_active)
                    if moved_on == 0.0:
                        break
                sweeps += _SWEEPS_A_CHECK
                since += _SWEEPS_A_CHECK
                spent += (_SWEEPS_A_CHECK + 1) * self._length(n_active)
                self._evaluate(l1, l2, active, n_active, &found)
                if moved_on == 0.0 and stepped:
                    break
                if (found.worst <= _PART_OF_TOL * _PART_OF_TOL * tol
                        and found.gap <= _PART_OF_TOL * _PART_OF_TOL * gap_tol * found.fun):
                    break
                face = sweeps_of_a_face(self.columns, n_active)
                if may_step and n_active and (moved_on == 0.0 or since >= face):
                    may_step = step_on_faces(self.columns, l1, l2, self.positive, active, n_active)
                    since, stepped = 0, may_step
                    spent += face * self._length(n_active)
                elif moved_on == 0.0:
                    break
                if spent >= _NS_WITHOUT_CHECK:
                    spent = 0.0
                    with gil:
                        PyErr_CheckSignals()
                        if time.perf_counter() >= end:
                            return _OUT_OF_TIME
            self._evaluate(l1, l2, some, n_some, &found)
            if found.worst <= _PART_OF_TOL * tol and found.gap <= _PART_OF_TOL * gap_tol * found.fun:
                return _CONVERGED
            if moved == 0.0 and moved_on == 0.0:
                return _STALLED
        return _STALLED

    cdef double _length(self, int n_some) noexcept nogil:
        # rough nanoseconds of a sweep
        return n_some * (0.5 * self.columns.m + 20.0)

    cdef double _sweep(self, const double[::1] l1, const double[::1] l2, const int* some,
                       int n_some) noexcept nogil:
        # returns the largest h move^2 of a variable, about twice its decrease of the objective
        cdef int k
        cdef Py_ssize_t j
        cdef double h, t, move, p, largest = 0.0
        for k in range(n_some):
            j = some[k]
            h = self.columns.curvature[j] + l2[j]
            p = self.columns.correlations[j]
            if not h > 0.0 or (self.columns.x[j] == 0.0 and (p if self.positive else fabs(p)) <= l1[j]):
                continue
            t = soft_step(h, self.columns.x[j], l2[j] * self.columns.x[j] - p, l1[j], l1[j])
            if self.positive and t < 0.0:
                t = 0.0
            move = t - self.columns.x[j]
            if move != 0.0:
                self.columns.move(j, move)
                self.columns.x[j] = t
                largest = max(largest, h * move * move)
        return largest
