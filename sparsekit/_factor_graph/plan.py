"""Which algorithm ends a solve of a factor graph: the size thresholds of inference, with their evidence.

ADMM and Newton's method on the dual come first (factor_solve.h). What they leave open goes to a solver over
the rows of the graph, where all factors have rows: LP-SparseMAP to the interior-point method, LP-MAP to
HiGHS. Evidence is the processor time of solves on one thread, of chains, trees, matchings, logic and pairs
with scores from 1e-6 to 1e6.
"""

from dataclasses import dataclass

import numpy as np

from .factors.structure_rows import KINDS

PASSES, INTERIOR_POINT, HIGHS = "ADMM", "interior point", "HiGHS"

# Passes before the interior-point method. At 60, graphs of 60 rules take 5 to 9 times as long, and those of
# 300 rules 0.8 times; without the method these end unsolved after 2000 passes.
MARGINAL_PASSES = 500
# Passes before HiGHS with structures, whose rows are many. At 10 or 80 weak sequences with 30 to 120 rules
# take 3 times as long, matchings with pairs 4 times; graphs of 60 rules and one structure take the same.
STRUCTURE_PASSES = 300
# Slots of rules that passes go over before HiGHS: about as long as that takes. Graphs of 12 variables take 2
# to 3 times as long with HiGHS at once, those of 300 rules 2.4 times with 200 passes, 10 times without HiGHS.
RULE_WORK = 10000
# Passes at most, for pairs and what shares no variable: at 300, graphs of pairs take 1.8 times as long.
MAX_PASSES = 1000
# Fewer passes than this end nothing: one, which shows whether the graph is that easy.
FEWEST_PASSES = 20
# Variables and rows together, beyond which a general solver is not tried.
MAX_ROWS = 50000
# Variables and rows that fill a factorisation of the interior-point method: it ends within two seconds then.
MAX_ENTANGLED = 6000


@dataclass(frozen=True)
class GraphPlan:
    """How one graph is solved.

    Parameters
    ----------
    passes : int
        Of ADMM and Newton's method, before the solver over rows where there is one.
    finisher : {"interior point", "HiGHS"} or None
        What ends the solve where passes do not; None: more passes.
    """

    passes: int
    finisher: str | None


def plan_of(layout, options, on_device=False):
    """The plan of a graph.

    Parameters
    ----------
    layout : Layout
    options : GraphOptions
    on_device : bool
        Where the scores are on a GPU: passes have to do, since a host would hold the others up.
    """
    passes = first_passes(layout, options)
    if on_device or not options.exact or options.max_iter <= passes or not has_rows(layout):
        return GraphPlan(options.max_iter, None)
    return GraphPlan(passes, INTERIOR_POINT if options.quadratic else HIGHS)


def first_passes(layout, options):
    """How many passes come before a solver over rows."""
    if options.quadratic:
        return MARGINAL_PASSES
    if layout.structured and not layout.is_separate:
        return STRUCTURE_PASSES
    rule_slots = layout.n_closed_slots - 2 * layout.n_pairs
    if layout.is_separate or not rule_slots:
        return MAX_PASSES
    passes = RULE_WORK // rule_slots
    return 1 if passes < FEWEST_PASSES else min(passes, MAX_PASSES)


def has_rows(layout):
    """Whether the polytopes of all factors are known by rows, few enough, and the factors share variables."""
    if any(factor["kind"] not in KINDS for factor in layout.structured):
        return False
    if layout.structured and layout.is_separate:  # their answers are the solution
        return False
    rows = layout.n_linear + layout.n_pairs + layout.n_orout_slots
    own = layout.n_additional + sum(factor["d"] for factor in layout.structured)
    return rows + own + layout.n_variables <= MAX_ROWS


def is_entangled(rows):
    """Whether a factorisation of the interior-point method fills.

    Variables and rows with three others or more count. Loose ends, which fill nothing, are taken off first.
    """
    row, column = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices
    for _ in range(50):
        of_rows, of_columns = np.bincount(row), np.bincount(column)
        kept = (of_rows[row] > 1) & (of_columns[column] > 1)
        if kept.all():
            break
        row, column = row[kept], column[kept]
    return int((of_rows > 2).sum() + (of_columns > 2).sum()) > MAX_ENTANGLED
