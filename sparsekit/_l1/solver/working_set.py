"""Working sets: how many variables join in one iteration, and copies of the columns of X in use."""

from __future__ import annotations

import numpy as np

from ..._linalg.dense_design import DenseDesign
from ..._linalg.matrix import is_all

# At least this many join. Where as many are in use, limits by rows are at least twice as much: else
# weighted rows and repeated ones, as in scikit-learn's check, get other working sets.
MIN_NEW = 10
# This part of all columns may join whatever is in use. Fits of least squares with 10 to 200 rows a column
# take 1.3 to 2.5 times as long where all columns may join at once.
NEW_PART = 0.05
# This part of the rows may join whatever is in use. With 0.5 fits to 1000 x 5000 take up to 2.6 times as
# long.
NEW_PER_ROW = 0.1
# Or this part of the room for more. With 0.5 imdb takes 1.15 times as long at a weak penalty, fits to
# 250 x 5000 up to 1.7 times; with 0 it takes 1.8 times as long.
NEW_PER_ROOM = 0.25
# Iterations in a row without progress after which a solver gives up. Values from 0 to 10 change no fit.
PATIENCE = 3


def most_new(n_rows, n_columns, n_used, room=0.0):
    """The largest number of variables that join in one iteration: as many as are in use, within limits.

    ``room`` is what `room_for_more` returns. Solvers that keep a Hessian from penalty to penalty leave it at
    0: they pay for each column at each penalty. With it paths over 1000 x 5000 take up to 3 times as long.
    """
    limit = max(NEW_PER_ROOM * room, NEW_PER_ROW * n_rows, 2 * MIN_NEW)
    return max(MIN_NEW, int(min(max(NEW_PART * n_columns, n_used), limit)))


def room_for_more(n_rows, n_used, has_ridge):
    """About how many more variables a solution may have; ``has_ridge``: whether there is an L2 penalty.

    More variables than rows make a model singular, but not with a ridge: with the last term 21 of 40 elastic
    nets with fewer rows than columns take 0.8 of the time, down to 0.4.
    """
    return max(n_rows - n_used, n_used if has_ridge else 0)


class WorkingColumns:
    """A working set of columns.

    Parameters
    ----------
    design : DenseDesign, CSRDesign or CSCDesign
        X, of shape (n, p).

    Attributes
    ----------
    columns : ndarray of int of shape (m,)
        In the order in which they came.
    is_used : ndarray of bool of shape (p,)
        Whether a column is among them.
    part : DenseDesign, CompactRows or None
        X on these columns; X itself where all came at once.
    """

    def __init__(self, design):
        self.design, self.is_dense = design, not design.is_sparse
        self._entries = None
        self.clear()

    def clear(self):
        """Remove all columns."""
        self.columns, self.is_used = np.empty(0, dtype=np.intp), np.zeros(self.design.shape[1], dtype=bool)
        self.part = self._buffer = None

    def detach(self):
        """Forget X and the copies."""
        self.design = self.part = self._buffer = None

    def attach(self, design):
        """Go on with the design of an equal X."""
        self.design = design
        if len(self.columns):
            self._take(self.columns, 0)

    def count(self, columns):
        """Stored entries of columns of a sparse X; None of a dense one."""
        if self.is_dense:
            return None
        if self._entries is None:
            self._entries = self.design.counts()
        return int(self._entries[columns].sum())

    def join(self, joins):
        """Add columns, and copy them."""
        n_old, self.is_used[joins] = len(self.columns), True
        self.columns = np.concatenate([self.columns, joins])
        self._take(joins, n_old)

    def keep(self, kept):
        """Remove the columns that ``kept``, a mask (m,), leaves out."""
        if kept.all():
            return
        rows, self.is_used[self.columns[~kept]] = np.flatnonzero(kept), False
        self.columns = self.columns[rows]
        if self._buffer is None:
            self._take(self.columns, 0)
            return
        for to, row in enumerate(rows):  # one at a time: all would need as much memory again
            self._buffer[to] = self._buffer[row]
        self._use_buffer(len(rows))

    def _take(self, joins, n_old):
        """Make ``part``, of columns that join n_old others."""
        if len(joins) == len(self.is_used) and is_all(joins, len(joins)):
            self.part, self._buffer = self.design, None  # they stay where they are
        elif self.is_dense:
            self._copy(joins, n_old)
        else:
            self.part = self.design.select(self.columns)

    def _copy(self, joins, n_old):
        """Append columns of a dense X to the copies of the others, which lie in rows of a buffer."""
        n, size = self.design.shape[0], n_old + len(joins)
        if self._buffer is None or size > len(self._buffer):
            self.part = None
            grown = np.empty((size + size // 2, n), dtype=self.design.X.dtype)
            if n_old:
                grown[:n_old] = self._buffer[:n_old]
            self._buffer = grown
        self._buffer[n_old:size] = self.design.X[:, joins].T
        self._use_buffer(size)

    def _use_buffer(self, size):
        self.part = DenseDesign(self._buffer[:size].T, self.design.n_threads)
