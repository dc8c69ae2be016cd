"""The piecewise quadratic model q of OBA (eq. 2.2) and its minimisation on a face.

An operator holds H on the m working variables: as a Gram matrix, as rows of X with a
diagonal, or as a Python callable. ``solve_model`` runs lines 10-24 of Algorithm 1 on it, by
default several times: the model costs no pass over the data, so its active set is settled
here before the data is touched again.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fabs, sqrt

from ._operators cimport QuadOperator


cdef inline double _median(double a, double b, double c) noexcept nogil:
    if a > b:
        a, b = b, a
    if b > c:
        b = c if c > a else a
    return b


def identify(const double[::1] x, const double[::1] g, const double[::1] l1, signed char[::1] kind,
             double[::1] size):
    """Sets of eqs. (2.5)-(2.7) and the optimality measure max_j |mid(g - l1, x, g + l1)|.

    ``kind`` gets 0 for A (stays zero), 1 for F (free), 2 for U (wants to leave zero);
    ``size`` the absolute minimum-norm subgradient on U and zero elsewhere.
    Returns (measure, |F|, |U|).
    """
    cdef Py_ssize_t n = x.shape[0], j, n_free = 0, n_unsure = 0
    cdef double worst = 0.0, spoilt = 0.0, r
    with nogil:
        for j in range(n):
            size[j] = 0.0
            if x[j] != 0.0:
                kind[j] = 1
                n_free += 1
                r = fabs(_median(g[j] - l1[j], x[j], g[j] + l1[j]))
            else:
                r = fabs(g[j]) - l1[j]
                if r > 0.0:
                    kind[j] = 2
                    size[j] = r
                    n_unsure += 1
                else:
                    kind[j] = 0
                    r = 0.0
            # the median with a NaN may be the zero in the middle, which must not pass for optimal
            spoilt += g[j] - g[j]
            if r > worst:
                worst = r
    return worst + spoilt, n_free, n_unsure


def measure(const double[::1] x, const double[::1] g, const double[::1] l1):
    """max_j |mid(g_j - l1_j, x_j, g_j + l1_j)|, the semi-smooth optimality measure."""
    cdef Py_ssize_t n = x.shape[0], j
    cdef double worst = 0.0, spoilt = 0.0, r
    with nogil:
        for j in range(n):
            r = fabs(_median(g[j] - l1[j], x[j], g[j] + l1[j]))
            spoilt += g[j] - g[j]
            if r > worst:
                worst = r
    return worst + spoilt


def penalty(const double[::1] x, const double[::1] l1):
    """sum_j l1_j |x_j|."""
    cdef Py_ssize_t j
    cdef double total = 0.0
    with nogil:
        for j in range(x.shape[0]):
            if x[j] != 0.0:
                total += l1[j] * fabs(x[j])
    return total


def ista_bound(const double[::1] x, const double[::1] g, const double[::1] l1, double L):
    """Gamma - f(x) of eq. (2.14): the upper model with constant L at its minimiser, the ISTA point."""
    cdef Py_ssize_t j
    cdef double total = 0.0, point, shift, step = 1.0 / L
    with nogil:
        for j in range(x.shape[0]):
            if x[j] == 0.0 and fabs(g[j]) <= l1[j]:
                continue
            point = x[j] - step * g[j]
            shift = step * l1[j]
            if point > shift:
                point -= shift
            elif point < -shift:
                point += shift
            else:
                point = 0.0
            shift = point - x[j]
            total += shift * (g[j] + 0.5 * L * shift) + l1[j] * fabs(point)
    return total


def solve_model(QuadOperator op, const double[::1] x0, const double[::1] g0,
                const double[::1] l1, double[::1] x, double[:, ::1] work, double[::1] matrix,
                int[::1] free, signed char[::1] kind, int max_cycles, double forcing, double cg_tol,
                int direct_size, int cg_max,
                int n_sweeps, int max_holds,
                long[::1] counts):
    """Minimise q(x) = g0.(x - x0) + 1/2 (x - x0).H(x - x0) + sum l1 |x| from x0 over m variables.

    Each cycle is lines 4-5 and 10-24 of Algorithm 1 on the model: identification, the
    corrective cycle with Cholesky (up to ``direct_size`` free variables, where ``matrix`` has
    room for their square, and always where ``op.always_direct``) or preconditioned CG to
    relative residual ``cg_tol``, and the projected backtracking search on q. Cycles end after
    ``max_cycles``, ``op.most_steps`` steps of CG, or when the model's residual has fallen by the factor
    ``forcing``. A step that would cross zeros is searched straight on as well, through them, and the better
    point is taken; ``op.crossed`` counts these. Sweeps of coordinate descent come before each cycle, with
    ``op.sweeps_once`` before the first.

    q is taken relative to x0, so that small decreases are not lost in rounding.
    Writes the minimiser to ``x``; ``work`` has shape (8, m); ``counts`` (4,) gets cycles,
    corrections of the first cycle, CG steps, direct solves. Returns the decrease of q.
    """
    cdef int m = op.size, j, cycle, nf, n_bad, n_held, holds, corrections, trials, room, steps
    cdef double* grad = &work[0, 0]
    cdef double* d = &work[1, 0]
    cdef double* r = &work[2, 0]
    cdef double* p = &work[3, 0]
    cdef double* hp = &work[4, 0]
    cdef double* pg = &work[5, 0]
    cdef double* trial = &work[6, 0]
    cdef double* step = &work[7, 0]
    cdef double q = 0.0, q_trial, res, res0 = -1.0, alpha = 1.0, s, gj
    cdef bint direct, done, cut, hard = False, stalled = False
    counts[0] = counts[1] = counts[2] = counts[3] = 0
    op.crossed = 0
    room = <int>sqrt(<double>matrix.shape[0])
    if m == 0:
        return 0.0
    holds = max_holds
    if op.intercept and not op.knows_common:
        op.common = np.empty(m)
        for j in range(m):
            step[j] = 1.0 if j == m - 1 else 0.0
        op.product(step, &op.common[0])
        op.knows_common = True
    with nogil:
        for j in range(m):
            x[j] = x0[j]
            grad[j] = g0[j]
        cycle = -1
        while cycle + 1 < max_cycles and not _spent(op, counts[2]):
            cycle += 1
            # where H is a matrix a few sweeps of coordinate descent settle the signs first:
            # they cross zero freely, which a step on a face must not
            # where columns are nearly collinear they lead away from what the last cycle found
            if not (op.sweeps_once and cycle > 0) and op.sweep(
                    &x[0], grad, &l1[0], n_sweeps if cycle == 0 or alpha == 1.0 else 4 * n_sweeps):
                q = 0.0
                for j in range(m):
                    q += (x[j] - x0[j]) * 0.5 * (grad[j] + g0[j]) + l1[j] * (fabs(x[j]) - fabs(x0[j]))
            # identification on the model (eqs. 2.4-2.7); zeta is sgn(x) or sgn(-pg)
            res = 0.0
            nf = 0
            for j in range(m):
                gj = grad[j]
                if x[j] > 0.0:
                    pg[j] = gj + l1[j]
                    kind[j] = 1
                    s = fabs(_median(gj - l1[j], x[j], gj + l1[j]))
                elif x[j] < 0.0:
                    pg[j] = gj - l1[j]
                    kind[j] = 1
                    s = fabs(_median(gj - l1[j], x[j], gj + l1[j]))
                elif gj + l1[j] < 0.0:
                    pg[j] = gj + l1[j]
                    kind[j] = 2
                    s = -pg[j]
                elif gj - l1[j] > 0.0:
                    pg[j] = gj - l1[j]
                    kind[j] = 2
                    s = pg[j]
                else:
                    pg[j] = 0.0
                    kind[j] = 0
                    s = 0.0
                if kind[j]:
                    nf += 1
                if s > res:
                    res = s
            if res0 < 0.0:
                res0 = _residual(g0, x0, l1, m)
            if nf == 0 or res <= forcing * res0:
                break
            counts[0] += 1
            # corrective cycle: solve on the face, drop what did not move as predicted
            for j in range(m):
                d[j] = 0.0
            corrections = 0
            n_held = 0
            while True:
                with gil:
                    PyErr_CheckSignals()  # Ctrl-C ends a long model as well
                nf = 0
                for j in range(m):
                    if kind[j] == 1 or kind[j] == 2:
                        free[nf] = j
                        nf += 1
                if nf == 0 or (corrections > 0 and _spent(op, counts[2])):
                    break
                direct = False
                done = False
                if (nf > direct_size or nf > room) and not hard and not op.always_direct:
                    # as many CG steps as cost about one factorisation; past them, factorise
                    # from here on (if there is a matrix and room for its factor)
                    steps = min(cg_max, 10 + nf // 8) if nf <= room else cg_max
                    if op.most_steps > 0:
                        steps = max(min(steps, op.most_steps - <int>counts[2]), 1)
                    counts[2] += _pcg(op, pg, &kind[0], d, r, p, hp, m, cg_tol, steps, &done)
                    hard = not done and nf <= room
                if op.always_direct or (nf <= room and (hard or nf <= direct_size)):
                    if n_held:
                        # what the variables on their way to zero do to the others
                        for j in range(m):
                            step[j] = d[j] if kind[j] == 3 else 0.0
                        op.product(step, hp)
                    for j in range(nf):
                        r[j] = -pg[free[j]] - (hp[free[j]] if n_held else 0.0)
                    direct = op.factor(&free[0], nf, r, &matrix[0])
                    if direct:
                        counts[3] += 1
                        for j in range(nf):
                            d[free[j]] = r[j]
                    elif not done:
                        counts[2] += _pcg(op, pg, &kind[0], d, r, p, hp, m, cg_tol, cg_max, &done)
                n_bad = 0
                for j in range(m):
                    # eq. (2.11): a variable of U must move to the side its subgradient says
                    if kind[j] == 2 and not (d[j] * pg[j] < 0.0):
                        kind[j] = 0
                        d[j] = 0.0
                        n_bad += 1
                    elif kind[j] == 1 and (x[j] + d[j]) * x[j] < 0.0 and corrections < holds:
                        # our addition: one of F that would leave the orthant ends at zero, and
                        # the others are told; projecting it alone spoils ill-conditioned steps
                        kind[j] = 3
                        d[j] = -x[j]
                        n_bad += 1
                        n_held += 1
                if n_bad == 0:
                    break
                corrections += 1
            if cycle == 0:
                counts[1] = corrections
            # projected backtracking on the piecewise quadratic model
            alpha = 1.0
            trials = 0
            cut = False
            while True:
                for j in range(m):
                    s = x[j] + alpha * d[j]
                    # the orthant of eqs. (2.12)-(2.13); only members of F can leave it
                    if kind[j] == 1 and s * x[j] < 0.0:
                        s = 0.0
                        cut = True
                    trial[j] = s
                    step[j] = s - x0[j]
                op.product(step, hp)
                q_trial = 0.0
                for j in range(m):
                    q_trial += step[j] * (g0[j] + 0.5 * hp[j]) + l1[j] * (fabs(trial[j]) - fabs(x0[j]))
                if cut and trials == 0:
                    # projection spoils a step along which many variables cross zero; q itself falls along it
                    op.product(d, p)
                    if q + _straight(x, grad, l1, d, p, r, pg, m) < min(q_trial, q):
                        op.crossed += 1
                        for j in range(m):
                            trial[j] = pg[j]
                            step[j] = trial[j] - x0[j]
                        op.product(step, hp)
                        q_trial = 0.0
                        for j in range(m):
                            q_trial += step[j] * (g0[j] + 0.5 * hp[j]) + l1[j] * (fabs(trial[j]) - fabs(x0[j]))
                if q_trial <= q:
                    break
                alpha *= 0.5
                trials += 1
                if trials > 40 or (n_held and trials > 2):
                    break
            if not (q_trial <= q):
                if not n_held:
                    break
                # the held variables spoilt the descent: this cycle again without holding any
                holds = 0
                cycle -= 1
                continue
            holds = max_holds
            stalled = q - q_trial <= 1e-15 * fabs(q)
            q = q_trial
            for j in range(m):
                x[j] = trial[j]
                grad[j] = g0[j] + hp[j]
            if stalled:
                break
    return -q


cdef double _straight(const double[::1] x, const double* grad, const double[::1] l1, const double* d,
                      const double* hd, double* zero, double* out, int m) noexcept nogil:
    # the minimiser of q along x + t d, 0 <= t <= 1, into ``out``, and the change of q (0 where it does not fall).
    # ``zero`` is room for the t at which each variable crosses zero. The slope jumps there by 2 l1 |d|
    cdef int j, at = -1
    cdef double slope = 0.0, curve = 0.0, last = 0.0, fall = 0.0, t, move
    for j in range(m):
        zero[j] = 2.0
        if d[j] == 0.0:
            continue
        curve += d[j] * hd[j]
        slope += d[j] * grad[j]
        if x[j] == 0.0:
            slope += l1[j] * fabs(d[j])
        else:
            slope += l1[j] * d[j] if x[j] > 0.0 else -l1[j] * d[j]
            if x[j] * d[j] < 0.0:
                zero[j] = -x[j] / d[j]
    if not (slope < 0.0) or not (curve > 0.0):
        return 0.0
    while True:
        at = -1
        t = 1.0
        for j in range(m):
            if zero[j] < t:
                t = zero[j]
                at = j
        move = -slope / curve
        if at < 0 or move <= t:
            t = min(move, t)
            at = -1
        fall += (t - last) * (slope + 0.5 * curve * (t + last))
        last = t
        if at < 0:
            break
        slope += 2.0 * l1[at] * fabs(d[at])
        if slope + t * curve >= 0.0:
            break
        zero[at] = 2.0
    for j in range(m):
        out[j] = x[j] + t * d[j]
    if at >= 0:
        out[at] = 0.0
    return fall


cdef inline bint _spent(QuadOperator op, long steps) noexcept nogil:
    return 0 < op.most_steps <= steps


cdef int _pcg(QuadOperator op, const double* pg, const signed char* kind, double* d, double* r, double* p,
              double* hp, int m, double tol, int max_steps, bint* done) noexcept nogil:
    # preconditioned CG on the face kind = 1, 2 for H d = -pg (d of the other variables is given), from the d that is there (zero, or
    # the last solve of the corrective cycle); stops at ||Hd + pg||_inf <= tol ||pg||_inf
    cdef int j, steps
    cdef double rz = 0.0, rz_new, php, alpha, beta, worst, bound = 0.0
    cdef bint warm = False
    for j in range(m):
        if (kind[j] == 1 or kind[j] == 2) and fabs(pg[j]) > bound:
            bound = fabs(pg[j])
        if d[j] != 0.0:
            warm = True
    bound *= tol
    if warm:
        op.product(d, hp)
    worst = 0.0
    for j in range(m):
        if kind[j] == 1 or kind[j] == 2:
            r[j] = -pg[j] - (hp[j] if warm else 0.0)
            if fabs(r[j]) > worst:
                worst = fabs(r[j])
        else:
            r[j] = 0.0
    op.face(kind)
    op.precondition(r, kind, p)
    for j in range(m):
        rz += r[j] * p[j]
    done[0] = worst <= bound
    if done[0]:
        return 0
    for steps in range(1, max_steps + 1):
        op.product(p, hp)
        php = 0.0
        for j in range(m):
            php += p[j] * hp[j]
        if not (php > 0.0):
            # singular or spoilt by rounding; keep what is there, or one scaled gradient step
            done[0] = True
            if steps == 1 and not warm:
                for j in range(m):
                    d[j] = p[j]
            return steps
        alpha = rz / php
        rz_new = 0.0
        worst = 0.0
        for j in range(m):
            if kind[j] == 1 or kind[j] == 2:
                d[j] += alpha * p[j]
                r[j] -= alpha * hp[j]
                if fabs(r[j]) > worst:
                    worst = fabs(r[j])
        if worst <= bound:
            done[0] = True
            return steps
        op.precondition(r, kind, hp)
        for j in range(m):
            rz_new += r[j] * hp[j]
        beta = rz_new / rz
        rz = rz_new
        for j in range(m):
            p[j] = hp[j] + beta * p[j]
    return max_steps


cdef double _residual(const double[::1] g, const double[::1] x, const double[::1] l1, int m) noexcept nogil:
    cdef int j
    cdef double r, worst = 0.0
    for j in range(m):
        r = fabs(_median(g[j] - l1[j], x[j], g[j] + l1[j]))
        if r > worst:
            worst = r
    return worst

