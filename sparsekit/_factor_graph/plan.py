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

# Passes before the interior-point method. At 60, graphs of 60 rules take 5 to 9 times as long, those of 300
# rules 0.8 times. Without the method the latter are unsolved after 2000 passes.
MARGINAL_PASSES = 500
# Passes before HiGHS if there are structures, which have many rows. At 10 or 80, weak sequences with 30 to
# 120 rules take 3 times as long, matchings with pairs 4 times. Graphs of 60 rules and one structure take the
# same.
STRUCTURE_PASSES = 300
# Passes times slots of rules before HiGHS: about the time of HiGHS. With HiGHS at once, graphs of 12
# variables take 2 to 3 times as long. Graphs of 300 rules take 2.4 times as long with 200 passes, 10 times
# without HiGHS.
RULE_WORK = 10000
# Largest number of passes for pairs and separate factors. At 300, graphs of pairs take 1.8 times as long.
MAX_PASSES = 1000
# Below this number only one pass is made, which shows whether the graph is that easy.
FEWEST_PASSES = 20
# Largest sum of variables and rows for a general solver.
MAX_ROWS = 50000
# Largest number of coupled variables and rows in the interior-point method: it then ends within two seconds.
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
