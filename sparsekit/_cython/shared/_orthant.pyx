"""The orthant of OBA: its sets, how far a point is from optimal, the penalty, and the ISTA point's upper model."""
from libc.math cimport fabs


def identify(const double[::1] x, const double[::1] g, const double[::1] l1, signed char[::1] kind,
             double[::1] size, bint one_sided=False):
    """Sets of eqs. (2.5)-(2.7) and the optimality measure max_j |mid(g - l1, x, g + l1)|.

    ``kind`` gets 0 for A (stays zero), 1 for F (free), 2 for U (may leave zero). ``size`` gets the absolute
    minimum-norm subgradient on U and zero elsewhere. ``one_sided``: variables with a penalty, l1 > 0, must
    not be negative, as if their penalty were infinite below zero. Returns (measure, |F|, |U|).
    """
    cdef Py_ssize_t n = x.shape[0], j, n_free = 0, n_unsure = 0
    cdef double worst = 0.0, spoilt = 0.0, r, up, down
    with nogil:
        for j in range(n):
            size[j] = 0.0
            up, down = g[j] + l1[j], g[j] - below_zero(l1[j], one_sided)
            if x[j] != 0.0:
                kind[j] = 1
                n_free += 1
                r = fabs(median(down, x[j], up))
            else:
                r = max(-up, down)
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


def measure(const double[::1] x, const double[::1] g, const double[::1] l1, bint one_sided=False):
    """max_j |mid(g_j - l1_j, x_j, g_j + l1_j)|, the semi-smooth optimality measure; as for `identify`."""
    cdef Py_ssize_t n = x.shape[0], j
    cdef double worst = 0.0, spoilt = 0.0, r
    with nogil:
        for j in range(n):
            r = fabs(median(g[j] - below_zero(l1[j], one_sided), x[j], g[j] + l1[j]))
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


def ista_bound(const double[::1] x, const double[::1] g, const double[::1] l1, double L, bint one_sided=False):
    """Gamma - f(x) of eq. (2.14): the upper model with constant L at its minimiser, the ISTA point.

    ``one_sided`` as for `identify`.
    """
    cdef Py_ssize_t j
    cdef double total = 0.0, point, shift, below, step = 1.0 / L
    with nogil:
        for j in range(x.shape[0]):
            below = below_zero(l1[j], one_sided)
            if x[j] == 0.0 and -l1[j] <= g[j] <= below:
                continue
            point = x[j] - step * g[j]
            shift = step * l1[j]
            if point > shift:
                point -= shift
            elif point < -step * below:
                point += step * below
            else:
                point = 0.0
            shift = point - x[j]
            total += shift * (g[j] + 0.5 * L * shift) + l1[j] * fabs(point)
    return total


cdef double search_line(int m, const double* x, const double* d, const double* hd, const double* grad,
                        const double* l1, bint one_sided, double* zero, double* out) noexcept nogil:
    # Exact line search of a piecewise quadratic q: writes its minimiser along x + t d, 0 <= t <= 1, to ``out``. Returns
    # the change of q, 0 without a decrease. ``hd`` is H d, ``grad`` the gradient without the penalty. ``zero`` (m) gets
    # the t at which each variable crosses zero, where the slope jumps by 2 l1 |d|.
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
        slope += (l1[at] + below_zero(l1[at], one_sided)) * fabs(d[at])
        if slope + t * curve >= 0.0:
            break
        zero[at] = 2.0
    for j in range(m):
        out[j] = x[j] + t * d[j]
    if at >= 0:
        out[at] = 0.0
    return fall
