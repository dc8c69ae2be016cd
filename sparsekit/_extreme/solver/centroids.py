r"""Weighted centroids as the point that the ridge shrinks to, fitted by leave-one-out.

With the weighted sums :math:`S_k` of the rows of class k and the sum :math:`n_k` of their weights,

.. math:: s_k(x) = \tau n_k^{-\beta} \sum_j d_j S_{kj} x_j + \gamma \log n_k.

All classes share the weights d of the features. These, :math:`\tau, \beta` and :math:`\gamma` minimise the
mean log-loss of rows, each scored without its own part in the sums of its class. Log d has a normal prior
around :math:`\rho` times the logarithm of the inverse document frequency, and :math:`\rho` is fitted too.

Steps from the centroids can score rows in the same way: with their own parts most rows of text would seem to
be right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..._cython.extreme import _class_blocks as kernels
from ..._linalg.matrix import BLOCK
from ..plan import MAX_SCORES, center_is_dense, sums_are_dense

# Rows of a step of Adam: by 100 hits@10 of fb15k falls from .287 to .280.
ROWS = 200
# Steps, chosen on a part of fb15k. More gain less than 1 % of log K there and on fb15k.
STEPS = 80
# Length of a step.
RATE = 0.05
# Decay of the average of gradients, with each step.
GRADIENT_DECAY = 0.9
# Decay of the average of their squares.
SQUARE_DECAY = 0.98
# beta, log tau, gamma and rho that Adam starts from.
START = (0.3, np.log(2.0), 0.0, 2.0)
# Factors of their rates. By 1 the 80 steps bring rho to 2.5 on sector and 1.5 on a graph, by 4 to 3.3 and
# 0.7: the log-loss of the centroids is .359 instead of .370, and 6.732 instead of 6.739.
FASTER = np.array([1.0, 1.0, 1.0, 4.0])
# Standard deviation of the normal prior of log d. Without one few rows fit too many weights: the log-loss of
# 1500 new rows of rcv1_binary is .37 instead of .17.
LOG_SD = 0.5


@dataclass
class BlockCenter:
    """Weights as CSR (n_classes, n_features), classes in the order of the state's columns, and for the steps.

    Without ``start`` values are a table as the state's W, else by feature and block: the entries
    start[j * n_blocks + b] .. are those of feature j in block b, ``lane`` (uint8) the class's index in its
    block; see `kernels.run_steps`. ``own`` (n_examples,) is what each example's own row adds to the
    score of its label, which steps leave out; None: they do not.
    """

    weights: sp.csr_array
    own: np.ndarray | None
    values: np.ndarray
    start: np.ndarray | None = None
    lane: np.ndarray | None = None


@dataclass
class CentroidWeights:
    """The logarithms of d (n_features,), and beta, log tau, gamma and rho; rows are divided by ``unit``."""

    log_d: np.ndarray
    q: np.ndarray
    unit: float
    dense: bool  # whether class sums and centroids are tables

    def centroids(self, X, y, n_classes, weight=None, fit_intercept=True):
        """Centroids of rows as in `fit_weights`, intercepts, and what a row adds to its score of its class.

        Weights are CSR (n_classes, n_features), intercepts (n_classes,), the last part is (n_samples,).
        """
        n, (beta, log_tau, gamma, _) = len(y), self.q
        gamma *= fit_intercept
        weight, d = np.ones(n) if weight is None else weight, np.exp(self.log_d)
        counts = np.bincount(y, weight, minlength=n_classes)
        logs, own_logs = np.log(np.maximum(counts, 1)), np.log(np.maximum(counts[y] - weight, 1))
        centers = _class_sums(X, y, n_classes, weight)
        centers.data *= d[centers.indices] / self.unit
        centers.data *= np.repeat(np.exp(log_tau - beta * logs) / self.unit, np.diff(centers.indptr))
        squares = sp.csr_array(((X.data / self.unit) ** 2, X.indices, X.indptr), shape=X.shape) @ d.astype(
            X.dtype
        )
        score, shorter = _scores_of_labels(X, y, centers), own_logs - logs[y]
        others = score * np.exp(-beta * shorter) - np.exp(log_tau - beta * own_logs) * weight * squares
        return centers, gamma * logs, score - others - gamma * shorter


def _scores_of_labels(X, y, weights):
    """x_i^T w_{y_i} (n_samples,) of CSR weights (n_classes, n_features)."""
    out, dense = np.empty(len(y)), np.zeros(X.shape[1])
    order = np.argsort(y, kind="stable")
    step = max(1, BLOCK * len(y) // max(X.nnz, 1))
    for at in range(0, len(y), step):
        rows = order[at : at + step]
        part, labels = X[rows], y[rows]
        products = np.empty(part.nnz)
        begin = np.flatnonzero(np.diff(labels, prepend=-1))
        for first, end in zip(begin, np.append(begin[1:], len(rows))):
            k, entries = labels[first], slice(part.indptr[first], part.indptr[end])
            own = slice(weights.indptr[k], weights.indptr[k + 1])
            dense[weights.indices[own]] = weights.data[own]
            products[entries] = part.data[entries] * dense[part.indices[entries]]
            dense[weights.indices[own]] = 0.0
        out[rows] = sp.csr_array((products, part.indices, part.indptr), shape=part.shape).sum(axis=1)
    return out


def _class_sums(X, y, n_classes, weight):
    n = len(y)
    weight = np.ones(n) if weight is None else weight
    return sp.csr_array(sp.csr_array((weight, (y, np.arange(n))), shape=(n_classes, n)) @ X)


def fit_weights(X, y, n_classes, rng, weight=None):
    """The `CentroidWeights` of rows.

    Parameters
    ----------
    X : CSR array of shape (n_samples, n_features)
    y : ndarray of int of shape (n_samples,)
    n_classes : int
    rng : numpy.random.Generator
        Draws the rows of the steps.
    weight : ndarray of shape (n_samples,), default=None
        Weights of the rows, of mean 1. Rows of weight 0 are not drawn.
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
    # the steps are random: single precision halves their time
    by_feature.data = (by_feature.data / unit).astype(np.float32)
    # of an entry of X and a class that has its feature
    pairs = int(with_feature @ np.diff(by_feature.indptr))
    dense = sums_are_dense(by_feature, pairs, X.nnz)
    if dense:
        by_feature = by_feature.toarray()
    idf = np.log1p(n / np.maximum(with_feature, 1))
    logs = np.log(np.maximum(counts, 1))
    used = np.flatnonzero(weight)
    n_rows = min(len(used), ROWS, max(1, MAX_SCORES // max(n_classes, pairs // max(n, 1))))
    log_idf = np.log(idf / np.exp(np.log(idf).mean()))
    own, q = np.zeros(p), np.array(START)  # log d is q[3] log_idf + own
    steps = [(np.zeros_like(one), np.zeros_like(one)) for one in (own, q)]
    for t in range(1, STEPS + 1):
        chosen = used[rng.choice(len(used), n_rows, replace=False)]
        part = X[chosen] / unit, y[chosen], weight[chosen]
        _, by_d, by_q = _loss_gradient(*part, by_feature, counts, logs, q[3] * log_idf + own, q)
        gradients = by_d + own / (LOG_SD**2 * n), np.append(by_q, by_d @ log_idf)
        for one, faster, gradient, (mean, square) in zip((own, q), (1.0, FASTER), gradients, steps):
            mean += (1.0 - GRADIENT_DECAY) * (gradient - mean)
            square += (1.0 - SQUARE_DECAY) * (gradient**2 - square)
            root = np.sqrt(square / (1.0 - SQUARE_DECAY**t))
            step = np.divide(mean / (1.0 - GRADIENT_DECAY**t), root, out=np.zeros_like(one), where=root > 0)
            one -= RATE * faster * step
    return CentroidWeights(q[3] * log_idf + own, q, unit, dense)


def _loss_gradient(X, y, weight, by_feature, counts, logs, log_d, q):
    """Mean leave-one-out log-loss of rows, and its gradients by log d and by (beta, log tau, gamma).

    ``by_feature`` (n_features, n_classes) has the sums of the classes, CSR or dense; scores have its type.
    """
    n, K, rows, d, dtype = len(y), len(logs), np.arange(len(y)), np.exp(log_d), by_feature.dtype
    i, j, own = np.repeat(rows, np.diff(X.indptr)), X.indices, (rows, y)
    sums = sp.csr_array(((X.data * d[j]).astype(dtype), j, X.indptr), shape=X.shape) @ by_feature
    sums = sums.toarray() if sp.issparse(sums) else sums
    sums[own] -= weight * np.bincount(i, X.data**2 * d[j], minlength=n)
    # the row's own class has one row less
    own_logs = np.log(np.maximum(counts[y] - weight, 1))
    factors, own_factors = np.exp(q[1] - q[0] * logs).astype(dtype), np.exp(q[1] - q[0] * own_logs)
    scores = sums * factors
    scores += (q[2] * logs).astype(dtype)
    scores[own] = sums[own] * own_factors + q[2] * own_logs
    scores -= scores.max(axis=1, keepdims=True)
    own_scores = scores[own]
    g = np.exp(scores, out=scores)
    total = g.sum(axis=1)
    share = weight / weight.sum()
    loss = share @ (np.log(total) - own_scores)
    g *= (share / total)[:, None].astype(dtype)
    g[own] -= share
    own_g, by_size = g[own], g.sum(axis=0)
    inner = g
    inner *= factors
    inner[own] = own_g * own_factors
    by_factor = np.einsum("ik,ik->k", inner, sums)
    shorter = own_logs - logs[y]
    by_q = np.array(
        [
            -(by_factor @ logs + (inner[own] * sums[own]) @ shorter),
            by_factor.sum(),
            by_size @ logs + own_g @ shorter,
        ]
    )
    by_d = -np.bincount(j, X.data**2 * (weight * inner[own])[i], minlength=len(d))
    if sp.issparse(by_feature):
        sums_of = by_feature[j]
        sums_of.data *= inner.ravel()[np.repeat(i * K, np.diff(sums_of.indptr)) + sums_of.indices]
        by_d += np.bincount(j, X.data * sums_of.sum(axis=1), minlength=len(d))
    else:
        used, at = np.unique(j, return_inverse=True)
        part = sp.csr_array((X.data.astype(dtype), at, X.indptr), shape=(n, len(used)))
        by_d[used] += np.einsum("jk,jk->j", part.T @ inner, by_feature[used])
    return loss, by_d * d, by_q


def block_center(weights, own, plan, dtype, dense):
    """The `BlockCenter` of weights (n_classes, n_features) for steps by ``plan``; ``dense`` as class sums."""
    weights = sp.csr_array(weights)[plan.order].astype(dtype)
    n_features = weights.shape[1]
    if center_is_dense(weights, plan.n_blocks * kernels.BLOCK, dense):
        at, values = _entries(weights, plan.stride)
        table = np.zeros(n_features * plan.stride, dtype=dtype)
        table[at] = values
        return BlockCenter(weights, own, table)
    by_feature = sp.csc_array(weights)
    by_feature.sort_indices()
    column = by_feature.indices
    cell = np.repeat(np.arange(n_features), np.diff(by_feature.indptr)) * plan.n_blocks
    cell += column // kernels.BLOCK
    start = np.zeros(n_features * plan.n_blocks + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell, minlength=len(start) - 1), out=start[1:])
    return BlockCenter(weights, own, by_feature.data, start, (column % kernels.BLOCK).astype(np.uint8))


def move_center(state, plan, center, intercepts=None):
    """Let the ridge shrink to ``center``, and move the weights of ``state`` along; set given intercepts."""
    old = state.center
    at, values = _entries(center.weights if old is None else center.weights - old.weights, plan.stride)
    state.W.reshape(-1)[at] += values
    state.center = center
    if intercepts is not None and state.bias is not None:
        state.bias[: plan.n_classes] = intercepts[plan.order]


def _entries(weights, stride):
    """Indices and values of the entries of CSR (n_classes, n_features) in a table (n_features, stride)."""
    entries = weights.tocoo()
    return entries.col.astype(np.int64) * stride + entries.row, entries.data
