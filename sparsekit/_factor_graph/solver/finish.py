"""What ends solves of coupled logic that the first-order iteration does not: a general solver on the rows.

It finds marginals and multipliers; the kernels then start from there, and say whether that is the solution.
"""

import numpy as np

from ..factors.factors import SEQUENCE, TREE
from ..factors.structure_rows import KINDS, TreeSets
from .interior_point import MOST_STEPS, project
from .linear_program import best
from .polytope import polytope_of
from .presolve import postsolve, presolve

# passes of the first-order iteration until a general solver takes over: of LP-SparseMAP; of LP-MAP as many as
# take a fraction of what that takes, in microseconds by measurement
FIRST, MOST_FIRST, FEWEST = 500, 1000, 20
# (LP-MAP, LP-SparseMAP) with oracles, whose calls take longer than the rows tell, with trees, whose rows are
# found one after the other, and of these those in which a sequence is a flow
FIRST_ASKED, FIRST_OF_TREES, FIRST_FLOWS = (80, FIRST), (300, 1500), (5, 60)
# the same with so many closed forms for each structure, of so many variables in the mean
FIRST_OF_RULES, RULES, SIZE_OF_RULES = (10, FIRST), 4, 8
# simplex iterations that count as one pass
SIMPLEX = 100
# most variables and rows together
MOST_ROWS = 50000
# most of them that fill a factorisation: it is over within two seconds then, and so is a signal heard
MOST_ENTANGLED = 6000
GAP = 1e-9  # of a linear program, relative to what its solution is worth


def first_passes(layout, options):
    """How many passes come before a general solver."""
    kinds = {factor["kind"] for factor in layout._given[3]}
    if kinds:
        asked = FIRST_OF_TREES if TREE in kinds and SEQUENCE not in kinds else FIRST_ASKED
        if asked is FIRST_ASKED and _has_many_rules(layout):
            asked = FIRST_OF_RULES
        if options.quadratic or layout._given[2]["deg"].max() > 1.0:
            return asked[options.quadratic]
    if options.quadratic:
        return FIRST
    if layout._given[2]["deg"].max() <= 1.0:  # factors that share nothing need no more than a step each
        return MOST_FIRST
    pairs, others = layout.n_pairs, int(layout._given[2]["orout"][-1]) - 2 * layout.n_pairs
    passes = (500.0 + 4.0 * pairs) / (2.0 + 0.006 * pairs + 0.05 * others)
    # a few passes end nothing
    return 1 if passes < FEWEST else min(int(passes), MOST_FIRST)


def _has_many_rules(layout):
    """Whether most factors are small ones in closed form: a linear program solves them sooner than passes."""
    _, _, arrays, structured = layout._given
    rules = layout.n_pairs + len(arrays["bound"]) + len(arrays["orout"]) - 1
    return rules >= RULES * len(structured) and int(arrays["orout"][-1]) <= SIZE_OF_RULES * rules


def may_finish(layout, options, first):
    """Whether all factors have rows, and few enough, and there may be more than the first passes."""
    if not options.exact or options.max_iter <= first:
        return False
    _, n_additional, arrays, structured = layout._given
    if any(factor["kind"] not in KINDS for factor in structured):
        return False
    if structured and arrays["deg"].max() <= 1.0:  # their answers are the solution
        return False
    rows = len(arrays["bound"]) + layout.n_pairs + int(arrays["orout"][-1] - arrays["orout"][0])
    own = n_additional + sum(factor["d"] for factor in structured)
    return rows + own + layout.n_variables <= MOST_ROWS


def entangled(rows):
    """Variables and rows with three others or more, once loose ends are gone: they fill a factorisation."""
    row, column = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices
    for _ in range(50):
        of_rows, of_columns = np.bincount(row), np.bincount(column)
        kept = (of_rows[row] > 1) & (of_columns[column] > 1)
        if kept.all():
            break
        row, column = row[kept], column[kept]
    return int((of_rows > 2).sum() + (of_columns > 2).sum())


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
    # the kernels have a large loss for -inf, which would cost multipliers their digits
    scores = np.where(off, 0.0, scores)
    target = _with_own(scores, p)
    reduced = presolve(p)
    if reduced is None or entangled(reduced.inner.rows) > MOST_ENTANGLED:
        return None
    inner_target = target[reduced.free]
    try:
        point = project(inner_target, reduced.inner, min(most, MOST_STEPS), deadline)
    except RuntimeError:  # a singular factor: SuperLU has no other way to say so
        return None
    if not point.residual < 1e-6:
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
    var, deg = layout._given[2]["var"][:-1], layout._given[2]["deg"][:-1]
    pull = np.bincount(slot, value * y[row], minlength=len(var)) - p.slot_linear
    return deg * pull - np.bincount(var, pull, minlength=layout.n_variables)[var]


def assignment(layout, scores, additional, off, off_additional, most, deadline):
    """LP-MAP by HiGHS.

    Parameters
    ----------
    layout, scores, additional, off, off_additional, deadline
        As for `marginals`.
    most : int
        Largest number of passes: `SIMPLEX` iterations of the simplex method each.

    Returns
    -------
    tuple or None
        Marginals of the variables (n_variables,) and of the factors' own, their largest violation of a row,
        what the solver counts in passes; None unless the duality gap proves them best.
    """
    return _with_trees(_assignment, layout, scores, additional, off, off_additional, most, deadline)


def _assignment(layout, p, scores, off, most, deadline):
    target = _with_own(np.where(off, 0.0, scores), p)
    size = max(np.abs(target).max(initial=0.0), p.most[np.isfinite(p.most)].max(initial=0.0)) or 1.0
    reduced = presolve(p)
    if reduced is None:
        return None
    q, g = reduced.inner, target[reduced.free] / size
    x, nit = reduced.x.copy(), 0
    if len(g):
        price = q.most / size
        found = best(g, q, price, most * SIMPLEX, deadline)
        if found is None:
            return None
        inner, y, steps = found
        nit = -(-steps // SIMPLEX)
        # 0 and 1 to rounding
        inner = np.clip(inner, 0.0, 1.0)
        near = np.round(inner)
        inner = np.where(np.abs(inner - near) < 1e-9, near, inner)
        x[reduced.free] = inner
        y[: q.n_upper] = np.clip(y[: q.n_upper], 0.0, price)
        slope = g - q.rows.T @ y
        bound = y @ q.right + np.maximum(slope, 0.0) @ q.upper + np.minimum(slope, 0.0) @ q.lower
        soft = np.flatnonzero(np.isfinite(price))
        over = np.maximum((q.rows @ inner - q.right)[soft], 0.0)
        worth = g @ inner - price[soft] @ over
        if not bound - worth <= GAP * (np.abs(g) @ inner + 1e-3):
            return None
    over = p.rows @ x - p.right
    over[: p.n_upper] = np.where(np.isinf(p.most), np.maximum(over[: p.n_upper], 0.0), 0.0)
    violation = np.abs(over).max(initial=0.0)
    n = len(scores)
    return (x[:n], x[n:], violation, nit) if violation <= 1e-9 else None
