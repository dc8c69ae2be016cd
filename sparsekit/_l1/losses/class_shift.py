"""The common shift of a feature's classes, which moves no probability: only the penalty sees it.

Along it the model has no curvature. An active face of all classes of a feature is therefore singular. Its
Newton step is as long as the ridge allows, and the line search along it is slow. Two things remove the
direction and lose nothing:

* ``centred`` shifts a feature to where its penalty is least, the weighted median of its coefficients, so that
  at least one of them is zero;
* ``anchored`` leaves one such class out of the model. The derivatives of a feature's classes sum to zero: if
  the other classes are stationary then so is the class at the median.
"""

import numpy as np

from ..._arrays import namespace
from .rounding import GAP_ROUNDING


def anchored(variables, n_classes, x, g, l1):
    """Sorted ``variables`` without one class of each feature of which they hold all.

    x, g and l1 are those of all variables, a table (features, classes).
    """
    K = n_classes
    xp = namespace(x=x)
    if len(variables) < K:
        return variables
    begin = np.flatnonzero(variables[: len(variables) - K + 1] % K == 0)
    begin = begin[variables[begin + K - 1] == variables[begin] + K - 1]
    if not len(begin):
        return variables
    ids = variables[begin[:, None] + xp.arange(K)]
    # of the classes at zero the one with the smallest subgradient
    slack = np.where(x[ids] == 0.0, np.abs(g[ids]) - l1[ids], np.inf)
    slack[~l1[ids].any(axis=1), K - 1] = -np.inf  # without a penalty any class will do
    best = slack.argmin(axis=1)
    found = np.take_along_axis(slack, best[:, None], axis=1)[:, 0] < np.inf
    keep = xp.ones(len(variables), dtype=bool)
    keep[(begin + best)[found]] = False
    return variables[keep]


def centred(x, n_features, n_classes, l1):
    """x with each feature's classes shifted to the least penalty and a zero; x itself if all are.

    x is a table (features, classes), perhaps with a last row of intercepts.
    """
    K = n_classes
    xp = namespace(x=x)
    features = np.unique(np.flatnonzero(x) // K)
    features = features[features < n_features]
    if not len(features):
        return x
    ids = features[:, None] * K + xp.arange(K)
    W, L = x[ids], l1[ids]
    half = 0.5 * L.sum(axis=1)
    one_side = np.maximum((L * (W > 0.0)).sum(axis=1), (L * (W < 0.0)).sum(axis=1))
    full = ((W != 0.0) | (L == 0.0)).all(axis=1)
    move = (half > 0.0) & (full | (one_side > (1.0 + GAP_ROUNDING) * half))
    if not bool(move.any()):
        return x
    ids, W, L, half = ids[move], W[move], L[move], half[move][:, None]
    order = W.argsort(axis=1)
    W_sorted = np.take_along_axis(W, order, axis=1)
    below = np.cumsum(np.take_along_axis(L, order, axis=1), axis=1)
    # the two ends of the medians
    low = (below >= (1.0 - GAP_ROUNDING) * half).argmax(axis=1)[:, None]
    high = (below > (1.0 + GAP_ROUNDING) * half).argmax(axis=1)[:, None]
    low, high = np.take_along_axis(W_sorted, low, axis=1), np.take_along_axis(W_sorted, high, axis=1)
    x = x.copy()
    x[ids] = W - np.where(np.abs(low) <= np.abs(high), low, high)
    return x
