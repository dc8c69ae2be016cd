"""The structured hinge loss with Hamming cost: smoothed with a temperature, and as it is.

    f(x) = sum_i c_i max_y (s(x_i, y) + d(y, y_i) - s(x_i, y_i)) + 1/2 |x|^2 ,   d: how many labels differ,

Taskar, Guestrin, Koller, "Max-margin Markov networks" (2003); Tsochantaridis, Joachims, Hofmann, Altun,
"Large margin methods for structured and interdependent output variables" (JMLR 2005), eq. (8). With a
temperature r the maximum becomes r log sum_y exp(. / r), which forward-backward computes; it is too large by
at most r times the entropy. With p the distributions at temperature r, v = sum_i c_i (features of y_i - E_p
features) and the dual

    D(p) = sum_i c_i E_p[d(y, y_i)] - 1/2 |v|^2  <=  min f ,

and v is x less the smooth gradient.
"""

import numpy as np

from .chains import best, forward_backward
from .loss import ChainLoss


class HingeLoss(ChainLoss):
    """The smooth function at ``temperature``, in the form of its base."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.temperature = 1.0
        self._logs, self._risk, self._costly = None, 0.0, (None, None)

    def cool(self, temperature):
        """Another temperature: values of the last one are forgotten."""
        self.temperature = temperature
        self._seen = None, np.nan, None

    def infer(self, unary, follow):
        unary += 1.0
        unary[self._rows, self.y] -= 1.0
        self._costly = unary.copy(), follow
        unary /= self.temperature
        logs, pairs = forward_backward(
            unary, self.starts, follow / self.temperature, self.weight, self.n_threads, reach=self.reach,
            parts=self._parts,
        )  # fmt: skip
        self._risk = float(np.sum(self._weights - unary[self._rows, self.y]))
        self._logs = self.temperature * logs
        return self._logs, pairs

    def dual(self, x, gradient):
        """D at the distributions of the last evaluation, which was at x."""
        v = x - gradient
        return self._risk - 0.5 * float(v @ v)

    def excess(self):
        """By how much the smooth function was larger than the hinge loss at the last evaluation."""
        unary, follow = self._costly
        return float(self.weight @ (self._logs - best(unary, self.starts, follow, self.n_threads)[1]))


class WorstLoss(ChainLoss):
    """The hinge loss itself and a subgradient: of the worst labelling."""

    def infer(self, unary, follow):
        unary += 1.0
        unary[self._rows, self.y] -= 1.0
        worst, value = best(unary, self.starts, follow, self.n_threads)
        unary[:] = 0.0
        unary[self._rows, worst] = self._weights
        return value, self.count_pairs(worst, self._weights)
