"""The problems of `problems` over blocks of rows: a fold weights the rows beyond its training part with 0."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.metrics import get_scorer

from ..._estimator.block_data import BlockedMatrix
from ..._row_blocks.gather import GatheredColumns
from ..losses.block_loss import FamilyOfBlocks, LossOfBlocks
from ..losses.block_problem import BlockProblem
from .family_problem import FamilyProblem
from .least_squares_problem import LeastSquaresProblem
from .problems import LogisticProblem


class BlocksMixin:
    """Problems over blocks of rows."""

    fold = gathered = None

    def prepare(self, folds):
        self.gathered = GatheredColumns(self.X.blocks, self.X.census)
        if len(folds) > 64:
            raise ValueError(f"cv has {len(folds)} folds; with X in blocks 64 are the most.")
        dtype = np.min_scalar_type(2 ** len(folds) - 1)
        # bit k of a row: fold k's training part lacks it
        missed = np.zeros(len(self.values), dtype=dtype)
        for k, (train, _) in enumerate(folds):
            out = np.ones(len(missed), dtype=bool)
            out[train] = False
            missed[out] |= dtype.type(1 << k)
        self.X.blocks.set_folds(missed, self.X.census.sizes)

    def _part(self, fold, index):
        part = copy.copy(self)
        part.weight = np.zeros(len(self.values))
        part.weight[fold[0]] = 1.0 if self.weight is None else self.weight[fold[0]]
        part.n_threads, part.fold = 1, index
        return part

    def fold_scorer(self, rows, y, model, scorer, score_params):
        scorer = get_scorer("neg_mean_squared_error") if scorer is None else scorer
        return super().fold_scorer(rows, y, model, scorer, score_params)

    def seen(self, rows, bring=None):
        def select(coef):
            columns = np.flatnonzero(coef.any(axis=0))
            if not len(columns):  # scikit-learn's scorers need one column
                columns = (
                    self.gathered.stored[:1] if len(self.gathered.stored) else np.zeros(1, dtype=np.int64)
                )
            return self.gathered.matrix(columns)[rows], coef[:, columns]

        return select

    def make_loss(self, X):
        spec, values, shift = self._of_blocks(X)
        return BlockProblem(
            X.blocks, X.census, spec, values, self.weight, self.n_threads, self.fold, self.gathered, shift,
            self.positive,
        )  # fmt: skip


class LogisticBlockProblem(BlocksMixin, LogisticProblem):
    """Classes in blocks."""

    def _adapt(self, values, index):
        super()._adapt(values, index)
        factors = self.X.class_weight
        if factors is not None:
            self.X = BlockedMatrix(self.X.blocks, self.X.census, factors[self.present])

    def _of_blocks(self, X):
        columns = self.present if self.n_classes > len(self.present) else None
        spec = LossOfBlocks(
            self.fit_intercept, self.classes, X.class_weight, shifted=self.shift is not None, columns=columns
        )
        return spec, self.values, self.shift


class LeastSquaresBlockProblem(BlocksMixin, LeastSquaresProblem):
    """Numbers in blocks."""

    def _of_blocks(self, X):
        spec = LossOfBlocks(self.fit_intercept, offset=self.base, shifted=X.census.offset is not None)
        return spec, self.target, None


class FamilyBlockProblem(BlocksMixin, FamilyProblem):
    """Targets of a family in blocks."""

    def _of_blocks(self, X):
        spec = FamilyOfBlocks(
            self.fit_intercept, offset=self.base, shifted=X.census.offset is not None, family=self.family
        )
        return spec, self.values, self.offset


# of each kind of problem in main memory
IN_BLOCKS = {
    LogisticProblem: LogisticBlockProblem,
    LeastSquaresProblem: LeastSquaresBlockProblem,
    FamilyProblem: FamilyBlockProblem,
}
