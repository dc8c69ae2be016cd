"""Loss of a linear predictor over blocks of rows: its description, and the sums over one block.

A task gets a block, the description and the nonzero variables. It computes the predictor again: storing it
would cost as much as it saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..._row_blocks.blocks import Block, as_matrix
from .families.family import Family
from .family_loss import FamilyLoss, null_shift
from .losses import LeastSquaresLoss
from .multinomial import logistic_loss


@dataclass(frozen=True)
class LossOfBlocks:
    """Description of the loss, sent with each task.

    classes : sorted labels; None for numbers.
    class_weight : factor of each class' weights, or None.
    offset : number subtracted from the targets of least squares.
    shifted : whether the rows have offsets.
    columns : columns of the rows' offsets, one a class, where a fold lacks some classes; or None.
    """

    fit_intercept: bool
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    offset: float = 0.0
    shifted: bool = False
    columns: np.ndarray | None = None

    lower_bound: ClassVar[float] = 0.0  # of all losses

    @property
    def is_quadratic(self) -> bool:
        """Whether one model is the loss itself."""
        return self.classes is None

    @property
    def n_outputs(self) -> int:
        """Values of each feature in the solver's variables."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def of(self, block: Block, fold: int | None = None, exact: bool = False) -> Any:
        """The loss of a block's rows; those outside the training part of ``fold`` have weight 0.

        ``exact`` copies dense rows in single precision to double precision.
        """
        X, y = as_matrix(block.X), np.asarray(block.y).reshape(-1)
        if exact and isinstance(X, np.ndarray):
            X = X.astype(np.float64, copy=False)
        weight = None
        if block.weight is not None:
            weight = np.broadcast_to(np.asarray(block.weight, dtype=np.float64).reshape(-1), y.shape)
        if fold is not None:
            missed = (block.fold >> block.fold.dtype.type(fold)) & 1
            weight = np.where(missed, 0.0, 1.0 if weight is None else weight)
        shift = self._shift(block, len(y))
        if self.classes is None:
            return self._of_numbers(X, y.astype(np.float64, copy=False), weight, shift)
        # a fold may lack a class; all rows of that class then have weight 0
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        if self.class_weight is not None:
            factors = self.class_weight[codes]
            weight = factors if weight is None else factors * weight
        return self.on(X, codes, weight, shift=shift)

    def _of_numbers(self, X, y, weight, shift):
        target = y - self.offset
        return self.on(X, target if shift is None else target - shift, weight)

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
        """The loss of rows with offsets ``shift`` of their scores.

        ``values`` are codes of classes, or targets less the offset.
        """
        if self.classes is None:
            return LeastSquaresLoss._of_validated(
                X, values, weight, fit_intercept=self.fit_intercept, n_threads=n_threads
            )
        return logistic_loss(X, values, len(self.classes), weight, self.fit_intercept, n_threads, shift)


@dataclass(frozen=True, kw_only=True)
class FamilyOfBlocks(LossOfBlocks):
    """Description of a `FamilyLoss`; ``offset`` is the null model's intercept, added to all predictors."""

    family: Family

    @property
    def is_quadratic(self) -> bool:
        return False

    def _of_numbers(self, X, y, weight, shift):
        return self.on(X, y, weight, shift=null_shift(self.family, y, self.offset, shift))

    def on(
        self, X: Any, values: np.ndarray, weight: np.ndarray | None, n_threads: int = 1,
        shift: np.ndarray | None = None,
    ) -> Any:  # fmt: skip
        """The loss of rows with targets ``values`` and null predictors ``shift``."""
        return FamilyLoss(
            self.family, X, values, weight, fit_intercept=self.fit_intercept, n_threads=n_threads,
            offset=shift,
        )  # fmt: skip


# A vector that is mostly zero, as tasks get it: a row of a coo_array.
Message: TypeAlias = Any


def as_message(x: np.ndarray) -> Message:
    """The message of x."""
    return sp.coo_array(x[None])


def theta_at(loss: Any, x: np.ndarray, move: np.ndarray | None) -> tuple[float, np.ndarray]:
    """Value at x, and theta: derivatives by row at x, less their first-order change along ``move``."""
    z = loss.predictor(x)
    value, theta, *second = loss.derivatives(z)
    if move is not None:
        dz = loss._product(move)
        theta = theta - (second[0] * dz if second else loss._curve(z, dz))
    return value, theta


def gradient_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Message, move: Message | None
) -> tuple[float, np.ndarray, list[np.ndarray]] | None:
    """Value at x, X^T theta and theta, see `theta_at`."""
    if not block.X.shape[0]:
        return None
    loss = spec.of(block, fold)
    value, theta = theta_at(loss, x.toarray()[0], None if move is None else move.toarray()[0])
    return value, loss.problem().gradient_of(theta), [theta]


def model_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Message, variables: np.ndarray, has_hessian: bool
) -> tuple[float, np.ndarray, np.ndarray | None] | None:
    """Value at x, gradient of the sorted ``variables``, and their Hessian or None."""
    if not block.X.shape[0]:
        return None
    # values are compared between points: products in single precision would lose small differences
    problem = spec.of(block, fold, exact=True).problem()
    value, gradient = problem.start(x.toarray()[0]), problem.gradient()
    return float(value), gradient[variables], problem.hessian(variables) if has_hessian else None


def product_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Message, v: Message, variables: np.ndarray
) -> np.ndarray | None:
    """The Hessian at x, of sorted ``variables``, times v."""
    if not block.X.shape[0]:
        return None
    return spec.of(block, fold).hessian_product(x.toarray()[0], variables, v.toarray()[0][variables])
