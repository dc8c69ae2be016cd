"""Projection onto the polytope of a graph by a primal-dual interior-point method, ended on its active set.

It takes some twenty Newton steps for any graph, each a sparse factorisation. The first-order iteration is
faster for small graphs. The number of steps does not depend on how factors are coupled.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2, 1992.
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..._solver.tolerances import ROUNDING
from ..plan import MARGINAL_TOL

# Regularisation of dependent equalities and of variables without a quadratic term. Refinement removes its
# effect: 1e-9 to 1e-5 take the same time. Coefficients of 1e-5 beside 1 end without a solution; with 1e-9
# they have one, and a mixture of tables has none.
SHIFT = 1e-7
# Largest number of Newton steps. No feasible graph of 62 coupled ones reached it.
MAX_STEPS = 60


@dataclass
class Point:
    """A solution: marginals, the rows' multipliers, the largest violation of the optimality conditions."""

    x: np.ndarray
    y: np.ndarray
    residual: float
    nit: int


class _Saddle:
    """[diag d, B'; B, -diag s] z = right, factorised once.

    ``order`` is a permutation in which factors stay sparse, None to find one. With an order found for each
    Newton step, large logic takes 1.3 times as long.
    """

    def __init__(self, d, B, s, square, scale=1.0, order=None):
        self.K = sp.block_array([[sp.diags_array(d), B.T], [B, -sp.diags_array(s)]], format="csc")
        shift = SHIFT / scale
        d = np.where(square == 0.0, np.maximum(d, SHIFT * scale), d)
        s = s + np.where(s > shift, 0.0, shift)
        shifted = sp.block_array([[sp.diags_array(d), B.T], [B, -sp.diags_array(s)]], format="csc")
        options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        if order is None:
            self.lu, self.by = splu(shifted, "MMD_AT_PLUS_A", **options), slice(None)
            self.order = np.argsort(self.lu.perm_c)
        else:
            self.lu, self.by = splu(shifted[order][:, order], "NATURAL", **options), order
            self.order = order

    def _approximate(self, right):
        """The solution but for the shift."""
        z = np.empty(len(right))
        z[self.by] = self.lu.solve(right[self.by])
        return z

    def solve(self, right, most=4, start=None):
        """The solution; the shift goes away by the proximal point method."""
        z = np.zeros(len(right)) if start is None else start
        found, least = z, np.inf
        for _ in range(most):
            rest = right - self.K @ z
            size = np.abs(rest).max(initial=0.0)
            if not size < least:
                break
            found, least = z, size
            if size == 0.0:
                break
            z = z + self._approximate(rest)
        return found


def _share(x, dx):
    """Largest step at which x stays positive."""
    down = dx < 0
    return min(1.0, np.min(-x[down] / dx[down], initial=np.inf))


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def project(scores, p, max_iter, deadline=np.inf):
    """The marginals of least |x - scores|^2 / 2 and price of what is exceeded.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of the variables, with what pairs add.
    p : Polytope
        Every variable between different bounds.
    max_iter : int
        Largest number of Newton steps.
    deadline : float
        `time.perf_counter` at which it ends.

    Returns
    -------
    Point
        Its residual is in units of the largest score.
    """
    n, m, B = len(scores), p.n_upper, p.rows
    soft = np.isfinite(p.most)
    scale = max(1.0, np.abs(scores).max(initial=0.0))
    x = 0.5 * (p.lower + p.upper)
    # distances to the bounds are stored: computed from x near 1 they would be rounding
    above, below = x - p.lower, p.upper - x
    y = np.where(soft, 0.5 * np.where(soft, p.most, 0.0), scale)
    miss = p.right[:m] - B[:m] @ x
    s = np.maximum(miss, 1.0)
    t = np.where(soft, np.maximum(s - miss, 1.0), 1.0)
    v = np.concatenate([y, np.zeros(B.shape[0] - m)])
    low, high = np.full(n, scale), np.full(n, scale)
    best, tried, of_best = Point(x, v, np.inf, 0), None, None
    total, order = 2 * n + m + soft.sum(), None
    for it in range(max_iter):
        if time.perf_counter() > deadline:
            break
        y = v[:m]
        rest_of = np.where(soft, p.most - y, 1.0)
        dual = scores - p.quadratic * x - B.T @ v + low - high
        primal = p.right - B @ x
        primal[:m] -= s - np.where(soft, t, 0.0)
        gap = (s @ y + (t * rest_of)[soft].sum() + above @ low + below @ high) / max(total, 1)
        if gap < MARGINAL_TOL * scale and np.abs(primal).max(initial=0.0) < 1e-3:
            guess = _active(above, below, y, s, t, low, high, rest_of, scale, soft)
            if tried is None or not all(map(np.array_equal, guess, tried)) or it % 4 == 0:
                tried = guess
                found = _polish(scores, p, x, v, guess, soft, scale, it + 1)
                if found.residual < best.residual:
                    best, of_best = found, guess
                if best.residual < ROUNDING:
                    return best
        if gap < 1e-17 * scale:
            break
        weight = p.quadratic + low / above + high / below
        slack = s / y + np.where(soft, t / rest_of, 0.0)
        if not (np.isfinite(weight).all() and np.isfinite(slack).all()):
            break
        shifts = np.concatenate([slack, np.zeros(B.shape[0] - m)])
        system = _Saddle(weight, B, shifts, p.quadratic, scale, order)
        order = system.order
        zero = np.zeros(1)
        to = [zero, zero, zero, zero]
        for last in (False, True):
            right = np.concatenate([dual + to[0] / above - low - to[1] / below + high, primal])
            right[n : n + m] += s - to[2] / y + np.where(soft, to[3] / rest_of - t, 0.0)
            z = system.solve(right)
            dx, dv = z[:n], z[n:]
            dy = dv[:m]
            d_low = (to[0] - low * dx) / above - low
            d_high = (to[1] + high * dx) / below - high
            ds = (to[2] - s * dy) / y - s
            dt = np.where(soft, (to[3] + t * dy) / rest_of - t, 0.0)
            a = min(
                _share(above, dx), _share(below, -dx), _share(low, d_low), _share(high, d_high),
                _share(s, ds), _share(y, dy), _share(t, dt), _share(rest_of, np.where(soft, -dy, 0.0)),
            )  # fmt: skip
            if not last:
                after = (above + a * dx) @ (low + a * d_low) + (below - a * dx) @ (high + a * d_high)
                after += (s + a * ds) @ (y + a * dy)
                after += ((t + a * dt) * (rest_of - a * dy))[soft].sum()
                aim = (after / total / gap) ** 3 * gap
                to = [aim - dx * d_low, aim + dx * d_high, aim - ds * dy, aim + dt * dy]
        a = min(1.0, 0.995 * a) if a < 1.0 else 1.0 - 1e-12
        x, v, s = x + a * dx, v + a * dv, s + a * ds
        above, below = above + a * dx, below - a * dx
        t, low, high = t + a * dt, low + a * d_low, high + a * d_high
        best.nit = it + 1
    best.nit = it + 1 if max_iter else 0
    return _corrected(scores, p, best, of_best, soft, scale, max_iter, deadline)


def _corrected(scores, p, best, guess, soft, scale, most, deadline):
    """What a guess that lacks little ends at: what breaks its sign changes sides, from one guess to the next.

    Scores of very different sizes leave the iteration too few digits for the smallest ones.
    """
    m, known = p.n_upper, set()
    point = best
    while guess is not None and best.residual >= ROUNDING:
        if point.nit >= most or time.perf_counter() >= deadline:
            break
        at_low, at_high, on, exceeded = guess
        x, y = point.x, point.y[:m]
        slope, over = scores - p.quadratic * x - p.rows.T @ point.y, (p.rows @ x - p.right)[:m]
        free = ~(at_low | at_high)
        guess = (
            np.where(free, x < p.lower, at_low & (slope <= 0)),
            np.where(free, x > p.upper, at_high & (slope >= 0)),
            np.where(on, (y >= 0) & (y <= p.most), (over > 0) & ~exceeded | (over < 0) & exceeded),
            soft & np.where(on, y > p.most, exceeded & (over >= 0)),
        )
        name = b"".join(map(np.ndarray.tobytes, guess))
        if name in known:
            break
        known.add(name)
        point = _polish(scores, p, x, point.y, guess, soft, scale, point.nit + 1)
        if point.residual < best.residual:
            best = point
    return best


def _active(above, below, y, s, t, low, high, rest_of, scale, soft):
    """Variables at their lower and upper bounds; rows that hold with equality, rows exceeded at a price."""
    at_low = (above * scale < low) & (above <= below)
    at_high = (below * scale < high) & (below < above)
    exceeded = soft & (t * scale > rest_of)
    return at_low, at_high, (y > s * scale) & ~exceeded, exceeded


def _polish(scores, p, near, v, guess, soft, scale, nit):
    """The solution of the equations that an active set leaves, of several the nearest to ``near`` and v."""
    at_low, at_high, on, exceeded = guess
    m, B = p.n_upper, p.rows
    free = ~(at_low | at_high)
    x = np.where(at_high, p.upper, p.lower)
    found = np.zeros(len(v))
    found[:m][exceeded] = p.most[exceeded]
    kept = np.concatenate([on, np.ones(len(v) - m, dtype=bool)])
    inner = B[kept][:, free]
    # rows without a free variable do not determine x; their multipliers belong to bounds
    some = np.diff(inner.indptr) > 0
    rows = np.flatnonzero(kept)[some]
    inner = inner[some]
    right = np.concatenate([(scores - B.T @ found)[free], p.right[rows] - (B @ x)[rows]])
    start = np.concatenate([x[free], v[rows]])
    weight = p.quadratic[free]
    met = weight > 0
    start[: len(met)][met] = np.clip(right[: len(met)] - inner.T @ v[rows], 0.0, 1.0)[met]
    if len(right):
        z = _Saddle(weight, inner, np.zeros(len(rows)), weight).solve(right, 100, start)
        x[free], found[rows] = z[: free.sum()], z[free.sum() :]
    idle = np.flatnonzero(kept)[~some]
    found[idle] = v[idle]
    return Point(x, found, residual(scores, p, x, found, scale), nit)


def residual(scores, p, x, v, scale):
    """The largest violation of the optimality conditions, with signs; multipliers in units of the scores."""
    m = p.n_upper
    slope = scores - p.quadratic * x - p.rows.T @ v
    over = p.rows @ x - p.right
    y, most = v[:m], p.most
    worst = max(
        np.max(p.lower - x, initial=0.0), np.max(x - p.upper, initial=0.0), np.abs(over[m:]).max(initial=0.0)
    )
    # a row is tight if its multiplier is inside its range, satisfied at 0, and may be violated at the price
    size = np.minimum(y, most - y) / scale
    worst = max(worst, np.max(-size, initial=0.0))
    worst = max(
        worst, np.max(np.minimum(np.maximum(over[:m], 0.0), np.maximum(most - y, 0.0) / scale), initial=0.0)
    )
    worst = max(
        worst, np.max(np.minimum(np.maximum(-over[:m], 0.0), np.maximum(y, 0.0) / scale), initial=0.0)
    )
    held = np.where(slope > 0, p.upper - x, x - p.lower)
    return max(worst, np.max(np.minimum(np.abs(slope) / scale, np.maximum(held, 0.0)), initial=0.0))
