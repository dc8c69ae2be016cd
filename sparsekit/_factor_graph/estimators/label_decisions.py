"""From marginals to sets of labels: thresholds of rows, sets that are not empty, sets that obey logic."""

import numpy as np

from ..._arrays import namespace
from ..factors.linear_factors import Or
from .label_sets import made_factors, nearest_sets


def f1_thresholds(mu, never_empty):
    """What the marginals of each row must exceed so that the set's expected F1 is largest, (n, 1).

    E[F1(y)] of independent labels is taken as 2 sum_j y_j mu_j / (sum_j y_j + sum_j mu_j). The best set then
    has the k largest marginals for some k. At the largest value F it holds the labels with mu_j > F / 2: one
    more label pays as long as 2 mu_j > F. Unless ``never_empty``, the empty set is worth the probability
    prod_j (1 - mu_j) that it is right; a threshold of 1 stands for it.
    """
    xp = namespace(mu=mu)
    n, K = mu.shape
    if not K:
        return xp.zeros((n, 1))
    falling = xp.sort(mu.astype(np.float64), axis=1)[:, ::-1]
    sizes = xp.arange(1, K + 1)
    best = (2.0 * xp.cumsum(falling, axis=1) / (sizes + falling.sum(axis=1)[:, None])).max(axis=1)
    if not never_empty:
        best = xp.where(xp.prod(1.0 - falling, axis=1) > best, 2.0, best)
    return 0.5 * best[:, None]


def decide(mu, eta, threshold, never_empty, factors, n_threads, *, share=0.0):
    """Sets of labels (n, K).

    Parameters
    ----------
    mu, eta : ndarray of shape (n, K)
        Marginals and scores.
    threshold : float or "expected_f1"
        Labels whose marginals are larger are on; the larger of two sets' sums of mu - threshold wins where
        factors leave no other choice.
    never_empty : bool
        Whether a set that would be empty is the best that is not.
    factors : as `logic` takes them
    n_threads : int
    share : float
        Part of a half in the thresholds of "expected_f1", from 0 to 1.
    """
    xp = namespace(mu=mu, eta=eta)
    if isinstance(threshold, str):
        threshold = (1.0 - share) * f1_thresholds(mu, never_empty) + 0.5 * share
    gain = mu - threshold
    if factors is None:
        sets = (gain > 0.0).astype(np.int64)
    else:
        sets = nearest_sets(gain, factors, n_threads)
    if not never_empty or not mu.shape[1]:
        return sets
    empty = xp.flatnonzero(~sets.any(axis=1))
    if not len(empty):
        return sets
    # if every marginal is 0, the scores still rank the labels
    none = mu[empty].max(axis=1) <= 0.0
    rank = xp.where(none[:, None], eta[empty], gain[empty])
    if factors is None:
        sets[empty, rank.argmax(axis=1)] = 1
    else:
        sets[empty] = nearest_sets(rank, _and_some(factors), n_threads)
    return sets


def _and_some(factors):
    """The factors, and one that requires a label."""
    return lambda labels: [*made_factors(factors, labels), Or(labels)]
