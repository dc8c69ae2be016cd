"""Prediction with very many classes, by blocks of rows and classes, never all at once."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from ..._arrays import csr_of_ones, namespace, to_host
from ..._estimator.block_prediction import by_blocks
from ..._estimator.checks import check_sample_weight, in_units
from ..._estimator.device_checks import DeviceEstimatorMixin, check_device_X
from ..._estimator.linear_model import LinearModelMixin
from ..._estimator.offset_prediction import LabelScoreMixin
from ..._estimator.validation import validate_data
from ..._linalg.special import log_softmax
from ..._linalg.structure import check_sparse
from ..._linalg.threads import count_threads
from ..._messages import shown
from ..._typing import Array, FloatArray, MatrixLike, SparseMatrix
from ..plan import MAX_SCORES
from .scores import HashedScores, LinearScores, blocks, log_losses, log_normalizers, rank, top_k
from .targets import check_extreme_targets, encode, is_indicator

# An indicator's label is predicted above half of its share in a row of the mean number of labels.
HALF_SHARE = 0.5


class ExtremePredictionMixin(LinearModelMixin, DeviceEstimatorMixin, LabelScoreMixin):
    """Prediction of a fitted ExtremeSoftmaxSGD, and its compression."""

    hash_bits: int | None
    fit_intercept: bool
    n_jobs: int | None
    coef_: Any  # an array, where the fit was, or after `sparsify` a matrix of SciPy
    table_: FloatArray
    intercept_: FloatArray
    classes_: Array
    n_features_in_: int
    multilabel_: bool
    _mean_labels: float

    def _checked(self, X):
        check_is_fitted(self)
        if self._check_device(X):
            return check_device_X(self, X, reset=False)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=False
        )

    def _check_weights(self):
        """ValueError where weights have not the shapes that kernels rely on unchecked."""
        n_classes, p = len(self.classes_), self.n_features_in_
        shapes: dict[str, tuple[int, ...]] = {"intercept_": (n_classes,)}
        if self.hash_bits is None:
            shapes["coef_"] = (n_classes, p)
        else:
            shapes["table_"] = (2**self.hash_bits,)
        for name, shape in shapes.items():
            has = getattr(getattr(self, name, None), "shape", None)
            if has != shape:
                raise ValueError(
                    f"{name} of this {type(self).__name__} has the shape {has}; by hash_bits="
                    f"{shown(self.hash_bits)}, {n_classes} classes and {p} features it has {shape}. Set "
                    "hash_bits and the attributes to what fit left, or fit the model again."
                )
        if self.hash_bits is None:
            check_sparse(self.coef_, "coef_")

    def _scores(self, shorten=False):
        self._check_weights()
        n_threads = count_threads(self.n_jobs)
        if self.hash_bits is not None:
            return HashedScores(self.table_, self.intercept_, 64 - self.hash_bits, n_threads)
        return LinearScores(self.coef_, self.intercept_, n_threads, shorten)

    @by_blocks
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Scores ``X W^T + b``, all at once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For two classes, as everywhere in scikit-learn, the difference of theirs, (n_samples,).
        """
        X, model = self._checked(X), self._scores()
        scores = _fill(model, X)
        if model.n_classes == 2 and not self.multilabel_:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_topk(
        self, X: MatrixLike, k: int = 5, *, proba: bool = False, shortlist: bool = True
    ) -> tuple[Array, FloatArray]:
        """The k most probable classes of each row, by blocks of rows and classes.

        With 4096 classes or more, weights are also kept in 8 bits, at the features that rows have had so far.
        They show which few classes may be among the best, and these are then scored as without. The copy, a
        byte a weight and 4 GB at most, is made when rows first have a feature and goes with ``coef_``. Where
        ``coef_`` is written to in place, assign a copy of it instead: small changes might not be seen.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        k : int, default=5
            Number of classes; all of them if there are fewer.
        proba : bool, default=False
            Whether to return probabilities (of the softmax over all classes) instead of scores, for which all
            scores are needed.
        shortlist : bool, default=True
            Whether weights may be kept in 8 bits. The classes are the same without, and for sparse rows the
            bits of their scores. Dense rows of up to 1024 entries in all are summed in another order.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            From ``classes_``, the most probable one first.
        scores : ndarray of shape (n_samples, k)
            Their scores ``x . w + b``, falling.

        Raises
        ------
        ValueError
            If k is no whole number of at least 1.
        """
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be an integer >= 1, got {shown(k)}.")
        X, model = self._checked(X), self._scores(shortlist and not proba)
        codes, best, normalizers, _ = rank(model, X, int(k), normalize=proba)
        if proba:
            best = np.exp(best - normalizers[:, None])
        return self.classes_[codes], best

    @by_blocks
    def predict(self, X: MatrixLike) -> Array | SparseMatrix:
        """The most probable class; for an indicator as targets, an indicator of the probable labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or CSR array of shape (n_samples, n_labels)
            Labels from ``classes_``, or zeros and ones.
        """
        X, model = self._checked(X), self._scores()
        if not self.multilabel_:
            return self.classes_[top_k(model, X, 1)[0][:, 0]]
        return _above(model, X, HALF_SHARE / self._mean_labels)

    @by_blocks
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        X, model = self._checked(X), self._scores()
        scores = _fill(model, X)
        for rows, _ in blocks(X, model.n_classes):
            scores[rows] = log_softmax(scores[rows])
        return scores

    @by_blocks
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of all classes (see `predict_topk` for the few that matter).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum to 1.
        """
        p = self.predict_log_proba(X)
        return np.exp(p, out=p)

    def log_loss(self, X: MatrixLike, y: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean of ``-log p(label)``, by blocks of rows and classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or {array-like, sparse matrix} of shape (n_samples, n_labels)
            Labels; for an indicator the first one of each row counts, and rows without one do not.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            In natural units (nats) a row.

        Raises
        ------
        ValueError
            If y has a label that the model does not know: its probability is zero.
        """
        X, model = self._checked(X), self._scores()
        namespace(X=X, y=y, sample_weight=sample_weight)
        # labels are compared in main memory, wherever the scores are
        y, classes = to_host(check_sparse(y, "y")), to_host(self.classes_)
        weight = check_sample_weight(to_host(sample_weight), X.shape[0])
        if is_indicator(y):
            targets = check_extreme_targets(y, None, classes)
            labelled = np.flatnonzero(np.diff(targets.first))
            codes = targets.codes[targets.first[:-1][labelled]]
            X = X[np.asarray(labelled, like=model.intercept)]
            weight = None if weight is None else weight[labelled]
        else:
            y = column_or_1d(y)
            codes = encode(y, classes)
            if (codes < 0).any():
                raise ValueError(
                    f"y has the label {shown(y[codes < 0].tolist()[0])}, which the model was not fitted to: "
                    "its log-loss is infinite."
                )
        if X.shape[0] != len(codes):
            raise ValueError(f"X has {X.shape[0]} rows, y {len(codes)}.")
        losses = log_losses(model, X, np.asarray(codes, like=model.intercept))
        return float(np.average(to_host(losses), weights=in_units(weight)[0]))

    def sparsify(self, threshold: float = 0.0) -> Self:
        """Turn ``coef_`` into a CSR matrix without the weights of at most ``threshold`` in absolute value.

        Parameters
        ----------
        threshold : float, default=0.0
            What counts as nothing, >= 0.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the threshold is negative.
        """
        check_is_fitted(self, "coef_")
        self._refuse_device("sparsify")
        if not threshold >= 0:
            raise ValueError(f"threshold must be >= 0, got {shown(threshold)}.")
        coef = check_sparse(self.coef_, "coef_")
        if not sp.issparse(coef):
            parts = []
            height = max(1, MAX_SCORES // coef.shape[1])
            for lo in range(0, coef.shape[0], height):
                part = np.asarray(coef[lo : lo + height])
                part = part.astype(np.float32) if part.dtype == np.float16 else part
                parts.append(sp.csr_array(np.where(np.abs(part) > threshold, part, part.dtype.type(0))))
            self.coef_ = sp.csr_array(sp.vstack(parts, format="csr"))
        elif threshold > 0:
            coef = coef.copy()
            coef.data[np.abs(coef.data) <= threshold] = 0
            coef.eliminate_zeros()
            self.coef_ = coef
        return self

    def densify(self) -> Self:
        """Turn ``coef_`` back into an array.

        Returns
        -------
        self
        """
        check_is_fitted(self, "coef_")
        if sp.issparse(self.coef_):
            self.coef_ = check_sparse(self.coef_, "coef_").toarray()
        return self

    def quantize(self, dtype: DTypeLike = np.float16) -> Self:
        """Round the weights to ``dtype``: float16 halves what float32 takes, in memory and on disk.

        ``joblib.dump(model, path)`` then writes a small file, and ``joblib.load(path, mmap_mode="r")`` serves
        from it without reading all of it. `partial_fit` goes on from the rounded weights.

        Parameters
        ----------
        dtype : {float16, float32, float64}, default=float16
            The new type.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a weight is too large for ``dtype``, or float16 is asked for where ``coef_`` is sparse.
        """
        check_is_fitted(self)
        self._refuse_device("quantize")
        dtype = np.dtype(dtype)
        if dtype not in (np.float16, np.float32, np.float64):
            raise ValueError(f"dtype must be float16, float32 or float64, got {dtype}.")
        name = "coef_" if self.hash_bits is None else "table_"
        weights = getattr(self, name)
        if sp.issparse(weights) and dtype == np.float16:
            raise ValueError("SciPy has no sparse matrices of float16; quantize a dense coef_ (see densify).")
        largest = np.max(np.abs(weights.data if sp.issparse(weights) else weights), initial=0.0)
        if largest > np.finfo(dtype).max:
            raise ValueError(f"{name} has a weight of {largest:g}, beyond {dtype}.")
        setattr(self, name, weights.astype(dtype))
        return self


def _fill(model, X):
    """All scores (n, n_classes)."""
    dtype = np.result_type(X.dtype, np.float32)
    out = np.empty((X.shape[0], model.n_classes), dtype=dtype, like=model.intercept)
    for rows, parts in blocks(X, model.n_classes):
        here = X[rows]
        for part in parts:
            out[rows, part] = model.block(here, part.start, part.stop)
    return out


def _above(model, X, threshold):
    """CSR indicator of the classes whose probability exceeds the threshold, and of the most probable one."""
    normalizers = log_normalizers(model, X)[0]
    found = []
    with np.errstate(divide="ignore"):
        level = np.log(threshold)
    for rows, parts in blocks(X, model.n_classes):
        here = X[rows]
        for part in parts:
            i, j = np.nonzero(model.block(here, part.start, part.stop) - normalizers[rows, None] > level)
            found.append((i + rows.start, j + part.start))
    found.append((np.arange(X.shape[0], like=normalizers), top_k(model, X, 1)[0][:, 0]))
    i, j = (np.concatenate(parts) for parts in zip(*found))
    return csr_of_ones(i, j, (X.shape[0], model.n_classes))
