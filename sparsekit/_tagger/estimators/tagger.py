"""SequenceTagger: a label for each position of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..._docstrings import shares_entries
from ..._estimator.base import FIT_CONSTRAINTS, SolverEstimatorMixin
from ..._estimator.checks import in_type
from ..._estimator.decorators import fit_context, with_parameters
from ..._linalg.class_design import design_of
from ..._linalg.threads import blas_threads, count_threads
from ..._messages import shown
from ..._typing import ClassWeight
from ..losses.constraints import SCHEMES
from ..plan import FIT_LOSSES, choose_minimizer
from .prediction import warn_of_unsolved
from .sequences import read, read_labels, refuse_no_features, sequence_weights
from .stream import TaggerStreamMixin


@shares_entries(SolverEstimatorMixin)
@with_parameters
class SequenceTagger(TaggerStreamMixin, SolverEstimatorMixin, BaseEstimator):
    r"""Labels of the positions of sequences by a linear chain: a conditional random field, or margins.

    A labelling y of a sequence of T positions has the score

    .. math:: s(x, y) = a_{y_1} + \sum_{t=1}^{T} w_{y_t} \cdot x_t + \sum_{t=2}^{T} A_{y_{t-1}, y_t} + b_{y_T}

    and the probability :math:`\exp(s(x, y)) / Z(x)` [1]_. Minimises, with v all of w, A, a and b,

    .. math:: C \sum_i c_i \left(\log Z(x_i) - s(x_i, y_i)\right) + \frac{1 - \rho}{2} \|v\|_2^2
              + \rho \|v\|_1,

    for ``loss="crf"``, c_i the weights of the sequences and :math:`\rho` ``l1_ratio``. The problem is convex.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, > 0. CRFsuite's c1 and c2 are C = 1 / (c1 + 2 c2),
        l1_ratio = c1 / (c1 + 2 c2).
    loss : {"crf", "sparsemap", "hinge"}, default="crf"
        "crf" is the negative log-likelihood above. "sparsemap" is the Fenchel-Young loss of SparseMAP [2]_:
        most marginals are exactly 0, so is the loss of a clear true labelling. It takes five to thirty times
        as long. "hinge" is the structured support vector machine [3]_: :math:`\max_y (s(x_i, y) + d(y, y_i))
        - s(x_i, y_i)`, d the number of labels that differ; ten to thirty times as long. `fit` needs
        ``l1_ratio=0`` with these two; batches (`partial_fit`) take all of them.
    l1_ratio : float, default=0.0
        Share of the L1 penalty, between 0 and 1. 0 is fitted by L-BFGS, all else by OBA, which leaves many
        coefficients exactly 0.
    constraints : {"BIO", "BIOES", "BILOU", "none"}, None or list of pairs, default=None
        Labellings that are impossible, in the fit and in predictions. A scheme of spans forbids those that
        break it (labels "O" and "B-PER", "I-PER", ...). A list has forbidden pairs (previous, next) of
        labels; None is the beginning or the end of a sequence.
    all_possible_states : bool, default=True
        Whether a feature has coefficients for labels with which it is never seen in training. False, which is
        CRFsuite's default, has a fraction of the coefficients where there are many labels.
    all_possible_transitions : bool, default=True
        Whether transitions that training does not have get a score. With False they score 0.
    fit_ends : bool, default=True
        Whether the first and the last label have the scores a and b. CRFsuite has none: these are 0 then.
    class_weight : dict, "balanced" or None, default=None
        Weights of the labels. A sequence's weight is the mean of those of its labels (times its
        sample_weight).
    tol : float, default=1e-4
        Certifies, where there is a ``dual_gap_``, that the objective is at most ``10 * tol`` of itself above
        the lowest. The largest entry of the gradient must be at most tol times that at zero too. With an L1
        penalty the fit stops when a diagonal model predicts a reduction of at most tol times the objective,
        about what is left. With loss="sparsemap", which has kinks, the fit also stops when ten steps lower
        the objective by less than tol times it, or none does. With loss="hinge" the gap alone counts,
        at most ``100 * tol`` of the objective.
    max_iter : int, default=1000
        Largest number of steps.
    {max_time}
    warm_start : bool, default=False
        Start from the last fit's coefficients, by the names of features and labels where these are dicts'.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all. Results do not depend on it.
    {history, verbose, callback}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted.
    coef_ : ndarray of shape (n_labels, n_features), or CSR matrix after `sparsify`
        w, in the dtype of X (float64 for dicts).
    transitions_ : ndarray of shape (n_labels, n_labels)
        A: of each label (row) before each other (column). 0 where ``constraints`` forbid it.
    start_, stop_ : ndarray of shape (n_labels,)
        a and b.
    transition_features_ : dict
        Transitions' coefficients that are not 0, by (previous, next) label; made anew when asked for.
    state_features_ : dict
        ``coef_`` where it is not 0, by (name of the feature, or its column in matrices, label); likewise.
    n_iter_ : ndarray of shape (1,)
        Number of steps.
    optimality_ : float
        The measure that ``tol`` bounds, at the solution; NaN after `partial_fit`.
    objective_ : float
        Value of the objective.
    dual_gap_ : float
        ``objective_`` is at most this far from the optimum, by strong convexity or (hinge) a dual point. NaN
        with an L1 penalty or SparseMAP, and after `partial_fit`.
    history_ : dict of ndarray
        Only with ``history=True``: values of every step.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features of dicts, sorted: "key" for numbers, "key=value" for strings. Those that
        `partial_fit` finds later are appended.

    See Also
    --------
    Sequence : The factor over one sequence's variables, for SparseMAP.
    sparsekit.metrics.span_f1_score : Quality of labels that mark spans.

    Notes
    -----
    A sequence is a list of dicts, one a position, or a dense or sparse matrix (n_positions, n_features).
    Values of dicts are numbers, bools, strings (one-hot) or lists of strings. A list of strings stands for a
    dict of ones.

    References
    ----------
    .. [1] J. Lafferty, A. McCallum, F. Pereira, "Conditional random fields: probabilistic models for
       segmenting and labeling sequence data", ICML 2001.
    .. [2] V. Niculae, A. F. T. Martins, M. Blondel, C. Cardie, "SparseMAP: Differentiable sparse structured
       inference", ICML 2018.
    .. [3] I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun, "Large margin methods for structured and
       interdependent output variables", JMLR 2005, eq. (8); the cost by B. Taskar, C. Guestrin, D. Koller,
       "Max-margin Markov networks", NIPS 2003.

    Examples
    --------
    >>> from sparsekit import SequenceTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}, {"word": "barks"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> tagger = SequenceTagger(C=10).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}, {"word": "barks"}]])
    [['DET', 'NOUN', 'VERB']]
    """

    C: float = 1.0
    _: KW_ONLY
    loss: Literal["crf", "sparsemap", "hinge"] = "crf"
    l1_ratio: float = 0.0
    constraints: Literal["BIO", "BIOES", "BILOU", "none"] | list[tuple[Any, Any]] | None = None
    all_possible_states: bool = True
    all_possible_transitions: bool = True
    fit_ends: bool = True
    class_weight: ClassWeight = None
    tol: float = 1e-4
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions(set(FIT_LOSSES))],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "constraints": [StrOptions({*SCHEMES, "none"}), list, tuple, None],
        "all_possible_states": ["boolean"],
        "all_possible_transitions": ["boolean"],
        "fit_ends": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **FIT_CONSTRAINTS,
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # a list of sequences of any length is no matrix
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : list of n_sequences sequences
            Each is a list of dicts of features, one a position, or a data frame, whose rows are such dicts.
            Or it is a sparse matrix or array of shape (n_positions, n_features). Sequences may be empty.
        y : list of n_sequences sequences of labels
            Strings or whole numbers, one a position.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weights >= 0 of the sequences, not all zero.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, lengths disagree, there is no label, X has NaN or infinity, or
            y breaks ``constraints``.
        TypeError
            If X or y is no list of sequences, or a feature is none of the allowed kinds.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached.
        """
        if self.loss != "crf" and self.l1_ratio > 0:
            raise ValueError(
                f"l1_ratio must be 0 with loss={shown(self.loss)}; OBA needs the smooth loss 'crf'."
            )
        given = read(X)
        labels = read_labels(y, given.starts)
        classes, codes = np.unique(labels, return_inverse=True)
        codes = codes.astype(np.int32)
        allowed = self._allowed(classes, codes, given.starts)
        refuse_no_features(given.X.shape[1])
        weight = sequence_weights(self.class_weight, sample_weight, classes, codes, given.starts)
        n_threads, p = count_threads(self.n_jobs), given.X.shape[1]
        start = self._start(given.names, classes, p)
        self.n_features_in_ = p
        if given.names is not None:
            self.feature_names_in_ = given.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        design = design_of(given.X, n_threads)
        loss = FIT_LOSSES[self.loss](
            design, given.starts, codes, allowed, self.C * weight, ends=self.fit_ends,
            ridge=1.0 - self.l1_ratio, n_threads=n_threads, all_states=self.all_possible_states,
            all_transitions=self.all_possible_transitions,
        )  # fmt: skip
        if not np.isfinite(loss.gradient(np.zeros(loss.n_variables))).all():
            raise ValueError("X, C or sample_weight is too large: sums over all positions overflow.")
        dtype = given.X.dtype
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}

        def attributes(x):
            W, trans, begin, stop = loss.unpack(np.asarray(x))
            return {
                "coef_": in_type(np.ascontiguousarray(W.T), dtype),
                "transitions_": trans.copy(),
                "start_": np.where(allowed.begin, begin, 0.0),
                "stop_": np.where(allowed.end, stop, 0.0),
                "classes_": classes,
            }

        solve = choose_minimizer(self.loss, loss, self.l1_ratio)

        def run(x0, callback):
            # sums of BLAS depend on its number of threads
            with blas_threads(1):
                return solve(x0=x0, callback=callback, history=self.history, **self._solver_options)

        self._run(
            run,
            np.zeros(loss.n_variables) if start is None else loss.pack(start), loss.n_variables,
            data={"X": X, "y": y, "metadata": metadata},
            attributes=attributes,
        )  # fmt: skip
        if hasattr(self, "_sums"):
            del self._sums
        warn_of_unsolved(getattr(loss, "unsolved", 0))
        return self

    def _start(self, names, classes, p):
        """The last fit's table for these features and labels, if asked for and finite, else None."""
        if not self.warm_start or getattr(self, "coef_", None) is None:
            return None
        was: Any = getattr(self, "feature_names_in_", None)
        if (was is None) != (names is None) or (was is None and self.coef_.shape[1] != p):
            return None
        where = {label: k for k, label in enumerate(self.classes_.tolist())}
        kept = [(k, where[label]) for k, label in enumerate(classes.tolist()) if label in where]
        now, old = np.array(kept, dtype=int).reshape(-1, 2).T
        here = there = np.arange(p)
        if names is not None:
            known = {name: j for j, name in enumerate(was)}
            found = np.array([known.get(name, -1) for name in names])
            here, there = np.flatnonzero(found >= 0), found[found >= 0]
        K = len(classes)
        table = np.zeros((p + K + 2 * self.fit_ends, K))
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        table[np.ix_(here, now)] = coef[np.ix_(old, there)].T
        table[np.ix_(p + now, now)] = self.transitions_[np.ix_(old, old)]
        if self.fit_ends:
            table[p + K, now], table[p + K + 1, now] = self.start_[old], self.stop_[old]
        return table if np.isfinite(table).all() else None
