"""Fenchel-Young losses over blocks of rows, and their minimisation by L-BFGS, a round an evaluation.

If all of X fits into this process, it is gathered and solved in main memory. Newton steps need far fewer
passes than a first-order method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..._row_blocks.blocks import Block, RowBlocks, as_matrix
from ..._solver import outcome
from ..._solver.outcome import Progress, Stop
from ..._solver.tolerances import GAP_FACTOR
from ..losses.loss import FenchelYoungLoss
from .minimize_model import MESSAGES

# pairs of the L-BFGS matrix
_MEMORY = 20
# Iterations of L-BFGS that count as one of max_iter.
LBFGS_ITERATIONS = 50


@dataclass(frozen=True)
class TargetsOfBlocks:
    """The parameters of the loss that a task needs.

    classes : labels in their order; None where y is a matrix of indicators or distributions.
    class_weight : factor of each class' weights, or None.
    """

    transform: str
    n_classes: int
    fit_intercept: bool
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None

    def targets(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Codes or distributions of a block's rows, and their weights."""
        n = block.X.shape[0]
        y = block.y.toarray() if hasattr(block.y, "toarray") else np.asarray(block.y)
        own = 1.0 if block.weight is None else np.asarray(block.weight, dtype=np.float64).reshape(-1)
        weight = np.broadcast_to(own, (n,)).astype(np.float64)
        if self.classes is not None:
            values = np.searchsorted(self.classes, y.reshape(-1))
            return values, weight if self.class_weight is None else weight * self.class_weight[values]
        total = y.sum(axis=1, dtype=np.float64)
        values = y / np.where(total > 0, total, 1.0)[:, None]
        weight *= total > 0
        return values, weight if self.class_weight is None else weight * (values @ self.class_weight)


def evaluate_block(
    block: Block, spec: TargetsOfBlocks, T: np.ndarray
) -> tuple[float, float, np.ndarray] | None:
    """Sums of the weights, of the loss and of its derivative in the table T."""
    if not block.X.shape[0]:
        return None
    values, weight = spec.targets(block)
    total = float(weight.sum())
    if not total > 0.0:
        return None
    loss = FenchelYoungLoss(
        spec.transform, as_matrix(block.X), values, spec.n_classes, weight,
        fit_intercept=spec.fit_intercept, n_threads=1,
    )  # fmt: skip
    value, R = loss.derivatives(loss.scores(T))
    return total, total * value, total * loss.adjoint(R)


class TableLoss:
    """The loss over blocks of rows; its variables are a table of ``shape``, as those of `FenchelYoungLoss`.

    Parameters
    ----------
    blocks : RowBlocks
    spec : TargetsOfBlocks
    """

    def __init__(self, blocks: RowBlocks, spec: TargetsOfBlocks) -> None:
        self.blocks, self.spec = blocks, spec
        self.shape = (blocks.n_columns + spec.fit_intercept, spec.n_classes)
        self.fit_intercept = spec.fit_intercept

    def evaluate(self, T: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and its derivative in the table T, by a round."""
        total, value, gradient = self.blocks.map_reduce(evaluate_block, self.spec, T)
        return value / total, gradient / total


class _Evaluations:
    """The objective over blocks, with the last point and the limits of a run."""

    def __init__(self, loss, alpha, free, limits):
        self.loss, self.alpha, self.free = loss, alpha, free
        self.limits, self.nfev = limits, 0
        self.last: tuple[Any, float, Any] = (None, np.nan, None)

    def __call__(self, x):
        T = x.reshape(self.loss.shape)
        self.nfev += 1
        value, G = self.loss.evaluate(T)
        part = T[:-1] if self.free else T
        slope = G[:-1] if self.free else G
        slope += self.alpha * part
        self.last = x.copy(), value + 0.5 * self.alpha * float(np.sum(part * part)), G
        if self.limits.seconds >= self.limits.max_time and self.nfev > 1:
            raise Stop(outcome.MAX_TIME)
        return self.last[1], G.ravel()

    def gap(self, G):
        """Duality gap by strong convexity; NaN where there is none."""
        return float(np.sum(G * G)) / (2.0 * self.alpha) if self.alpha > 0.0 and not self.free else np.nan


def minimize_table_on_blocks(
    loss: TableLoss, alpha: float, x0: np.ndarray | None = None, *,
    penalize_intercept: bool = True, tol: float, max_iter: int, max_time: float | None = None,
    callback: Any = None, history: bool = False,
) -> OptimizeResult:  # fmt: skip
    """Minimise alpha/2 ||T||^2 + loss(T); arguments and result as of `minimize_fenchel_young`.

    ``max_iter`` steps are worth fifty of L-BFGS each, which are what is counted.
    """
    shape = loss.shape
    progress = Progress.of_call(max_iter, max_time, callback, history)
    limits = progress.limits
    free = loss.fit_intercept and not penalize_intercept
    f = _Evaluations(loss, float(alpha), free, limits)
    start = np.zeros(shape) if x0 is None else np.asarray(x0, dtype=np.float64)
    _, G = f(np.zeros(start.size))
    scale, best = float(np.abs(G).max()) or 1.0, f.last
    nit, status = 0, outcome.MAX_ITER

    def record_iteration():
        nonlocal best, status
        x, value, G = f.last
        best = f.last if not value > best[1] else best
        optimality, gap = float(np.abs(G).max()) / scale, f.gap(G)
        if progress.report(x.reshape(shape), value, nit, optimality):
            raise Stop(outcome.STOPPED)
        if optimality <= tol and not gap > GAP_FACTOR * tol * value:
            raise Stop(outcome.CONVERGED)

    def after_iteration(intermediate_result):
        nonlocal nit
        nit += 1
        if not np.array_equal(intermediate_result.x, f.last[0]):
            f(intermediate_result.x)
        record_iteration()

    try:
        record_iteration()
        ended = minimize(
            f, start.ravel(), jac=True, method="L-BFGS-B", callback=after_iteration,
            options=dict(
                maxcor=_MEMORY, ftol=0.0, gtol=0.0, maxiter=LBFGS_ITERATIONS * max_iter, maxfun=np.inf
            ),
        )  # fmt: skip
        status = outcome.MAX_ITER if ended.status == 1 else outcome.NO_PROGRESS
    except Stop as stop:
        status = stop.status
    x, value, G = f.last if status == outcome.CONVERGED else best
    return OptimizeResult(
        x=x.reshape(shape), fun=value, nit=nit, nfev=f.nfev, njev=f.nfev, status=status,
        success=status == outcome.CONVERGED, message=MESSAGES[status],
        optimality=float(np.abs(G).max()) / scale, dual_gap=f.gap(G), grad=G, n_cg=0,
        n_data_passes=f.nfev, history=progress.history.columns(), n_rounds=loss.blocks.n_rounds,
    )  # fmt: skip
