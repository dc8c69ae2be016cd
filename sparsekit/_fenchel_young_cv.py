"""Paths over alpha of sparsemax and softmax regression, and the choice of alpha by cross-validation."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_X_y
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from ._base import MAX_ITER, SOLVER_CONSTRAINTS, TOL, CallbackSupportMixin
from ._fenchel_young import FenchelYoungClassifierMixin, SoftmaxMap, SparsemaxMap
from ._linalg.threads import count_threads
from ._losses.fenchel_young import FenchelYoungLoss
from ._path import check_penalties
from ._path_solver import warn_if_path_unconverged
from ._problem import X_CHECKS, as_kernel_input, check_sample_weight
from ._solvers.fenchel_young import minimize_fenchel_young
from ._targets import check_targets
from .metrics import jensen_shannon_divergence

# the range of the paper's Figure 1
_ALPHAS = tuple(10.0**-k for k in range(-1, 9))

_OPTIONS = {
    name: rule
    for name, rule in SOLVER_CONSTRAINTS.items()
    if name in ("tol", "max_iter", "max_time", "n_jobs")
}


def _solve_path(loss, alphas, start, penalize_intercept, options):
    """Results for falling alphas, each started from the last."""
    results = []
    for alpha in alphas:
        result = minimize_fenchel_young(loss, alpha, start, penalize_intercept=penalize_intercept, **options)
        start = result.x
        results.append(result)
    return results


@validate_params(
    {
        "transform": [StrOptions({"sparsemax", "softmax"})],
        "alphas": ["array-like", None],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **_OPTIONS,
    },
    prefer_skip_nested_validation=True,
)
def fenchel_young_path(
    X,
    y,
    *,
    transform="sparsemax",
    alphas=None,
    fit_intercept=True,
    penalize_intercept=True,
    class_weight=None,
    sample_weight=None,
    tol=TOL,
    max_iter=MAX_ITER,
    max_time=None,
    n_jobs=None,
):
    """Sparsemax or softmax regression for many alphas, each solution started from the last.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
        Labels, an indicator or distributions, as in :class:`SparsemaxClassifier`.
    transform : {"sparsemax", "softmax"}, default="sparsemax"
        The model.
    alphas : array-like, default=None
        Strengths of the penalty, > 0, in any order. None: ten powers of 10, from 10 to 1e-8.
    fit_intercept, penalize_intercept, class_weight, tol, max_iter, n_jobs
        As in :class:`SparsemaxClassifier`.
    sample_weight : array-like of shape (n_samples,), default=None
    max_time : float, default=None
        Largest time of each solve in seconds.

    Returns
    -------
    Bunch
        ``alphas`` (n_alphas,), falling; ``coefs`` (n_alphas, n_classes, n_features); ``intercepts``
        (n_alphas, n_classes); ``classes``; ``objectives``, ``dual_gaps``, ``optimality``, ``n_iters``,
        ``statuses``, (n_alphas,) each.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If a solve stopped before ``tol`` was reached.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsekit import fenchel_young_path
    >>> path = fenchel_young_path(*load_iris(return_X_y=True), alphas=[1e-1, 1e-2, 1e-3])
    >>> path.coefs.shape
    (3, 3, 4)
    """
    X, y = check_X_y(X, y, multi_output=True, **X_CHECKS)
    X = as_kernel_input(X)
    targets = check_targets(y, check_sample_weight(sample_weight, X.shape[0]), class_weight)
    alphas = np.sort(check_penalties(_ALPHAS if alphas is None else alphas, "alphas"))[::-1]
    loss = FenchelYoungLoss(
        transform, X, targets.values, len(targets.classes), targets.weight, fit_intercept=fit_intercept,
        n_threads=count_threads(n_jobs),
    )  # fmt: skip
    options = dict(tol=tol, max_iter=max_iter, max_time=max_time)
    results = _solve_path(loss, alphas, None, penalize_intercept, options)
    p, K = X.shape[1], len(targets.classes)
    tables = np.array([r.x for r in results])
    path = Bunch(
        alphas=alphas,
        coefs=tables[:, :p].transpose(0, 2, 1).astype(X.dtype),
        intercepts=(tables[:, p] if fit_intercept else np.zeros((len(alphas), K))).astype(X.dtype),
        classes=targets.classes,
        objectives=np.array([r.fun for r in results]),
        dual_gaps=np.array([r.dual_gap for r in results]),
        optimality=np.array([r.optimality for r in results]),
        n_iters=np.array([r.nit for r in results], dtype=np.int32),
        statuses=np.array([r.status for r in results], dtype=np.int32),
    )
    warn_if_path_unconverged(path, options, "fenchel_young_path", stacklevel=4)
    return path


class _FenchelYoungClassifierCV(CallbackSupportMixin, FenchelYoungClassifierMixin, BaseEstimator):
    """What the two classifiers with cross-validation share."""

    _parameter_constraints: ClassVar[dict] = {
        "alphas": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "fit_intercept": ["boolean"],
        "penalize_intercept": ["boolean"],
        "threshold": [Interval(Real, 0, 1, closed="left"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **_OPTIONS,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        alphas=None,
        *,
        cv=None,
        scoring=None,
        fit_intercept=True,
        penalize_intercept=True,
        threshold=None,
        class_weight=None,
        tol=TOL,
        max_iter=MAX_ITER,
        max_time=None,
        n_jobs=None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.threshold = threshold
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Choose alpha by cross-validation and fit all the data with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Labels, an indicator or distributions, as in :class:`SparsemaxClassifier`.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, in the fits and the scores.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As the classifier without CV, or if a fold's training part lacks a class.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If a solve stopped before ``tol`` was reached.
        """
        X, y = validate_data(self, X, y, multi_output=True, **{**X_CHECKS, "accept_sparse": "csr"})
        X = as_kernel_input(X)
        targets = check_targets(y, check_sample_weight(sample_weight, X.shape[0]), self.class_weight)
        self.classes_, self.multilabel_ = targets.classes, targets.multilabel
        self.alphas_ = np.sort(check_penalties(_ALPHAS if self.alphas is None else self.alphas, "alphas"))[
            ::-1
        ]
        options = dict(tol=self.tol, max_iter=self.max_iter, max_time=self.max_time)
        cv = self.cv
        if cv is None:
            # five folds need five rows of some class
            rows = X.shape[0] if targets.multilabel else int(np.bincount(targets.values).max())
            cv = max(2, min(5, rows))
        folds = list(check_cv(cv, y, classifier=not targets.multilabel).split(X, y))
        threads = count_threads(self.n_jobs)
        # the kernels hold no lock, so threads run at once and share X
        runs = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._score_fold)(X, y, targets, fold, options) for fold in folds
        )
        scores, results = zip(*runs)
        self.scores_ = np.array(scores)
        self.mean_score_ = self.scores_.mean(axis=0)
        spread = self.scores_.std(axis=0, ddof=1) if len(folds) > 1 else np.zeros(len(self.alphas_))
        self.se_ = spread / np.sqrt(len(folds))
        best = int(np.argmax(self.mean_score_))  # the first, so the largest alpha, of equal ones
        self.alpha_ = float(self.alphas_[best])
        loss = self._loss(X, targets, slice(None), threads)
        path = _solve_path(loss, self.alphas_[: best + 1], None, self.penalize_intercept, options)
        self._set(path[-1].x, X.dtype)
        self.n_iter_ = np.array([sum(r.nit for r in run) for run in results], dtype=np.int32)
        final = path[-1]
        self.optimality_, self.objective_ = float(final.optimality), float(final.fun)
        self.dual_gap_ = float(final.dual_gap)
        every = [r for run in (*results, path) for r in run]
        report = Bunch(
            statuses=np.array([r.status for r in every]), optimality=np.array([r.optimality for r in every])
        )
        warn_if_path_unconverged(report, options, type(self).__name__, stacklevel=4)
        return self

    def _loss(self, X, targets, rows, threads):
        weight = None if targets.weight is None else targets.weight[rows]
        return FenchelYoungLoss(
            self._transform, X[rows], targets.values[rows], len(targets.classes), weight,
            fit_intercept=self.fit_intercept, n_threads=threads,
        )  # fmt: skip

    def _set(self, table, dtype):
        """Set the coefficients from the solver's table."""
        p = self.n_features_in_
        intercept = table[p] if self.fit_intercept else np.zeros(table.shape[1])
        self.coef_ = np.ascontiguousarray(table[:p].T, dtype=dtype)
        self.intercept_ = intercept.astype(dtype)

    def _score_fold(self, X, y, targets, fold, options):
        """Scores of the left-out rows, and the results, for every alpha."""
        train, test = fold
        weight = None if targets.weight is None else targets.weight[train]
        if weight is not None and not weight.any():
            raise ValueError("the training part of a fold has no row with a positive weight")
        results = _solve_path(
            self._loss(X, targets, train, 1), self.alphas_, None, self.penalize_intercept, options
        )
        part = type(self)(threshold=self.threshold, fit_intercept=self.fit_intercept)
        part.classes_, part.multilabel_ = self.classes_, self.multilabel_
        part.n_features_in_ = self.n_features_in_
        weight = None if targets.weight is None else targets.weight[test]
        scores = []
        for result in results:
            part._set(result.x, X.dtype)
            if self.scoring is None:
                scores.append(part._divergence_score(X[test], targets.values[test], weight))
            else:
                extra = {} if weight is None else {"sample_weight": weight}
                scores.append(get_scorer(self.scoring)(part, X[test], y[test], **extra))
        return scores, results

    def _divergence_score(self, X, values, weight):
        q = values if self.multilabel_ else np.eye(len(self.classes_))[values]
        if weight is not None:
            # rows without a label are no distributions; their weight is zero
            counted = weight > 0
            X, q, weight = X[counted], q[counted], weight[counted]
        return (
            -jensen_shannon_divergence(q, self.predict_proba(X), sample_weight=weight) if len(q) else np.nan
        )


_CV_DOC = """{what} with alpha chosen by cross-validation.

    Each fold solves one path over alpha, from the strongest penalty to the weakest, every solution started
    from the last.

    Parameters
    ----------
    alphas : array-like, default=None
        Values > 0 to try, in any order. None: ten powers of 10, from 10 to 1e-8.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn; None is 5 folds, stratified for labels, and not for matrices.
    scoring : str or callable, default=None
        Any scikit-learn scorer for classifiers. None is the negative Jensen-Shannon divergence between
        targets and probabilities, which is defined for labels, indicators and distributions alike.
    fit_intercept, penalize_intercept, threshold, class_weight, tol, max_iter
        As in :class:`{twin}`.
    max_time : float, default=None
        Largest time of each solve in seconds.
    n_jobs : int, default=None
        Number of folds that run at once, in threads; the final fit uses as many threads.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha: of the best mean score, and the largest of equal ones.
    alphas_ : ndarray of shape (n_alphas,)
        The values tried, falling.
    scores_ : ndarray of shape (n_folds, n_alphas)
        Score of each fold's left-out part.
    mean_score_, se_ : ndarray of shape (n_alphas,)
        Mean of the scores over the folds, and its standard error.
    n_iter_ : ndarray of shape (n_folds,)
        Newton steps of each fold's path.
    coef_, intercept_, classes_, multilabel_, optimality_, objective_, dual_gap_
        As in :class:`{twin}`, of the final fit.
    n_features_in_, feature_names_in_
        As in :class:`{twin}`.
    """


class SparsemaxClassifierCV(SparsemaxMap, _FenchelYoungClassifierCV):
    __doc__ = _CV_DOC.format(what="Sparsemax regression", twin="SparsemaxClassifier")


class SoftmaxClassifierCV(SoftmaxMap, _FenchelYoungClassifierCV):
    __doc__ = _CV_DOC.format(what="Softmax regression", twin="SoftmaxClassifier")
