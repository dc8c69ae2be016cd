"""Pace: whether the gap falls fast enough, or another method of known cost should take over."""

from bisect import bisect_right

import numpy as np

# Part of the other method's cost after which the number of iterations left is estimated; the gap falls slowly
# at first. With 0.05 two of 124 fits by coordinate ascent take 16 times as long, with 0.2 low ranks 3 times.
TRIAL = 0.1
# Least number of iterations before that. With 3 and 8 the 244 fits by NQN that `NEWTON_STEPS` was chosen on
# take as long.
MIN_COUNT = 5


class Pace:
    """Counts iterations of an algorithm, and judges how fast the gap falls.

    Attributes
    ----------
    other_cost : float
        What another method costs, in iterations.
    count : int
        Iterations so far.
    """

    def __init__(self, other_cost):
        self.other_cost, self.count, self._counts, self._gaps = other_cost, 0, [0], [np.inf]

    def is_slow(self, gap, allowed):
        """Whether more iterations are left than the other method costs, at the rate of the last half."""
        half = bisect_right(self._counts, self.count // 2) - 1
        at, before = self._counts[half], self._gaps[half]
        self._counts.append(self.count)
        self._gaps.append(gap)
        if np.isnan(gap):
            return True
        if gap <= allowed or self.count < max(TRIAL * self.other_cost, MIN_COUNT):
            return False
        allowed = max(allowed, np.finfo(np.float64).tiny)
        left = (self.count - at) * np.log(gap / allowed)  # times the logarithm below
        return left > self.other_cost * np.log(before / gap)
