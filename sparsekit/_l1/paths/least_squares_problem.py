"""The problem of least squares whose paths cross-validation solves, by a Gram matrix of few columns."""

from __future__ import annotations

import copy
import time

import numpy as np

from ..._arrays import as_like
from ..._linalg.prepared import Prepared
from ..._messages import shown
from ..._solver import outcome
from .. import plan
from ..losses.losses import LeastSquaresLoss
from ..solver.gram_path import GramPath, moments
from ..solver.nonnegative import NonnegativeSquares
from .coefficients import center_target
from .path_solver import LEAST_RATIO, iterate_path
from .problems import PathProblem
from .settings import MAX_BYTES


class LeastSquaresProblem(PathProblem):
    """The Lasso, whose loss is a mean: a part of the rows has a scale of its own.

    Its paths are those of `GramPath` where `plan` says so. That needs main memory and second derivatives
    (``hessian="exact"``). The Gram matrix is made once, and a fold's is that of all rows less its left-out
    ones'. Other paths are those of `iterate_path`.
    """

    dispersion_is_known = False
    moments = None
    rows = None  # those of X that are the problem's, or all
    lazily = False  # whether paths are mostly left before their end

    def __init__(
        self, X, y, weight, penalty, fit_intercept, n_threads, positive=False, hessian="exact", shift=None
    ):  # fmt: skip
        if positive and hessian != "exact":
            raise ValueError(
                f"positive must be False where hessian is {shown(hessian)}; use 'exact': fits of "
                "coefficients >= 0 make no model by L-BFGS."
            )
        super().__init__(X, y, weight, penalty, fit_intercept, n_threads, shift=shift)
        self.positive = positive
        self.compiled = hessian == "exact" and self.is_in_main_memory
        self._set_targets()

    def _set_targets(self):
        self.target, self.base = center_target(
            self._unshifted(), self.weight, self.fit_intercept, self.X.dtype
        )
        self.scale = float(len(self.values)) if self.weight is None else float(self.weight.sum())

    def _unshifted(self):
        return self.values if self.shift is None else self.values - self.shift

    def prepare(self, folds):
        if not (self.compiled and self._can_use_gram()):
            return
        n, p = self.X.shape
        self._centre, self._y_centre = self._centres(), self.base
        tests = np.concatenate([test for _, test in folds])
        self._left_out: list = []
        are_kept = 8 * len(folds) * p * p <= MAX_BYTES
        if len(tests) == n and are_kept and (np.bincount(tests, minlength=n) == 1).all():
            self._left_out = [self._moments_of(test) for _, test in folds]
            with np.errstate(over="ignore", invalid="ignore"):
                self.moments = sum(self._left_out[1:], self._left_out[0])
        else:
            self.moments = self._moments_of(slice(None))
        if not self.moments.is_finite:
            self.moments = None

    def _centres(self):
        return Prepared(self.X, self.weight, self.fit_intercept).means

    def _moments_of(self, rows):
        weight = None if self.weight is None else self.weight[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            return moments(self.X[rows], self._unshifted()[rows], weight, self._centre, self._y_centre)

    def training(self, fold, index):
        if self.moments is None:
            part = super().training(fold, index)
        else:
            train, test = fold
            part = copy.copy(self)
            part.rows, part.values = train, self.values[train]
            part.weight = None if self.weight is None else self.weight[train]
            part.shift = None if self.shift is None else self.shift[train]
            part.n_threads = 1
            rows = np.zeros(len(self.values), dtype=np.int8)
            np.add.at(rows, train, 1)
            np.add.at(rows, test, 1)
            if (rows == 1).all():  # each row is here or there
                known = self._left_out[index] if self._left_out else self._moments_of(test)
                part.moments = self.moments - known
            else:
                part.moments = self._moments_of(train)
        part._set_targets()
        return part

    def start(self, options):
        solver = self._gram_path()
        if solver is None:
            return super().start(options)
        v = np.array(np.broadcast_to(self.penalty, self.X.shape[1]), dtype=np.float64)
        x_null = solver.null_model(v, options)
        return solver, v, x_null, solver.largest_penalty(x_null, v) / max(self.l1_ratio, LEAST_RATIO)

    def path(self, loss, l1, lambdas, x0, options, max_time, callback=None):
        if not isinstance(loss, GramPath):
            return super().path(loss, l1, lambdas, x0, options, max_time, callback)
        if callback is not None:  # which follows the iterations of a loss
            return self._path_of_loss(l1, lambdas, x0, options, max_time, callback)
        results = loss.iterate(
            l1, lambdas, x0, options, l1_ratio=self.l1_ratio, max_time=max_time, lazily=self.lazily
        )
        return self._solved(results, loss, l1, lambdas, options, max_time)

    def _path_of_loss(self, v, lambdas, x0, options, max_time, callback=None):
        """A path without the Gram matrix of all columns, for penalties v (p,)."""
        loss = self.make_loss(self.X)
        return iterate_path(
            loss, loss.l1_vector(v), lambdas, x0, options, l1_ratio=self.l1_ratio, max_time=max_time,
            callback=callback,
        )  # fmt: skip

    def _solved(self, results, solver, v, lambdas, options, max_time):
        """The results; from the first one on that the Gram matrix does not solve those of the loss."""
        end = np.inf if max_time is None else time.perf_counter() + max_time
        for at, result in enumerate(results):
            is_solved = result.success
            if not options.get("predicted_tol"):
                is_solved = solver.is_certified(result, options["tol"])
            if not is_solved and result.status not in (outcome.STOPPED, outcome.MAX_TIME):
                left = None if max_time is None else max(end - time.perf_counter(), 1e-9)
                for one in self._path_of_loss(v, lambdas[at:], result.x, options, left):
                    one.nit += result.nit
                    result.nit = 0  # of the first alone
                    yield one
                return
            yield result

    def _can_use_gram(self):
        # without a penalty the solution of least norm is asked for, which a Gram matrix alone does not give
        n, p = self.X.shape
        is_unique = n >= p or bool(np.any(self.penalty))
        entries = getattr(self.X, "nnz", None)
        return is_unique and plan.path_takes_gram(
            n, p, entries, self.n_penalties, self.has_folds, self.has_l1, self.positive
        )  # fmt: skip

    def _gram_path(self):
        """The compiled solver of paths, if its Gram matrix is known or is worth to be made, or None."""
        if self.moments is None:
            if not (self.compiled and self._can_use_gram()):
                return None
            self._centre, self._y_centre = self._centres(), self.base
        sums = self._moments_of(slice(None)) if self.moments is None else self.moments
        return GramPath(sums, self._centre, self.fit_intercept, self.positive) if sums.is_finite else None

    def loss_of_fit(self, solver):
        """What a fit by ``solver`` minimises."""
        if not self.compiled and solver in ("gram", "interior"):
            raise ValueError(
                f"solver={shown(solver)} needs X in main memory and hessian='exact': use solver='auto' for "
                "blocks of rows, a GPU or hessian='lbfgs'."
            )
        return self.make_loss(self.X)

    def fold_scorer(self, rows, y, model, scorer, score_params):
        if scorer is not None:
            return super().fold_scorer(rows, y, model, scorer, score_params)
        from .fold_scorers import SquaredErrors

        seen, weight = as_like(rows, self.X), score_params.get("sample_weight")
        weight = None if weight is None else as_like(weight, self.X)
        return SquaredErrors(self.X[seen], self._unshifted()[seen], weight)

    def make_loss(self, X):
        return super().make_loss(X if self.rows is None else X[self.rows])

    def _loss_of(self, X):
        make = NonnegativeSquares if self.positive else LeastSquaresLoss
        return make._of_validated(
            X, self.target, self.weight, fit_intercept=self.fit_intercept, n_threads=self.n_threads
        )
