"""The averaged structured perceptron.

For one sequence after another, z = argmax_y s(x_i, y) and, where z is not y_i, v += c_i (features of y_i -
features of z). The coefficients are the mean of v after each sequence: M. Collins, "Discriminative training
methods for hidden Markov models", EMNLP 2002, figure 1 and section 2.4. The sum behind the mean is kept as in
H. Daumé's thesis (2006), figure 2.3: a step is noted with the number of sequences that came before it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult

from ..._cython.tagger import _chain_steps
from ..._solver import outcome
from ..losses.chains import Allowed

# A run ends after this many passes in which mistakes do not decrease by tol times the number of positions.
_PATIENCE = 5
# Positions between two checks of clocks and interrupts.
_PART = 20000

_MESSAGES = outcome.messages(
    "the share of wrong labels in a pass is at most tol",
    small_decrease="Converged: five passes made no fewer mistakes.",
)


@dataclass
class Steps:
    """v and the sum of numbered steps, (p + K + 2, K) each, and how many sequences there were."""

    table: np.ndarray
    sums: np.ndarray
    count: float = 0.0

    def mean(self):
        """The mean of v after each sequence."""
        return self.table - self.sums / max(self.count, 1.0)

    def grown(self, features, labels, p, K):
        """The same with more features and labels; ``features``, ``labels``: new indices of the old ones."""
        old = len(self.table) - len(labels) - 2
        rows = np.concatenate([features[:old], p + labels, [p + K, p + K + 1]])
        parts = []
        for part in (self.table, self.sums):
            parts.append(np.zeros((p + K + 2, K)))
            parts[-1][np.ix_(rows, labels)] = part
        return Steps(parts[0], parts[1], self.count)


@dataclass(frozen=True)
class Sequences:
    """Training sequences, and which coefficients they may change.

    Parameters
    ----------
    rows : tuple of ndarray
        All positions as compressed rows, of `rows_of`.
    starts : ndarray of int64 of shape (S + 1,)
        The first row of each sequence, and N.
    y : ndarray of int32 of shape (N,)
        Codes of the labels.
    weight : ndarray of shape (S,)
        Step sizes.
    allowed : Allowed
        Labels that may follow each other.
    ends : bool
        Whether there are start and stop scores.
    free : ndarray of bool of shape (p + K + 2, K) or None
        Coefficients that may differ from 0; None means all.
    """

    rows: tuple
    starts: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    allowed: Allowed
    ends: bool
    free: np.ndarray | None = None

    def order(self):
        """Indices of the sequences that have positions and a weight."""
        return np.flatnonzero((self.weight > 0) & (np.diff(self.starts) > 0))

    def count_positions(self, order):
        """Number of positions of the sequences ``order``."""
        return int(np.diff(self.starts)[order].sum())


def run_pass(steps, data, order):
    """Update ``steps`` by a pass over the sequences ``order``; return how many labels are wrong."""
    K, allowed, starts, free = steps.table.shape[1], data.allowed, data.starts, data.free
    forbidden = ~np.concatenate([allowed.follow, allowed.begin[None], allowed.end[None]])
    table, zeros = steps.table.copy(), np.zeros(steps.table.size)
    table[-K - 2 :][forbidden] = -np.inf
    marks = np.zeros(0, dtype=np.uint8) if free is None else free.astype(np.uint8).ravel()
    lengths, wrong, lo = np.diff(starts)[order].cumsum(), 0, 0
    try:
        while lo < len(order):
            done = lengths[lo - 1] if lo else 0
            hi = max(int(np.searchsorted(lengths, done + _PART)), lo + 1)
            wrong += _chain_steps.perceptron_steps(
                starts, *data.rows, data.y, order[lo:hi], data.weight, marks, table, steps.sums, zeros,
                steps.count, data.ends,
            )  # fmt: skip
            steps.count += len(order[lo:hi])
            lo = hi
    finally:
        table[-K - 2 :][forbidden] = 0.0
        steps.table = table
    if not (np.isfinite(table).all() and np.isfinite(steps.sums).all()):
        raise ValueError("X or sample_weight is too large: steps of the perceptron overflow.")
    return wrong


def train(steps, data, pack, random, *, tol, max_iter, max_time, callback, history):
    """Passes until there are no mistakes, or five in a row made no fewer; each in an order of its own.

    ``fun`` and ``optimality`` are the share of wrong labels in the last pass. ``pack`` makes the variables of
    a table.
    """
    progress = outcome.Progress.of_call(max_iter, max_time, callback, history)
    order = data.order()
    total = max(data.count_positions(order), 1)
    nit, least, stale, status, share = 0, np.inf, 0, None, 0.0
    while status is None:
        wrong = run_pass(steps, data, random.permutation(order))
        nit, share = nit + 1, wrong / total
        stale = 0 if share < least - tol else stale + 1
        least = min(least, share)
        # the mean costs a pass over the tables
        x = steps.table if callback is None else pack(steps.mean())
        if progress.report(x, share, nit, share):
            status = outcome.STOPPED
        elif share <= tol:
            status = outcome.CONVERGED
        elif stale >= _PATIENCE:
            status = outcome.SMALL_DECREASE
        else:
            status = progress.limits.reached(nit)
    return OptimizeResult(
        x=pack(steps.mean()), fun=share, nit=nit, nfev=nit, optimality=share, dual_gap=np.nan, status=status,
        message=_MESSAGES[status], success=status in outcome.SUCCESSES, time=progress.limits.seconds,
        history=progress.history.columns(),
    )  # fmt: skip
