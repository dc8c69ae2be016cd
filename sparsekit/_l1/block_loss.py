"""A loss of a linear predictor over blocks of rows: what a task computes, and what the client asks for.

A task gets a block, a description of the loss, and a few numbers: the non-zero variables. It works out the
predictor anew, which costs what keeping it would save, and returns sums.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._row_blocks.blocks import Block, RowBlocks, as_matrix
from .._row_blocks.census import Census
from .losses import LeastSquaresLoss
from .multinomial import logistic_loss


@dataclass(frozen=True)
class LossOfBlocks:
    """What a task has to know of the loss.

    classes : labels in their order; None for least squares.
    class_weight : factor of each class' weights, or None.
    offset : what is subtracted from numbers that are the target.
    """

    fit_intercept: bool
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    offset: float = 0.0

    @property
    def n_outputs(self) -> int:
        """Values of each feature in the solver's variables."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def of(self, block: Block, fold: int | None = None) -> Any:
        """The loss of a block's rows, of which those that a ``fold`` misses weigh nothing."""
        y = np.asarray(block.y).reshape(-1)
        weight = None
        if block.weight is not None:
            weight = np.broadcast_to(np.asarray(block.weight, dtype=np.float64).reshape(-1), y.shape)
        if fold is not None:
            missed = (block.fold >> block.fold.dtype.type(fold)) & 1
            weight = np.where(missed, 0.0, 1.0 if weight is None else weight)
        if self.classes is None:
            target = y.astype(np.float64, copy=False) - self.offset
            return self.on(as_matrix(block.X), target, weight)
        # a fold may lack a class, whose rows then all lie in the part without weight
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        if self.class_weight is not None:
            factors = self.class_weight[codes]
            weight = factors if weight is None else factors * weight
        return self.on(as_matrix(block.X), codes, weight)

    def on(self, X: Any, values: np.ndarray, weight: np.ndarray | None, n_threads: int = 1) -> Any:
        """The loss of rows whose targets are numbers, less the offset, or codes."""
        if self.classes is None:
            return LeastSquaresLoss(X, values, weight, fit_intercept=self.fit_intercept, n_threads=n_threads)
        return logistic_loss(X, values, len(self.classes), weight, self.fit_intercept, n_threads)


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
        dz = loss.predictor(move)
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


def start_of_block(
    block: Block, spec: LossOfBlocks, fold: int | None, x: Sparse
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray] | None:
    """Value and gradient at zero, gradient at x, and the reach of each feature's gradient, (p,).

    A feature whose gradient is below its penalty wherever the model is stays at zero. Only the logistic
    loss of two classes has such bounds; the others' are infinite.
    """
    if not block.X.shape[0]:
        return None
    loss = spec.of(block, fold)
    origin, theta = theta_at(loss, np.zeros(x.size), None)
    problem = loss.problem()
    first = problem.gradient_of(theta)
    reach = np.full((loss.n_features, 2), np.inf)
    slopes = loss.slope_range() if hasattr(loss, "slope_range") else None
    if slopes is not None:
        reach = np.ascontiguousarray(slopes[:, :2])
    return origin, first, problem.gradient_of(theta_at(loss, x.dense(), None)[1]), reach


def columns_of_block(block: Block, columns: np.ndarray) -> list[Any]:
    """The rows of some columns, sorted."""
    X = as_matrix(block.X)
    if not sp.issparse(X):
        return [np.ascontiguousarray(X[:, columns])]
    position = np.full(X.shape[1], -1, dtype=np.int32)
    position[columns] = np.arange(len(columns), dtype=np.int32)
    found = position[X.indices]
    kept = found >= 0
    cut = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
    return [sp.csr_array((X.data[kept], found[kept], cut), shape=(X.shape[0], len(columns)))]


def memory_limit() -> float:
    """Bytes that gathered columns may take: ``SPARSEKIT_MEMORY`` in GiB, or half of the machine's memory."""
    given = os.environ.get("SPARSEKIT_MEMORY")
    if given is not None:
        return float(given) * 2**30
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not on every system
        return 4.0 * 2**30


class GatheredColumns:
    """Columns of X in this process, those that were ever asked for.

    Parameters
    ----------
    blocks : RowBlocks
    census : Census
    """

    def __init__(self, blocks: RowBlocks, census: Census) -> None:
        self.blocks, self.census = blocks, census
        self.held = np.empty(0, dtype=np.int64)
        self._parts: list[Any] = []
        self._joined: Any = None
        self._lock = threading.RLock()  # folds may ask at once

    def bytes_of(self, columns: np.ndarray) -> float:
        """Memory that columns take here."""
        index = 4 if self.census.is_sparse else 0
        return float(self.census.counts[columns].sum()) * (self.census.dtype.itemsize + index)

    def _fetch(self, columns: np.ndarray) -> None:
        # those of the columns that are not here yet, in one round or none
        new = np.setdiff1d(columns, self.held)
        if not len(new):
            return
        room = memory_limit()
        if self.bytes_of(self.held) + self.bytes_of(new) > room:
            self._keep(columns)
            new = np.setdiff1d(columns, self.held)
        if self.bytes_of(columns) > room:
            needed, allowed = self.bytes_of(columns) / 2**30, room / 2**30
            raise MemoryError(
                f"the {len(columns)} columns that the model may need take {needed:.3g} GiB in this process, "
                f"and {allowed:.3g} GiB are allowed: set SPARSEKIT_MEMORY (in GiB) or the penalty higher, or "
                "pass float32 data."
            )
        parts = self.blocks.map_reduce(columns_of_block, new)
        if sp.issparse(parts[0]):
            part = sp.vstack(parts, format="csc")
        else:
            part = np.asfortranarray(np.concatenate(parts))
        self._parts.append(part)
        self._joined = None
        self.held = np.concatenate([self.held, new])

    def _keep(self, columns: np.ndarray) -> None:
        # forget the others
        stay = np.intersect1d(columns, self.held)
        self._parts = [self._of_held(stay)] if len(stay) else []
        self._joined, self.held = None, stay

    def matrix(self, columns: np.ndarray) -> Any:
        """X[:, columns] for sorted columns, CSC or in Fortran's order; by a round if some are not here."""
        with self._lock:
            self._fetch(columns)
            return self._of_held(columns)

    def _of_held(self, columns: np.ndarray) -> Any:
        if not self._parts:
            return np.empty((self.census.shape[0], 0), dtype=self.census.dtype)
        if self._joined is None:
            if len(self._parts) > 1 and sp.issparse(self._parts[0]):
                self._parts = [sp.hstack(self._parts, format="csc")]
            elif len(self._parts) > 1:
                self._parts = [np.hstack(self._parts)]  # which stays in Fortran's order
            self._joined = self._parts[0]
        order = np.argsort(self.held)
        at = order[np.searchsorted(self.held, columns, sorter=order)]
        if len(at) == self._joined.shape[1] and (at == np.arange(len(at))).all():
            return self._joined
        part = self._joined[:, at]
        return part if sp.issparse(part) else np.asfortranarray(part)
