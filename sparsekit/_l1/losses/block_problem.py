"""Problem over blocks of rows: its variables, its null model's intercepts, and its gradient by a round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._linalg.special import largest
from ..._row_blocks.blocks import RowBlocks
from ..._row_blocks.census import Census
from ..._row_blocks.gather import GatheredColumns
from .block_loss import LossOfBlocks, as_message, gradient_of_block
from .null_intercept import null_intercept


@dataclass
class BlockProblem:
    """min f(x) + l1 . |x| over blocks.

    census : of the blocks.
    values, weight : codes or targets, less the offset, and weights of all rows, (n,), or None.
    fold : rows outside its training part have weight 0, see `RowBlocks.set_folds`; None for no fold.
    gathered : columns in this process; problems on the same blocks may share them.
    shift : offsets of all rows' scores, (n,) or (n, n_classes), or None; those of targets are in ``values``.
        Of families, the predictor of the null model.
    positive : whether coefficients must be >= 0; of numbers.
    origin_scale : largest entry of the gradient at zero, set by the first `gradient`.
    working_set : the last one of the solver, reused for the next penalty.
    """

    blocks: RowBlocks
    census: Census
    spec: LossOfBlocks
    values: np.ndarray
    weight: np.ndarray | None
    n_threads: int = 1
    fold: int | None = None
    gathered: Any = None
    shift: np.ndarray | None = None
    positive: bool = False
    origin_scale: Any = None
    working_set: Any = None
    _last: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self) -> None:
        if self.gathered is None:
            self.gathered = GatheredColumns(self.blocks, self.census)

    @property
    def n_features(self) -> int:
        return self.blocks.n_columns

    @property
    def n_variables(self) -> int:
        return (self.n_features + self.spec.fit_intercept) * self.spec.n_outputs

    def start(self) -> np.ndarray:
        """The variables of the model without features."""
        x = np.zeros(self.n_variables)
        if self.spec.fit_intercept and self.spec.classes is not None:
            end = self.n_features * self.spec.n_outputs
            x[end:] = null_intercept(self.values, self.weight, len(self.spec.classes), self.shift)
        return x

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
        return values[:end].reshape(-1, K).max(axis=1)

    @cached_property
    def rows(self) -> Any:
        """The loss of all rows without their features: its ``dual_value`` takes derivatives by row."""
        X = np.empty((len(self.values), 0))
        return self.spec.on(X, self.values, self.weight, self.n_threads, self.shift)

    @property
    def value_at_zero(self) -> float:
        return self.rows.value(np.zeros(self.rows.n_variables))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient at x, by a round unless it is that of the last point; sets ``origin_scale``."""
        if self.origin_scale is None:
            # with offsets the unit of tol is the gradient of the model of the intercept alone
            origin = np.zeros(self.n_variables) if self.shift is None else self.start()
            self.origin_scale = largest(np.abs(self.evaluate(origin)[1])) or 1.0
        if self._last is not None and np.array_equal(x, self._last[0]):
            return self._last[1]
        return self.evaluate(x)[1]

    def evaluate(self, x: np.ndarray, move: np.ndarray | None = None) -> tuple[float, np.ndarray, np.ndarray]:
        """Value at x, X^T theta and theta, see `block_loss.theta_at`, by a round."""
        message = None if move is None or not move.any() else as_message(move)
        value, g, theta = self.round(gradient_of_block, as_message(x), message)
        self._last = x.copy(), g
        return value, g, np.concatenate(theta)

    def round(self, kernel: Any, *arguments: Any) -> Any:
        """What a kernel of this loss returns for all blocks."""
        return self.blocks.map_reduce(kernel, self.spec, self.fold, *arguments)

    def sizes(self, g: np.ndarray) -> np.ndarray:
        """The least penalty at which a variable with gradient g stays at zero."""
        return np.maximum(-g, 0.0) if self.positive else np.abs(g)

    def largest_penalty(self, x_null: np.ndarray, l1: np.ndarray) -> float:
        """The smallest factor of l1 at which the null model ``x_null`` is optimal."""
        return largest(self.sizes(self.gradient(x_null))[l1 > 0] / l1[l1 > 0])
