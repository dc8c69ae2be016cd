"""Bounds of the number of features that stability selection selects and that are selected rarely otherwise.

A half selects q of p features in the mean, and there are B = n_pairs pairs of complementary halves. L is the
set of features that a half selects with probability at most q / p = theta. A feature is reported if its
frequency over the 2 B halves is at least the threshold tau. The bounds are those of Shah and Samworth (2013),
"Variable selection with error control: another look at stability selection", JRSS B 75(1):

- ``none``: Theorem 1, without assumptions, q^2 / ((2 tau - 1) p), the bound of Meinshausen and Buehlmann
  (2010), Theorem 1, as well;
- ``unimodal``: Theorem 2, where the share of pairs both of whose halves select a feature is unimodally
  distributed;
- ``r-concave``: eq. (8), where that share is (-1/2)-concave and the frequency is (-1/4)-concave.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Literal, get_args

import numpy as np
from scipy.optimize import minimize_scalar

from ..._messages import shown

Assumption = Literal["none", "unimodal", "r-concave"]
ASSUMPTIONS = get_args(Assumption)

# range of the parameter of the extremal distributions; beyond, they are uniform or a point at zero
_LOG_A = math.log(1e-9), math.log(1e9)


def votes_needed(threshold: float, n_pairs: int) -> int:
    """How many of the ``2 n_pairs`` halves must select a feature for a frequency of ``threshold``."""
    return math.ceil(2 * n_pairs * threshold - 1e-9)


def expected_false(q: float, p: int, threshold: float, n_pairs: int, assumption: str) -> float:
    """Upper bound of the expected number of features of L that are reported.

    Parameters
    ----------
    q : float
        Mean number of features that a half selects.
    p : int
        Number of features.
    threshold : float
        In (0.5, 1].
    n_pairs : int
    assumption : {"none", "unimodal", "r-concave"}

    Returns
    -------
    float
        At most p, and at most ``q / threshold``, what can be reported at all.
    """
    if q <= 0:
        return 0.0
    tau = votes_needed(threshold, n_pairs) / (2 * n_pairs)
    theta = q / p
    found = min(float(p), q / tau, q * theta / (2 * tau - 1))
    if assumption == "unimodal":
        found = min(found, q * theta * _unimodal_factor(tau, n_pairs, theta))
    elif assumption == "r-concave" and theta < 1:
        votes = round(2 * n_pairs * tau)
        both = concave_tail(theta**2, votes - n_pairs, n_pairs, -0.5)
        one = concave_tail(theta, votes, 2 * n_pairs, -0.25)
        found = min(found, p * both, p * one)
    return found


def largest_selection(max_false: float, p: int, threshold: float, n_pairs: int, assumption: str) -> int:
    """The largest number of features that halves may select for `expected_false` to be at most ``max_false``.

    0 where even one is too many.
    """

    def bound(q):  # it rises with q
        return expected_false(q, p, threshold, n_pairs, assumption)

    return bisect_right(range(1, p + 1), max_false * (1 + 1e-12), key=bound)


def _unimodal_factor(tau, n_pairs, theta):
    """C(tau, B) of Theorem 2; infinite where it says nothing."""
    half = 1 / (2 * n_pairs)
    if theta > 1 / math.sqrt(3) or tau <= 0.5 + min(theta**2, half + 0.75 * theta**2):
        return math.inf
    if tau <= 0.75:
        return 1 / (2 * (2 * tau - 1 - half)) if 2 * tau - 1 > half else math.inf
    return 4 * (1 - tau + half) / (1 + 2 * half)


def concave_tail(eta: float, t: int, size: int, r: float) -> float:
    """Largest P(X >= t) of an X on 0 .. size with an r-concave distribution and mean ``eta * size``.

    The maximum is attained where the weights to the power r are linear up to a last point that may weigh
    less: ``(a + i) ** (1 / r)`` for i = 0 .. k, and a rest at k + 1, which the mean decides. The other
    distributions matter for ``t <= 2 eta size`` only, where 1 is returned.

    Parameters
    ----------
    eta : float
        In (0, 1).
    t, size : int
    r : float
        Below 0.
    """
    mean = eta * size
    if t <= math.ceil(2 * mean - 1e-12):
        return 1.0
    k = np.arange(t - 1, size + 1)
    # the rest is between 0 and its value on the line for a between these two
    log_a = _log_a_of_mean(k, mean, r)
    k, low, high = k[:-1], log_a[1:], log_a[:-1]
    inner = low[:, None] + np.linspace(0, 1, 33) * (high - low)[:, None]
    tails = _tail(np.repeat(k, inner.shape[1]), inner.ravel(), mean, t, r).reshape(inner.shape)
    row, column = np.unravel_index(int(np.argmax(tails)), tails.shape)
    around = inner[row, max(column - 1, 0)], inner[row, min(column + 1, inner.shape[1] - 1)]
    best = tails[row, column]
    if around[1] > around[0]:
        finer = minimize_scalar(
            lambda x: -_tail(k[[row]], np.array([x]), mean, t, r)[0], bounds=around, method="bounded",
            options={"xatol": 1e-9},
        )  # fmt: skip
        best = max(best, -finer.fun)
    return float(min(best, 1.0))


def _log_a_of_mean(k, mean, r):
    """log(a) with which weights ``(a + i) ** (1 / r)``, i = 0 .. k, have the mean, for each k; bisection."""
    counts = np.arange(k[-1] + 1)
    beyond = counts > k[:, None]
    low, high = np.full(len(k), _LOG_A[0]), np.full(len(k), _LOG_A[1])
    for _ in range(50):
        middle = (low + high) / 2
        weights = np.where(beyond, 0.0, (np.exp(middle)[:, None] + counts) ** (1 / r))
        above = weights @ counts > mean * weights.sum(axis=1)  # the mean rises with a
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def _tail(k, log_a, mean, t, r):
    """P(X >= t) of the extremal distributions with support 0 .. k + 1, ``t <= k + 1``, one an entry."""
    counts = np.arange(k.max() + 1)
    weights = np.where(counts > k[:, None], 0.0, (np.exp(log_a)[:, None] + counts) ** (1 / r))
    # c (sum of weights) + rest = 1 and c (first moment) + (k + 1) rest = mean
    scale = (k + 1 - mean) / (weights * (k[:, None] + 1 - counts)).sum(axis=1)
    return 1.0 - scale * weights[:, :t].sum(axis=1)


def allowed_selection(max_false, n_features, threshold, n_pairs, assumption):
    """`largest_selection`; ValueError where even one feature a half is too many."""
    most = largest_selection(max_false, n_features, threshold, n_pairs, assumption)
    if most == 0 and n_features:
        least = expected_false(1, n_features, threshold, n_pairs, assumption)
        raise ValueError(
            f"max_false={shown(max_false)} is out of reach: with {n_features} features, threshold="
            f"{shown(threshold)}, n_pairs={shown(n_pairs)} and assumption={shown(assumption)} it is "
            f"{least:.2g} for halves that select one feature each. Raise the threshold or max_false."
        )
    return most
