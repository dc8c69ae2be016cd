"""The piecewise quadratic model q of OBA (eq. 2.2) and its minimisation on a face.

An operator holds H on the m working variables: as a Gram matrix, as rows of X with a
diagonal, or as a Python callable. ``solve_model`` runs lines 10-24 of Algorithm 1 on it, by
default several times. The model costs no pass over the data. So its active set is solved
here before the data is read again.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fabs
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from ..shared._operators cimport QuadOperator, face_product
from ..shared._orthant cimport below_zero, median, search_line


cdef enum:
    # Free variables up to which a matrix is factorised at once. With 0 the iterations on unscaled data double.
    DIRECT_SIZE = 100


cdef class Workspace:
    # memory of one call

    def __cinit__(self, int m, effort):
        cdef double* at
        cdef int side = min(m, <int>effort.largest_factor)
        self.M.m, self.M.side = m, side
        self.M.max_cycles, self.M.cg_max, self.M.most_holds = effort.max_cycles, effort.cg_max, effort.holds
        self.M.n_sweeps, self.M.on_support = effort.sweeps, effort.on_support
        self.M.forcing, self.M.cg_tol = effort.forcing, effort.cg_tol
        self.M.kind = NULL
        self.M.free = NULL
        self.numbers = at = <double*>malloc(sizeof(double) * (8 * <size_t>m + <size_t>side * side + 1))
        self.M.free = <int*>malloc(sizeof(int) * (m + 1))
        self.M.kind = <signed char*>malloc(m + 1)
        if at == NULL or self.M.free == NULL or self.M.kind == NULL:
            raise MemoryError
        self.M.grad, self.M.d, self.M.r, self.M.p = at, at + m, at + 2 * m, at + 3 * m
        self.M.hp, self.M.pg, self.M.trial, self.M.step = at + 4 * m, at + 5 * m, at + 6 * m, at + 7 * m
        self.M.matrix = at + 8 * <size_t>m

    def __dealloc__(self):
        free(self.numbers)
        free(self.M.free)
        free(self.M.kind)


def solve_model(QuadOperator op, const double[::1] x0, const double[::1] g0, const double[::1] l1, double[::1] x,
                effort, bint one_sided=False):
    """Minimise q(x) = g0.(x - x0) + 1/2 (x - x0).H(x - x0) + sum l1 |x| from x0 over m variables.

    Each cycle is lines 4-5 and 10-24 of Algorithm 1 on the model. They are identification, the corrective cycle with
    Cholesky or preconditioned CG, and the projected backtracking line search on q. If the step would cross zeros,
    an exact line search without projection is tried too, and the better point is used; ``op.crossed`` counts these.
    Sweeps of coordinate descent come before each cycle, or only before one that follows a cut step.

    ``effort`` has the limits:

    - ``max_cycles``
    - ``forcing``: relative reduction of the model's residual
    - ``cg_tol``, ``cg_max``: relative residual and steps of CG
    - ``largest_factor``: most free variables for a factorisation, unless ``op.always_direct``
    - ``sweeps``: of coordinate descent, before a cycle; four times as many after a step that was cut
    - ``on_support``: whether penalised variables at zero stay there in the first cycle; then sweeps come only after
      a step that was cut
    - ``holds``: corrections in which free variables that would change sign are fixed at zero

    ``one_sided``: variables with a penalty, l1 > 0, must not be negative, and are not in x0.

    q is taken relative to x0, so that small decreases are not lost in rounding.
    Writes the minimiser to ``x``. Returns the decrease of q, and the numbers of cycles, of the first one's
    corrections, of CG steps and of direct solves.
    """
    cdef int m = op.size, j
    cdef double decrease
    cdef Workspace workspace
    cdef model_t* M
    op.crossed = 0
    if m == 0:
        return 0.0, 0, 0, 0, 0
    workspace = Workspace(m, effort)
    M = &workspace.M
    M.x0, M.g0, M.l1, M.x = &x0[0], &g0[0], &l1[0], &x[0]
    M.one_sided = one_sided
    if op.intercept:
        op.common = np.empty(m)
        for j in range(m):
            M.step[j] = 1.0 if j == m - 1 else 0.0
        op.product(M.step, &op.common[0])
    with nogil:
        decrease = minimize(op, M)
    return decrease, M.n_cycles, M.n_first, M.n_cg, M.n_direct


cdef double minimize(QuadOperator op, model_t* M) except? -1.0 nogil:
    # `solve_model` on the model M; returns the decrease of q
    cdef int m = M.m, j, cycle = -1, holds = M.most_holds, corrections, nf
    cdef double q = 0.0, q_trial, res, res0 = -1.0, alpha = 1.0
    cdef bint stalled, on_support
    M.n_cycles = M.n_first = 0
    M.n_cg = M.n_direct = 0
    M.hard = False
    op.one_sided, op.crossed = M.one_sided, 0
    for j in range(m):
        M.x[j] = M.x0[j]
        M.grad[j] = M.g0[j]
    while cycle + 1 < M.max_cycles:
        cycle += 1
        # sweeps of coordinate descent find the signs: they can cross zero, where a step on a face is cut
        if (not M.on_support or alpha < 1.0) and op.sweep(
                M.x, M.grad, M.l1, M.n_sweeps if alpha == 1.0 else 4 * M.n_sweeps):
            q = 0.0
            for j in range(m):
                q += ((M.x[j] - M.x0[j]) * 0.5 * (M.grad[j] + M.g0[j])
                      + M.l1[j] * (fabs(M.x[j]) - fabs(M.x0[j])))
        nf = _identify_on_model(M, &res)
        if res0 < 0.0:
            res0 = _residual(M)
        if nf == 0 or res <= M.forcing * res0:
            break
        on_support = cycle == 0 and M.on_support
        if on_support:
            _stay_on_support(M)
        M.n_cycles += 1
        corrections = _correct(op, M, M.cg_tol, M.cg_max, holds)
        if cycle == 0:
            M.n_first = corrections
        q_trial = _line_search(op, M, q, &alpha)
        if not (q_trial <= q):
            if not M.n_fixed:
                if on_support:  # which may be solved already, where others have to enter
                    continue
                break
            # no descent because of the fixed variables: repeat this cycle without fixing any
            holds = 0
            cycle -= 1
            continue
        holds = M.most_holds
        stalled = q - q_trial <= 1e-15 * fabs(q)
        q = q_trial
        for j in range(m):
            M.x[j] = M.trial[j]
            M.grad[j] = M.g0[j] + M.hp[j]
        if stalled and not on_support:
            break
    return -q


cdef void _stay_on_support(model_t* M) noexcept nogil:
    # take penalised variables at zero off the face, if any other is on it
    cdef int j
    cdef bint has_support = False
    for j in range(M.m):
        has_support = has_support or M.kind[j] == 1
    for j in range(M.m):
        if has_support and M.kind[j] == 2 and M.l1[j] > 0.0:
            M.kind[j] = 0


cdef int _identify_on_model(model_t* M, double* worst) noexcept nogil:
    # Eqs. (2.4)-(2.7) on the model: writes the face to ``kind`` and its gradient to ``pg``; zeta is sgn(x) or
    # sgn(-pg). Returns the number of variables that may move.
    cdef int j, nf = 0
    cdef double s, up, down, res = 0.0
    for j in range(M.m):
        up, down = M.grad[j] + M.l1[j], M.grad[j] - below_zero(M.l1[j], M.one_sided)
        if M.x[j] != 0.0:
            M.pg[j] = up if M.x[j] > 0.0 else down
            M.kind[j] = 1
            s = fabs(median(down, M.x[j], up))
        elif up < 0.0:
            M.pg[j] = up
            M.kind[j] = 2
            s = -M.pg[j]
        elif down > 0.0:
            M.pg[j] = down
            M.kind[j] = 2
            s = M.pg[j]
        else:
            M.pg[j] = 0.0
            M.kind[j] = 0
            s = 0.0
        if M.kind[j]:
            nf += 1
        if s > res:
            res = s
    worst[0] = res
    return nf


cdef int _correct(QuadOperator op, model_t* M, double cg_tol, int cg_max, int holds) except -1 nogil:
    # the corrective cycle: solve on the face, drop variables that moved to the wrong side, repeat; returns the repeats
    cdef int j, nf, n_bad, corrections = 0
    M.n_fixed = 0
    for j in range(M.m):
        M.d[j] = 0.0
    while True:
        with gil:
            PyErr_CheckSignals()  # Ctrl-C ends a long model as well
        nf = 0
        for j in range(M.m):
            if M.kind[j] == 1 or M.kind[j] == 2:
                M.free[nf] = j
                nf += 1
        if nf == 0:
            break
        _solve_face(op, M, nf, cg_tol, cg_max)
        n_bad = 0
        for j in range(M.m):
            # eq. (2.11): a variable of U must move to the side its subgradient says
            if M.kind[j] == 2 and not (M.d[j] * M.pg[j] < 0.0):
                M.kind[j] = 0
                M.d[j] = 0.0
                n_bad += 1
            elif M.kind[j] == 1 and (M.x[j] + M.d[j]) * M.x[j] < 0.0 and corrections < holds:
                # Our addition: a variable of F that would leave the orthant is fixed at zero, and the
                # others are solved again. Projection alone gives no descent on ill-conditioned models.
                M.kind[j] = 3
                M.d[j] = -M.x[j]
                n_bad += 1
                M.n_fixed += 1
        if n_bad == 0:
            break
        corrections += 1
    return corrections


cdef void _solve_face(QuadOperator op, model_t* M, int nf, double cg_tol, int cg_max) noexcept nogil:
    # H d = -pg on the nf variables in ``free``: by Cholesky where that costs less, or by CG from the given d
    cdef int j, steps
    cdef bint done = False
    if (nf > DIRECT_SIZE or nf > M.side) and not M.hard and not op.always_direct:
        # As many CG steps as cost about one factorisation. If they do not converge, factorise
        # from here on, if there is a matrix and memory for its factor.
        steps = min(cg_max, 10 + nf // 8) if nf <= M.side else cg_max
        M.n_cg += _pcg(op, M, nf, cg_tol, steps, &done)
        M.hard = not done and nf <= M.side
    if op.always_direct or (nf <= M.side and (M.hard or nf <= DIRECT_SIZE)):
        if M.n_fixed:
            # product of H and the steps of the fixed variables
            for j in range(M.m):
                M.step[j] = M.d[j] if M.kind[j] == 3 else 0.0
            op.product(M.step, M.hp)
        for j in range(nf):
            M.r[j] = -M.pg[M.free[j]] - (M.hp[M.free[j]] if M.n_fixed else 0.0)
        if op.factor(M.free, nf, M.r, M.matrix):
            M.n_direct += 1
            for j in range(nf):
                M.d[M.free[j]] = M.r[j]
        elif not done:
            M.n_cg += _pcg(op, M, nf, cg_tol, cg_max, &done)


cdef double _at_trial(QuadOperator op, model_t* M) noexcept nogil:
    # q at ``trial``, with the step from x0 and its product by H
    cdef int j
    cdef double q = 0.0
    for j in range(M.m):
        M.step[j] = M.trial[j] - M.x0[j]
    op.product(M.step, M.hp)
    for j in range(M.m):
        q += M.step[j] * (M.g0[j] + 0.5 * M.hp[j]) + M.l1[j] * (fabs(M.trial[j]) - fabs(M.x0[j]))
    return q


cdef double _line_search(QuadOperator op, model_t* M, double q, double* step_size) noexcept nogil:
    # projected backtracking line search on q, or the exact line search through zeros
    cdef int j, trials = 0
    cdef double alpha = 1.0, s, q_trial
    cdef bint cut = False
    while True:
        for j in range(M.m):
            s = M.x[j] + alpha * M.d[j]
            # the orthant of eqs. (2.12)-(2.13); only members of F can leave it
            if M.kind[j] == 1 and s * M.x[j] < 0.0:
                s = 0.0
                cut = True
            M.trial[j] = s
        q_trial = _at_trial(op, M)
        if cut and trials == 0:
            # where many variables cross zero the projected step may give no descent, but d itself does
            op.product(M.d, M.p)
            if q + search_line(M.m, M.x, M.d, M.p, M.grad, M.l1, M.one_sided, M.r, M.pg) < min(q_trial, q):
                op.crossed += 1
                for j in range(M.m):
                    M.trial[j] = M.pg[j]
                q_trial = _at_trial(op, M)
        if q_trial <= q:
            break
        alpha *= 0.5
        trials += 1
        if trials > 40 or (M.n_fixed and trials > 2):
            break
    step_size[0] = alpha
    return q_trial


cdef int _pcg(QuadOperator op, model_t* M, int nf, double tol, int max_steps, bint* done) noexcept nogil:
    # Preconditioned CG for H d = -pg on the face kind = 1, 2; d of the other variables is given. It starts at the
    # given d: zero, or the last solve of the corrective cycle. It stops at ||Hd + pg||_inf <= tol ||pg||_inf.
    cdef int j, steps, m = M.m
    cdef double rz = 0.0, rz_new, php, alpha, beta, worst, bound = 0.0
    cdef bint warm = False, has_copy
    cdef const double* pg = M.pg
    cdef const signed char* kind = M.kind
    cdef double* d = M.d
    cdef double* r = M.r
    cdef double* p = M.p
    cdef double* hp = M.hp
    for j in range(m):
        if (kind[j] == 1 or kind[j] == 2) and fabs(pg[j]) > bound:
            bound = fabs(pg[j])
        if d[j] != 0.0:
            warm = True
    bound *= tol
    if warm:  # includes the steps of fixed variables, which are off the face
        op.product(d, hp)
    worst = 0.0
    for j in range(m):
        if kind[j] == 1 or kind[j] == 2:
            r[j] = -pg[j] - (hp[j] if warm else 0.0)
            if fabs(r[j]) > worst:
                worst = fabs(r[j])
        else:
            r[j] = 0.0
    op.precondition(r, kind, p)
    for j in range(m):
        rz += r[j] * p[j]
    done[0] = worst <= bound
    if done[0]:
        return 0
    has_copy = nf <= M.side and op.copy_face(M.free, nf, M.matrix)
    if has_copy:
        memset(hp, 0, sizeof(double) * m)
    for steps in range(1, max_steps + 1):
        if has_copy:
            face_product(M.matrix, M.free, nf, p, hp, M.trial, M.step)
        else:
            op.product(p, hp)
        php = 0.0
        for j in range(m):
            php += p[j] * hp[j]
        if not (php > 0.0):
            # singular, or rounding: keep d, or take one scaled gradient step if there is none
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


cdef double _residual(model_t* M) noexcept nogil:
    # optimality residual of q at x0
    cdef int j
    cdef double r, worst = 0.0
    for j in range(M.m):
        r = fabs(median(M.g0[j] - below_zero(M.l1[j], M.one_sided), M.x0[j], M.g0[j] + M.l1[j]))
        if r > worst:
            worst = r
    return worst
