"""What the estimators that choose a parameter by cross-validation share: scorers and metadata routing."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import KFold, PredefinedSplit, check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed

from .._arrays import host_only, is_sparse
from .._linalg.structure import check_sparse
from .._linalg.threads import blas_threads, nested_n_jobs
from .._typing import Array, CrossValidation, MatrixLike, Scoring
from .decorators import PlainParametersMixin
from .labels import refuse_missing_labels
from .monitor import PartsMonitor


class CrossValidationMixin(PlainParametersMixin):
    """Scores by ``scoring``, by default ``_default_scoring``, and routing to splitter and scorer."""

    cv: CrossValidation
    scoring: Scoring
    n_jobs: int | None
    _default_scoring: str | Callable[..., float] = "accuracy"

    def score(
        self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None, **score_params: Any
    ) -> float:
        """Score with the scorer that ``scoring`` names (see the class for the default).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test data.
        y : array-like of shape (n_samples,)
            True labels; for models that `fit` gives matrices, (n_samples, n_labels).
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        **score_params : dict
            Metadata for the scorer; needs metadata routing.

        Returns
        -------
        float
            What ``scoring`` measures; more is better.

        Raises
        ------
        TypeError
            If metadata routing is on and the scorer does not request the sample_weight that is given.
        """
        host_only(X=X, y=y, sample_weight=sample_weight)
        refuse_missing_labels(y)
        _raise_for_params(score_params, self, "score")
        routed = self._route("score", sample_weight=sample_weight, **score_params)
        if sample_weight is not None and "sample_weight" not in routed.scorer.score:
            # scikit-learn's own check takes the parameter for one that this method uses
            raise TypeError(
                f"{type(self).__name__}.score got sample_weight, which the scorer does not request: leave it "
                "out, or call set_score_request(sample_weight=True) of the scorer."
            )
        return self._get_scorer()(self, X, for_scorers(check_sparse(y, "y")), **routed.scorer.score)

    def _route(self, method, *, sample_weight, **params):
        """Metadata of the splitter and the scorer, with scikit-learn's routing or, if off, without."""
        if _routing_enabled():
            if sample_weight is not None:
                params["sample_weight"] = sample_weight
            return process_routing(self, method, **params)
        score = {} if sample_weight is None else {"sample_weight": sample_weight}
        return Bunch(splitter=Bunch(split={}), scorer=Bunch(score=score))

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata routing of this object; see scikit-learn's user guide.

        Returns
        -------
        routing : MetadataRouter
            What goes to the splitter and to the scorer.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(
                scorer=self._get_scorer(),
                method_mapping=MethodMapping()
                .add(caller="score", callee="score")
                .add(caller="fit", callee="score"),
            )
        )

    def _folds(self, splitter, X, y, weight, params):
        """The folds of the rows, and the metadata of the scorer."""
        routed = self._route("fit", sample_weight=weight, **params)
        folds = checked_folds(splitter.split(X, y, **routed.splitter.split), y.shape[0])
        refuse_weightless_folds(folds, weight, "sample_weight" in routed.scorer.score)
        return folds, routed.scorer.score

    def _score_folds(self, score_fold, arguments, X, y, classes, weight, params, data):
        """Results of ``score_fold(*arguments, fold, k, scorer, metadata)`` for the folds, and the monitor.

        ``classes`` are None for a matrix y; ``data`` are the arguments X, y and metadata of callbacks. The
        caller ends the monitor.
        """
        folds, metadata = self._folds(splitter_of(self.cv, y, classes is None), X, y, weight, params)
        scorer = with_labels(self._get_scorer(), classes)
        monitor = PartsMonitor(self, "fold", len(folds), **data)
        done = []
        with blas_threads(1):  # one setting for all threads
            calls = (
                delayed(score_fold)(*arguments, fold, k, scorer, metadata) for k, fold in enumerate(folds)
            )
            for k, result in enumerate(run_folds(calls, self.n_jobs)):
                done.append(result)
                monitor.part_ends(k)
        return done, monitor

    def _set_scores(self, scores):
        """Keep scores (n_folds, n_penalties), their means over the folds and the means' standard errors."""
        self.scores_, self.mean_score_ = scores, scores.mean(axis=0)
        spread = scores.std(axis=0, ddof=1) if len(scores) > 1 else np.zeros(scores.shape[1])
        self.se_ = spread / np.sqrt(len(scores))

    def _get_scorer(self):
        return get_scorer(self._default_scoring) if self.scoring is None else get_scorer(self.scoring)


def splitter_of(cv: CrossValidation, y: Any, matrix: bool) -> Any:
    """Splitter of the rows: scikit-learn's for ``cv``; for None five folds with even shares of the labels.

    Rows of one label are stratified by it, as scikit-learn does. For a matrix (n, n_labels) scikit-learn
    makes folds of adjacent rows, which lack labels if the rows are sorted. Here rows are assigned to the
    folds in turn, ordered by the rarest label of each. There are fewer folds where no label has five rows.
    """
    if cv is not None:
        return check_cv(cv, y, classifier=not matrix)
    n_rows = y.shape[0] if matrix else int(np.unique(y, return_counts=True)[1].max())
    n_folds = max(2, min(5, n_rows))
    if not matrix:
        return check_cv(n_folds, y, classifier=True)
    rarest = _rarest_labels(y)
    if (rarest == rarest[0]).all():
        return KFold(n_folds)
    fold = np.empty(len(rarest), dtype=np.intp)
    fold[np.argsort(rarest, kind="stable")] = np.arange(len(rarest)) % n_folds
    return PredefinedSplit(fold)


def checked_folds(folds: Iterable[Any], n_samples: int) -> list[tuple[Array, Array]]:
    """Numbers of the training and of the left-out rows of each fold.

    Raises
    ------
    ValueError
        If there is no fold, a part of one has no rows, or rows that X lacks.
    """
    checked = []
    for k, fold in enumerate(folds):
        parts = []
        for name, rows in zip(("training", "left-out"), fold, strict=True):
            rows = np.asarray(rows)
            if not rows.size or (rows.dtype == bool and not rows.any()):
                raise ValueError(f"The {name} part of fold {k} has no rows.")
            try:
                parts.append(np.arange(n_samples)[rows])
            except IndexError as error:
                raise ValueError(
                    f"The {name} part of fold {k} has rows that X lacks, which has {n_samples}: {error}."
                ) from None
        checked.append((parts[0], parts[1]))
    if not checked:
        raise ValueError("cv has no folds. Pass a splitter, or pairs of training and test rows.")
    return checked


def _rarest_labels(Y):
    """Of each row (n,) the index of its rarest label among the labels, the rarest first."""
    rows, labels = Y.nonzero()
    n, K = Y.shape
    rank = np.empty(K, dtype=np.intp)
    rank[np.argsort(np.bincount(labels, minlength=K), kind="stable")] = np.arange(K)
    rarest = np.full(n, K)  # K: rows without a label
    np.minimum.at(rarest, rows, rank[labels])
    return rarest


def refuse_weightless_folds(folds: Any, weight: Array | None, scored: bool = True) -> None:
    """ValueError, which names the fold, where all rows of a part weigh 0.

    Parameters
    ----------
    folds : list of (train, test)
    weight : ndarray of shape (n_samples,) or None
    scored : bool, default=True
        Whether scores are weighted too: otherwise only training parts are checked.
    """
    if weight is None:
        return
    for k, fold in enumerate(folds):
        for rows, which in zip(fold, ("training", "left-out") if scored else ("training",)):
            if not weight[rows].any():
                raise ValueError(
                    f"All rows of the {which} part of fold {k} have sample_weight 0: use fewer or shuffled "
                    "folds, or leave these rows out."
                )


def is_small(X: Any, most: float) -> bool:
    """Whether fits of X are so short that in threads they would wait for the interpreter, not the processor.

    ``most`` are numbers of a dense X; an entry of a sparse one counts as five.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    numbers = 5.0 * X.nnz if is_sparse(X) else float(X.shape[0]) * X.shape[1]
    return numbers < most


def run_folds(
    calls: Iterable[Any], n_jobs: int | None, shared: bool = False, small: bool = False
) -> Iterable[Any]:
    """Results of the folds' delayed calls in order, as they come where joblib's backend can do that.

    The kernels release the interpreter's lock, so threads run at once and share X. Processes are for users
    who ask for them. They get each argument once, memory-mapped or scattered, and what an argument holds with
    each call. With ``shared`` calls stay in this process. With ``small`` threads would only wait for one
    another, so calls run one after the other.
    """
    how: dict[str, Any] = {"require": "sharedmem"} if shared else {"prefer": "threads"}
    backend, _ = get_active_backend(**how)
    asked_for, _ = get_active_backend()
    if small and getattr(backend, "uses_threads", False) and not getattr(asked_for, "uses_threads", False):
        n_jobs = 1  # threads are our preference alone
    lazy = getattr(backend, "supports_return_generator", False)
    return_as = "generator" if lazy else "list"
    return Parallel(n_jobs=nested_n_jobs(n_jobs), return_as=return_as, **how)(calls)


def for_scorers(y):
    """y as an array: few of scikit-learn's scorers take a sparse indicator."""
    return y.toarray() if is_sparse(y) else y


def with_labels(scorer, classes):
    """Pass the classes, or None, to a scorer of probabilities: a fold's left-out part may lack some."""
    if classes is None:
        return scorer
    function = getattr(scorer, "_score_func", None)
    method: Any = getattr(scorer, "_response_method", None)
    kwargs = getattr(scorer, "_kwargs", {})
    if function is None or "predict_proba" not in np.atleast_1d(method) or "labels" in kwargs:
        return scorer
    if "labels" not in inspect.signature(function).parameters:
        return scorer
    return make_scorer(
        function,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign > 0,
        labels=classes,
        **kwargs,
    )
