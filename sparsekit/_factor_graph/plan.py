"""Which algorithm ends a solve of a factor graph: the size thresholds of inference, with their evidence.

ADMM and Newton's method on the dual come first (factor_solve.h). What they leave open goes to a solver over
the rows of the graph, where all factors have rows: LP-SparseMAP to the interior-point method, LP-MAP to
HiGHS. Evidence is the processor time of solves on one thread, of chains, trees, matchings, logic and pairs
with scores from 1e-6 to 1e6.
"""

from dataclasses import dataclass

from .factors.factors import TREE
from .factors.structure_rows import ROWS

PASSES, INTERIOR_POINT, HIGHS = "ADMM", "interior point", "HiGHS"

# Largest number of passes before a solver over rows. Marginals of 61 graphs take 1.03 times as long with 1000
# and 1.8 times with 50. With 300, a sequence of 30 positions and pairs takes up to 19 times as long.
MAX_PASSES = 500
# Largest number of passes of ADMM in which a sequence is a flow. A flow takes as many factorisations as the
# interior-point method for the whole graph. Marginals of sequences with many rules take up to 12 times as
# long without a limit, and two sequences of the same variables 2.5 times as long with 5.
MAX_FLOWS = 10
# LP-MAP: number of columns for each slot of a rule from which MAX_PASSES come before HiGHS. Sequences with
# few rules (14 and 18 columns for each slot) take 2 to 5 times as long by HiGHS. With 7 columns they take 4
# times as long with MAX_PASSES.
COLUMNS_PER_SLOT = 12
# LP-MAP with fewer columns: passes times slots of rules before HiGHS. They end small graphs before HiGHS has
# started (20 variables in 20 rules: half the time). With 20000, 200 variables in 250 rules take 1.2 times as
# long.
RULE_WORK = 5000
# Tolerance of linear programs: marginals that nearly solve one can be far from those that do.
LINEAR_TOL = 1e-10
# Marginals are exact to this. A larger one of a forbidden variable means that a graph is infeasible. At this
# gap, in units of the scores, the interior-point method tries active sets, and from this residual passes are
# warm started: 1e-7 and 1e-5 take the same time and find the same solutions.
MARGINAL_TOL = 1e-6
# Largest sum of variables and rows for a general solver. Marginals of random logic of that size take 37 s and
# 315 MB, with passes alone 4 s, which then end without a solution.
MAX_ROWS = 50000


@dataclass(frozen=True)
class GraphPlan:
    """How one graph is solved.

    Parameters
    ----------
    passes : int
        Of ADMM and Newton's method, before the solver over rows where there is one.
    flows : int
        Largest number of those passes in which a sequence is a flow.
    finisher : {"interior point", "HiGHS"} or None
        What ends the solve where passes do not; None: more passes.
    """

    passes: int
    flows: int
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
        return GraphPlan(options.max_iter, options.max_iter, None)
    return GraphPlan(passes, MAX_FLOWS, INTERIOR_POINT if options.quadratic else HIGHS)


def first_passes(layout, options):
    """How many passes come before a solver over rows."""
    rule_slots = layout.n_closed_slots - 2 * layout.n_pairs
    n_columns = layout.n_variables + layout.n_additional - layout.n_pairs
    # HiGHS gets the rows of trees in several rounds: with 30 rules for 15 words it takes 3 times as long
    has_trees = any(factor["kind"] == TREE for factor in layout.structured)
    if options.quadratic or layout.is_separate or has_trees or n_columns > COLUMNS_PER_SLOT * rule_slots:
        return MAX_PASSES
    return max(1, min(RULE_WORK // rule_slots, MAX_PASSES))


def has_rows(layout):
    """Whether the polytopes of all factors are known by rows, few enough, and the factors share variables."""
    if any(factor["kind"] not in ROWS for factor in layout.structured):
        return False
    if layout.structured and layout.is_separate:  # their answers are the solution
        return False
    rows = layout.n_linear + layout.n_pairs + layout.n_orout_slots
    own = layout.n_additional + sum(factor["d"] for factor in layout.structured)
    return rows + own + layout.n_variables <= MAX_ROWS
