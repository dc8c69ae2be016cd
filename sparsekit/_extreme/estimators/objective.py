"""Estimates of the whole objective of ExtremeSoftmaxSGD, from the same rows after each epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from ..._arrays import full, is_device, is_sparse, to_host
from .model_view import ModelView, codes
from .scores import log_normalizers


@dataclass(frozen=True)
class Evaluation:
    """What one estimate saw.

    epoch : how many were behind.
    losses : of the sample's examples (m,).
    norms : squared norms of the sample's classes, or none without a ridge.
    """

    epoch: int
    losses: np.ndarray
    norms: np.ndarray


class SampledObjective:
    """Mean log-loss and ridge of a model from a `Sample`.

    Parameters
    ----------
    sample : Sample
    X : ndarray or CSR
        Its rows, in their order.
    alpha : float
        Strength of the ridge.
    n_classes : int
    """

    def __init__(self, sample, X, alpha, n_classes):
        self.sample, self.alpha, self.n_classes = sample, alpha, n_classes
        self.X = X

    def evaluate(self, epoch, state, options):
        """Evaluate the objective at the state, which is not changed; an `Evaluation`."""
        view = ModelView(state, options)
        own = np.asarray(codes(self.sample.codes, options), like=view.intercept)
        with np.errstate(all="ignore"):
            high, score = log_normalizers(view, self.X, own)
            norms = view.squared_norms(codes(self.sample.classes, options)) if self.alpha > 0 else np.empty(0)
        return Evaluation(epoch, to_host(high - score), to_host(norms))

    def value(self, found):
        """The objective and its standard error."""
        return self._estimate(found.losses, found.norms)

    def fall(self, before, after):
        """How much the objective fell between two evaluations, and the standard error of that."""
        return self._estimate(before.losses - after.losses, before.norms - after.norms)

    def gradient_norm(self, found, state, options):
        """Estimate of the norm of the objective's gradient, relative to that of a model of zeros.

        The squared norm of the sample's mean gradient is too large by its variance, which is subtracted.
        """
        sample, view, X = self.sample, ModelView(state, options), self.X
        own, weight = codes(sample.codes, options), sample.weight
        with np.errstate(all="ignore"):
            high = log_normalizers(view, X)[0]
            rest = (self.n_classes, X, own, weight, sample.spare, state.bias is not None)
            squared, product = _squared_gradient(view, high, *rest)
            start, _ = _squared_gradient(None, full(len(own), np.log(self.n_classes), like=high), *rest)
        if self.alpha > 0:
            squared += 2.0 * self.alpha * product + self.alpha * (self.alpha * self._norm(found.norms))
        return float(np.sqrt(max(0.0, squared) / start)) if start > 0 else 0.0

    def _norm(self, norms):
        return self.n_classes * float(norms.mean())

    def _estimate(self, losses, norms):
        sample = self.sample
        with np.errstate(all="ignore"):
            value = float(sample.weight @ losses)
            variance = sample.spare * _variance_of_mean(losses, sample.weight)
            if self.alpha > 0:
                value += self.alpha / 2 * self._norm(norms)
                spare = 1.0 - len(norms) / self.n_classes
                # no power, which is an OverflowError where a product is infinite
                scale = self.alpha / 2 * self.n_classes
                variance += spare * scale * (scale * _variance_of_mean(norms))
        return value, float(np.sqrt(variance))


def _variance_of_mean(values, weight=None):
    n = len(values)
    if n < 2:
        return 0.0
    weight = np.full(n, 1.0 / n) if weight is None else weight
    return float(weight**2 @ (values - weight @ values) ** 2) * n / (n - 1)


def _compact(X):
    """X without its empty columns, where these are most."""
    if not is_sparse(X) or is_device(X):
        return X
    columns = np.unique(X.indices)
    if 2 * len(columns) >= X.shape[1]:
        return X
    indices = np.searchsorted(columns, X.indices).astype(X.indices.dtype)
    return sp.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], len(columns)))


def _squared_gradient(view, high, K, X, own, weight, spare, has_bias):
    """Squared norm of the loss's gradient, less what variance adds to it, and its product with the ridge's.

    ``view`` None is a model of zeros; ``high`` (n,) has the rows' log normalizers. The product is a sum over
    residuals and scores, less those of the ridge's center.
    """
    n, total, product, used = X.shape[0], 0.0, 0.0, _compact(X)
    own, squares = np.asarray(own, like=high), np.zeros(n, like=high)
    weight = np.asarray(weight, like=high)
    if is_device(X):
        lengths = (X.multiply(X) if is_sparse(X) else X * X).sum(axis=1).reshape(-1) + has_bias
    else:
        lengths = row_norms(X, squared=True) + has_bias  # without a copy of X
    step = max(1, min(K, 2**22 // max(1, n, used.shape[1])))
    for lo in range(0, K, step):
        hi = min(K, lo + step)
        scores = np.zeros((n, hi - lo), like=high) if view is None else view.block(X, lo, hi)
        scores = scores.astype(np.float64)
        residual = np.exp(scores - high[:, None])
        residual -= (own[:, None] == np.arange(lo, hi, like=high)[None, :]).astype(np.float64)
        if view is not None:
            scores = scores - view.center_scores(X, lo, hi)
        product += float((weight[:, None] * residual * scores).sum())
        squares += (residual**2).sum(axis=1)
        residual *= weight[:, None]
        gradient = used.T @ residual
        total += float((gradient**2).sum()) + has_bias * float((residual.sum(axis=0) ** 2).sum())
    if spare and n > 1:
        # of the mean of n gradients g: the sum of |g - mean|^2 / (n (n - 1))
        each = float((squares * lengths).sum())
        total -= spare * max(0.0, each / n - total) / (n - 1)
    return total, product
