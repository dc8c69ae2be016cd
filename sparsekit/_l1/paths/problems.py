"""The problem whose paths cross-validation solves: of all rows, and of a fold's training part.

`PathProblem` has what all share, `LogisticProblem` classes. `least_squares_problem`, `family_problem` and
`block_problems` have the others.
"""

from __future__ import annotations

import copy

import numpy as np

from ..._arrays import as_like, is_in_main_memory, to_host
from ..._estimator.checks import as_kernel_input, in_type
from ..._estimator.device_linear import class_scores
from ..._estimator.used_columns import UsedColumns
from ..._linalg.special import largest
from ..._messages import shown
from ..losses.block_problem import BlockProblem
from ..losses.multinomial import logistic_loss
from ..losses.null_intercept import null_intercept
from ..solver.blockwise import null_model_on_blocks
from ..solver.centred_loss import CentredLoss, can_be_centred, centre_of, subtract_centre
from ..solver.choose_solver import choose_solver
from .coefficients import all_classes, l1_weights, pack, unpack
from .magnitudes import named_overflow
from .path_solver import LEAST_RATIO, collect_path, iterate_path, largest_penalty, penalty_grid


class PathProblem:
    """The arrays of one problem, from which losses and paths are made.

    Parameters
    ----------
    X : matrix of shape (n, p)
    values : ndarray of shape (n,)
        Codes of classes, or numbers.
    weight : ndarray of shape (n,) or None
    penalty : float or ndarray of shape (p,)
        The features' own weights.
    fit_intercept : bool
    n_threads : int
    shift : ndarray of shape (n,) or (n, n_classes) or None
        The rows' offset.

    Attributes
    ----------
    is_in_main_memory : bool
        Whether X is neither on a GPU nor in blocks of rows.
    l1_ratio : float
    n_outputs : int
        Values of each feature in the solver's variables.
    scale : float
        What a penalty, as users have it, is multiplied by for the solver.
    columns : UsedColumns
        Which columns of the data X has: models that are scored have all.
    base : float
        The intercept of the model that the loss has at zero.
    n_penalties : int
        Length of the path.
    has_folds : bool
        Whether the problem is that of all rows of folds, or of one of them.
    dispersion_is_known : bool
        Whether the loss is a negative log-likelihood, and not only in proportion to one.
    """

    l1_ratio = 1.0
    n_outputs = 1
    scale = 1.0
    base = 0.0
    n_penalties = 1
    has_folds = True
    dispersion_is_known = True
    positive = False  # whether coefficients must be >= 0
    has_l1 = True  # whether one of its paths has an L1 penalty
    keeps_solutions = False  # whether cross-validation keeps those of the folds

    def __init__(self, X, values, weight, penalty, fit_intercept, n_threads, shift=None):
        self.X, self.values, self.weight = X, values, weight
        self.is_in_main_memory = is_in_main_memory(X)
        self.penalty, self.fit_intercept, self.n_threads = penalty, fit_intercept, n_threads
        self.shift = shift
        self.columns = UsedColumns(X.shape[1])

    def with_X(self, X):
        """The same with another X."""
        other = copy.copy(self)
        other.X = X
        return other

    def mixing(self, l1_ratio):
        """The same with another l1_ratio."""
        other = copy.copy(self)
        other.l1_ratio = l1_ratio
        return other

    def rows_and_weight(self):
        """Number of rows that have a positive weight, and the sum of all weights."""
        if self.weight is None:
            return len(self.values), float(len(self.values))
        return int((self.weight > 0.0).sum()), float(self.weight.sum())

    def is_separated(self, loss):
        """Whether a model with this loss has all classes right by a positive margin."""
        return False

    def prepare(self, folds):
        """Get ready for `training`."""

    def training(self, fold, index):
        """The problem on the training rows of a fold."""
        part = self._part(fold, index)
        part._adapt(self.values[as_like(fold[0], self.values)], index)
        return part

    def _adapt(self, values, index):
        """Set what depends on the training part of a fold, whose targets are ``values``."""

    def _part(self, fold, index):
        rows = as_like(fold[0], self.X)
        part = self.with_X(self.X[rows])
        part.values = self.values[rows]
        part.weight = None if self.weight is None else self.weight[rows]
        part.shift = None if self.shift is None else self.shift[rows]
        part.n_threads = 1
        return part

    def fold_scorer(self, rows, y, model, scorer, score_params):
        """Scorer of models on these rows, whose targets are those of ``y``; see `FoldScorer`.

        scikit-learn's scorers get copies in main memory of rows on a GPU.
        """
        from .fold_scorers import FoldScorer  # fits don't pay for the import

        offset = None if self.shift is None else to_host(self.shift[as_like(rows, self.X)])
        return FoldScorer(self, self.seen(rows), y[rows], model, scorer, score_params, offset)

    def seen(self, rows, bring=to_host):
        """A function from coefficients to X of these rows, by ``bring``, and to them, see `FoldScorer`."""
        X = bring(self.X[as_like(rows, self.X)])
        return lambda coef: (X, coef)

    def unpacked(self, x):
        """Coefficients (n_outputs, p) and intercepts (n_outputs,) of a solution, in main memory."""
        n_features, dtype = self.X.shape[1], self.X.dtype
        coef, intercept = unpack(
            to_host(x), self.n_outputs, n_features, self.fit_intercept, to_host(self.penalty)
        )
        coef, intercept = self.whole_model(coef, intercept + self.base)
        return in_type(coef, dtype), in_type(intercept, dtype)

    def whole_model(self, coef, intercept):
        """Coefficients (n_outputs, p) and intercepts (n_outputs,) of a model of the whole's targets."""
        return coef, intercept

    def as_attributes(self, coef, intercept):
        """The two as a model has them."""
        return coef[0], intercept[0]

    def attributes(self, coef, intercept):
        """Attributes of a model of all columns, where X is."""
        coef, intercept = self.as_attributes(self.columns.expand(coef), intercept)
        return {"coef_": as_like(coef, self.X), "intercept_": as_like(intercept, self.X)[()]}

    def null_start(self, loss):
        """Where a fit begins that is given no other start, and the unit of its tol; None: as solvers do."""
        return None, None

    def null_intercept(self):
        """The intercepts of the model without features, or None."""
        return np.zeros(1) if self.fit_intercept else None

    def start(self, options):
        """Loss, L1 weights, null model and largest penalty."""
        share = max(self.l1_ratio, LEAST_RATIO)
        with named_overflow(self.X):
            loss = self.make_loss(self.X)
            l1 = loss.l1_vector(self.penalty)
            if isinstance(loss, BlockProblem):
                x_null = null_model_on_blocks(loss, l1, options)
                return loss, l1, x_null, loss.largest_penalty(x_null, l1) / share
            x_null = self._null_model(options)
            return loss, l1, x_null, largest_penalty(loss, x_null, l1) / share

    def _null_model(self, options):
        """Variables of the best model in which every penalised coefficient is zero."""
        p, intercept = self.X.shape[1], self.null_intercept()
        coef = np.zeros((self.n_outputs, p))
        free = np.flatnonzero(np.broadcast_to(to_host(self.penalty), (p,)) == 0)
        if free.size:
            loss = self.make_loss(as_kernel_input(self.X[:, as_like(free, self.X)]))
            start = None
            if self.fit_intercept:
                start = as_like(pack(np.zeros((self.n_outputs, free.size)), intercept, True), self.X)
            # the largest penalty is computed from this solution, so it is solved more tightly than the path
            options = {**options, "tol": min(options["tol"], 1e-8), "predicted_tol": 0.0}
            minimize, _ = choose_solver(loss, solver="oba")
            result = minimize(as_like(np.zeros(loss.n_variables), self.X), start, **options)
            coef[:, free], free_intercept = unpack(
                to_host(result.x), self.n_outputs, free.size, self.fit_intercept, penalty=0.0
            )
            intercept = free_intercept if self.fit_intercept else None
        return as_like(pack(coef, intercept, self.fit_intercept), self.X)

    def regularization_path(
        self, penalties, n_penalties, eps, options, *, coefs, callback=None, max_time=None
    ):  # fmt: skip
        """The `RegularizationPath` of falling penalties, or of a grid of ``n_penalties``."""
        self.n_penalties = n_penalties if penalties is None else len(penalties)
        self.has_folds, self.has_l1 = False, self.l1_ratio > 0.0
        with named_overflow(self.X):
            loss, l1, x_null, lambda_max = self.start(options)
            lambda_max /= self.scale
            if penalties is None:
                penalties = penalty_grid(lambda_max, n_penalties, eps, self.l1_ratio)
            callback = self.columns.with_whole_variables(callback, self.n_outputs)
            lambdas = l1_weights(penalties, self.scale)
            results = self.path(loss, l1, lambdas, x_null, options, max_time, callback)
            return collect_path(self, results, penalties, lambda_max, coefs)

    def make_loss(self, X):
        """The loss of X, or of its centred columns where some hardly vary."""
        centre = None
        if can_be_centred(X, self.fit_intercept):
            centre = centre_of(X)
        if centre is None:
            return self._loss_of(X)
        X = subtract_centre(X, centre)
        return CentredLoss(self._loss_of(X), X, centre)

    def path(self, loss, l1, lambdas, x0, options, max_time, callback=None):
        """`iterate_path`, whose errors name X where that is to blame."""
        runs = iterate_path(
            loss, l1, lambdas, x0, options, l1_ratio=self.l1_ratio, max_time=max_time, callback=callback
        )
        while True:
            with named_overflow(self.X):
                result = next(runs, None)
            if result is None:
                return
            yield result


class LogisticProblem(PathProblem):
    """L1 logistic regression; ``values`` are codes of ``classes``."""

    keeps_solutions = True

    def __init__(self, X, codes, weight, penalty, fit_intercept, n_threads, classes, shift=None):
        super().__init__(X, codes, weight, penalty, fit_intercept, n_threads, shift=shift)
        self._set_classes(classes, np.arange(len(classes)), len(classes))

    def _set_classes(self, classes, present, n_classes):
        # those of a part are ``present`` among the n_classes of the whole
        self.classes, self.present, self.n_classes = classes, present, n_classes
        self.n_outputs = 1 if len(classes) == 2 else len(classes)

    def _adapt(self, values, index):
        present = to_host(np.unique(values))
        if len(present) < 2:
            raise ValueError(
                f"The training part of fold {index} has only the class "
                f"{shown(self.classes[present].tolist())}; at least 2 are needed. Use fewer or stratified "
                "folds."
            )
        self._set_classes(self.classes[present], present, len(self.classes))
        there = as_like(present, self.values)
        self.values = np.minimum(np.searchsorted(there, self.values), len(present) - 1)
        if self.shift is not None and self.shift.ndim == 2 and len(present) < self.shift.shape[1]:
            shift = self.shift[:, there]
            self.shift = shift[:, 1] - shift[:, 0] if len(present) == 2 else shift

    def fold_scorer(self, rows, y, model, scorer, score_params):
        from .fold_scorers import Accuracy, is_accuracy

        if self.shift is not None or score_params or not is_accuracy(scorer):
            return super().fold_scorer(rows, y, model, scorer, score_params)
        return Accuracy(self._margins(rows), self.values[as_like(rows, self.values)])

    def _margins(self, rows):
        seen = self.seen(rows, bring=lambda X: X)
        return lambda coef, intercept: class_scores(*seen(coef), intercept)

    def is_separated(self, loss):
        return loss < least_loss_of_an_error(self.weight)

    def whole_model(self, coef, intercept):
        return all_classes(coef, intercept, self.present, self.n_classes)

    def as_attributes(self, coef, intercept):
        return coef, intercept

    def null_start(self, loss):
        if self.shift is None or not self.fit_intercept or isinstance(loss, BlockProblem):
            return None, None  # blocks begin there
        # With the unit at zero an offset, and the same plus a constant, would have different tolerances.
        null = np.zeros((self.n_outputs, self.X.shape[1]))
        null = as_like(pack(null, self.null_intercept(), True), loss.s)
        return null, largest(np.abs(loss.gradient(null))) or None

    def null_intercept(self):
        if not self.fit_intercept:
            return None
        return null_intercept(
            *map(to_host, (self.values, self.weight)), len(self.classes), to_host(self.shift)
        )

    def _loss_of(self, X):
        return logistic_loss(
            X, self.values, len(self.classes), self.weight, self.fit_intercept, self.n_threads, self.shift
        )


def least_loss_of_an_error(weight):
    """A row whose class has no probability above 1/2 adds at least its weight times log 2 to the loss."""
    return np.log(2.0) * (1.0 if weight is None else float(weight[weight > 0.0].min()))
