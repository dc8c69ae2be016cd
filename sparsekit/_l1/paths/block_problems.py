"""The problems of `problems` over blocks of rows, which a fold keeps all of."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.metrics import get_scorer

from ..._estimator.block_data import BlockedMatrix
from ..._row_blocks.gather import GatheredColumns
from ..losses.block_loss import LossOfBlocks
from ..losses.block_problem import BlockProblem
from .judges import Judge
from .problems import LogisticProblem, SquaresProblem


class BlocksMixin:
    """Over blocks of rows: a fold keeps all of them, those beyond its training part with weight zero."""

    fold = None
    positive = False

    def prepare(self, folds):
        # of each row a bit for each fold whose training part lacks it
        self.gathered = GatheredColumns(self.X.blocks, self.X.census)
        dtype = np.min_scalar_type(2 ** len(folds) - 1) if len(folds) <= 64 else None
        if dtype is None:
            raise ValueError(f"cv has {len(folds)} folds; with X in blocks 64 are the most.")
        missed = np.zeros(len(self.values), dtype=dtype)
        for k, (train, _) in enumerate(folds):
            out = np.ones(len(missed), dtype=bool)
            out[train] = False
            missed[out] |= dtype.type(1 << k)
        self.X.blocks.set_folds(missed, self.X.census.sizes)

    def training(self, fold, index):
        part = copy.copy(self)
        part.weight = np.zeros(len(self.values))
        part.weight[fold[0]] = 1.0 if self.weight is None else self.weight[fold[0]]
        part.n_threads, part.fold = 1, index
        return part

    def judge(self, rows, y, model, scorer, score_params):
        def seen(coef):
            columns = np.flatnonzero(coef.any(axis=0))
            if not len(columns):  # scikit-learn's scorers ask for one at the least
                columns = self.gathered.held[:1] if len(self.gathered.held) else np.zeros(1, dtype=np.int64)
            return self.gathered.matrix(columns)[rows], coef[:, columns]

        scorer = get_scorer("neg_mean_squared_error") if scorer is None else scorer
        offset = None if self.shift is None else self.shift[rows]
        return Judge(self, seen, y[rows], model, scorer, score_params, offset)

    def make_loss(self, X):
        return BlockProblem(
            X.blocks, X.census, self.spec(X), self.values_of_rows(), self.weight, self.n_threads, self.fold,
            self.gathered, self.shift_of_scores(), self.positive,
        )  # fmt: skip


class LogisticBlockProblem(BlocksMixin, LogisticProblem):
    """Classes in blocks."""

    def training(self, fold, index):
        part = super().training(fold, index)
        self._mark_present(part, fold[0], index)
        factors = self.X.class_weight
        part.X = BlockedMatrix(
            self.X.blocks, self.X.census, None if factors is None else factors[part.present]
        )
        return part

    def spec(self, X):
        some = self.n_classes > len(self.present)
        return LossOfBlocks(
            self.fit_intercept, self.classes, X.class_weight, shifted=self.shift is not None,
            columns=self.present if some else None,
        )  # fmt: skip

    def values_of_rows(self):
        return self.values

    def shift_of_scores(self):
        return self.shift


class SquaresBlockProblem(BlocksMixin, SquaresProblem):
    """Numbers in blocks."""

    def training(self, fold, index):
        part = super().training(fold, index)
        part._set_targets()
        return part

    def spec(self, X):
        return LossOfBlocks(self.fit_intercept, offset=self.offset, shifted=self.shift is not None)

    def values_of_rows(self):
        return self.target

    def shift_of_scores(self):
        return None  # the target is less it already
