r"""Weighted centroids as the point that the ridge shrinks to, fitted by leave-one-out.

With the weighted sums :math:`S_k` of the rows of class k and the sum :math:`n_k` of their weights,

.. math:: s_k(x) = \tau n_k^{-\beta} \sum_j d_j S_{kj} x_j + \gamma \log n_k.

All classes share the weights d of the features. These, :math:`\tau, \beta` and :math:`\gamma` minimise the
mean log-loss of rows, each scored without its own part in the sums of its class. Log d has a normal prior
around twice the logarithm of the inverse document frequency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..._cython.extreme import _class_blocks as kernels
from ..._linalg.matrix import BLOCK

# Rows of a step and steps of Adam, its rate and averages; chosen on a part of fb15k. More steps gain less
# than 1 % of log K there and on fb15k.
ROWS, STEPS, RATE, FIRST, SECOND = 200, 80, 0.05, 0.9, 0.98
# Scores of a step, at most: 64 MB of them.
MOST_SCORES = 2**23
# beta, log tau and gamma that Adam starts from
START = (0.3, np.log(2.0), 0.0)
# Standard deviation of the normal prior of log d. Without one few rows fit too many weights: the log-loss of
# 1500 new rows of rcv1_binary is .37 instead of .17.
LOG_SD = 0.5
# Non-zeros by feature and block from which the steps use a dense table (bibtex: 1.7 times as fast).
DENSE_FROM = 2


@dataclass
class BlockCenter:
    """Weights as CSR (n_classes, n_features), classes in the order of the state's columns, and for the steps.

    Without ``start`` values are a table as the state's W, else by feature and block: the entries
    start[j * n_blocks + b] .. are those of feature j in block b, ``lane`` (uint8) the class's index in its
    block; see `kernels.run_block_steps`.
    """

    weights: sp.csr_array
    values: np.ndarray
    start: np.ndarray | None = None
    lane: np.ndarray | None = None


@dataclass
class CentroidWeights:
    """The logarithms of d (n_features,), and beta, log tau and gamma; rows are divided by ``unit``."""

    log_d: np.ndarray
    q: np.ndarray
    unit: float

    def centroids(self, X, y, n_classes, weight=None):
        """Weights (n_classes, n_features) as CSR and intercepts (n_classes,); see `fit_weights`."""
        counts = np.bincount(y, weight, minlength=n_classes)
        logs = np.log(np.maximum(counts, 1))
        sums = _class_sums(X, y, n_classes, weight)
        sums.data *= np.exp(self.log_d)[sums.indices] / self.unit
        sums.data *= np.repeat(np.exp(self.q[1] - self.q[0] * logs) / self.unit, np.diff(sums.indptr))
        return sums, self.q[2] * logs


def fit_centroids(X, y, n_classes, rng, weight=None):
    """The centroids of the rows that their weights are fitted to; parameters as in `fit_weights`."""
    return fit_weights(X, y, n_classes, rng, weight).centroids(X, y, n_classes, weight)


def _class_sums(X, y, n_classes, weight):
    n = len(y)
    weight = np.ones(n) if weight is None else weight
    return sp.csr_array(sp.csr_array((weight, (y, np.arange(n))), shape=(n_classes, n)) @ X)


def fit_weights(X, y, n_classes, rng, weight=None):
    """The `CentroidWeights` of rows, in double precision.

    Parameters
    ----------
    X : CSR array of shape (n_samples, n_features)
    y : ndarray of int of shape (n_samples,)
    n_classes : int
    rng : numpy.random.Generator
        Draws the rows of the steps.
    weight : ndarray of shape (n_samples,), default=None
        Positive weights of the rows, of mean 1.
    """
    n, p = X.shape
    weight = np.ones(n) if weight is None else weight
    # in this unit rows have a mean square of 1, from where the steps of log tau are few
    squares = np.einsum("i,i->", X.data, X.data, dtype=np.float64)  # makes no array as large as X
    unit = float(np.sqrt(squares / max(n, 1))) or 1.0
    # by parts, since counts of all entries at once take 8 bytes an entry
    with_feature, step = np.zeros(p, dtype=np.int64), max(p, BLOCK)
    for at in range(0, X.nnz, step):
        part = slice(at, at + step)
        with_feature += np.bincount(X.indices[part][X.data[part] != 0], minlength=p)
    counts = np.bincount(y, weight, minlength=n_classes)
    by_feature = sp.csr_array(_class_sums(X, y, n_classes, weight).T)
    by_feature.data /= unit
    idf = np.log1p(n / np.maximum(with_feature, 1))
    logs = np.log(np.maximum(counts, 1))
    n_rows = min(n, ROWS, max(1, MOST_SCORES // n_classes))
    log_idf = 2.0 * np.log(idf / np.exp(np.log(idf).mean()))
    log_d, q = log_idf.copy(), np.array(START)
    steps = [(np.zeros_like(one), np.zeros_like(one)) for one in (log_d, q)]
    for t in range(1, STEPS + 1):
        chosen = rng.choice(n, n_rows, replace=False)
        part = X[chosen] / unit, y[chosen], weight[chosen]
        gradients = _loss_gradient(*part, by_feature, counts, logs, log_d, q)[1:]
        gradients[0][:] += (log_d - log_idf) / (LOG_SD**2 * n)
        for one, gradient, (mean, square) in zip((log_d, q), gradients, steps):
            mean += (1.0 - FIRST) * (gradient - mean)
            square += (1.0 - SECOND) * (gradient**2 - square)
            root = np.sqrt(square / (1.0 - SECOND**t))
            one -= RATE * np.divide(mean / (1.0 - FIRST**t), root, out=np.zeros_like(one), where=root > 0)
    return CentroidWeights(log_d, q, unit)


def _loss_gradient(X, y, weight, by_feature, counts, logs, log_d, q):
    """Mean leave-one-out log-loss of rows, and its gradients by log d and by (beta, log tau, gamma)."""
    n, rows, d = len(y), np.arange(len(y)), np.exp(log_d)
    sums = (X @ sp.diags_array(d) @ by_feature).toarray()
    sums[rows, y] -= weight * (X.multiply(X) @ d)
    sizes = np.tile(logs, (n, 1))
    sizes[rows, y] = np.log(np.maximum(counts[y] - weight, 1))
    factors = np.exp(q[1] - q[0] * sizes)
    scores = sums * factors + q[2] * sizes
    scores -= scores.max(axis=1, keepdims=True)
    g = np.exp(scores)
    total = g.sum(axis=1, keepdims=True)
    share = weight / weight.sum()
    loss = share @ (np.log(total[:, 0]) - scores[rows, y])
    g /= total
    g[rows, y] -= 1.0
    g *= share[:, None]
    inner = g * factors
    by_q = np.array([-(inner * sums * sizes).sum(), (inner * sums).sum(), (g * sizes).sum()])
    entries = X.tocoo()
    i, j = entries.row, entries.col
    used, at = np.unique(j, return_inverse=True)
    by_sums = by_feature[used] @ inner.T
    parts = entries.data * (by_sums[at, i] - weight[i] * inner[i, y[i]] * entries.data)
    return loss, np.bincount(j, parts, minlength=len(d)) * d, by_q


def start_at(state, plan, weights, intercepts):
    """Put the weights into ``state``, whose ridge then shrinks to them."""
    weights = sp.csr_array(weights)[plan.order].astype(state.W.dtype)
    by_feature = sp.csc_array(weights)
    by_feature.sort_indices()
    column, values = by_feature.indices, by_feature.data
    feature = np.repeat(np.arange(len(state.W)), np.diff(by_feature.indptr))
    state.W.reshape(-1)[feature * state.W.shape[1] + column] = values
    if weights.nnz >= DENSE_FROM * len(state.W) * plan.n_blocks:
        state.center = BlockCenter(weights, state.W.copy().ravel())
    else:
        cell = feature * plan.n_blocks + column // kernels.BLOCK
        count = np.bincount(cell, minlength=len(state.W) * plan.n_blocks)
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        state.center = BlockCenter(weights, values, start, (column % kernels.BLOCK).astype(np.uint8))
    if state.bias is not None:
        state.bias[: plan.n_classes] = intercepts[plan.order]
