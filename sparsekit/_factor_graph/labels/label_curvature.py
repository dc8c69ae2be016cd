"""Derivative of the marginals of label sets in the scores, at fixed active constraints.

Marginals are the projection of the scores, shifted by pair scores, on a polytope. Active constraints stay
active: labels at 0 or 1, tight factors, and scored pairs whose labels are equal or sum to 1. The derivative
is the projection on the remaining directions. In a row without factors it is a mean over labels that move
together, some with the opposite sign.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..._linalg.matrix import BUFFER

# Largest error of marginals, which are solved to 1e-8: this near a kink they count as on it.
MARGINAL_ERROR = 1e-7
# Least curvature of scores: decided marginals have none.
MIN_CURVATURE = 1e-4


class MarginalCurvature:
    """The derivative G^T G at the marginals mu (n, K) of rows with pair scores plus - minus.

    Parameters
    ----------
    labels : Labels
    mu : ndarray of shape (n, K)
    plus, minus : ndarray of shape (P,)
    free : ndarray of bool of shape (2 P,)
        Which scores, of plus and then of minus, may change.

    Attributes
    ----------
    G : sparse matrix of shape (m, n K)
        Orthonormal rows: ways to move, each of labels of one row of mu.
    row : ndarray of int of shape (m,)
        That row.
    shares : sparse matrix of shape (n K, F)
        What an increase of the free pair scores adds to scores of labels.
    """

    def __init__(self, labels, mu, plus, minus, free):
        self.labels, self.mu = labels, mu
        self.open = (mu > MARGINAL_ERROR) & (mu < 1.0 - MARGINAL_ERROR)
        self.G, self.row = self._ways(*self._ties(plus, minus))
        self.shares = self._shares(free)

    def _ties(self, plus, minus):
        """Numbers i K + j of labels that move together, and whether the same way."""
        K = self.mu.shape[1]
        ones, others, same = [], [], []
        for e, (first, second), a, b in self.labels.pair_blocks(
            np.flatnonzero((plus > 0.0) | (minus > 0.0)), self.mu
        ):
            both = self.open[:, first] & self.open[:, second]
            equal = both & (plus[e] > 0.0) & (abs(a - b) <= MARGINAL_ERROR)
            whole = both & (minus[e] > 0.0) & (abs(a + b - 1.0) <= MARGINAL_ERROR)
            for tied, way in ((equal, True), (whole, False)):
                i, at = np.nonzero(tied)
                ones.append(i * K + first[at])
                others.append(i * K + second[at])
                same.append(np.full(len(i), way))
        empty = np.zeros(0, dtype=np.int64)
        ones, others, same = (np.concatenate([empty, *part]) for part in (ones, others, same))
        return ones, others, same.astype(bool)

    def _ways(self, ones, others, same):
        n, K = self.mu.shape
        at = np.flatnonzero(self.open.ravel())
        held = self._held_rows()
        free = at[~held[at // K]]
        number = np.full(n * K, -1)
        number[free] = np.arange(len(free))
        size = len(free)
        one, other = number[ones], number[others]
        keep = (one >= 0) & (other >= 0)
        one, other, way = one[keep], other[keep], same[keep]
        # each label has a node for each sign; a group with both nodes of a label cannot move
        ends = np.concatenate([one, one + size]), np.concatenate([other + size * ~way, other + size * way])
        graph = sp.coo_array((np.ones(2 * len(one), dtype=bool), ends), shape=(2 * size, 2 * size))
        _, group = connected_components(graph, directed=False)
        up, down = group[:size], group[size:]
        moves = up != down
        names, of = np.unique(np.minimum(up, down)[moves], return_inverse=True)
        values = np.where(up < down, 1.0, -1.0)[moves] / np.sqrt(np.bincount(of, minlength=1)[of])
        rows, columns = [of], [free[moves]]
        values, count = [values], len(names)
        for j, basis in self._of_factors(np.flatnonzero(held), ones, others, same):
            rows.append(count + np.repeat(np.arange(len(basis)), len(j)))
            columns.append(np.tile(j, len(basis)))
            values.append(basis.ravel())
            count += len(basis)
        rows, columns, values = (np.concatenate(part) for part in (rows, columns, values))
        row = np.zeros(count, dtype=np.int64)
        row[rows] = columns // K
        return sp.csr_array((values, (rows, columns)), shape=(count, n * K)), row

    def _held_rows(self):
        """Rows of mu with an open label in a factor that holds with equality, (n,)."""
        uses = self.labels.polytope.rows != 0
        held, step = np.zeros(len(self.mu), dtype=bool), max(1, BUFFER // max(1, uses.shape[0]))
        for begin in range(0, len(held), step):
            some = slice(begin, begin + step)
            held[some] = (self._active_faces(self.mu[some]) & (uses @ self.open[some].T).T).any(axis=1)
        return held

    def _active_faces(self, mu):
        """Which rows of the relaxed factors hold with equality at marginals mu (n, K), (n, n_rows)."""
        p = self.labels.polytope
        over = abs((p.rows @ mu.T).T - p.right)
        return (np.arange(len(p.right)) >= p.n_upper) | (over <= MARGINAL_ERROR * (1.0 + abs(p.right)))

    def _of_factors(self, held, ones, others, same):
        """Of each row that factors hold: its open labels' numbers, and a basis of the ways they can move."""
        K = self.mu.shape[1]
        faces, active = self.labels.polytope.rows.toarray(), self._active_faces(self.mu[held])
        tied, among = {}, np.isin(ones // K, held)
        for one, other, way in zip(ones[among], others[among], same[among]):
            tied.setdefault(one // K, []).append((one % K, other % K, -1.0 if way else 1.0))
        known = {}
        for i, on in zip(held, active):
            j = np.flatnonzero(self.open[i])
            key = j.tobytes(), on.tobytes(), tuple(tied.get(i, ()))
            if key not in known:
                ties = np.zeros((len(key[2]), K))
                for row, (one, other, way) in zip(ties, key[2]):
                    row[one], row[other] = 1.0, way
                A = np.concatenate([faces[on], ties])[:, j]
                _, size, V = np.linalg.svd(A) if len(A) else (None, np.zeros(0), np.eye(len(j)))
                known[key] = V[int((size > 1e-10 * size.max(initial=1.0)).sum()) :]
            yield i * K + j, known[key]

    def _shares(self, free):
        K, P = self.mu.shape[1], len(self.labels.pairs)
        number = np.cumsum(free) - 1
        rows, columns, values = [], [], []

        def add(i, j, e, value):
            keep = self.open[i, j]
            rows.append(i[keep] * K + j[keep])
            columns.append(number[e[keep]])
            values.append(np.full(int(keep.sum()), value))

        for e, (first, second), a, b in self.labels.pair_blocks(np.flatnonzero(free[:P]), self.mu):
            least = np.where(a <= b, first, second)
            i, at = np.nonzero(np.take_along_axis(self.open, least, axis=1))
            add(i, least[i, at], e[at], 1.0)
        for e, (first, second), a, b in self.labels.pair_blocks(np.flatnonzero(free[P:]), self.mu):
            i, at = np.nonzero(a + b > 1.0 + MARGINAL_ERROR)
            for j in (first, second):
                add(i, j[at], P + e[at], -1.0)
        rows, columns = (np.concatenate([np.zeros(0, dtype=np.int64), *part]) for part in (rows, columns))
        return sp.csr_array(
            (np.concatenate([np.zeros(0), *values]), (rows, columns)), shape=(self.mu.size, int(free.sum()))
        )
