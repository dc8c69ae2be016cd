"""OBA over blocks of rows: the columns that matter come here, all rows say which these are.

An expansion takes two rounds: the columns of the working set that are not here yet are gathered, and the
solver of main memory minimises over them; then the blocks compute the gradient of all variables at its
solution, corrected to a dual point that is feasible for the unpenalised ones, which either certifies the
whole or names the columns that break their bound. Cf. the working sets of `oba`; here a pass over all
columns costs a round.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ..._cython._orthant import measure
from ..._linalg.special import largest
from ..._row_blocks.blocks import RoundError, RowBlocks
from ..._row_blocks.census import Census
from ..._row_blocks.gather import GatheredColumns
from ..._solver import outcome
from ..losses.block_loss import LossOfBlocks, Sparse, gradient_of_block, start_of_block
from ..losses.linear_problem import SLACK
from ..losses.null_intercept import null_intercept
from .block_columns import MOST_VARIABLES, HeldColumns, RemoteColumns
from .duality import ENDS, dual_with_ridge, gap_of
from .nonnegative import minimize_nonnegative, one_sided
from .oba import TIGHTEST, minimize_oba
from .oba_run import CONTENT, MESSAGES

# a first working set: columns whose gradient is so large a part of the largest, these at the least, and
# columns up to that share of all non-zeros
_FIRST_PART, _FIRST, _FIRST_SHARE = 0.1, 200, 0.3
# growth of a working set in parts of it, its least in columns, and the part of its bound from which a column
# may come along: most of these break it later, which would take two rounds more
_GROWTH, _LEAST_GROWTH, _NEAR = 3.0, 100, 0.9
# optimality to which a working set is solved, in parts of tol and of that of all variables
_PART_TOL, _PART_FALL = 0.5, 0.03
_MOST_EXPANSIONS = 100
# slope at a feature >= 0 without a penalty that is rounding, as a part of the largest one at zero
_OPEN = 1e-9
# part of the columns of one Hessian beyond which it is no longer worth to do with these
_FULL = 0.9
# a fall of the optimality that is progress, where the solver sees none
_FALL = 0.9


@dataclass
class BlockProblem:
    """min f(x) + l1 . |x| over blocks.

    census : of the blocks.
    values, weight : codes or targets, less the offset, and weights of all rows, (n,), or None.
    shift : offsets of all rows' scores, (n,) or (n, n_classes), or None; targets are less theirs already.
    positive : whether coefficients must be >= 0; of least squares.
    fold : rows that it misses have no weight, see `RowBlocks.set_folds`; None misses none.
    gathered : columns that are here already; another problem's on the same blocks may be shared.
    """

    blocks: RowBlocks
    census: Census
    spec: LossOfBlocks
    values: np.ndarray
    weight: np.ndarray | None
    n_threads: int = 1
    fold: int | None = None
    gathered: GatheredColumns | None = None
    shift: np.ndarray | None = None
    positive: bool = False
    origin_scale: float | None = None
    value_at_zero: float | None = None
    _reach: np.ndarray | None = None
    _working: tuple[np.ndarray, Any] | None = None
    _known: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        if self.gathered is None:
            self.gathered = GatheredColumns(self.blocks, self.census)

    def start(self) -> np.ndarray:
        """The variables of the model without features."""
        x = np.zeros(self.n_variables)
        if self.spec.fit_intercept and self.spec.classes is not None:
            end = self.n_features * self.spec.n_outputs
            x[end:] = null_intercept(self.values, self.weight, len(self.spec.classes), self.shift)
        return x

    @property
    def n_features(self) -> int:
        return self.blocks.n_columns

    @property
    def n_variables(self) -> int:
        return (self.n_features + self.spec.fit_intercept) * self.spec.n_outputs

    @property
    def columns_of_a_round(self) -> int:
        """Columns whose Hessian the blocks make in one round."""
        return MOST_VARIABLES // self.spec.n_outputs - 1

    def l1_vector(self, l1: Any) -> np.ndarray:
        """Penalty of each variable from a scalar or one value a feature; 0 for the intercepts."""
        K = self.spec.n_outputs
        out = np.zeros(self.n_variables)
        out[: self.n_features * K].reshape(-1, K)[:] = np.broadcast_to(l1, (self.n_features,))[:, None]
        return out

    def variables(self, columns: np.ndarray) -> np.ndarray:
        """The variables of features ``columns``, and the intercepts."""
        K, end = self.spec.n_outputs, self.n_features * self.spec.n_outputs
        own = (columns[:, None] * K + np.arange(K)).ravel()
        return np.concatenate([own, np.arange(end, self.n_variables)])

    def by_feature(self, values: np.ndarray) -> np.ndarray:
        """Largest of each feature's values, (p,)."""
        K, end = self.spec.n_outputs, self.n_features * self.spec.n_outputs
        return values[:end].reshape(-1, K).max(axis=1, initial=-np.inf)

    def working(self, columns: np.ndarray) -> HeldColumns | RemoteColumns:
        """Sorted features ``columns``, in main memory where they fit there."""
        if self._working is None or not np.array_equal(self._working[0], columns):
            self._working = None  # or two copies would be in memory
            kind = HeldColumns if self.has_room(columns) else RemoteColumns
            self._working = columns, kind(self, columns)
        part = self._working[1]
        part.loss.origin_scale = self.origin_scale
        return part

    def has_room(self, columns: np.ndarray) -> bool:
        """Whether features fit into this process."""
        assert self.gathered is not None
        return self.gathered.has_room(columns)

    def open(self, x: np.ndarray) -> np.ndarray:
        """The gradient at x, by a round unless it is known; sets what the first round finds out."""
        if self._known is not None and np.array_equal(x, self._known[0]):
            return self._known[1]
        if self.origin_scale is not None:
            return self.gradient(x)
        # with offsets the unit of tolerances is that of the model of the intercept alone
        origin = Sparse.of(np.zeros(self.n_variables) if self.shift is None else self.start())
        value, first, g, self._reach = self.blocks.map_reduce(
            start_of_block, self.spec, self.fold, Sparse.of(x), origin
        )
        self.value_at_zero = None if len(origin.at) else value
        self.origin_scale = largest(np.abs(first)) or 1.0
        self._known = x.copy(), g
        return g

    def may_move(self, l1: np.ndarray) -> np.ndarray:
        """Variables, (n_variables,) of bools, that penalties l1 do not keep at zero wherever x is."""
        K, end = self.spec.n_outputs, self.n_features * self.spec.n_outputs
        mask = np.ones(self.n_variables, dtype=bool)
        assert self._reach is not None  # `open` comes first
        stays = (1.0 + SLACK) * self._reach.max(axis=1) <= self.by_feature(l1)
        mask[:end] = np.repeat(~stays, K)
        return mask

    def gradient(
        self, x: np.ndarray, move: np.ndarray | None = None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        """X^T theta at x, see `block_loss`, by a round; zero for variables without their bit in ``mask``."""
        bits = None if mask is None or mask.all() else np.packbits(mask)
        moved = None if move is None or not move.any() else Sparse.of(move)
        found = self.blocks.map_reduce(gradient_of_block, self.spec, self.fold, Sparse.of(x), moved, bits)
        if bits is None:
            return found[1]
        out = np.zeros(self.n_variables)
        out[mask] = found[1]
        return out

    def largest_penalty(self, x_null: np.ndarray, l1: np.ndarray) -> float:
        """The smallest factor of l1 at which the null model ``x_null`` is optimal."""
        return largest(self.sizes(self.open(x_null))[l1 > 0] / l1[l1 > 0])

    def sizes(self, g: np.ndarray) -> np.ndarray:
        """How large a penalty has to be that keeps a variable with gradient g at zero."""
        return np.maximum(-g, 0.0) if self.positive else np.abs(g)

    @property
    def solver_of_columns(self) -> Any:
        """The solver of a working set."""
        return minimize_nonnegative if self.positive else minimize_oba

    def null_model(self, penalty_weights: Any, options: dict[str, Any]) -> np.ndarray:
        """Variables of the best model in which every penalised coefficient is zero."""
        x = self.start()
        free = np.flatnonzero(np.broadcast_to(penalty_weights, (self.n_features,)) == 0)
        if free.size:
            at = self.variables(free)
            loss = self.working(free).loss
            # its scale is that of the unpenalised variables alone
            loss.origin_scale = None
            options = {**options, "tol": min(options["tol"], 1e-8), "promise_tol": 0.0}
            x[at] = self.solver_of_columns(loss, np.zeros(len(at)), x[at], gap=False, **options).x
        return x


def minimize_on_blocks(
    problem: BlockProblem, l1: np.ndarray, x0: np.ndarray | None = None, *, tol: float, max_iter: int,
    max_time: float | None = None, hessian: str = "exact", memory: int = 10, callback: Any = None,
    history: bool = False, promise_tol: float = 0.0, l2: np.ndarray | None = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise f(x) + l1 . |x| + 1/2 l2 . x^2 from x0 (n_variables,); the rest is as of `minimize_oba`.

    Raises
    ------
    RoundError
        If a round fails; its ``result`` holds the last iterate.
    """
    run = Run(problem, l1, l2, tol, max_iter, np.inf if max_time is None else max_time, callback, history)
    return run.minimise(x0, dict(hessian=hessian, memory=memory, promise_tol=promise_tol))


def solver_of(loss: Any) -> Any:
    """A function of l1, x0 and options: the problem's own solver, that of blocks, or `minimize_oba`."""
    if isinstance(loss, BlockProblem):
        return partial(minimize_on_blocks, loss)
    return getattr(loss, "minimize", None) or partial(minimize_oba, loss)


def mixed(penalty, l1_ratio):
    """L1 penalties, and what a solver takes besides, of the penalties (n_variables,) of an elastic net.

    l1_ratio |x| + (1 - l1_ratio) / 2 x^2 is multiplied by the penalty.
    """
    if l1_ratio == 1.0:
        return penalty, {}
    return l1_ratio * penalty, {"l2": (1.0 - l1_ratio) * penalty}


class Run:
    """One call."""

    def __init__(self, problem, l1, l2, tol, max_iter, max_time, callback, history):
        self.problem, self.l1, self.tol, self.target = problem, l1, tol, tol
        self.l2 = np.zeros(len(l1)) if l2 is None else l2
        self.has_ridge = bool(self.l2.any())
        self.max_iter, self.max_time = max_iter, max_time
        self.callback, self.keep = callback, history
        self.begun = time.perf_counter()
        self.history: dict[str, list] = {}
        self.counts = dict.fromkeys(("nit", "nfev", "njev", "n_cg", "n_direct", "n_products", "n_ista"), 0)
        self.n_corrections: list[int] = []
        self.gap, self.optimality, self.fun = np.nan, np.inf, np.nan
        # the last iterate, whether rounding or little promise ended the last solve
        self.x, self.stuck, self.content = None, False, False

    def minimise(self, x, options):
        self.options = options
        problem, l1 = self.problem, self.l1
        x = problem.start() if x is None else x
        if problem.positive:
            x = np.append(np.maximum(x[: problem.n_features], 0.0), x[problem.n_features :])
        try:
            g = problem.open(x)
            mask = problem.may_move(l1)
            columns = self._first(x, g, mask)
            for _ in range(_MOST_EXPANSIONS):
                seen, before = columns, self.optimality
                x, status = self._solve(columns, x, before)
                g, worst = self._certify(columns, x, mask, status is not None)
                columns = self._grown(columns, worst, x)
                status = self._verdict(status, len(columns) == len(seen), before)
                if status is not None:
                    break
            else:
                status = outcome.NO_PROGRESS
        except RoundError as error:
            if self.x is not None:
                # the run ends as by a callback
                error.result = self._result(self.x, None, outcome.STOPPED)
                error.result.message = str(error)
            raise
        return self._result(x, g, status)

    # the working set

    def _first(self, x, g, mask):
        problem, l1 = self.problem, self.l1
        K, end = problem.spec.n_outputs, problem.n_features * problem.spec.n_outputs
        needed = ((x[:end] != 0) | (l1[:end] == 0)).reshape(-1, K).any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = problem.by_feature(np.where(mask & (l1 > 0), problem.sizes(g) / l1, 0.0))
        ratio[needed] = np.inf
        counts = problem.census.counts
        order = np.argsort(-ratio, kind="stable")
        finite = ratio[order][np.isfinite(ratio[order])]
        best = finite[0] if finite.size else 1.0
        wanted = ratio[order] > max(1.0, _FIRST_PART * best)
        wanted[:_FIRST] = ratio[order][:_FIRST] > 1.0
        cheap = np.cumsum(counts[order]) <= _FIRST_SHARE * counts.sum()
        cheap[:_FIRST] = True
        return np.sort(order[(wanted & cheap) | np.isinf(ratio[order])])

    def _grown(self, columns, worst, x):
        """``columns`` and those that break their bounds the most or nearly do, by ``worst`` (p,).

        Where columns stay with the blocks these are as many as have one Hessian, if x has no more.
        """
        worst = worst.copy()
        worst[columns] = 0.0
        if not worst.max(initial=0.0) > 1.0 + SLACK:
            return columns
        new = np.flatnonzero(worst > _NEAR)
        most = int(max(_GROWTH * len(columns), _LEAST_GROWTH))
        new = new[np.argsort(-worst[new], kind="stable")][:most]
        grown = np.union1d(columns, new)
        room = self.problem.columns_of_a_round
        if len(grown) <= room or self.problem.has_room(columns):
            return grown
        K, end = self.problem.spec.n_outputs, self.problem.n_features * self.problem.spec.n_outputs
        used = ((x[:end] != 0) | (self.l1[:end] == 0)).reshape(-1, K).any(axis=1)
        needed = columns[used[columns]]
        # what is at zero now may come back
        kept = np.union1d(needed, new[: max(room - len(needed), 0)])
        return kept if len(needed) < _FULL * room else grown

    # one expansion

    def _solve(self, columns, x, before):
        """Minimise over the features ``columns``; x, and the solver's word if it is the last."""
        problem = self.problem
        variables = problem.variables(columns)
        loss = problem.working(columns).loss
        if isinstance(loss, RemoteColumns):
            loss.with_hessian = self.options["hessian"] == "exact"
        begun = time.perf_counter() - self.begun
        rest, left = max(self.max_iter - self.counts["nit"], 0), self.max_time - begun
        result = problem.solver_of_columns(
            loss, self.l1[variables], x[variables], tol=self.aim(before), max_iter=rest,
            max_time=max(left, 1e-3) if np.isfinite(left) else None, history=self.keep, gap=False,
            callback=None if self.callback is None else self._report_to(variables, x),
            l2=self.l2[variables] if self.has_ridge else None, **self.options,
        )  # fmt: skip
        self._note(result, begun)
        x = x.copy()
        x[variables] = result.x
        return x, self._word_of(result, x)

    def aim(self, before):
        """The tolerance of a working set, after an optimality of all variables."""
        return max(_PART_TOL * self.target, min(_PART_FALL * before, 1e-2))

    def _note(self, result, begun):
        """Count what the solver of a working set did, which ``begun`` so many seconds after the start."""
        for name in self.counts:
            self.counts[name] += int(getattr(result, name, 0))
        self.n_corrections += list(getattr(result, "n_corrections", ()))
        for name, values in (result.history or {}).items():
            self.history.setdefault(name, []).extend(values + begun if name == "time" else values)

    def _word_of(self, result, x):
        """The solver's word at x, if it is the last; else None."""
        # of which no round knows more yet
        self.x, self.fun = x, float(result.fun)
        self.gap, self.optimality = np.nan, np.inf
        self.stuck, self.content = result.status == outcome.NO_PROGRESS, result.message == CONTENT
        return None if self.stuck or result.status == outcome.CONVERGED else result.status

    def _report_to(self, variables, x):
        done, begun = self.counts["nit"], time.perf_counter() - self.begun

        def report(intermediate_result):
            one = OptimizeResult(intermediate_result)
            one.x = x.copy()
            one.x[variables] = intermediate_result.x
            one.nit, one.time = intermediate_result.nit + done, intermediate_result.time + begun
            return self.callback(one)

        return report

    def _certify(self, columns, x, mask, last):
        """The gradient of all variables at x, by a round, and the ratios to their bounds, (p,).

        Sets the optimality, and the duality gap where that costs no round or is asked for: it is the ``last``
        one, or the optimality is good.
        """
        problem, l1, l2 = self.problem, self.l1, self.l2
        variables = problem.variables(columns)
        part = problem.working(columns)
        bare = (l1 == 0.0) & (l2 == 0.0)
        movable = bare & ((x > 0.0) | (np.arange(len(x)) >= problem.n_features)) if problem.positive else bare
        free = np.flatnonzero(movable[variables])
        value, own, moved = part.look(x[variables], free)
        while True:
            move = np.zeros(problem.n_variables)
            if moved is not None:
                move[variables[free]] = moved
            g = problem.gradient(x, move, mask)
            again = None if moved is None else part.refine(moved, g[variables[free]])
            if again is None:
                break
            moved = again
        problem._known = x.copy(), g
        penalised = l1 > 0
        ratios = np.zeros(problem.n_variables)
        ratios[penalised] = problem.sizes(g)[penalised] / l1[penalised]
        self.fun = float(value + l1 @ np.abs(x) + 0.5 * (l2 @ x**2))
        # on the working set the gradient at x itself is known
        sizes = problem.sizes(g)
        if largest(sizes[bare & ~movable]) > _OPEN * problem.origin_scale:
            moved = None  # at a feature without a penalty there is no dual point
        g[variables] = own + l2[variables] * x[variables]
        sided = one_sided(l1, problem.n_features) if problem.positive else l1
        self.optimality = measure(x, g, sided, problem.positive) / problem.origin_scale
        self.gap = gap_of(problem.spec, self.fun, -np.inf)
        if moved is not None and (part.is_here or last or self.stuck or self.optimality <= self.target):
            if self.has_ridge:
                # each scale costs a round where columns are not here
                scales = {} if part.is_here else {"parts": ENDS}
                dual = dual_with_ridge(lambda s: part.dual_value(s, move), sizes, l1, l2, **scales)
            else:
                dual = part.dual_value(1.0 / max(1.0, largest(ratios)), move)
            self.gap = max(gap_of(problem.spec, self.fun, dual), 0.0)
        return g, problem.by_feature(ratios)

    def _verdict(self, status, complete, before):
        """How the run ends, after what the solver said, or None.

        ``complete`` says that no column is missing from the working set, ``before`` is the last optimality.
        """
        if status == outcome.STOPPED:
            return status
        if complete and self.content:
            return outcome.CONVERGED
        allowed = 10.0 * self.tol * abs(self.fun)
        if self.optimality <= self.target:
            # NaN: no certificate can be had
            if not self.gap > allowed or self.optimality <= self.tol * TIGHTEST:
                return outcome.CONVERGED
            self.target = self.optimality * min(0.5, max(0.01, 0.5 * allowed / self.gap))
        if status is None and complete and self.stuck and self.optimality > _FALL * before:
            return outcome.NO_PROGRESS
        return status

    def _result(self, x, g, status):
        if status == outcome.NO_PROGRESS and self.optimality <= self.tol:
            status = outcome.CONVERGED
        history = {name: np.asarray(values) for name, values in self.history.items()}
        return OptimizeResult(
            x=x, fun=self.fun, status=status, success=status == outcome.CONVERGED, message=MESSAGES[status],
            optimality=self.optimality, dual_gap=self.gap, grad=g, history=history,
            n_rounds=self.problem.blocks.n_rounds, n_corrections=self.n_corrections, **self.counts,
        )  # fmt: skip
