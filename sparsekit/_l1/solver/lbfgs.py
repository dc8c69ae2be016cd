"""Limited-memory BFGS in compact form, restricted to any rows.

Byrd, Nocedal, Schnabel, "Representations of quasi-Newton matrices and their use in limited
memory methods" (1994): from k pairs (s_i, y_i) with s_i.y_i > 0 and B_0 = theta I,

    B = theta I - theta W M W^T,   W = [Y / theta, S],   M^-1 = [ -D / theta    L^T / theta ]
                                                               [  L / theta     S^T S       ]

with D and L the diagonal and the strictly lower part of S^T Y. Every pair is divided by
||s_i||, which leaves B as it is and W and M without units.
"""

import numpy as np

from ..._arrays import enlarged, is_device, kernel_module, to_host
from ..._linalg.special import largest

# norms whose squares, and products of a few of them, neither overflow nor vanish
_FINE = 1e-75, 1e75
# pairs that there is room for at first: who asks for very many mostly needs few
_ROOM = 64


class LBFGS:
    """The last ``memory`` curvature pairs of a function of ``size`` variables.

    Parameters
    ----------
    size : int
        Number of variables n.
    memory : int, default=10
        Largest number of pairs; a new one then takes the oldest one's place.
    skip : float, default=1e-8
        A pair with s.y <= skip ||s|| ||y|| is not taken, so that B stays positive definite.
    like : array, default=None
        Where the pairs live: with this array, main memory without one. Their products, small matrices, are
        in main memory.
    """

    def __init__(self, size, memory=10, *, skip=1e-8, like=None):
        if not memory >= 1 or memory != int(memory):
            raise ValueError(f"memory must be a whole number of pairs, at least 1; got {memory}")
        self.size, self.memory, self.skip = int(size), int(memory), float(skip)
        like = np.empty(0) if like is None else like
        self._operator = kernel_module("_lbfgs", like).LBFGSOperator
        room = min(self.memory, _ROOM)
        self._S, self._Y = np.empty((room, self.size), like=like), np.empty((room, self.size), like=like)
        # S^T Y and S^T S by slot: a new pair writes one row and one column of each
        self._sty, self._sts = np.zeros((room, room)), np.zeros((room, room))
        self._order = []
        self._unit = 1.0  # of curvature, in which Y is kept

    @property
    def n_pairs(self):
        """Number of pairs held, at most ``memory``."""
        return len(self._order)

    def reset(self):
        """Forget all pairs."""
        self._order = []

    def update(self, s, y):
        """Take the pair of a step s (n,) and its change y (n,) of the gradient, O(n memory).

        Returns False, and leaves everything as it is, if its curvature is too small or not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            norm, size, sy = float(np.linalg.norm(s)), float(np.linalg.norm(y)), float(s @ y)
        if not (_FINE[0] < norm < _FINE[1] and _FINE[0] < size < _FINE[1]):
            # squares overflow, or nearly vanish
            norm, size = _norm(s), _norm(y)
            sy = float((s / norm) @ (y / size)) if 0.0 < norm < np.inf and 0.0 < size < np.inf else 0.0
            is_curved = sy > self.skip
        else:
            is_curved = sy > self.skip * norm * size and np.isfinite(sy)
        if not is_curved or not 0.0 < size / norm < np.inf:
            return False
        slot = self._order.pop(0) if self.n_pairs == self.memory else self.n_pairs
        if not self._order:
            # products of gradients' changes would overflow without a unit; a power of two rounds nothing
            self._unit = 2.0 ** np.clip(np.frexp(size / norm)[1], -1000, 1000)
        self._order.append(slot)
        if slot == len(self._S):
            self._grow(min(2 * slot, self.memory))
        np.divide(s, norm, out=self._S[slot])
        np.divide(y, norm, out=self._Y[slot])
        self._Y[slot] /= self._unit
        used = self.n_pairs
        S, Y = self._S[:used], self._Y[:used]
        self._sty[slot, :used] = to_host(Y @ S[slot])
        self._sty[:used, slot] = to_host(S @ Y[slot])
        self._sts[slot, :used] = self._sts[:used, slot] = to_host(S @ S[slot])
        return True

    def _grow(self, room):
        self._S, self._Y = (enlarged(a, (room, self.size)) for a in (self._S, self._Y))
        self._sty, self._sts = (enlarged(a, (room, room)) for a in (self._sty, self._sts))

    def scale(self, rows=None):
        """theta = y.y / s.y of the newest pair, over ``rows`` only if given.

        Where s lives on few rows, the other entries of y say nothing about the curvature
        along s and would only make theta too large there.
        """
        if not self._order:
            raise ValueError("no pair to take theta from; give theta")
        theta = self._newest(rows)
        if theta is None and rows is not None:
            theta = self._newest(None)  # the newest step did not move these rows
        if theta is None:
            raise np.linalg.LinAlgError("the newest pair has lost its curvature to rounding")
        return theta * self._unit

    def _newest(self, rows):
        last = self._order[-1]
        s, y = (self._S[last], self._Y[last]) if rows is None else (self._S[last, rows], self._Y[last, rows])
        sy = float(s @ y)
        if not sy > self.skip * float(np.linalg.norm(s)) * float(np.linalg.norm(y)):
            return None
        return float(y @ y) / sy

    def operator(self, rows=None, theta=None, ridge=0.0):
        """B[rows, rows] + ridge theta I as an operator with an exact reduced solve.

        Parameters
        ----------
        rows : ndarray of int of shape (m,), default=None
            Variables of the model; None means all.
        theta : float, default=None
            Scale of B_0; None means ``scale(rows)``.
        ridge : float, default=0.0
            Multiple of theta that is added to the diagonal.
        """
        is_given = theta is not None
        theta = float(theta) if is_given else self.scale(rows)
        if not (theta > 0 and np.isfinite(theta)):
            wrong = f"theta must be positive and finite; got {theta}"
            raise ValueError(wrong) if is_given else np.linalg.LinAlgError(wrong)
        unit = self._unit if self._order else 1.0
        k, order = self.n_pairs, np.array(self._order, dtype=np.intp)
        m = self.size if rows is None else len(rows)
        W = np.empty((m, 2 * k), like=self._Y)
        if k:
            S, Y = self._pick(order, rows)
            np.divide(Y.T, theta / unit, out=W[:, :k])
            W[:, k:] = S.T
        square = np.ix_(order, order)
        sty = self._sty[square] / (theta / unit)
        middle = np.empty((2 * k, 2 * k))
        middle[:k, :k] = -np.diag(np.diag(sty))
        middle[k:, :k] = np.tril(sty, -1)
        middle[:k, k:] = middle[k:, :k].T
        middle[k:, k:] = self._sts[square]
        return self._operator(W, middle, theta, ridge)

    def _pick(self, order, rows):
        if rows is None:
            return self._S[order], self._Y[order]
        if is_device(rows):
            return self._S[order][:, rows], self._Y[order][:, rows]
        pick = np.ix_(order, rows)
        return self._S[pick], self._Y[pick]


def _norm(v):
    """The norm of v where squares overflow or vanish; 0, inf or NaN only where its size is."""
    size = largest(np.abs(v))
    if not 0.0 < size < np.inf:
        return size
    return size * float(np.linalg.norm(v / size))
