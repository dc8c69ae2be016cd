"""Sequences that come in batches, with features that were not there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..._estimator.decorators import fit_context
from ..._linalg.threads import blas_threads
from ..._messages import shown
from ..plan import BATCH_LOSSES
from ..solver.ftrl import coefficients, sums_of, update_by_batch
from .prediction import TaggerPredictionMixin, warn_of_unsolved
from .sequences import read, read_labels, refuse_no_features, sequence_weights


class TaggerStreamMixin(TaggerPredictionMixin):
    """`partial_fit`."""

    feature_names_in_: Any
    C: float
    l1_ratio: float
    fit_ends: bool
    class_weight: Any
    all_possible_states: bool
    all_possible_transitions: bool
    _sums: Any

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, in its order, from the last call or `fit` on.

        New features of dicts get coefficients; their names are appended.

        The steps are those of the proximal follow-the-regularised-leader [1]_. The objective is that of `fit`
        for *all* sequences so far, with one penalty of any ``l1_ratio``. Repeated sequences count again.
        ``objective_`` has the losses of this batch, each before its step. Memory is three numbers for every
        feature and label, whatever the number of sequences. After a `fit`, the steps start from its
        coefficients.

        Parameters
        ----------
        X : list of n_sequences sequences
            As in `fit`.
        y : list of n_sequences sequences of labels
            The true ones.
        classes : array-like of shape (n_labels,), default=None
            All labels that may come. Needed in the first call; later it must name the same, or be None.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weights >= 0 of the sequences.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As of `fit`, or if classes lack a label of y, are missing in the first call, or change later. With
            ``class_weight="balanced"``, which needs all labels at once. If unseen pairs are to have no
            coefficient, which only `fit` can know.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            As `fit` with ``loss="sparsemap"``, if a sequence's SparseMAP was not solved.

        References
        ----------
        .. [1] H. B. McMahan, "Follow-the-regularized-leader and mirror descent: equivalence theorems and L1
           regularization", AISTATS 2011, with the steps of AdaGrad.
        """
        if not (self.all_possible_states and self.all_possible_transitions):
            raise ValueError(
                "partial_fit needs all_possible_states=True and all_possible_transitions=True: what will be "
                "seen is not known."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "partial_fit cannot balance labels that are still to come: pass class_weight as a dict."
            )
        known = getattr(self, "coef_", None) is not None
        all_labels = self._labels_of_stream(classes, known)
        given = read(X, n_features=self.n_features_in_ if known and self._names() is None else None)
        if known and (given.names is None) != (self._names() is None):
            raise ValueError("X must hold dicts of features, as before.")
        labels = read_labels(y, given.starts)
        index = {label: k for k, label in enumerate(all_labels.tolist())}
        for label in labels.tolist():
            if label not in index:
                raise ValueError(f"classes lack the label {shown(label)} of y.")
        codes = np.array([index[label] for label in labels.tolist()], dtype=np.int32)
        allowed = self._allowed(all_labels, codes, given.starts)
        # a batch may lack labels of a positive weight
        weight = sequence_weights(self.class_weight, sample_weight, all_labels, codes, given.starts, least=0)
        rows, names = self._columns(given, known)
        p, K = rows.shape[1], len(all_labels)
        refuse_no_features(p)
        Z, G = sums = self._sums_so_far(known, p, K)
        with blas_threads(1):
            value, unsolved = update_by_batch(
                BATCH_LOSSES[self.loss], Z, G, rows, given.starts, codes, weight, allowed, self.C,
                self.l1_ratio, self.fit_ends,
            )  # fmt: skip
        table = coefficients(Z, G, self.C, self.l1_ratio)
        penalty = 0.5 * (1.0 - self.l1_ratio) * np.vdot(table, table) + self.l1_ratio * np.abs(table).sum()
        self.objective_, self.optimality_ = float(value + penalty), np.nan
        warn_of_unsolved(unsolved)
        self.coef_ = np.ascontiguousarray(table[:p].T)
        self.transitions_, self.start_, self.stop_ = table[p : p + K].copy(), table[p + K], table[p + K + 1]
        self.classes_, self.n_features_in_ = all_labels, p
        if names is not None:
            self.feature_names_in_ = names
        self.n_iter_ = np.array([1], dtype=np.int32)
        self.dual_gap_ = np.nan
        self._sums = sums
        return self

    def _names(self):
        return getattr(self, "feature_names_in_", None)

    def _labels_of_stream(self, classes, known):
        if classes is None:
            if not known:
                raise ValueError("classes must be passed in the first call of partial_fit.")
            return self.classes_
        found = np.unique(read_labels([classes], np.array([0, len(np.atleast_1d(classes))]), "classes"))
        if known and not np.array_equal(found, self.classes_):
            raise ValueError(f"classes={shown(classes)} are not those of the first call.")
        return found

    def _columns(self, given, known):
        """The rows with the columns of all features so far, and the names of these."""
        rows = sp.csr_matrix(given.X, dtype=np.float64)
        if given.names is None:
            return rows, None
        old = self._names() if known else np.zeros(0, dtype=object)
        index = {name: j for j, name in enumerate(old)}
        where = np.array([index.setdefault(name, len(index)) for name in given.names], dtype=np.int64)
        shape = rows.shape[0], len(index)
        rows = sp.csr_matrix((rows.data, where[rows.indices], rows.indptr), shape=shape)
        return rows, np.array(list(index), dtype=object)

    def _sums_so_far(self, known, p, K):
        """Z and G of `update_by_batch`, (2, p + K + 2, K); rows of new features are 0."""
        sums = np.zeros((2, p + K + 2, K))
        if not known:
            return sums
        old, stored = self.n_features_in_, getattr(self, "_sums", None)
        if stored is None or stored.shape != (2, old + K + 2, K) or not np.isfinite(stored).all():
            Z = sums_of(self._table(), 0.0, self.C, self.l1_ratio)
            stored = np.stack([Z, np.zeros_like(Z)])
        sums[:, :old], sums[:, p:] = stored[:, :old], stored[:, old:]
        np.maximum(sums[1], 0.0, out=sums[1])  # of a file that somebody wrote
        return sums

    def _table(self):
        """The coefficients (p + K + 2, K)."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return np.vstack([coef.T, self.transitions_, self.start_, self.stop_]).astype(np.float64)
