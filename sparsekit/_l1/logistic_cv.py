"""L1 logistic regression with C, and l1_ratio, chosen by cross-validation over warm-started paths."""

from __future__ import annotations

import itertools
import time
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params

from .._estimator.base import CallbackSupportMixin
from .._estimator.block_data import BlockedMatrix, labels_of_blocks
from .._estimator.checks import (
    X_CHECKS,
    apply_class_weight,
    as_kernel_input,
    check_penalties,
    check_sample_weight,
)
from .._estimator.cross_validation import CrossValidationMixin, run_folds, with_labels
from .._estimator.decorators import fit_context
from .._estimator.device_linear import refuse_device
from .._estimator.labels import encode_labels, refuse_missing_labels
from .._estimator.sklearn_twins import logistic_twin
from .._estimator.validation import validate_data
from .._linalg.threads import count_threads
from .._messages import numbers, shown
from .._row_blocks.make import comes_in_blocks
from .._typing import ClassWeight, CrossValidation, Hessian, MatrixLike, PenaltyWeights, Scoring
from .coefficients import all_classes, check_penalty_weights, l1_weights, unpack
from .cv_problems import BlockPathProblem, PathProblem
from .fit import MAX_ITER, MEMORY, OBA_CONSTRAINTS, TOL, weights_in_units
from .logistic import L1LogisticClassifierMixin, L1LogisticOBA
from .magnitudes import sum_in_units
from .path_solver import LEAST_RATIO, penalty_grid, warn_if_path_unconverged

# multiples of tol for fits that are only scored, which end where models promise no more than that part of the
# objective: 3e-4 at the default, which no score shows
_SCORED, _PROMISED = 10.0, 30.0


class L1LogisticOBACV(CrossValidationMixin, CallbackSupportMixin, L1LogisticClassifierMixin, BaseEstimator):
    """L1-regularised logistic regression with C chosen by cross-validation.

    The objective is that of :class:`L1LogisticOBA`; as in scikit-learn, C multiplies the *sum* of the
    losses in every fold and in the final fit alike. Each fold solves one warm-started path.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C > 0 to try, in any order. An integer asks for that many values, evenly spaced in the
        logarithm from the largest C at which all penalised coefficients are zero on the whole data to
        ``1 / eps`` times it; each ``l1_ratio`` has values of its own then. Below an ``l1_ratio`` of 1e-3,
        where no coefficient is ever zero, they begin as for 1e-3 and end as for 1.
    eps : float, default=1e-3
        Ratio of the grid's ends where Cs is an integer, in (0, 1).
    l1_ratio : float or array-like, default=1.0
        Part of the penalty that is L1, as in :class:`L1LogisticOBA`, from 0 to 1, or several to choose among:
        ``l1_ratio_`` is the one with the best mean score of any C (ties go to the larger one), and
        ``selection`` chooses C for it. Each costs a path in every fold.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn; None is 5 stratified folds, fewer where every class has fewer rows.
    scoring : str or callable, default=None
        Any scikit-learn scorer for classifiers. None is accuracy, as in the released
        :class:`sklearn.linear_model.LogisticRegressionCV`; "neg_log_loss" judges the probabilities and
        is the smoother guide to C.
    selection : {"best", "1se"}, default="best"
        The C that ``C_`` is: the best mean score (ties go to the smaller C), or the "one standard error"
        choice, the smallest C, hence the sparsest model, whose mean score is at least the best mean
        score minus the standard error of the best.
    refit : bool, default=True
        Fit all the data at ``C_``. If False the coefficients are the folds' average at ``C_``; a class that
        the training part of a fold lacks has the intercept -inf there and in the average, and is never
        predicted.
    fit_intercept, penalty_weights, class_weight, tol, max_iter
        As in :class:`L1LogisticOBA`. ``class_weight="balanced"`` counts the whole data. With ``refit`` the
        folds, which are only scored, are solved to ten times tol, or until a model of the solver that holds
        promises less than 30 tol of the objective.
    max_time : float, default=None
        Largest time in seconds of each path.
    n_jobs : int, default=None
        Number of folds that run at once, in threads; the final fit uses as many threads.
    hessian, memory
        As in :class:`L1LogisticOBA`.
    verbose : int, default=0
        Passed to joblib, which reports the folds.

    Attributes
    ----------
    C_ : float
        The chosen C.
    C_best_, C_1se_ : float
        The choices of the two rules of ``selection``.
    Cs_ : ndarray of shape (n_Cs,)
        The values tried with ``l1_ratio_``, rising; of it are the scores, too.
    scores_ : ndarray of shape (n_folds, n_Cs)
        Score of each fold's left-out part.
    mean_score_, se_ : ndarray of shape (n_Cs,)
        Mean of the scores over the folds, and its standard error.
    l1_ratio_ : float
        The chosen l1_ratio.
    l1_ratios_ : ndarray of shape (n_ratios,)
        Those tried, rising.
    l1_ratio_scores_ : ndarray of shape (n_ratios,)
        The best mean score of each.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in :class:`L1LogisticOBA`.
    n_iter_ : ndarray of shape (n_folds,)
        Outer iterations of each fold's whole paths.
    optimality_, objective_, dual_gap_ : float
        Of the final fit, as in :class:`L1LogisticOBA`; only with ``refit=True``.

    See Also
    --------
    L1LogisticOBA : The model for one C.
    l1_logistic_path : The path itself.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sparsekit import L1LogisticOBACV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L1LogisticOBACV(scoring="neg_log_loss", selection="1se").fit(scale(X), y)
    >>> model.C_ == model.C_1se_ <= model.C_best_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "eps": [Interval(Real, 0, 1, closed="neither")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "selection": [StrOptions({"best", "1se"})],
        "refit": ["boolean"],
        "fit_intercept": ["boolean"],
        "penalty_weights": ["array-like", dict, None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **{name: rule for name, rule in OBA_CONSTRAINTS.items() if name != "callback"},
    }

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        *,
        eps: float = 1e-3,
        l1_ratio: float | ArrayLike = 1.0,
        cv: CrossValidation = None,
        scoring: Scoring = None,
        selection: Literal["best", "1se"] = "best",
        refit: bool = True,
        fit_intercept: bool = True,
        penalty_weights: PenaltyWeights = None,
        class_weight: ClassWeight = None,
        tol: float = TOL,
        max_iter: int = MAX_ITER,
        max_time: float | None = None,
        n_jobs: int | None = None,
        hessian: Hessian = "exact",
        memory: int = MEMORY,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.eps = eps
        self.l1_ratio = l1_ratio
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.refit = refit
        self.fit_intercept = fit_intercept
        self.penalty_weights = penalty_weights
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.hessian = hessian
        self.memory = memory
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Choose C, and ``l1_ratio`` where it is several, by cross-validation and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any kind.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, in the fits and (as metadata routing says, or always where it is
            off) in the scores.
        **params : dict
            Metadata for the splitter (such as ``groups``) and the scorer; needs metadata routing.

        Returns
        -------
        self : L1LogisticOBACV

        Raises
        ------
        ValueError
            As :meth:`L1LogisticOBA.fit`, or if the training part of a fold has only one class.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If a solve stopped before ``tol`` was reached.
        """
        refuse_device(type(self).__name__, "fit L1LogisticOBA", X=X, y=y)
        ratios = _check_ratios(self.l1_ratio)
        _raise_for_params(params, self, "fit")
        if comes_in_blocks(X):
            X, codes, weight, classes = labels_of_blocks(self, X, y, sample_weight, self.class_weight)
            y, base_weight = X.census.y, X.census.weight
        else:
            # CSR, since folds are selections of rows
            refuse_missing_labels(y)
            X, y = validate_data(self, X, y, **{**X_CHECKS, "accept_sparse": "csr"})
            X = as_kernel_input(X)
            classes, codes = encode_labels(y)
            base_weight = check_sample_weight(sample_weight, X.shape[0])
            weight = apply_class_weight(self.class_weight, classes, codes, base_weight)
        weight, unit = weights_in_units(X, weight, sum_in_units)
        penalty = check_penalty_weights(
            self.penalty_weights, X.shape[1], getattr(self, "feature_names_in_", None)
        )
        options = dict(tol=self.tol, max_iter=self.max_iter, hessian=self.hessian, memory=self.memory)
        routed = self._route("fit", sample_weight=base_weight, **params)
        cv = self.cv
        if cv is None:
            # five folds need five rows of some class
            cv = max(2, min(5, int(np.bincount(codes).max())))
        splitter = check_cv(cv, y, classifier=True)
        rows = np.empty((len(y), 0)) if isinstance(X, BlockedMatrix) else X
        folds = list(splitter.split(rows, y, **routed.splitter.split))

        context = None
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        if hasattr(self, "_init_callback_context"):
            context = self._init_callback_context(max_subtasks=len(folds), sequential_subtasks=False)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=metadata)

        n_threads = count_threads(self.n_jobs)
        make = BlockPathProblem if isinstance(X, BlockedMatrix) else PathProblem
        whole = make(X, codes, classes, weight, penalty, self.fit_intercept, n_threads)
        whole.prepare(folds)
        loss, l1, x_null, lambda_max = whole.start(options)
        if isinstance(self.Cs, Integral):
            grids = [penalty_grid(lambda_max / max(r, LEAST_RATIO), self.Cs, self.eps, r) for r in ratios]
        else:
            given = l1_weights(1.0 / np.sort(check_penalties(self.Cs, "Cs")), 1.0 / unit)
            grids = [given] * len(ratios)
        # lambdas are those of weights in units
        Cs = [1.0 / (lambdas * unit) for lambdas in grids]

        scorer = with_labels(self._get_scorer(), classes)
        tasks: list[Any] = []
        for k in range(len(folds)):
            tasks.append(None if context is None else context.subcontext(task_name="fold", task_id=k))
            if tasks[k] is not None:
                tasks[k].call_on_fit_task_begin(estimator=self)
        # what is only scored, or only a start, need not be as exact as what is returned
        scored: dict[str, Any] = (
            {**options, "tol": _SCORED * self.tol, "promise_tol": _PROMISED * self.tol}
            if self.refit
            else options
        )
        light = whole.beside(None)
        calls = (
            delayed(_score_fold)(
                light, X, y, classes, fold, k, ratios, grids, scored, self.max_time, scorer,
                routed.scorer.score, not self.refit,
            )
            for k, fold in enumerate(folds)
        )  # fmt: skip
        runs = run_folds(calls, self.n_jobs, self.verbose, shared=isinstance(X, BlockedMatrix))
        done = []
        for k, run in enumerate(runs):
            done.append(run)
            if tasks[k] is not None:
                tasks[k].call_on_fit_task_end(estimator=self)
        scores, n_iters, statuses, optimality, solutions = zip(*done)
        chosen = self._choose_ratio(ratios, np.array(scores).reshape(len(folds), len(ratios), -1))
        self.Cs_, lambdas, ratio = Cs[chosen], grids[chosen], float(ratios[chosen])
        self._choose(np.array(scores)[:, chosen * len(lambdas) :][:, : len(lambdas)])
        self.n_iter_ = np.array([fold.sum() for fold in n_iters], dtype=np.int32)
        statuses, optimality = list(np.concatenate(statuses)), list(np.concatenate(optimality))

        mixed = [f", l1_ratio={r:.3g}" if len(ratios) > 1 else "" for r in ratios]
        points = [f"C={C:.3g}{name}" for values, name in zip(Cs, mixed) for C in values]
        names = [f"fold {k} at {point}" for k in range(len(folds)) for point in points]

        last = int(np.flatnonzero(self.Cs_ == self.C_)[0])
        self.classes_ = classes
        n_outputs = whole.n_outputs
        if self.refit:
            x, left = x_null, self.max_time
            for part, how in (lambdas[:last], scored), (lambdas[last : last + 1], options):
                begin = time.perf_counter()
                for lam, result in zip(part, whole.mixing(ratio).path(loss, l1, part, x, how, left)):
                    statuses.append(result.status)
                    optimality.append(result.optimality)
                    names.append(f"the fit to all rows at C={1.0 / (lam * unit):.3g}")
                    x = result.x
                left = None if left is None else max(left - (time.perf_counter() - begin), 1e-9)
            coef, intercept = unpack(result.x, n_outputs, X.shape[1], self.fit_intercept, X.dtype)
            self.optimality_, self.objective_ = float(result.optimality), float(result.fun) * unit
            self.dual_gap_ = float(result.dual_gap) * unit
        else:
            parts = [fold[chosen * len(lambdas) + last] for fold in solutions]
            coef = np.mean([part[0].toarray() for part in parts], axis=0).astype(X.dtype)
            intercept = np.mean([part[1] for part in parts], axis=0).astype(X.dtype)
        self.coef_, self.intercept_ = coef, intercept
        if context is not None:
            context.call_on_fit_task_end(
                estimator=self, X=X, y=y, metadata=metadata, reconstruction_attributes=dict
            )
        report = Bunch(statuses=np.array(statuses), optimality=np.array(optimality))
        warn_if_path_unconverged(report, options, type(self).__name__, stacklevel=4, names=names)
        return self

    def _twin(self):
        ratio = getattr(self, "l1_ratio_", 1.0)  # models that were saved before there was one
        return logistic_twin(
            ratio, C=self.C_, fit_intercept=self.fit_intercept, class_weight=self.class_weight
        )

    def _choose_ratio(self, ratios, scores):
        """Position of the best ratio by scores (n_folds, n_ratios, n_Cs); of equal ones the last."""
        best = scores.mean(axis=0).max(axis=1)
        chosen = len(ratios) - 1 - int(np.argmax(best[::-1]))
        self.l1_ratios_, self.l1_ratio_scores_ = ratios, best
        self.l1_ratio_ = float(ratios[chosen])
        return chosen

    def _choose(self, scores):
        """Set the scores and the two choices of C from the folds' scores (n_folds, n_Cs)."""
        n_folds = len(scores)
        self.scores_ = scores
        self.mean_score_ = scores.mean(axis=0)
        spread = scores.std(axis=0, ddof=1) if n_folds > 1 else np.zeros(scores.shape[1])
        self.se_ = spread / np.sqrt(n_folds)
        best = int(np.argmax(self.mean_score_))  # the first, so the smallest C, of equal ones
        # Cs_ rises, so the first that is good enough is the sparsest model that is
        enough = self.mean_score_ >= self.mean_score_[best] - self.se_[best]
        self.C_best_ = float(self.Cs_[best])
        self.C_1se_ = float(self.Cs_[int(np.argmax(enough))])
        self.C_ = self.C_best_ if self.selection == "best" else self.C_1se_


def _check_ratios(l1_ratio):
    """The distinct values of l1_ratio, rising, as float64."""
    ratios = np.unique(numbers(l1_ratio, "l1_ratio"))
    if np.ndim(l1_ratio) > 1 or not ratios.size or not ((ratios >= 0) & (ratios <= 1)).all():
        raise ValueError(f"l1_ratio must be a number from 0 to 1, or several; got {shown(l1_ratio)}.")
    return ratios


def _score_fold(
    whole, X, y, classes, fold, index, ratios, grids, options, max_time, scorer, score_params, keep_coefs
):
    """Solve the paths on a fold's training part and score each model on the rest."""
    whole, (train, test) = whole.beside(X), fold
    present = np.unique(whole.codes[train])
    if len(present) < 2:
        raise ValueError(
            f"The training part of fold {index} has only the class {shown(classes[present].tolist())}; at "
            "least 2 are needed. Use fewer or stratified folds."
        )
    part = whole.training(fold, index, present)
    loss, l1, x_null, _ = part.start(options)
    y_test, seen = y[test], whole.test_rows(test)
    score_params = _check_method_params(X=whole.X, params=score_params, indices=test)
    n_features = whole.X.shape[1]
    model = L1LogisticOBA()
    model.classes_ = classes
    scores, n_iters, statuses, optimality, solutions = [], [], [], [], []
    paths = (
        part.mixing(ratio).path(loss, l1, lambdas, x_null, options, max_time)
        for ratio, lambdas in zip(ratios, grids)
    )
    for result in itertools.chain.from_iterable(paths):
        coef, intercept = unpack(result.x, part.n_outputs, n_features, part.fit_intercept, whole.X.dtype)
        coef, model.intercept_ = all_classes(coef, intercept, present, len(classes))
        X_test, model.coef_ = seen(coef)
        model.n_features_in_ = X_test.shape[1]
        scores.append(scorer(model, X_test, y_test, **score_params))
        n_iters.append(result.nit)
        statuses.append(result.status)
        optimality.append(result.optimality)
        if keep_coefs:
            solutions.append((sp.csr_array(coef), model.intercept_))
    return np.array(scores), np.array(n_iters), np.array(statuses), np.array(optimality), solutions
