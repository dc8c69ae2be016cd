"""Stability selection with complementary pairs."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Bunch, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from ..._arrays import namespace
from ..._estimator.base import CallbackSupportMixin
from ..._estimator.checks import check_penalties
from ..._estimator.cross_validation import is_small, run_folds
from ..._estimator.decorators import PlainParametersMixin, fit_context, with_parameters
from ..._estimator.monitor import PartsMonitor
from ..._l1.estimators.logistic import L1LogisticOBA
from ..._l1.paths.path_solver import penalty_grid, warn_if_path_unconverged
from ..._linalg.structure import check_sparse
from ..._row_blocks.make import comes_in_blocks
from ..._typing import Array, FloatArray, MatrixLike, RandomState
from ..solver.bounds import ASSUMPTIONS, Assumption, allowed_selection, expected_false, votes_needed
from ..solver.halves import complementary_pairs
from .device import put_back, select_columns
from .make_source import make_source
from .sources import FittedSource, first_features

# smallest number of entries of X for halves in threads (measured: two threads gain time)
MIN_THREADED_ENTRIES = 1.2e6


@with_parameters
class StabilitySelection(SelectorMixin, PlainParametersMixin, CallbackSupportMixin, BaseEstimator):
    """Selects the features that a sparse model uses again and again in halves of the data.

    The rows are divided into two halves at random, ``n_pairs`` times. A sparse model is fitted to each half
    while its penalty falls, until it has ``max_selected_`` features. A feature's frequency at a penalty is
    the share of all halves whose model uses it there. A feature is selected if it reaches ``threshold`` at
    some penalty [1]_, [2]_. Unlike a penalty that cross-validation chose, it bounds the number of false
    selections: at most ``max_false`` are to be expected.

    Parameters
    ----------
    estimator : estimator, default=None
        The sparse model; None is ``L1LogisticOBA()``. :class:`L1LogisticOBA`, :class:`LassoOBA` and
        :class:`GLMOBA` solve one warm-started path for each half. Any other estimator with a parameter ``C``
        or ``alpha`` and exact zeros in ``coef_`` is fitted at each of ``penalties``:
        :class:`BoundedClassifier` with ``l1_ratio=1``, for example. Its own C or alpha is not used.
        ``verbose``, ``history`` and ``warm_start`` of the three OBA estimators are not used either. A
        ``callback`` is called in the thread of each half, and ends it by returning True. Bring the columns of
        X to one scale first.
    threshold : float, default=0.75
        Frequency from which on a feature is selected, in (0.5, 1]. It may be changed after the fit, and so
        may the assumption: ``expected_false_`` is then the bound for these.
    max_false : float, default=1.0
        What ``expected_false_`` may be at most, > 0: it decides, with the threshold, how many features each
        half may select. None: the halves go through all penalties.
    assumption : {"none", "unimodal", "r-concave"}, default="unimodal"
        What the bound assumes about the frequencies of features that are selected rarely. "none" is Theorem 1
        of [2]_ and the bound of [1]_. "unimodal" is Theorem 2. "r-concave" (eq. 8) is the sharpest, so the
        halves may select most features.
    n_pairs : int, default=50
        Pairs of halves; twice as many fits.
    penalties : int or array-like, default=50
        Values of C or alpha for the whole data, in any order; a half is fitted with the penalty that weighs
        as much in it. An integer asks for that many, for the three OBA estimators. They are evenly spaced in
        the logarithm. The first is sqrt(2) times the penalty at which the model of all data is empty, the
        last ``eps`` times the first.
    eps : float, default=0.01
        Ratio of the grid's ends where penalties is an integer, in (0, 1).
    random_state : int, RandomState instance or None, default=None
        Draws the halves.
    n_jobs : int, default=None
        Number of halves that are fitted at once, in threads. With fewer than 1.2 million numbers in X they
        run one after the other, since threads would wait for the interpreter.
    verbose : int, default=0
        1 prints a line to the standard output as each half ends.

    Attributes
    ----------
    stability_scores_ : ndarray of shape (n_features,)
        The largest frequency of each feature along the penalties.
    stability_paths_ : ndarray of shape (n_features, n_penalties)
        The frequencies.
    penalties_ : ndarray of shape (n_penalties,)
        Values of ``parameter_``, the strongest penalty first.
    parameter_ : {"C", "alpha"}
        The parameter that they are of.
    max_selected_ : int
        How many features a half may select.
    n_selected_ : float
        How many they select on average, each counted once.
    expected_false_ : float
        Bound of the expected number of false selections, at `threshold` and with ``n_selected_``.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    sparsekit.inspection.StabilityPathDisplay : Draws the frequencies.
    sklearn.feature_selection.SelectFromModel : Selects by one fit.
    L1LogisticOBACV : Chooses C for prediction, which takes more features.

    Notes
    -----
    A selection is false if half of the data selects that feature with probability at most ``n_selected_ /
    n_features``, that of the average feature. Features without effect are among these if the model treats
    them alike. A feature correlated with one that matters may be selected more often; the bound does not
    count it as false.

    Features whose ``penalty_weights`` are zero are selected always and not counted; neither are columns of
    zeros, which cannot be selected. In classifications the
    halves have the same number of rows of each class.

    References
    ----------
    .. [1] N. Meinshausen, P. Bühlmann, "Stability selection", Journal of the Royal Statistical Society B
       72(4), 2010.
    .. [2] R. D. Shah, R. J. Samworth, "Variable selection with error control: another look at stability
       selection", Journal of the Royal Statistical Society B 75(1), 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import LassoOBA, StabilitySelection
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> selection = StabilitySelection(LassoOBA(), random_state=0).fit(X, y)
    >>> selection.get_feature_names_out()
    array(['bmi', 'bp', 's5'], dtype=object)
    >>> round(selection.expected_false_, 2)
    0.92
    """

    estimator: Any = None
    _: KW_ONLY
    threshold: float = 0.75
    max_false: float | None = 1.0
    assumption: Assumption = "unimodal"
    n_pairs: int = 50
    penalties: int | ArrayLike = 50
    eps: float = 0.01
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "get_params", "set_params"]), None],
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "max_false": [Interval(Real, 0, None, closed="neither"), None],
        "assumption": [StrOptions(set(ASSUMPTIONS))],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "penalties": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "eps": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: ArrayLike, **params: Any) -> Self:
        """Count which features are selected in the halves.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; for :class:`L1LogisticOBA` and :class:`LassoOBA` CuPy's, too.
        y : array-like of shape (n_samples,)
            Class labels or numbers, as the estimator takes them.
        **params : dict
            For the estimator's fit, as ``sample_weight`` and ``offset``. Arrays with an entry a row are
            divided like the rows, and rows of weight 0 are not drawn. With metadata routing they go where it
            says.

        Returns
        -------
        self : StabilitySelection

        Raises
        ------
        ValueError
            If no number of selected features satisfies ``max_false``. If there are too few rows to halve, or
            no grid of penalties for the estimator. As the estimator's fit.
        TypeError
            If the estimator has neither C nor alpha, or no ``coef_`` after a fit. If X comes in blocks. If X
            is on a GPU and y is not, or the estimator does not run there.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If a fit did not reach the estimator's ``tol``.
        """
        if comes_in_blocks(X):
            raise TypeError(f"{type(self).__name__} draws rows of X: pass an array or a matrix in memory.")
        if _routing_enabled():
            params = process_routing(self, "fit", **params).estimator.fit
        params = {name: value for name, value in params.items() if value is not None}
        source, rows, codes, columns = make_source(self, X, y, params)
        self._set_penalties(source)
        n_candidates = int(source.candidates.sum())
        self.max_selected_ = self._most_features(n_candidates)
        drawn = check_random_state(self.random_state)
        pairs = complementary_pairs(rows, codes, self.n_pairs, drawn)
        halves = [half for pair in pairs for half in pair]
        monitor = PartsMonitor(self, "half", len(halves), X=X, y=y, metadata=params or None)
        counts = np.zeros((len(self.penalties_), len(source.candidates)), dtype=np.int64)
        total, ends = 0, []
        for k, (chosen, count, how) in enumerate(self._run(source, halves)):
            for row, used in zip(counts, chosen):
                row[used] += 1
            total += count
            ends += how
            monitor.part_ends(k)
        statuses, optimality, used = (np.array(values) for values in zip(*ends))
        if isinstance(source, FittedSource) and n_candidates > 1 and used.min() == n_candidates:
            raise ValueError(
                f"{type(source.model).__name__} used every feature in every fit, whatever the penalty: it "
                "needs exact zeros (an L1 penalty), or stronger penalties."
            )
        self.parameter_ = source.parameter
        self._counts, self._n_candidates = columns.expand(counts.max(axis=0)), n_candidates
        self._n_halves = len(halves)
        self.stability_paths_ = columns.expand_rows(counts.T / len(halves))
        self.stability_scores_ = self._counts / len(halves)
        self.n_selected_ = total / len(halves)
        options = {"tol": getattr(source, "options", {}).get("tol", 0.0)}
        monitor.end()
        report = Bunch(statuses=statuses, optimality=optimality)
        warn_if_path_unconverged(report, options, type(self).__name__, stacklevel=4)
        return self

    @property
    def expected_false_(self) -> float:
        """Bound of the expected number of false selections; threshold and assumption may have changed."""
        check_is_fitted(self, "stability_scores_")
        self._validate_params()
        n_pairs = self._n_halves // 2
        return expected_false(self.n_selected_, self._n_candidates, self.threshold, n_pairs, self.assumption)

    def transform(self, X: MatrixLike) -> Array:
        """Keep the selected columns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        {ndarray, sparse matrix, data frame} of shape (n_samples, n_selected)
            Of the kind of X, on a GPU too, or as ``set_output`` says.
        """
        if namespace(X=X) is not np:
            return select_columns(self, X, self.get_support(indices=True))
        return super().transform(check_sparse(X))

    def inverse_transform(self, X: MatrixLike) -> Array:
        """Put zeros where columns were left out.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_selected)

        Returns
        -------
        {ndarray, sparse matrix} of shape (n_samples, n_features)
            Of a matrix on a GPU one there.
        """
        if namespace(X=X) is not np:
            return put_back(type(self).__name__, X, self.get_support(indices=True), self.n_features_in_)
        return super().inverse_transform(check_sparse(X))

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata routing of this object; see scikit-learn's user guide.

        Returns
        -------
        routing : MetadataRouter
            What goes to the estimator's fit.
        """
        return MetadataRouter(owner=self).add(
            estimator=self._model(), method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def _model(self):
        return L1LogisticOBA() if self.estimator is None else self.estimator

    def _get_support_mask(self):
        check_is_fitted(self, "stability_scores_")
        self._validate_params()  # the threshold may have changed after the fit
        return self._counts >= votes_needed(self.threshold, self._n_halves // 2)

    def _run(self, source, halves):
        calls = (delayed(_run)(source, half, self.max_selected_) for half in halves)
        there = source.is_on_device  # each half uses the whole GPU
        small = not there and is_small(source.X, MIN_THREADED_ENTRIES)
        return run_folds(calls, 1 if there else self.n_jobs, shared=there, small=small)

    def _set_penalties(self, source):
        if isinstance(self.penalties, Integral):
            if isinstance(source, FittedSource):
                raise ValueError(
                    f"penalties must be an array of values of {source.parameter}: where the path of "
                    f"{type(source.model).__name__} begins is not known."
                )
            # in half of the rows correlations with noise are larger: begin where halves are empty
            strongest = math.sqrt(2.0) * source.strongest()
            strengths = penalty_grid(strongest, int(self.penalties), self.eps)
            values = 1.0 / strengths if source.parameter == "C" else strengths
        else:
            values = np.unique(check_penalties(self.penalties, "penalties"))
            values = values if source.parameter == "C" else values[::-1]
        self.penalties_: FloatArray = values
        source.penalties = values

    def _most_features(self, n_candidates):
        if self.max_false is None:
            return n_candidates
        return allowed_selection(self.max_false, n_candidates, self.threshold, self.n_pairs, self.assumption)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._model()).input_tags.sparse
        tags.target_tags.required = True
        return tags


def _run(source, half, limit):
    return first_features(source.sizes(half), limit, source.candidates, len(source.penalties))
