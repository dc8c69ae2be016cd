"""What ends solves of coupled logic that the first-order iteration does not: a general solver on the rows.

It finds marginals and multipliers; the kernels then start from there, and say whether that is the solution.
"""

import time

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from .interior_point import MOST_STEPS, project
from .polytope import polytope_of
from .presolve import postsolve, presolve

# passes of the first-order iteration until a general solver takes over: of LP-SparseMAP, of LP-MAP
FIRST, FIRST_MAP = 500, 300
# most variables and rows together: their factorisation is over within a second, and so is a signal heard
MOST_ROWS = 6000
GAP = 1e-9  # of a linear program, relative to what its solution is worth


def may_finish(layout, options, first):
    """Whether a graph's factors are all rows, and few enough, and there may be more than the first passes."""
    if not options.exact or options.max_iter <= first or layout.structured_place:
        return False
    arrays = layout._given[2]
    rows = len(arrays["bound"]) + layout.n_pairs + int(arrays["orout"][-1] - arrays["orout"][0])
    return rows + layout.n_variables <= MOST_ROWS


def marginals(layout, scores, additional, off, off_additional, most, deadline):
    """LP-SparseMAP by an interior-point method.

    Parameters
    ----------
    layout : Layout
    scores, additional : ndarrays of shapes (n_variables,) and (n_additional,)
        Finite, whatever stands where ``off`` is.
    off, off_additional : ndarrays of bool
        What a score of -inf forbids.
    most : int
        Largest number of Newton steps.
    deadline : float
        `time.perf_counter` at which it gives up.

    Returns
    -------
    tuple or None
        Marginals (n_variables,), multipliers of the copies (n_slots,), Newton steps; None if none was found.
    """
    p = polytope_of(layout, additional, off, off_additional)
    target = np.where(off, 0.0, scores) + p.linear
    reduced = presolve(p)
    if reduced is None:
        return None
    inner_target = target[reduced.free]
    try:
        point = project(inner_target, reduced.inner, min(most, MOST_STEPS), deadline)
    except RuntimeError:  # a singular factor: SuperLU has no other way to say so
        return None
    if not point.residual < 1e-6:
        return None
    x, y = postsolve(target, p, reduced, point.x, point.y)
    row, slot, value = p.entries
    var, deg = layout._given[2]["var"][:-1], layout._given[2]["deg"][:-1]
    pull = np.bincount(slot, value * y[row], minlength=len(var)) - p.slot_linear
    bound = np.where(off, 0.0, scores) - x - np.bincount(var, pull, minlength=len(x))
    copies = (x - scores)[var] + deg * pull + bound[var]
    return x, copies, point.nit


def assignment(layout, scores, additional, off, off_additional, most, deadline):
    """LP-MAP by HiGHS.

    Parameters
    ----------
    layout, scores, additional, off, off_additional, deadline
        As for `marginals`.
    most : int
        Largest number of simplex iterations.

    Returns
    -------
    tuple or None
        Marginals (n_variables,), their largest violation of a row, the solver's iterations; None unless the
        duality gap proves them best.
    """
    p = polytope_of(layout, additional, off, off_additional)
    target = np.where(off, 0.0, scores) + p.linear
    size = max(np.abs(target).max(initial=0.0), p.most[np.isfinite(p.most)].max(initial=0.0)) or 1.0
    reduced = presolve(p)
    if reduced is None:
        return None
    q, g = reduced.inner, target[reduced.free] / size
    soft = np.flatnonzero(np.isfinite(q.most))
    m, k, equal = q.n_upper, len(soft), len(q.right) - q.n_upper
    excess = sp.csr_array((-np.ones(k), (soft, np.arange(k))), shape=(m, k))
    cost = np.concatenate([-g, q.most[soft] / size])
    ranges = np.concatenate([q.lower, np.zeros(k)]), np.concatenate([q.upper, np.full(k, np.inf)])
    limits = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "maxiter": most}
    if np.isfinite(deadline):
        limits["time_limit"] = max(deadline - time.perf_counter(), 1e-9)
    found = linprog(
        cost,
        A_ub=sp.hstack([q.rows[:m], excess], "csr") if m else None,
        b_ub=q.right[:m] if m else None,
        A_eq=sp.hstack([q.rows[m:], sp.csr_array((equal, k))], "csr") if equal else None,
        b_eq=q.right[m:] if equal else None,
        bounds=np.column_stack(ranges),
        method="highs",
        options=limits,
    ) if len(cost) else None  # fmt: skip
    x = reduced.x.copy()
    nit = 0
    if found is not None:
        if found.status != 0:
            return None
        # 0 and 1 to rounding
        inner = np.clip(found.x[: len(g)], 0.0, 1.0)
        nit = int(found.nit)
        near = np.round(inner)
        inner = np.where(np.abs(inner - near) < 1e-9, near, inner)
        x[reduced.free] = inner
        y = -np.concatenate(
            [found.ineqlin.marginals if m else [], found.eqlin.marginals if len(q.right) > m else []]
        )
        y[:m] = np.clip(y[:m], 0.0, q.most / size)
        slope = g - q.rows.T @ y
        bound = y @ q.right + np.maximum(slope, 0.0) @ q.upper + np.minimum(slope, 0.0) @ q.lower
        over = np.maximum((q.rows @ inner - q.right)[:m], 0.0)
        worth = g @ inner - (q.most[soft] / size) @ over[soft]
        if not bound - worth <= GAP * (np.abs(g) @ inner + 1e-3):
            return None
    over = p.rows @ x - p.right
    over[: p.n_upper] = np.where(np.isinf(p.most), np.maximum(over[: p.n_upper], 0.0), 0.0)
    violation = np.abs(over).max(initial=0.0)
    return (x, violation, nit) if violation <= 1e-9 else None
