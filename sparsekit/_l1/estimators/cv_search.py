"""The search over warm-started paths, by folds or by a criterion, the same for classes and for numbers.

A problem of all rows (`problems`) has those of the folds; the estimators say what their penalty is called.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import _raise_for_params

from ..._arrays import namespace, to_host
from ..._docstrings import shares_entries
from ..._estimator.base import CallbackSupportMixin
from ..._estimator.checks import check_penalties
from ..._estimator.cross_validation import (
    CrossValidationMixin,
)
from ..._estimator.decorators import declares_parameters, fit_context
from ..._estimator.monitor import PartsMonitor
from ..._estimator.offset import with_rows_offset
from ..._estimator.offset_prediction import OffsetClassificationMixin
from ..._messages import numbers, shown
from ..._typing import CrossValidation, Hessian, MatrixLike, Offset, PenaltyWeights, Scoring
from ..paths.coefficients import l1_weights, mixed
from ..paths.path_solver import penalty_grid
from ..paths.settings import MAX_ITER, MEMORY, OBA_CONSTRAINTS, TOL
from .fit import OBAEstimatorMixin
from .fold_search import FoldSearchMixin
from .search import CRITERIA, MAX_FEATURES_PER_ROW, Search, check_selection, criterion_of

# Attributes that only some searches leave.
_FITTED = (
    "criterion_", "scores_", "mean_score_", "se_", "l1_ratio_scores_", "mse_path_", "coefs_paths_",
    "optimality_", "objective_", "dual_gap_",
)  # fmt: skip
Selection = Literal["best", "1se", "aic", "bic", "ebic"]

CV_CONSTRAINTS: dict = {
    "eps": [Interval(Real, 0, 1, closed="neither")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both"), "array-like"],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "selection": [StrOptions({"best", "1se", *CRITERIA})],
    "relaxed": ["boolean"],
    "refit": ["boolean"],
    "fit_intercept": ["boolean"],
    "penalty_weights": ["array-like", dict, None],
    **{name: rule for name, rule in OBA_CONSTRAINTS.items() if name != "callback"},
}


@declares_parameters
class PathSearchMixin(FoldSearchMixin, CallbackSupportMixin, ABC):
    """Chooses a penalty and l1_ratio by folds or by a criterion, and fits all rows there."""

    eps: float = 1e-3
    l1_ratio: float | ArrayLike = 1.0
    cv: CrossValidation = None
    scoring: Scoring = None
    selection: Selection = "best"
    relaxed: bool = False
    refit: bool = True
    fit_intercept: bool = True
    penalty_weights: PenaltyWeights = None
    tol: float = TOL
    max_iter: int = MAX_ITER
    max_time: float | None = None
    n_jobs: int | None = None
    hessian: Hessian = "exact"
    memory: int = MEMORY
    verbose: int = 0

    _penalty: ClassVar[str]  # the penalty's name as a parameter: C, alpha
    # of the estimators
    _read: ClassVar[Any]  # what checks data: `with_numbers` or `with_labels`
    _whole: ClassVar[Any]  # from `TrainingData` to the `PathProblem` of all rows
    _own_score: ClassVar[Any]  # the score of the model without a search
    _check_device: ClassVar[Any]
    coef_: Any
    intercept_: Any

    @fit_context(prefer_skip_nested_validation=True)
    @shares_entries(OBAEstimatorMixin.fit)
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: Offset = None,
        **params: Any,
    ) -> Self:
        """Choose the penalty, and ``l1_ratio`` where it is several, by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. Blocks of rows, and CuPy's arrays, are worked on where they are, as in the fit of
            the model for one penalty. A ``scoring`` of scikit-learn's gets the left-out rows in main memory.
        {y}
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, in the fits and (as metadata routing says, or always where it is
            off) in the scores.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            As in the fit of the model for one penalty; the folds are fitted and scored with their rows of it.
        **params : dict
            Metadata for the splitter (such as ``groups``) and the scorer; needs metadata routing.

        {Returns}

        Raises
        ------
        ValueError
            As the fit of the model for one penalty, or if all rows of a fold's training part or of its
            left-out part weigh 0. For a classifier also if a training part has only one class.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If a solve stopped before ``tol`` was reached. With ``relaxed=True`` also if the selected features
            separate classes, so that the best coefficients are infinite.
        UserWarning
            If a criterion is lowest at the weakest penalty of the grid. For a classifier also if the best
            score is that of an end of the grid. There may be a better penalty beyond it.
        """
        _raise_for_params(params, self, "fit")
        given = self._read(
            self, X, y, sample_weight, stay_in_blocks=True, offset=offset,
            accept_sparse="csr",  # folds are selections of rows
        )  # fmt: skip
        whole = self._whole(given)
        y, model, scorer = self._scored(given, whole)
        metadata = given.for_callbacks()["metadata"]
        X, ratios, by_criterion = whole.X, check_ratios(self.l1_ratio), self.selection in CRITERIA
        check_selection(self.selection, ratios, self.refit, self.relaxed)
        for name in (*_FITTED, f"{self._penalty}_best_", f"{self._penalty}_1se_"):
            self.__dict__.pop(name, None)  # what this fit may not have
        self.needs_offset_ = given.offset is not None
        folds, score_params = ([], {}) if by_criterion else self._folds_of(given, y, params)
        part, n_parts = ("path", 1) if by_criterion else ("fold", len(folds))
        monitor = PartsMonitor(self, part, n_parts, X=whole.columns.widen(X), y=y, metadata=metadata)
        penalties = getattr(self, f"{self._penalty}s")
        n_penalties = penalties if isinstance(penalties, Integral) else len(penalties)
        whole.n_penalties, whole.has_l1 = len(ratios) * n_penalties, ratios[-1] > 0.0
        if not by_criterion:
            whole.prepare(folds)
        search = Search(whole, self._solver_options())
        grids = self._grids(search, ratios)
        if by_criterion:
            found = self._by_criterion(search, ratios, grids)
            monitor.part_ends(0)
        else:
            found = self._by_folds(
                search, ratios, grids, folds, y, model, scorer, score_params, monitor.part_ends
            )
        if self.relaxed:
            value = getattr(self, f"{self._penalty}_")
            what = (
                f"{type(self).__name__}'s fit without a penalty to what {self._penalty}={value:.3g} selects"
            )
            found = search.refit(found.x, self.max_time, what)
        if isinstance(found, OptimizeResult):
            self.optimality_, self.objective_ = float(found.optimality), float(found.fun) / whole.scale
            self.dual_gap_ = float(found.dual_gap) / whole.scale
            found = whole.unpacked(found.x)
        for name, value in whole.attributes(*found).items():
            setattr(self, name, value)
        monitor.end()
        search.warn(type(self).__name__)
        return self

    @abstractmethod
    def _scored(self, given, whole):
        """Targets (n_samples,) for splitters and scorers; a model; the scorer or None.

        Scorers get the model with the coefficients of each penalty in turn.
        """

    @staticmethod
    def _as_penalty(lambdas):
        """The penalties, as users have them, of falling lambdas; the strongest first."""
        return lambdas

    def _solver_options(self):
        return dict(tol=self.tol, max_iter=self.max_iter, hessian=self.hessian, memory=self.memory)

    def _store_search(self, penalties, chosen, scores=None):
        """Keep what was tried: penalties (n_penalties,) of each ratio, and all scores of folds."""
        setattr(self, f"{self._penalty}s_", penalties[chosen])

    def _grids(self, search, ratios):
        """The falling lambdas of each ratio: those given, or from where all coefficients are zero."""
        name = f"{self._penalty}s"
        given = getattr(self, name)
        if not isinstance(given, Integral):
            return [np.sort(self._as_penalty(check_penalties(given, name)))[::-1]] * len(ratios)
        scale = search.whole.scale
        return [penalty_grid(search.largest(ratio), given, self.eps, ratio) / scale for ratio in ratios]

    def _points(self, ratios, grids):
        """What warnings call each ratio and penalty."""
        points = []
        for ratio, grid in zip(ratios, grids):
            mixed = f", l1_ratio={ratio:.3g}" if np.ndim(self.l1_ratio) else ""
            points += [f"{self._penalty}={value:.3g}{mixed}" for value in self._as_penalty(grid)]
        return points

    def _by_criterion(self, search, ratios, grids):
        """The result of the path on all rows where the criterion is the least."""
        whole, values = search.whole, np.full((len(ratios), len(grids[0])), np.inf)
        chosen, n_iter, points = None, 0, iter(self._points(ratios, grids))
        for i, (ratio, lambdas) in enumerate(zip(ratios, grids)):
            results = search.path(lambdas, ratio, search.x_null, search.options, self.max_time)
            for j, (lam, result, point) in enumerate(zip(lambdas, results, points)):
                weights, ridge = mixed(l1_weights(search.l1, lam * whole.scale), ratio)
                x = result.x[: len(weights)]
                penalty = float(weights @ np.abs(x))
                if ridge:
                    penalty += 0.5 * float(ridge["l2"] @ x**2)
                values[i, j] = criterion_of(whole, self.selection, float(result.fun) - penalty, result.x)
                n_iter += result.nit
                search.add([result.status], [result.optimality], [f"the path at {point}"])
                if chosen is None or values[i, j] < values[chosen[1:]]:
                    chosen = result, i, j
        if not np.isfinite(values).any():
            raise ValueError(
                f"selection={shown(self.selection)} has no candidate: every model of the grid has more than "
                f"{MAX_FEATURES_PER_ROW:g} features a row. Use larger penalties, or selection='best'."
            )
        result, at, index = chosen
        self.criterion_ = values if len(ratios) > 1 else values[0]
        self.l1_ratios_, self.l1_ratio_ = ratios, float(ratios[at])
        self.n_iter_ = np.array([n_iter], dtype=np.int32)
        penalties = [self._as_penalty(grid) for grid in grids]
        self._store_search(penalties, at)
        value = float(penalties[at][index])
        setattr(self, f"{self._penalty}_", value)
        if 0 < index == len(grids[0]) - 1:
            warnings.warn(
                f"{type(self).__name__}: the best {self._penalty}, {value:.3g}, is the weakest penalty of "
                f"the grid, beyond which {self.selection} may still fall. Give weaker ones to "
                f"{self._penalty}s, or a smaller eps.",
                UserWarning,
                stacklevel=4,
            )
        return result

    @shares_entries(CrossValidationMixin.score, OffsetClassificationMixin.decision_function)
    def score(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: ArrayLike | None = None,
        offset: Offset = None,
        **score_params: Any,
    ) -> float:
        """Score with the scorer that ``scoring`` names.

        None is accuracy of classes, R^2 of numbers as in scikit-learn's LassoCV, and the share D^2 of the
        deviance of other families.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            True labels or values.
        {sample_weight, offset, **score_params}

        Returns
        -------
        float
            More is better.
        """
        if self.scoring is None and (not is_classifier(self) or self._check_device(X)):
            _raise_for_params(score_params, self, "score")
            return self._own_score(X, y, sample_weight, offset)
        model = self if offset is None else with_rows_offset(self, offset)
        if not self._check_device(X):
            return CrossValidationMixin.score(model, X, y, sample_weight, **score_params)
        namespace(X=X, y=y, sample_weight=sample_weight)
        params = {name: to_host(value) for name, value in score_params.items()}
        on_host = to_host(X), to_host(y), to_host(sample_weight)
        return CrossValidationMixin.score(model.to_cpu(), *on_host, **params)


def check_ratios(l1_ratio):
    """The distinct values of l1_ratio, rising, as float64."""
    ratios = np.unique(numbers(l1_ratio, "l1_ratio"))
    if np.ndim(l1_ratio) > 1 or not ratios.size or not ((ratios >= 0) & (ratios <= 1)).all():
        raise ValueError(f"l1_ratio must be a number from 0 to 1, or several; got {shown(l1_ratio)}.")
    return ratios
