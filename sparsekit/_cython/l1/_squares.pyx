"""Least squares with a weighted elastic net: certificates, and paths over a Gram matrix by models of OBA.

The objective is 1/2 sum_i s_i r_i^2 + sum_j l1_j |x_j| + l2_j / 2 x_j^2 for the residuals r, with x >= 0 where
``positive``. The quadratic model of OBA is the loss itself, so that mostly one model solves a penalty.
"""
import time

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt

from ..shared._operators cimport QuadOperator
from ..shared._operators import GramOperator
from ..shared._orthant cimport median
from ._model cimport Workspace, minimize, model_t


cdef extern from "shared/kernels.h" nogil:
    void sk_axpy(double c, const double* a, double* out, Py_ssize_t n)


# how a penalty of `solve_path` ended
CONVERGED, WORKED, STALLED, OUT_OF_TIME = range(4)
cdef int _CONVERGED = 0, _WORKED = 1, _STALLED = 2, _OUT_OF_TIME = 3
# a derivative without a penalty counts as zero below this part of ||y||
cdef double _ROUNDING = 1e-10
# relative rounding of sums of products
cdef double _EPSILON = 1e-15
# part of the diagonal that is added to models, whose matrix may be singular
cdef double _RIDGE = 1e-13
# models in a row that halve neither the gap nor the violation, after which the status is STALLED
cdef int _MOST_STALLS = 4
# the least normal number, a penalty that says that a variable must not be negative
cdef double _BARE = np.finfo(np.float64).tiny


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
    cdef double fun = 0.0, gap = 0.0, worst = 0.0
    with nogil:
        _certify(&x[0], &correlations[0], &l1[0], &l2[0], positive, x.shape[0], half, along, rounding, &fun, &gap,
                 &worst)
    return fun, gap, worst


cdef void _certify(const double* x, const double* correlations, const double* l1, const double* l2, bint positive,
                   Py_ssize_t m, double half, double along, double rounding, double* fun, double* gap,
                   double* worst) noexcept nogil:
    cdef Py_ssize_t k, j
    cdef double penalty = 0.0, reach = INFINITY, reach_soft = INFINITY, ridge = 0.0
    cdef double g, p, size, r, t, best = 0.0, unpenalized = 0.0, spoilt = 0.0
    cdef bint curved = False
    worst[0] = 0.0
    for j in range(m):
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
        if r > worst[0]:
            worst[0] = r
        if l2[j] > 0.0:
            curved = True
            if 0.0 < l1[j] < reach_soft * size:
                reach_soft = l1[j] / size
        elif l1[j] > 0.0:
            if l1[j] < reach * size:
                reach = l1[j] / size
        elif size > unpenalized:
            unpenalized = size
    worst[0] += spoilt
    fun[0] = gap[0] = half + penalty + 0.5 * ridge  # no objective is below zero
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
        best = max(best, t * along - t * t * half - _beyond(correlations, l1, l2, positive, m, t))
        if not curved:
            break
    gap[0] = max(fun[0] - best, 0.0)


cdef double _beyond(const double* correlations, const double* l1, const double* l2, bint positive, Py_ssize_t m,
                    double t) noexcept nogil:
    # the conjugate of the penalty on variables with a ridge, at t times the correlations
    cdef Py_ssize_t j
    cdef double total = 0.0, size
    for j in range(m):
        if l2[j] > 0.0:
            size = t * (max(correlations[j], 0.0) if positive else fabs(correlations[j])) - l1[j]
            if size > 0.0:
                total += size * size / (2.0 * l2[j])
    return total


def solve_path(double[:, ::1] G, const double[::1] c, double yy, const double[::1] v, const double[::1] lambdas,
               double l1_ratio, bint positive, goal, limits, effort, double[:, ::1] points, double[:, ::1] report):
    """Minimise for one lambda after the other, each from the last one's point.

    A round is the minimiser of one model, as `solve_model` finds it, and the certificate of all variables.

    Parameters
    ----------
    G : Gram matrix X^T S X (m, m), of centred columns where there is an intercept
    c : products X^T S y (m,)
    yy : y^T S y
    v : weights of the penalties (m,)
    lambdas : penalties (k,)
    l1_ratio : part of the penalty that is L1
    positive : whether x >= 0
    goal : optimality measure that is asked for, not relative, and duality gap in parts of the objective
    limits : of the rounds of each penalty, and when to stop by `time.perf_counter`
    effort : how well models are minimised, as in `solve_model`
    points : gets the solutions (k + 1, m); the first row has the initial point
    report : gets (status, objective, gap, optimality, rounds) of each (k, 5); the status is CONVERGED, WORKED after
        as many rounds, STALLED where rounds halve neither gap nor optimality, or OUT_OF_TIME
    """
    cdef Py_ssize_t m = c.shape[0], n = lambdas.shape[0], k, j
    cdef bint has_ridge = l1_ratio < 1.0
    cdef double[:, ::1] H = np.array(G) if has_ridge else G
    cdef QuadOperator op = GramOperator(H, _RIDGE)
    cdef Workspace workspace = Workspace(<int>m, effort)
    cdef model_t* M = &workspace.M
    cdef double[::1] r = np.empty(m), g = np.empty(m), l1 = np.empty(m), l2 = np.empty(m), sided = np.empty(m)
    cdef double[::1] base = np.empty(m)
    cdef double half, along, rounding, fun = 0.0, gap = 0.0, worst = 0.0, least_gap, least_worst
    cdef double zero = _ROUNDING * max(1.0, sqrt(max(yy, 0.0)))
    cdef double* x
    cdef double tol = goal[0], gap_tol = goal[1], end = limits[1]
    cdef long rounds, max_rounds = limits[0]
    cdef int status, stalls
    if G.shape[0] != m or G.shape[1] != m or v.shape[0] != m:
        raise ValueError(f"G must have shape ({m}, {m}) and v ({m},)")
    if points.shape[0] != n + 1 or points.shape[1] != m or report.shape[0] != n or report.shape[1] != 5:
        raise ValueError(f"points must have shape ({n + 1}, {m}), report ({n}, 5)")
    M.one_sided = positive
    with nogil:
        for k in range(n):
            for j in range(m):
                l1[j], l2[j] = l1_ratio * lambdas[k] * v[j], (1.0 - l1_ratio) * lambdas[k] * v[j]
                sided[j] = max(l1[j], _BARE) if positive else l1[j]
                if has_ridge:
                    H[j, j] = op.diagonal[j] = G[j, j] + l2[j]
                points[k + 1, j] = points[k, j]
            x, rounds, stalls, least_gap, least_worst = &points[k + 1, 0], 0, 0, INFINITY, INFINITY
            while True:
                # from zero, so that the rounding of moves does not add up
                r[:] = c
                half, along, rounding = yy, yy, 0.0
                for j in range(m):
                    if x[j] != 0.0:
                        sk_axpy(-x[j], &G[j, 0], &r[0], m)
                for j in range(m):
                    if x[j] != 0.0:
                        half -= x[j] * (c[j] + r[j])
                        along -= x[j] * c[j]
                        rounding += fabs(x[j]) * sqrt(max(G[j, j], 0.0))
                _certify(x, &r[0], &l1[0], &l2[0], positive, m, max(0.5 * half, 0.0), along, zero, &fun, &gap, &worst)
                gap += _EPSILON * (yy + rounding * rounding)
                stalls = 0 if gap < 0.5 * least_gap or worst < 0.5 * least_worst else stalls + 1
                least_gap, least_worst = min(least_gap, gap), min(least_worst, worst)
                if worst <= tol and gap <= gap_tol * fun:
                    status = _CONVERGED
                elif stalls == _MOST_STALLS:
                    status = _STALLED
                elif rounds >= max_rounds:
                    status = _WORKED
                else:
                    with gil:
                        status = _OUT_OF_TIME if time.perf_counter() >= end else -1
                if status >= 0:
                    break
                for j in range(m):
                    base[j], g[j] = x[j], l2[j] * x[j] - r[j]
                M.x0, M.g0, M.l1, M.x = &base[0], &g[0], &sided[0], x
                minimize(op, M)
                rounds += 1
            report[k, 0], report[k, 1], report[k, 2], report[k, 3], report[k, 4] = status, fun, gap, worst, rounds
