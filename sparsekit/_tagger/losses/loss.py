"""The negative log-likelihood of a linear-chain CRF with an L2 penalty, and its gradient.

The variables are one vector: W, as `states` has it, transitions (K, K) [previous, next], and then, where
sequences' ends have scores, start (K,) and stop (K,). The loss is a *sum* over the sequences,

    f(x) = sum_i c_i (log Z(x_i) - s(x_i, y_i)) + ridge / 2 |x|^2 .
"""

from typing import Any

import numpy as np

from ..._linalg.threads import blas_threads
from .chains import add_ends, cuts, forward_backward, scored
from .states import AllStates, SeenStates


class ChainLoss:
    """f of the variables, in the form that `minimize_oba` asks for as well.

    Parameters
    ----------
    design : design of shape (N, p)
        All positions of all sequences.
    starts : ndarray of int64 of shape (S + 1,)
        The first row of each sequence, and N.
    y : ndarray of int of shape (N,)
        Codes of the labels.
    allowed : Allowed
        Forbidden transitions keep the weight 0.
    weight : ndarray of shape (S,)
        c.
    ends : bool
        Whether there are start and stop scores.
    ridge : float
    n_threads : int
    all_states, all_transitions : bool
        Whether pairs of features and labels, and transitions, that y does not have have a coefficient.
    """

    def __init__(
        self, design, starts, y, allowed, weight, *, ends=True, ridge=1.0, n_threads=1, all_states=True,
        all_transitions=True,
    ):  # fmt: skip
        self.starts, self.y, self.allowed = starts, y, allowed
        self.weight, self.ends, self.ridge, self.n_threads = weight, ends, ridge, n_threads
        self.p, self.K = design.shape[1], len(allowed.begin)
        self.states = AllStates(design, self.K) if all_states else SeenStates(design, y, self.K)
        self.n_variables = self.states.n + (self.K + 2 * ends) * self.K
        self.reach, self._parts = allowed.reach(), cuts(starts)
        self._weights = np.repeat(weight, np.diff(starts))
        self._rows = np.arange(len(y))
        full = np.flatnonzero(np.diff(starts))
        self._first, self._last = starts[full], starts[full + 1] - 1
        inner = np.ones(len(y), dtype=bool)
        inner[self._first] = False
        self._later = np.flatnonzero(inner)
        self._counts = self.count_pairs(y, self._weights)
        # transitions that may have a score
        self.moves = self.allowed.follow if all_transitions else self.count_pairs(y, np.ones(len(y))) > 0
        self._seen: Any = None, np.nan, None
        self.n_evaluations = 0

    def count_pairs(self, labels, weights):
        """Sums (K, K) of the positions' weights, by the label before and the label at them."""
        pairs = labels[self._later - 1] * self.K + labels[self._later]
        return np.bincount(pairs, weights[self._later], minlength=self.K**2).reshape(self.K, self.K)

    def _rest(self, x):
        """Transitions (K, K), start (K,), stop (K,)."""
        K, rest = self.K, x[self.states.n :].reshape(-1, self.K)
        return (rest[:K], rest[K], rest[K + 1]) if self.ends else (rest, np.zeros(K), np.zeros(K))

    def unpack(self, x):
        """W (p, K), transitions (K, K), start (K,), stop (K,)."""
        return self.states.table(x[: self.states.n]), *self._rest(x)

    def pack(self, table):
        """The variables of a table: p + K rows, and two of the ends where these have scores."""
        rest = table[self.p :].copy()
        rest[: self.K][~self.moves] = 0.0
        return np.concatenate([self.states.pick(table[: self.p]), rest.ravel()])

    def curvature(self):
        """A diagonal for L-BFGS, between that of the Hessian and one that is the same everywhere.

        The Hessian's is taken at scores equal to each label's log-frequency, and nothing else. It is too
        large if features predict labels well, by varying factors. Its square root took half the steps of
        either (sets of 5 to 20 labels, C from 0.02 to 10).
        """
        total = np.bincount(self.y, self._weights, minlength=self.K)
        share = total / max(total.sum(), 1e-300)
        spread = share * (1.0 - share)
        both = np.outer(share, share) * len(self.y) * self.weight.mean()
        parts = [self.states.squares(self._weights, spread), (both * (1.0 - np.outer(share, share))).ravel()]
        if self.ends:
            parts.append(np.tile(spread * self.weight.sum(), 2))
        return np.sqrt(np.concatenate(parts) + self.ridge)

    def infer(self, unary, follow):
        """log Z (S,) and the sum of the weighted transition marginals; unary becomes weighted marginals."""
        return forward_backward(
            unary, self.starts, follow, self.weight, self.n_threads, reach=self.reach, parts=self._parts
        )

    def value_and_gradient(self, x):
        """f and its gradient (n_variables,)."""
        if self._seen[0] is not None and np.array_equal(self._seen[0], x):
            return self._seen[1:]
        self.n_evaluations += 1
        trans, start, stop = self._rest(x)
        K, n = self.K, self.states.n
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
            unary = self.states.scores(x[:n])
            truth = unary[self._rows, self.y]
            follow, begin, end = scored(trans, start, stop, self.allowed)
            add_ends(unary, self.starts, begin, end)
            logs, pairs = self.infer(unary, follow)
            true = self._weights @ truth + np.vdot(self._counts, trans)
            value = self.weight @ logs - true
            unary[self._rows, self.y] -= self._weights
            gradient = np.empty(self.n_variables)
            gradient[:n] = self.states.sums(unary)
            rest = gradient[n:].reshape(-1, K)
            rest[:K] = np.where(self.moves, pairs - self._counts, 0.0)
            if self.ends:
                rest[K] = unary[self._first].sum(axis=0)
                rest[K + 1] = unary[self._last].sum(axis=0)
                w = self.weight[np.flatnonzero(np.diff(self.starts))]
                value -= w @ (start[self.y[self._first]] + stop[self.y[self._last]])
            value += 0.5 * self.ridge * (x @ x)
            gradient += self.ridge * x
        self._seen = x.copy(), float(value), gradient
        return self._seen[1:]

    def value(self, x):
        return self.value_and_gradient(x)[0]

    def gradient(self, x):
        return self.value_and_gradient(x)[1].copy()
