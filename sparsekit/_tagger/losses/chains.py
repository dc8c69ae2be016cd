"""Many linear chains at once: marginals, best labellings, which transitions are allowed."""

from dataclasses import dataclass

import numpy as np

from ..._cython.tagger import _chains

# exp of this and of its negative have all their digits, also where they are multiplied by a rounding error
MAX_EXPONENT = np.log(np.finfo(np.float64).eps / np.finfo(np.float64).tiny)
# parts whose sums are added in order: the same for any number of threads
N_PARTS = 16


@dataclass(frozen=True)
class Allowed:
    """Which labels may follow each other (K, K) [previous, next], begin (K,) and end (K,) a sequence."""

    follow: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def reach(self):
        """After how many steps each label can have come from any other; inf if after none.

        After this many steps a label's forward sum is at least a product of that many factors times any
        other, at any position. If the product does not underflow, nothing does.
        """
        K, steps = len(self.follow), 1
        reached = self.follow.copy()
        while not reached.all():
            # Wielandt's bound: a later power is never positive
            if steps > K * K:
                return np.inf
            reached = reached @ self.follow
            steps += 1
        return steps


def scored(trans, start, stop, allowed):
    """Scores with -inf where something is not allowed."""
    return (
        np.where(allowed.follow, trans, -np.inf),
        np.where(allowed.begin, start, -np.inf),
        np.where(allowed.end, stop, -np.inf),
    )


def add_ends(unary, starts, begin, end):
    """unary (N, K) with the scores of beginning and ending added where sequences do, in place."""
    full = np.flatnonzero(np.diff(starts))
    # a sequence of one position has both end scores
    unary[starts[full]] += begin
    unary[starts[full + 1] - 1] += end
    return unary


def cuts(starts):
    """Parts (B + 1,) of the sequences, of about the same number of positions."""
    S = len(starts) - 1
    bounds = np.linspace(0, starts[-1], min(S, N_PARTS) + 1)[1:-1]
    return np.concatenate([[0], np.searchsorted(starts[1:-1], bounds), [S]]).astype(np.int64)


def nearness(trans, reach):
    """How far apart the scores of a position may be for sums without logarithms."""
    if reach == np.inf:
        return -1.0
    finite = trans[trans > -np.inf]
    span = float(np.ptp(finite)) if finite.size else 0.0
    return MAX_EXPONENT / reach - span - np.log(max(len(trans), 1))


def forward_backward(unary, starts, trans, weight, n_threads, *, reach=np.inf, parts=None):
    """log Z (S,) and transition marginals (K, K) summed; unary becomes weight times the marginals."""
    value, pairs = np.zeros(len(starts) - 1), np.zeros(trans.shape)
    parts = cuts(starts) if parts is None else parts
    near = nearness(trans, reach)
    trans = np.ascontiguousarray(trans)
    _chains.forward_backward(starts, parts, unary, trans, near, weight, value, pairs, n_threads)
    return value, pairs


def best(unary, starts, trans, n_threads):
    """Labels (N,) of the best labellings and their scores (S,), -inf where none is allowed."""
    tags, value = np.zeros(len(unary), dtype=np.int32), np.zeros(len(starts) - 1)
    _chains.best_sequences(starts, unary, np.ascontiguousarray(trans), tags, value, n_threads)
    return tags, value
