"""LPSparseMAPClassifier: multi-label classification with scores of label pairs and logic over labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..._arrays import to_host
from ..._estimator.base import SOLVER_CONSTRAINTS, SolverEstimatorMixin
from ..._estimator.checks import in_type
from ..._estimator.decorators import fit_context
from ..._estimator.used_columns import without_empty_columns
from ..._fenchel_young.estimators.classifier import last_table
from ..._fenchel_young.losses.loss import FenchelYoungLoss
from ..._fenchel_young.solver.minimize_model import minimize_fenchel_young
from ..._linalg.threads import count_threads
from ..._typing import MatrixLike, SolverCallback
from ..factors.linear_factors import Xor
from ..graphs.graph import FactorGraph
from ..labels.coupled_hinge import minimize_coupled_hinge
from ..labels.independent import ROWS, are_independent, minimize_independent
from ..labels.label_loss import LabelLoss, Labels
from ..labels.label_solver import minimize_labels
from ..labels.label_strengths import count_and_spectrum, strengths
from .label_prediction import LabelSetsMixin, warn_of_unsolved
from .label_sets import choose_pairs, logic, with_indicator
from .label_threshold import may_choose, threshold_share


class LPSparseMAPClassifier(SolverEstimatorMixin, LabelSetsMixin, BaseEstimator):
    r"""Multi-label classifier with pairwise scores, trained with the LP-SparseMAP loss.

    Labels have scores :math:`\eta = W x + b` and pairs of labels a score s each, eq. (23) of [1]_. Minimises

    .. math:: \sum_i w_i\, \ell(W x_i + b, s;\; y_i) + \frac{\alpha}{2} \|W\|_F^2
              + \frac{\alpha_s}{2} \|s\|^2,

    w_i the weights of the rows, of sum 1. The problem is convex.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the L2 penalty of W, >= 0. The loss is a mean over the rows. The intercepts b are free.
        "auto" is the best strength of a ridge regression of the labels by generalised cross-validation. The
        logistic loss takes a quarter of it, the hinge loss a tenth.
    loss : {"sparsemap", "hinge", "logistic"}, default="sparsemap"
        "sparsemap" is eq. (16). "hinge" is the structured hinge loss, with LP-MAP inference and a cost of 1
        for each wrong label. "logistic" is a logistic loss for each label, without pairs.
    pairs : "all", int, None or array-like of shape (n_pairs, 2), default=None
        Which pairs of labels have a score: all, that many of the most frequent ones, none, or these columns
        of y. Pairs cost time. They help if labels occur together more, or less, than the features explain.
    pair_alpha : float, default=None
        Strength of the L2 penalty of s; None: alpha, or with alpha="auto" that of a feature
        whose variance is 1.
    factors : list of tuples, or callable, default=None
        Constraints on every set of labels, in training and in prediction. Either tuples (factor class,
        columns of y, further arguments, optional dict of keywords), such as ``(Imply, [4, 7])`` or ``(Budget,
        [0, 1, 2], 2, {"exactly": True})``. Or a callable that gets the labels as variables of a `FactorGraph`
        and returns factors.
    fit_intercept : bool, default=True
        Whether to fit b.
    threshold : float, "expected_f1" or "auto", default="auto"
        `predict` gives a row each label whose marginal is larger. "expected_f1" is half of the row's largest
        expected F1, the threshold that attains it. "auto" lies between that and 0.5, where the leave-one-out
        F1 of the training rows is best. With factors or loss="hinge" it is "expected_f1".
    never_empty : bool, default=None
        Whether `predict` gives a row the best label or labels where it would give none. None: if no row
        of the training data was without a label.
    tol : float, default=1e-4
        With independent labels (no pairs, no factors) or loss="hinge" the duality gap is at most tol times
        the objective. Otherwise the largest entry of the projected gradient is at most tol times that at
        zero. ``dual_gap_``, where it has a value, then bounds the error.
    max_iter : int, default=1000
        Largest number of Newton or quasi-Newton steps, and of rounds of sweeps over the rows.
    max_time : float, default=None
        Largest time of the fit in seconds; None: no limit.
    warm_start : bool, default=False
        Start from the last fit's coefficients where their shapes fit.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all.
    history : bool, default=False
        Whether to record ``history_``.
    verbose : int, default=0
        1 prints a line per step to the standard output.
    callback : callable, default=None
        Called as ``callback(intermediate_result)`` after each step with a
        :class:`scipy.optimize.OptimizeResult` of copies (x, fun, nit, optimality, nnz, time); a true value or
        StopIteration stops the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        W, in the dtype of X.
    intercept_ : ndarray of shape (n_labels,)
        b; zero if ``fit_intercept=False``.
    alpha_, pair_alpha_ : float
        The strengths that were used.
    never_empty_ : bool
        Whether predictions always have a label.
    threshold_share_ : float
        With threshold="auto" the part, from 0 to 1, of 0.5 in a row's threshold; the rest is that of
        "expected_f1". 0 with factors, loss="hinge" or y of one dimension; NaN where the fit had another
        threshold and did not choose one: `predict` with threshold="auto" then asks for another fit.
    pairs_ : ndarray of shape (n_pairs, 2)
        Columns of y that have a score together.
    pair_coef_ : ndarray of shape (n_pairs,)
        s: their scores. Many are exactly 0.
    classes_ : ndarray
        The columns' numbers; for y of one dimension its labels.
    multilabel_ : bool
        Whether y was a matrix.
    n_iter_ : ndarray of shape (1,)
        Number of steps.
    optimality_ : float
        The measure that ``tol`` bounds, at the solution.
    objective_ : float
        Value of the objective.
    dual_gap_ : float
        ``objective_`` is at most this far from the optimum; NaN without penalty. With coupled labels and
        loss="sparsemap" it is also NaN with free intercepts. With coupled labels and loss="hinge" it is NaN
        where the means of y lie on a face of what factors allow.
    history_ : dict of ndarray
        Only with ``history=True``: time (seconds), fun and optimality of every step. With loss="hinge" fun
        is of the proximal step's problem, which is below the objective. With that loss, and with independent
        labels, optimality is from before the step's problem, 1 at first.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, where X had names that are all strings.

    See Also
    --------
    SparsemaxClassifier : Labels as one sparse distribution.
    FactorGraph : The inference behind it.

    Notes
    -----
    y may be one-dimensional: its classes are then labels of which exactly one is on (an `Xor` factor without
    pairs). This is sparsemax regression.

    References
    ----------
    .. [1] V. Niculae, A. F. T. Martins, "LP-SparseMAP: Differentiable Relaxed Optimization for Sparse
       Structured Prediction", ICML 2020, sections 4 and 5.3.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sparsekit import LPSparseMAPClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> model = LPSparseMAPClassifier(alpha=1e-2).fit(X, Y)
    >>> model.predict(X[:2])
    array([[0, 0, 1, 1, 1],
           [0, 0, 1, 0, 0]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions(set(ROWS))],
        "pairs": [StrOptions({"all"}), Interval(Integral, 0, None, closed="left"), "array-like", None],
        "pair_alpha": [Interval(Real, 0, None, closed="left"), None],
        "factors": [list, tuple, callable, None],
        "fit_intercept": ["boolean"],
        "threshold": [StrOptions({"expected_f1", "auto"}), Interval(Real, 0, 1, closed="left")],
        "never_empty": ["boolean", None],
        "warm_start": ["boolean"],
        "history": ["boolean"],
        **SOLVER_CONSTRAINTS,
    }

    def __init__(
        self,
        alpha: float | Literal["auto"] = "auto",
        *,
        loss: Literal["sparsemap", "hinge", "logistic"] = "sparsemap",
        pairs: Literal["all"] | int | ArrayLike | None = None,
        pair_alpha: float | None = None,
        factors: Sequence[tuple[Any, ...]] | Callable[..., Any] | None = None,
        fit_intercept: bool = True,
        threshold: float | Literal["expected_f1", "auto"] = "auto",
        never_empty: bool | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        history: bool = False,
        verbose: int = 0,
        callback: SolverCallback | None = None,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.pairs = pairs
        self.pair_alpha = pair_alpha
        self.factors = factors
        self.fit_intercept = fit_intercept
        self.threshold = threshold
        self.never_empty = never_empty
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.history = history
        self.verbose = verbose
        self.callback = callback

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. A CuPy array or CSR matrix is fitted on its GPU, where the fitted arrays stay; y
            and sample_weight must be CuPy's too.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels), or array-like of shape (n_samples,)
            Indicator of zeros and ones; or classes of any kind.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, not all zero. Only their ratios matter, but for alpha="auto", which
            counts as many rows as they sum to if that is more than there are.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, X or y hold NaN or infinity, or shapes disagree. If a row of
            y breaks a factor.
        TypeError
            If some arrays are on a GPU and others in main memory.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached.
        """
        given = with_indicator(self, X, y, sample_weight)
        (X, columns), xp, weight = without_empty_columns(given.X), given.xp, given.weight
        Y, classes, multilabel = given.values, given.classes, given.multilabel
        counts = xp.ones(len(Y)) if weight is None else weight
        weight = counts / counts.max()
        if multilabel or self.loss != "sparsemap":
            labels = self._labels(Y, multilabel)
            loss = LabelLoss(
                self.loss, labels, X, Y, weight / weight.sum(), fit_intercept=self.fit_intercept,
                n_threads=count_threads(self.n_jobs),
            )  # fmt: skip
            if are_independent(loss):
                minimize = minimize_independent
            else:
                minimize = minimize_coupled_hinge if loss.loss == "hinge" else minimize_labels
            start, shape = self._start(loss, labels, columns), loss.n_variables
        else:  # exactly one label a row: sparsemax regression, which has its own Newton method
            self._refuse_factors()
            loss = FenchelYoungLoss(
                "sparsemax", X, Y.argmax(axis=1), Y.shape[1], weight, fit_intercept=self.fit_intercept,
                n_threads=count_threads(self.n_jobs),
            )  # fmt: skip
            start, shape = last_table(self, loss.shape, columns, xp), loss.shape
        alpha, pair_alpha, spectrum = strengths(
            self.alpha, self.pair_alpha, self.loss, loss.design, Y, counts, self.fit_intercept
        )
        if isinstance(loss, LabelLoss):
            loss.alpha, loss.pair_alpha = alpha, pair_alpha
        else:
            minimize = partial(minimize_fenchel_young, alpha=alpha, penalize_intercept=False)
        # with one class y is never empty
        some = not multilabel or bool((Y.any(axis=1) | (weight == 0)).all())
        never_empty = some if self.never_empty is None else self.never_empty
        p, dtype = X.shape[1], X.dtype
        may_share = isinstance(loss, LabelLoss) and multilabel and may_choose(loss)

        def attributes(x):
            x = xp.asarray(x)  # the monitor begins with zeros in main memory
            table, pairs, s = x, np.zeros((0, 2), dtype=np.int64), xp.zeros(0)
            if isinstance(loss, LabelLoss):
                table, plus, minus = loss.unpack(x)
                s = plus - minus
                pairs = labels.pairs if loss.n_pairs else pairs
            intercept = table[p] if self.fit_intercept else xp.zeros(len(classes))
            if not multilabel and self.loss != "logistic":
                intercept = intercept - intercept.mean()  # a common constant changes nothing
            return {
                "coef_": columns.expand(in_type(xp.ascontiguousarray(table[:p].T), dtype)),
                "intercept_": in_type(intercept, dtype),
                "pairs_": xp.asarray(pairs),
                "pair_coef_": s,
                "classes_": classes,
                "multilabel_": multilabel,
                "alpha_": float(alpha),
                "pair_alpha_": float(pair_alpha),
                "never_empty_": bool(never_empty),
                "threshold_share_": 0.0 if not may_share or self.threshold == "auto" else np.nan,
            }

        result = self._run(
            lambda x0, callback: minimize(
                loss, x0=x0, callback=callback, history=self.history, **self._solver_options
            ),
            start, shape, data=given.for_callbacks(), attributes=attributes,
            whole=lambda x: columns.expand_variables(x, Y.shape[1]), stacklevel=4,
        )  # fmt: skip
        warn_of_unsolved(getattr(loss, "unsolved", 0), type(self).__name__)
        if self.threshold == "auto" and may_share:
            # folds take it from the first of their fits
            spectrum = getattr(self, "_known_spectrum", None) if spectrum is None else spectrum
            n, spectrum = count_and_spectrum(loss.design, Y, counts, self.fit_intercept, spectrum)
            self.threshold_share_ = threshold_share(loss, result.x, spectrum, n, self.never_empty_)
        return self

    def _refuse_factors(self):
        if self.factors is not None:
            raise ValueError("factors are for y of two dimensions; exactly one class of each row is on")

    def _labels(self, Y, multilabel):
        K = Y.shape[1]
        if not multilabel:
            self._refuse_factors()
            graph = FactorGraph()
            return Labels(K, np.zeros((0, 2)), [Xor(graph.variable((K,)))] if self.loss != "logistic" else [])
        if self.loss == "logistic" and self.factors is not None:
            raise ValueError("factors need loss='sparsemap' or 'hinge'; 'logistic' takes labels one by one")
        pairs = np.zeros((0, 2)) if self.loss == "logistic" else choose_pairs(self.pairs, Y)
        labels = Labels(K, pairs, logic(self.factors, K))
        wrong = labels.violated(Y)
        if wrong is not None:
            raise ValueError(f"row {wrong[0]} of y breaks a factor, {type(wrong[1]).__name__}")
        return labels

    def _start(self, loss, labels, columns):
        """The last fit's variables, or None as of `last_table`."""
        table = last_table(self, loss.shape, columns, np)
        if table is None:
            return None
        known = dict(zip(map(tuple, to_host(self.pairs_)), to_host(self.pair_coef_)))
        s = np.array([known.get(tuple(pair), 0.0) for pair in labels.pairs]) if loss.n_pairs else np.zeros(0)
        return np.concatenate([table.ravel(), np.maximum(s, 0.0), np.maximum(-s, 0.0)])
