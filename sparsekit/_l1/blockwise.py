"""OBA over blocks of rows: the columns that matter come here, all rows say which these are.

An expansion takes two rounds: the columns of the working set that are not here yet are gathered, and the
solver of main memory minimises over them; then the blocks compute the gradient of all variables at its
solution, corrected to a dual point that is feasible for the unpenalised ones, which either certifies the
whole or names the columns that break their bound. Cf. the working sets of `oba`; here a pass over all
columns costs a round.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._cython._orthant import measure
from .._linalg.special import largest
from .._row_blocks.blocks import RoundError, RowBlocks
from .._row_blocks.census import Census
from .._solver import outcome
from .block_loss import GatheredColumns, LossOfBlocks, Sparse, gradient_of_block, start_of_block
from .multinomial import null_intercept
from .oba import minimize_oba
from .oba_run import MESSAGES

# a first working set: columns whose gradient is so large a part of the largest, these at the least, and
# columns up to that share of all non-zeros
_FIRST_PART, _FIRST, _FIRST_SHARE = 0.1, 200, 0.3
# growth of a working set, its least, and the part of its bound from which a column may come along: most of
# these break it later, which would take two rounds more
_GROWTH, _LEAST_GROWTH, _NEAR = 2.0, 100, 0.9
# optimality to which a working set is solved, in parts of tol and of that of all variables
_PART_TOL, _PART_FALL = 0.5, 0.001
# part of tol from which rounding is taken to forbid a smaller gap
_TIGHTEST = 1e-7
# a bound is broken by more than rounding
_SLACK = 1e-9
_MOST_EXPANSIONS = 100
# a fall of the optimality that is progress, where the solver sees none
_FALL = 0.9


@dataclass
class BlockProblem:
    """min f(x) + l1 . |x| over blocks.

    census : of the blocks.
    values, weight : codes or targets, less the offset, and weights of all rows, (n,), or None.
    """

    blocks: RowBlocks
    census: Census
    spec: LossOfBlocks
    values: np.ndarray
    weight: np.ndarray | None
    n_threads: int = 1
    gathered: GatheredColumns = field(init=False)
    origin_scale: float | None = None

    def __post_init__(self) -> None:
        self.gathered = GatheredColumns(self.blocks)

    def start(self) -> np.ndarray:
        """The variables of the model without features."""
        x = np.zeros(self.n_variables)
        if self.spec.fit_intercept and self.spec.classes is not None:
            end = self.n_features * self.spec.n_outputs
            x[end:] = null_intercept(self.values, self.weight, len(self.spec.classes))
        return x

    @property
    def n_features(self) -> int:
        return self.blocks.n_columns

    @property
    def n_variables(self) -> int:
        return (self.n_features + self.spec.fit_intercept) * self.spec.n_outputs

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

    def working(self, columns: np.ndarray) -> Any:
        """The loss of main memory on sorted features ``columns``."""
        self.gathered.fetch(columns)
        loss = self.spec.on(self.gathered.matrix(columns), self.values, self.weight, self.n_threads)
        loss.origin_scale = self.origin_scale
        return loss

    def gradient(self, x: np.ndarray, move: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """X^T theta of the variables ``mask`` (n_variables,) at x, zero for the others; a round."""
        bits = None if mask.all() else np.packbits(mask)
        moved = Sparse.of(move) if move.any() else None
        _, part = self.blocks.map_reduce(gradient_of_block, self.spec, Sparse.of(x), moved, bits)
        if bits is None:
            return part
        out = np.zeros(self.n_variables)
        out[mask] = part
        return out


def minimize_on_blocks(
    problem: BlockProblem, l1: np.ndarray, x0: np.ndarray | None = None, *, tol: float, max_iter: int,
    max_time: float | None = None, hessian: str = "exact", memory: int = 10, callback: Any = None,
    history: bool = False,
) -> OptimizeResult:  # fmt: skip
    """Minimise f(x) + l1 . |x| from x0 (n_variables,); arguments and result as of `minimize_oba`.

    Raises
    ------
    RoundError
        If a round fails; its ``result`` holds the last iterate.
    """
    run = _Run(problem, l1, tol, max_iter, np.inf if max_time is None else max_time, callback, history)
    return run.minimise(x0, dict(hessian=hessian, memory=memory))


class _Run:
    """One call."""

    def __init__(self, problem, l1, tol, max_iter, max_time, callback, history):
        self.problem, self.l1, self.tol, self.target = problem, l1, tol, tol
        self.max_iter, self.max_time = max_iter, max_time
        self.callback, self.keep = callback, history
        self.begun = time.perf_counter()
        self.history: dict[str, list] = {}
        self.counts = dict.fromkeys(("nit", "nfev", "njev", "n_cg", "n_direct", "n_products", "n_ista"), 0)
        self.n_corrections: list[int] = []
        self.gap, self.optimality, self.fun = np.nan, np.inf, np.nan
        self.x, self.stuck = None, False  # the last iterate, and whether rounding ended the last solve

    def minimise(self, x, options):
        self.options = options
        problem, l1 = self.problem, self.l1
        x = problem.start() if x is None else x
        first = problem.blocks.n_rounds
        _, g0, g, reach = problem.blocks.map_reduce(start_of_block, problem.spec, Sparse.of(x))
        problem.origin_scale = largest(np.abs(g0)) or 1.0
        # a penalty that no gradient can reach, wherever x is, keeps its variable at zero
        stays = (1.0 + _SLACK) * reach.max(axis=1) <= problem.by_feature(l1)
        mask = np.ones(problem.n_variables, dtype=bool)
        mask[: problem.n_features * problem.spec.n_outputs] = np.repeat(~stays, problem.spec.n_outputs)
        columns = self._first(x, g, mask)
        try:
            for _ in range(_MOST_EXPANSIONS):
                seen, before = columns, self.optimality
                x, status = self._solve(columns, x)
                g, worst = self._certify(columns, x, mask)
                status = self._verdict(status)
                if status is None:
                    columns = self._grown(columns, worst)
                    if self.stuck and len(columns) == len(seen) and self.optimality > _FALL * before:
                        status = outcome.NO_PROGRESS
                if status is not None:
                    break
            else:
                status = outcome.NO_PROGRESS
        except RoundError as error:
            if self.x is not None:
                # the run ends as by a callback
                error.result = self._result(self.x, None, outcome.STOPPED, problem.blocks.n_rounds - first)
                error.result.message = str(error)
            raise
        return self._result(x, g, status, problem.blocks.n_rounds - first)

    # the working set

    def _first(self, x, g, mask):
        problem, l1 = self.problem, self.l1
        K, end = problem.spec.n_outputs, problem.n_features * problem.spec.n_outputs
        needed = ((x[:end] != 0) | (l1[:end] == 0)).reshape(-1, K).any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = problem.by_feature(np.where(mask & (l1 > 0), np.abs(g) / l1, 0.0))
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

    def _grown(self, columns, worst):
        """``columns`` and those that break their bounds the most or nearly do, by ``worst`` (p,)."""
        worst = worst.copy()
        worst[columns] = 0.0
        if not worst.max(initial=0.0) > 1.0 + _SLACK:
            return columns
        new = np.flatnonzero(worst > _NEAR)
        most = int(max(_GROWTH * len(columns), _LEAST_GROWTH))
        new = new[np.argsort(-worst[new], kind="stable")][:most]
        return np.union1d(columns, new)

    # one expansion

    def _solve(self, columns, x):
        """Minimise over the features ``columns``; x, and the solver's word if it is the last."""
        problem = self.problem
        variables = problem.variables(columns)
        loss = problem.working(columns)
        begun = time.perf_counter() - self.begun
        rest, left = max(self.max_iter - self.counts["nit"], 0), self.max_time - begun
        aim = max(_PART_TOL * self.target, min(_PART_FALL * self.optimality, 1e-2))
        result = minimize_oba(
            loss, self.l1[variables], x[variables], tol=aim, max_iter=rest,
            max_time=max(left, 1e-3) if np.isfinite(left) else None, history=self.keep,
            callback=None if self.callback is None else self._report_to(variables, x), **self.options,
        )  # fmt: skip
        for name in self.counts:
            self.counts[name] += int(getattr(result, name, 0))
        self.n_corrections += list(result.n_corrections)
        for name, values in (result.history or {}).items():
            self.history.setdefault(name, []).extend(values + begun if name == "time" else values)
        x = x.copy()
        x[variables] = result.x
        # of which no round knows more yet
        self.x, self.fun = x, float(result.fun)
        self.gap, self.optimality = np.nan, np.inf
        self.stuck = result.status == outcome.NO_PROGRESS
        return x, None if self.stuck or result.status == outcome.CONVERGED else result.status

    def _report_to(self, variables, x):
        done, begun = self.counts["nit"], time.perf_counter() - self.begun

        def report(intermediate_result):
            one = OptimizeResult(intermediate_result)
            one.x = x.copy()
            one.x[variables] = intermediate_result.x
            one.nit, one.time = intermediate_result.nit + done, intermediate_result.time + begun
            return self.callback(one)

        return report

    def _certify(self, columns, x, mask):
        """The gradient of all variables at x, by a round, and the ratios to their bounds, (p,).

        Sets the duality gap and the optimality.
        """
        problem, l1 = self.problem, self.l1
        variables = problem.variables(columns)
        loss = problem.working(columns)
        part = loss.problem()
        value = part.start(x[variables])
        own = part.gradient()
        free = np.flatnonzero(l1[variables] == 0.0)
        theta, moved = part.state.u, np.zeros(0)
        if free.size:
            theta, _, moved = part.project_free(free, theta, own)
        move = np.zeros(problem.n_variables)
        if theta is not None and free.size:
            move[variables[free]] = moved
        g = problem.gradient(x, move, mask)
        penalised = l1 > 0
        ratios = np.zeros(problem.n_variables)
        ratios[penalised] = np.abs(g[penalised]) / l1[penalised]
        self.fun = float(value + l1 @ np.abs(x))
        if theta is None:
            self.gap = np.inf
        else:
            dual = loss.dual_value(theta / max(1.0, largest(ratios)))
            self.gap = self.fun - dual if np.isfinite(dual) else np.inf
        # on the working set the gradient at x itself is known
        g[variables] = own
        self.optimality = measure(x, g, l1) / problem.origin_scale
        return g, problem.by_feature(ratios)

    def _verdict(self, status):
        """How the run ends, after what the solver said, or None."""
        if status == outcome.STOPPED:
            return status
        allowed = 10.0 * self.tol * abs(self.fun)
        if self.optimality <= self.target:
            # NaN: no certificate can be had
            if not self.gap > allowed or self.optimality <= self.tol * _TIGHTEST:
                return outcome.CONVERGED
            self.target = self.optimality * min(0.5, max(0.01, 0.5 * allowed / self.gap))
        return status

    def _result(self, x, g, status, n_rounds):
        if status == outcome.NO_PROGRESS and self.optimality <= self.tol:
            status = outcome.CONVERGED
        history = {name: np.asarray(values) for name, values in self.history.items()}
        return OptimizeResult(
            x=x, fun=self.fun, status=status, success=status == outcome.CONVERGED, message=MESSAGES[status],
            optimality=self.optimality, dual_gap=self.gap, grad=g, history=history, n_rounds=n_rounds,
            n_corrections=self.n_corrections, **self.counts,
        )  # fmt: skip
