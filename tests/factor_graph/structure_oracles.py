"""Structures by their oracles alone, as a user's factor gives them, and trees by the sets that arcs enter."""

import itertools

import numpy as np

from sparsekit import Factor
from sparsekit._cython.factor_graph._structures import tree


def entered(n):
    """Sets of words, (k, n), and the arcs that enter each, (k, n * n): of a tree, one or more."""
    sets = np.array(list(itertools.product([False, True], repeat=n)))[1:]
    arcs = sets[:, :, None] & (~sets[:, None, :] | np.eye(n, dtype=bool))
    return sets, arcs.reshape(len(sets), -1)


class TreeOracle(Factor):
    """What DepTree is, by the best tree alone."""

    def __init__(self, variables, projective, single_root=False):
        super().__init__(variables)
        self.projective, self.single_root = projective, single_root

    def maximize(self, scores, additional_scores):
        _, heads = tree(np.ascontiguousarray(scores), self.projective, self.single_root)
        return np.eye(len(scores))[heads]


class ChainOracle(Factor):
    """What Sequence is, by the best sequence alone."""

    def __init__(self, variables, transitions):
        super().__init__(variables, transitions)

    def maximize(self, scores, additional):
        T, K = scores.shape
        best, back = scores[0], []
        for t in range(1, T):
            total = best[:, None] + additional[t - 1]
            back.append(total.argmax(axis=0))
            best = total.max(axis=0) + scores[t]
        tags = [int(best.argmax())]
        for last in reversed(back):
            tags.append(int(last[tags[-1]]))
        tags = tags[::-1]
        on, arcs = np.zeros((T, K)), np.zeros((T - 1, K, K))
        on[np.arange(T), tags] = 1
        arcs[np.arange(T - 1), tags[:-1], tags[1:]] = 1
        return on, arcs
