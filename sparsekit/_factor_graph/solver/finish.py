"""What ends solves of coupled logic that passes do not: a general solver on the rows.

It finds marginals and multipliers; the kernels then start from there, and say whether that is the solution.
"""

import numpy as np

from ..factors.structure_rows import TreeSets
from ..plan import MARGINAL_TOL
from .interior_point import MAX_STEPS, project
from .linear_program import best
from .polytope import polytope_of
from .presolve import postsolve, presolve

# Iterations of the simplex method that count as one pass.
SIMPLEX_STEPS_PER_PASS = 100


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
    return _with_trees(_marginals, layout, scores, additional, off, off_additional, most, deadline)


def _with_trees(solve, layout, scores, additional, off, off_additional, most, deadline):
    """What a solver finds once it violates no row of a tree, with more of them each time; all its steps."""
    sets, spent = TreeSets(layout), 0
    while True:
        p = polytope_of(layout, additional, off, off_additional, sets)
        found = solve(layout, p, scores, off, most - spent, deadline)
        if found is None:
            return None
        spent += found[-1]
        if not sets.extend(found[0]):
            return *found[:-1], spent
        if spent >= most:
            return None


def _marginals(layout, p, scores, off, most, deadline):
    # the kernels use a large loss for -inf, which would cost multipliers their digits
    scores = np.where(off, 0.0, scores)
    target = _with_own(scores, p)
    reduced = presolve(p)
    if reduced is None:
        return None
    inner_target = target[reduced.free]
    try:
        point = project(inner_target, reduced.inner, min(most, MAX_STEPS), deadline)
    except RuntimeError:  # SuperLU raises this for a singular factor
        return None
    if not point.residual < MARGINAL_TOL:
        return None
    x, y = postsolve(target, p, reduced, point.x, point.y)
    return x[: len(scores)], _copies(layout, p, y), point.nit


def _with_own(scores, p):
    """The linear term of all variables, the factors' own as well."""
    target = p.linear.copy()
    target[: len(scores)] += scores
    return target


def _copies(layout, p, y):
    """Multipliers (n_slots,) of the copies from those of the rows."""
    row, slot, value = p.entries
    var = layout.var
    price = np.bincount(slot, value * y[row], minlength=len(var)) - p.slot_linear
    return layout.degrees * price - np.bincount(var, price, minlength=layout.n_variables)[var]


def assignment(layout, scores, additional, off, off_additional, most, deadline):
    """LP-MAP by HiGHS.

    Parameters
    ----------
    layout, scores, additional, off, off_additional, deadline
        As for `marginals`.
    most : int
        Largest number of passes: `SIMPLEX_STEPS_PER_PASS` iterations of the simplex method each.

    Returns
    -------
    tuple or None
        Marginals of the variables (n_variables,) and of the factors' own, the largest violation of a row, the
        solver's work in passes. None unless HiGHS found an optimum.
    """
    return _with_trees(_assignment, layout, scores, additional, off, off_additional, most, deadline)


def _assignment(layout, p, scores, off, most, deadline):
    gain = _with_own(np.where(off, 0.0, scores), p)
    reduced = presolve(p)
    if reduced is None:
        return None
    q, x, steps = reduced.inner, reduced.x, 0
    if reduced.free.any():
        gain = gain[reduced.free]
        # of what is left: the scores of forced variables may be much larger
        size = max(np.abs(gain).max(), q.most[np.isfinite(q.most)].max(initial=0.0)) or 1.0
        found = best(gain / size, q, q.most / size, most * SIMPLEX_STEPS_PER_PASS, deadline)
        if found is None:
            return None
        x[reduced.free], steps = found
    # 0 and 1 to rounding
    x = np.clip(x, 0.0, 1.0)
    near = np.round(x)
    x = np.where(np.abs(x - near) < 1e-9, near, x)
    over = p.rows @ x - p.right
    over[: p.n_upper] = np.where(np.isinf(p.most), np.maximum(over[: p.n_upper], 0.0), 0.0)
    violation = np.abs(over).max(initial=0.0)
    n = len(scores)
    return (x[:n], x[n:], violation, -(-steps // SIMPLEX_STEPS_PER_PASS)) if violation <= 1e-9 else None
