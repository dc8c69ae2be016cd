"""OBA over blocks of rows: the problem on a working set of columns, and rounds that certify its solution.

An expansion takes two rounds. The first gathers the columns of the working set that are not in this process
yet. The solver of main memory then minimises over the working set. In the second the blocks sum the gradient
of all variables at its solution. The gradient is corrected to a dual point that is feasible for the
unpenalised ones. That certifies the solution, or names the columns that violate their optimality conditions,
which join.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ..._cython.shared._orthant import measure
from ..._linalg.special import largest
from ..._row_blocks.blocks import RoundError
from ..._solver import outcome
from ..._solver.outcome import Limits
from ..._solver.tolerances import ROUNDING
from .. import plan
from ..losses.block_problem import BlockProblem
from ..losses.free_variables import correct
from ..losses.rounding import VALUE_ROUNDING
from .block_columns import max_columns, working_set
from .duality import dual_with_ridge, gap_of, tightened
from .gram_path import MAX_PENALTY
from .nonnegative import minimize_nonnegative, one_sided
from .oba import joined, minimize_oba, of_all
from .oba_run import CONVERGED_BY_PREDICTION, MESSAGES

# Columns that join in one expansion: at most this many, or as many as are in the working set.
MIN_NEW = 500


@dataclass
class Run:
    """One call of `minimize_on_blocks`: its arguments and limits."""

    problem: BlockProblem
    l1: np.ndarray
    l2: np.ndarray
    tol: float
    limits: Limits
    callback: Any = None
    history: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def has_hessian(self):
        return self.options.get("hessian") != "lbfgs"


@dataclass
class State:
    """Iterate, working set and results of a run.

    x, fun, gap, optimality : of the last iterate; the latter two NaN and infinite before its round.
    columns : working set, sorted features.
    target : optimality at which the run ends.
    results : of the solver on working sets so far.
    status : how the run ends, or None.
    """

    x: np.ndarray
    columns: np.ndarray
    target: float
    fun: float = np.nan
    gap: float = np.nan
    optimality: float = np.inf
    g: np.ndarray | None = None
    results: list[OptimizeResult] = field(default_factory=list)
    status: int | None = None


def minimize_on_blocks(
    problem: BlockProblem, l1: np.ndarray, x0: np.ndarray | None = None, *, tol: float, max_iter: int,
    max_time: float | None = None, callback: Any = None, history: bool = False,
    l2: np.ndarray | None = None, **options: Any,
) -> OptimizeResult:  # fmt: skip
    """Minimise f(x) + l1 . |x| + 1/2 l2 . x^2 from x0 (n_variables,); the rest is as of `minimize_oba`.

    ``options`` are its ``hessian``, ``memory`` and ``predicted_tol``.

    Raises
    ------
    RoundError
        If a round fails; its ``result`` holds the last iterate.
    """
    limits = Limits(max_iter, np.inf if max_time is None else max_time)
    run = Run(problem, l1, np.zeros(len(l1)) if l2 is None else l2, tol, limits, callback, history, options)
    state = init_state(run, x0)
    try:
        for _ in range(max_iter + 1):  # an expansion counts like an iteration
            step(state, run)
            if state.status is not None:
                break
    except RoundError as error:
        if state.results:
            # the run ends as by a callback
            state.status, state.g = outcome.STOPPED, None
            error.result = _result(state, run)
            error.result.message = str(error)
        raise
    return _result(state, run)


def init_state(run: Run, x0: np.ndarray | None) -> State:
    """The first working set at x0, by default the model without features."""
    problem, p = run.problem, run.problem.n_features
    x = problem.start() if x0 is None else x0.copy()
    if problem.positive:
        x[:p] = np.maximum(x[:p], 0.0)
    state = State(x, used_columns(run, x), run.tol)
    state.columns = choose_columns(run, state, ratios_of(run, problem.gradient(x)))
    return state


def step(state: State, run: Run) -> None:
    """One expansion: minimise on the working set, evaluate all variables, and choose the next working set."""
    before, columns = state.optimality, state.columns
    result = _minimize_on_columns(state, run)
    ratios = certify(state, run)
    state.columns = choose_columns(run, state, ratios)
    is_complete = np.array_equal(state.columns, columns)
    state.status = _status(state, run, result, is_complete, before)


def _status(state, run, result, is_complete, before):
    """How the run ends after the ``result`` on a working set, or None; ``before`` is the last optimality."""
    if result.status == outcome.STOPPED:
        return outcome.STOPPED
    if is_complete and result.message == CONVERGED_BY_PREDICTION:
        return outcome.CONVERGED
    if state.optimality <= state.target:
        allowed = 10.0 * run.tol * abs(state.fun)
        # NaN: no certificate can be had; where all slopes are rounding the gap gets no smaller
        if not state.gap > allowed or state.optimality <= VALUE_ROUNDING:
            return outcome.CONVERGED
        state.target = tightened(state.optimality, allowed, state.gap)
    if result.status == outcome.NO_PROGRESS:
        return outcome.NO_PROGRESS if is_complete and state.optimality >= before else None
    return None if result.status == outcome.CONVERGED else result.status


def used_columns(run: Run, x: np.ndarray) -> np.ndarray:
    """Sorted features with a nonzero coefficient at x or without a penalty."""
    return np.flatnonzero(run.problem.by_feature((x != 0.0) | (run.l1 == 0.0)))


def ratios_of(run: Run, g: np.ndarray) -> np.ndarray:
    """Largest ratio of gradient and penalty of each feature, (p,); 0 where there is no penalty."""
    ratios, penalised = np.zeros(len(g)), run.l1 > 0
    ratios[penalised] = run.problem.sizes(g)[penalised] / run.l1[penalised]
    return run.problem.by_feature(ratios)


def choose_columns(run: Run, state: State, ratios: np.ndarray) -> np.ndarray:
    """The working set with the columns of the largest ``ratios`` (p,), sorted.

    Where it does not fit into memory it is as many columns as have one Hessian, if x has no more.
    """
    columns, ratios = state.columns, ratios.copy()
    ratios[columns] = 0.0
    joins = np.flatnonzero(ratios > 1.0 + ROUNDING)
    if not len(joins):
        return columns
    joins = joins[np.argsort(-ratios[joins], kind="stable")[: max(MIN_NEW, len(columns))]]
    grown, limit = np.union1d(columns, joins), max_columns(run.problem)
    used = used_columns(run, state.x)
    room = limit - len(used)
    is_full = room <= 0 or len(used) >= plan.BLOCKS_PART_IN_USE * limit
    if len(grown) <= limit or is_full or run.problem.gathered.fits(grown):
        return grown
    return np.union1d(used, joins[:room])


def _minimize_on_columns(state, run):
    """Minimise over the working set from x; the result of its solver."""
    part = working_set(run.problem, state.columns, run.has_hessian)
    variables, seconds = part.variables, run.limits.seconds
    nit = sum(one.nit for one in state.results)
    callback = None if run.callback is None else of_all(run.callback, state.x, variables, nit, seconds)
    minimize = minimize_nonnegative if run.problem.positive else minimize_oba
    result = minimize(
        part.loss, run.l1[variables], state.x[variables], tol=state.target, gap=False,
        callback=callback, max_iter=max(run.limits.max_iter - nit, 0),
        max_time=max(run.limits.max_time - seconds, 1e-3), history=run.history,
        l2=run.l2[variables] if run.l2.any() else None, unit=run.problem.origin_scale, **run.options,
    )  # fmt: skip
    if run.history:
        result.history["time"] += seconds
    state.results.append(result)
    state.x = state.x.copy()
    state.x[variables] = result.x
    state.fun, state.gap, state.optimality = float(result.fun), np.nan, np.inf
    return result


def certify(state: State, run: Run) -> np.ndarray:
    """Set objective, optimality and duality gap of x, by a round; the ratios of its gradient, (p,)."""
    problem, x, l1, l2 = run.problem, state.x, run.l1, run.l2
    part = working_set(problem, state.columns, run.has_hessian)
    bare = (l1 == 0.0) & (l2 == 0.0)
    movable = bare & ((x > 0.0) | (np.arange(len(x)) >= problem.n_features)) if problem.positive else bare
    free = np.flatnonzero(movable[part.variables])
    own, H = part.evaluate(x[part.variables], free)

    def evaluate(step):
        move = np.zeros(problem.n_variables)
        move[part.variables[free]] = step
        value, g, theta = problem.evaluate(x, move)
        return value, g[part.variables], g, theta

    price, found = 0.0, None
    if H is not None and np.isfinite(H).all():
        _, price, found = correct(H, free, own, x[part.variables[free]], evaluate, ROUNDING * abs(state.fun))
    elif len(free):
        price = np.inf
    value, _, g, theta = found or evaluate(0.0)
    ratios, sizes = ratios_of(run, g), problem.sizes(g)
    if largest(sizes[bare & ~movable]) > ROUNDING * problem.origin_scale:
        price = np.inf  # theta is not feasible at a feature without a penalty
    state.fun = float(value + l1 @ np.abs(x) + 0.5 * (l2 @ x**2))
    dual = dual_with_ridge(lambda scale: problem.rows.dual_value(scale * theta), sizes, l1, l2)
    state.gap = np.nan if dual is None else max(gap_of(problem.spec, state.fun, dual - price), 0.0)
    # on the working set it is the gradient at x without a correction
    state.g = g.copy()
    state.g[part.variables] = own + l2[part.variables] * x[part.variables]
    sided = one_sided(l1, problem.n_features) if problem.positive else l1
    state.optimality = measure(x, state.g, sided, problem.positive) / problem.origin_scale
    return ratios


def _result(state, run):
    """The result of the run, with the counters of all working sets."""
    result = joined(state.results[:-1], state.results[-1], run.history)
    status = outcome.NO_PROGRESS if state.status is None else state.status
    if status == outcome.NO_PROGRESS and state.optimality <= run.tol:
        status = outcome.CONVERGED
    result.update(
        x=state.x, fun=state.fun, status=status, success=status == outcome.CONVERGED, grad=state.g,
        message=MESSAGES[status], optimality=state.optimality, dual_gap=state.gap,
        n_rounds=run.problem.blocks.n_rounds,
    )  # fmt: skip
    return result


def null_model_on_blocks(problem: BlockProblem, l1: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """Variables of the best model in which every coefficient with a penalty l1 is zero."""
    if not problem.by_feature(l1 == 0.0).any():
        return problem.start()
    options = {**options, "tol": min(options["tol"], 1e-8), "predicted_tol": 0.0}
    return minimize_on_blocks(problem, np.where(l1 > 0.0, MAX_PENALTY, 0.0), **options).x
