"""A loss of a linear predictor over blocks of rows: what a task computes, and what the client asks for.

A task gets a block, a description of the loss, and a few numbers: the non-zero variables. It works out the
predictor anew, which costs what keeping it would save, and returns sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._row_blocks.blocks import Block, as_matrix
from .losses import LeastSquaresLoss
from .multinomial import logistic_loss


@dataclass(frozen=True)
class LossOfBlocks:
    """What a task has to know of the loss.

    classes : labels in their order; None for least squares.
    class_weight : factor of each class' weights, or None.
    offset : what is subtracted from numbers that are the target.
    shifted : whether the rows have offsets.
    columns : columns of these that the classes have, where a fold lacks some; or None.
    """

    fit_intercept: bool
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    offset: float = 0.0
    shifted: bool = False
    columns: np.ndarray | None = None

    lower_bound: ClassVar[float] = 0.0  # of both losses

    @property
    def n_outputs(self) -> int:
        """Values of each feature in the solver's variables."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def of(self, block: Block, fold: int | None = None, exact: bool = False) -> Any:
        """The loss of a block's rows, of which those that a ``fold`` misses weigh nothing.

        Products with dense rows in single precision are ``exact`` at the cost of a copy.
        """
        X, values, weight, shift = self.rows_of(block, fold)
        if exact and isinstance(X, np.ndarray):
            X = X.astype(np.float64, copy=False)
        return self.on(X, values, weight, shift=shift)

    def rows_of(
        self, block: Block, fold: int | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """A block's X, targets as the loss takes them, weights or None, and offsets of scores or None."""
        X = as_matrix(block.X)
        y = np.asarray(block.y).reshape(-1)
        weight = None
        if block.weight is not None:
            weight = np.broadcast_to(np.asarray(block.weight, dtype=np.float64).reshape(-1), y.shape)
        if fold is not None:
            missed = (block.fold >> block.fold.dtype.type(fold)) & 1
            weight = np.where(missed, 0.0, 1.0 if weight is None else weight)
        shift = self._shift(block, len(y))
        if self.classes is None:
            target = y.astype(np.float64, copy=False) - self.offset
            return X, target if shift is None else target - shift, weight, None
        # a fold may lack a class, whose rows then all lie in the part without weight
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        if self.class_weight is not None:
            factors = self.class_weight[codes]
            weight = factors if weight is None else factors * weight
        return X, codes, weight, shift

    def _shift(self, block, n):
        if not self.shifted:
            return None
        shift, K = np.asarray(block.offset, dtype=np.float64), self.n_outputs
        if shift.ndim == 0:
            return np.full((n, K) if K > 1 else n, shift)
        if self.columns is None:
            return shift.reshape(-1) if K == 1 else shift
        shift = shift[:, self.columns]
        return shift if K > 1 else shift[:, 1] - shift[:, 0]

    def on(
        self, X: Any, values: np.ndarray, weight: np.ndarray | None, n_threads: int = 1,
        shift: np.ndarray | None = None,
    ) -> Any:  # fmt: skip
        """The loss of rows whose targets are numbers, less the offset, or codes, with offsets of scores."""
        if self.classes is None:
            return LeastSquaresLoss._of_sound(
                X, values, weight, fit_intercept=self.fit_intercept, n_threads=n_threads
            )
        return logistic_loss(X, values, len(self.classes), weight, self.fit_intercept, n_threads, shift)


@dataclass(frozen=True)
class Sparse:
    """A vector that is mostly zero, as a message."""

    size: int
    at: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> Sparse:
        """The message of x."""
        at = np.flatnonzero(x)
        return cls(len(x), at, x[at])

    def dense(self) -> np.ndarray:
        """x, (size,)."""
        x = np.zeros(self.size)
        x[self.at] = self.values
        return x


def theta_at(loss: Any, x: np.ndarray, move: np.ndarray | None) -> tuple[float, np.ndarray]:
    """Value at x, and the derivatives by row there, less their change to first order along ``move``."""
    z = loss.predictor(x)
    value, theta, *second = loss.derivatives(z)
    if move is not None:
        dz = loss._product(move)
        theta = theta - (second[0] * dz if second else loss.curve(z, dz))
    return value, theta


def gradient_of_block(
    block: Block,
    spec: LossOfBlocks,
    fold: int | None,
    x: Sparse,
    move: Sparse | None,
    mask: np.ndarray | None,
) -> tuple[float, np.ndarray] | None:
    """Value at x and X^T theta, see `theta_at`; of the variables that the bits ``mask`` name, or of all."""
    if not block.X.shape[0]:
        return None
    loss = spec.of(block, fold)
    value, theta = theta_at(loss, x.dense(), None if move is None else move.dense())
    gradient = loss.problem().gradient_of(theta)
    return value, gradient if mask is None else gradient[np.unpackbits(mask, count=len(gradient)).view(bool)]


@dataclass(frozen=True)
class HessianOf:
    """Which Hessian a task adds up: that of a `Problem.model`, see `Selection.radius`.

    variables : sorted.
    bend : as of the model; inf gives the Hessian itself.
    """

    variables: np.ndarray
    bend: float = np.inf

    def of(self, problem: Any) -> tuple[np.ndarray, int]:
        """The matrix, and how many rows have more curvature in it than where the problem is."""
        radius = problem.radius(self.bend)
        return problem.hessian(self.variables, radius), 0 if radius is None else int(np.count_nonzero(radius))


def model_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Sparse, mask: np.ndarray, wanted: HessianOf | None
) -> tuple[float, np.ndarray, tuple[np.ndarray, int] | None] | None:
    """Value at x, gradient of the variables that the bits ``mask`` name, and a Hessian, see `HessianOf`."""
    if not block.X.shape[0]:
        return None
    # the predictor is made anew for each point: what rounding did to it would show in differences of values
    loss = spec.of(block, fold, exact=True)
    problem = loss.problem()
    value, gradient = problem.start(x.dense()), problem.gradient()
    hessian = None if wanted is None else wanted.of(problem)
    return float(value), gradient[np.unpackbits(mask, count=len(gradient)).view(bool)], hessian


def product_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Sparse, v: Sparse, mask: np.ndarray
) -> np.ndarray | None:
    """The Hessian at x times v, of the variables that the bits ``mask`` name."""
    if not block.X.shape[0]:
        return None
    chosen = np.flatnonzero(np.unpackbits(mask, count=x.size))
    full = v.dense()
    return spec.of(block, fold).hessian_product(x.dense(), chosen, full[chosen])


def dual_value_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Sparse, move: Sparse | None, scale: float
) -> float | None:
    """Dual objective at ``scale`` times theta, see `theta_at`."""
    if not block.X.shape[0]:
        return None
    loss = spec.of(block, fold)
    _, theta = theta_at(loss, x.dense(), None if move is None else move.dense())
    return float(loss.dual_value(scale * theta))


def start_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Sparse, origin: Sparse
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray] | None:
    """Value and gradient at an origin, gradient at x, and the reach of each feature's gradient, (p,).

    A feature whose gradient is below its penalty wherever the model is stays at zero. Only the logistic
    loss of two classes has such bounds; the others' are infinite.
    """
    if not block.X.shape[0]:
        return None
    loss = spec.of(block, fold)
    value, theta = theta_at(loss, origin.dense(), None)
    problem = loss.problem()
    first = problem.gradient_of(theta)
    reach = np.full((loss.n_features, 2), np.inf)
    slopes = loss.slope_range() if hasattr(loss, "slope_range") else None
    if slopes is not None:
        reach = np.ascontiguousarray(slopes[:, :2])
    return value, first, problem.gradient_of(theta_at(loss, x.dense(), None)[1]), reach
