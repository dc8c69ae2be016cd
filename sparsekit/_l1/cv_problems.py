"""The problem whose paths cross-validation solves: of all rows, and of a fold's training part."""

from __future__ import annotations

import copy

import numpy as np

from .._estimator.block_data import BlockedMatrix
from .._row_blocks.gather import GatheredColumns
from .block_loss import LossOfBlocks
from .blockwise import BlockProblem
from .fit import logistic_of
from .magnitudes import named_overflow
from .multinomial import null_intercept
from .path_solver import iterate_path, path_start


class PathProblem:
    """The arrays of one L1 logistic problem, from which losses and paths are made."""

    def __init__(self, X, codes, classes, weight, penalty, fit_intercept, n_threads, l1_ratio=1.0):
        self.X, self.codes, self.classes, self.weight = X, codes, classes, weight
        self.penalty, self.fit_intercept, self.n_threads = penalty, fit_intercept, n_threads
        self.l1_ratio = l1_ratio
        self.n_outputs = 1 if len(classes) == 2 else len(classes)

    def beside(self, X):
        """The same with another X."""
        other = copy.copy(self)
        other.X = X
        return other

    def mixing(self, l1_ratio):
        """The same with another l1_ratio."""
        other = copy.copy(self)
        other.l1_ratio = l1_ratio
        return other

    def prepare(self, folds):
        """Get ready for `training`."""

    def training(self, fold, index, present):
        """The problem on the training rows of a fold, with only the classes ``present``."""
        rows = fold[0]
        codes = np.searchsorted(present, self.codes[rows])
        weight = None if self.weight is None else self.weight[rows]
        classes = self.classes[present]
        return PathProblem(
            self.X[rows], codes, classes, weight, self.penalty, self.fit_intercept, 1, self.l1_ratio
        )

    def test_rows(self, rows):
        """What is scored: a function of coefficients to X[rows] and to them.

        Both may lack columns that the coefficients do not use.
        """
        X = self.X[rows]
        return lambda coef: (X, coef)

    def make_loss(self, X):
        return logistic_of(X, self.codes, self.classes, self.weight, self.fit_intercept, self.n_threads)

    def start(self, options):
        """Loss, L1 weights, null model and largest penalty."""
        n_classes = len(self.classes)
        intercept = null_intercept(self.codes, self.weight, n_classes) if self.fit_intercept else None
        with named_overflow(self.X):
            return path_start(
                self.make_loss, self.X, self.penalty, self.n_outputs, intercept, options, self.l1_ratio
            )

    def path(self, loss, l1, lambdas, x0, options, max_time):
        """`iterate_path`, whose errors name X where that is to blame."""
        runs = iterate_path(loss, l1, lambdas, x0, options, l1_ratio=self.l1_ratio, max_time=max_time)
        while True:
            with named_overflow(self.X):
                result = next(runs, None)
            if result is None:
                return
            yield result


class BlockPathProblem(PathProblem):
    """The same over blocks: a fold keeps all rows, those beyond its training part with weight zero."""

    fold = None

    def prepare(self, folds):
        # of each row a bit for each fold whose training part lacks it
        self.gathered = GatheredColumns(self.X.blocks, self.X.census)
        dtype = np.min_scalar_type(2 ** len(folds) - 1) if len(folds) <= 64 else None
        if dtype is None:
            raise ValueError(f"cv has {len(folds)} folds; with X in blocks 64 are the most.")
        missed = np.zeros(len(self.codes), dtype=dtype)
        for k, (train, _) in enumerate(folds):
            out = np.ones(len(missed), dtype=bool)
            out[train] = False
            missed[out] |= dtype.type(1 << k)
        self.X.blocks.set_folds(missed, self.X.census.sizes)

    def training(self, fold, index, present):
        codes = np.minimum(np.searchsorted(present, self.codes), len(present) - 1)
        weight = np.zeros(len(codes))
        weight[fold[0]] = 1.0 if self.weight is None else self.weight[fold[0]]
        factors = self.X.class_weight
        X = BlockedMatrix(self.X.blocks, self.X.census, None if factors is None else factors[present])
        classes = self.classes[present]
        part = BlockPathProblem(X, codes, classes, weight, self.penalty, self.fit_intercept, 1, self.l1_ratio)
        part.fold, part.gathered = index, self.gathered
        return part

    def test_rows(self, rows):
        def used(coef):
            columns = np.flatnonzero(coef.any(axis=0))
            if not len(columns):  # scikit-learn's scorers ask for one at the least
                columns = self.gathered.held[:1] if len(self.gathered.held) else np.zeros(1, dtype=np.int64)
            return self.gathered.matrix(columns)[rows], coef[:, columns]

        return used

    def make_loss(self, X):
        spec = LossOfBlocks(self.fit_intercept, self.classes, X.class_weight)
        return BlockProblem(
            X.blocks, X.census, spec, self.codes, self.weight, self.n_threads, self.fold, self.gathered
        )
