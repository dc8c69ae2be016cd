"""The columns of least squares that may be in use, and their Gram matrix, which grows with them."""

from __future__ import annotations

import numpy as np

from ..._linalg.positive import SINGLE_ROUNDING
from .. import plan
from .working_set import most_new, room_for_more

# Part of the columns from which a working set becomes all columns.
ALL_PART = 0.25


class WorkingColumns:
    """A working set of the columns of some `Prepared`.

    Attributes
    ----------
    columns : ndarray of int of shape (m,)
        In the order in which they came.
    is_used : ndarray of bool of shape (p,)
    gram : ndarray of shape (m, m)
        Sums of their products.
    is_finite : bool
        Whether all entries of ``gram`` are finite.
    has_all : bool
        Whether a Gram matrix of all columns is within the limits of the plan.
    """

    def __init__(self, rows, has_limits=True):
        self.rows, self.p, self.has_limits = rows, rows.p, has_limits
        entries = rows.X.nnz if rows.is_sparse else None
        self.has_all = plan.all_columns_fit(rows.n, rows.p, entries)
        self.clear()

    @property
    def n_bytes(self):
        """Memory in bytes, without X."""
        return self.gram.nbytes + self.columns.nbytes + self.is_used.nbytes

    def clear(self):
        """Remove all columns."""
        self.columns, self.is_used = np.empty(0, dtype=np.intp), np.zeros(self.p, dtype=bool)
        self.gram, self.is_finite = np.empty((0, 0)), True

    def fits(self, columns, has_few_rows=False):
        """Whether a working set is within the limits of the plan.

        ``has_few_rows``: so few that a matrix of the rows fits, and thus one of about as many columns.
        """
        if self.has_all or not self.has_limits:
            return True
        if has_few_rows:
            return plan.working_set_fits(self.rows.n, len(columns), None)
        return plan.working_set_fits(self.rows.n, len(columns), self.rows.count(columns))

    def choose(self, needed, violating, ratios, has_ridge):
        """Columns to add: those that are needed, and so many of the violating ones.

        Parameters
        ----------
        needed, violating : ndarray of int
        ratios : ndarray of float of shape (len(violating),)
            How much each of them violates its condition.
        has_ridge : bool

        Returns
        -------
        ndarray of int
        """
        n_used = len(self.columns) + len(needed)
        most = most_new(self.rows.n, self.p, n_used, room_for_more(self.rows.n, n_used, has_ridge))
        if len(violating) > most:
            violating = violating[np.argsort(-ratios, kind="stable")[:most]]
        joins = np.sort(np.concatenate([needed, violating]))
        if self.has_all and len(joins) and len(self.columns) + len(joins) > ALL_PART * self.p:
            joins = np.flatnonzero(~self.is_used)
        return joins

    def add(self, joins):
        """Add columns, and their products with all that are there."""
        n_old, columns = len(self.columns), np.concatenate([self.columns, joins])
        size = len(columns)
        self.is_used[joins] = True
        if size == self.p and self.has_all:
            self._take_all()
            return
        # sparse sums of some rows cost as much as those of all
        n_new, dtype = (size, np.float32) if self.rows.is_sparse else (len(joins), np.float64)
        new = self.rows.gram(columns, n_new, dtype)
        if n_new < size:
            whole = np.empty((size, size))
            whole[:n_old, :n_old], whole[n_old:] = self.gram, new
            whole[:n_old, n_old:] = new[:, :n_old].T
            new = whole
        self.columns, self.gram = columns, np.ascontiguousarray(new)
        self.is_finite = bool(np.isfinite(new).all())

    def keep(self, chosen):
        """Remove all columns but the chosen ones, (m,)."""
        self.is_used[self.columns[~chosen]] = False
        self.columns, self.gram = self.columns[chosen], self.gram[np.ix_(chosen, chosen)]
        self.is_finite = bool(np.isfinite(self.gram).all())

    def _take_all(self):
        single = self.p > plan.SMALL_GRAM or self.rows.is_sparse
        self.columns = np.arange(self.p)
        self.gram = self.rows.gram(None, self.p, np.float32 if single else np.float64)
        if single:
            self.gram[np.diag_indices(self.p)] *= 1.0 + SINGLE_ROUNDING
        self.is_finite = bool(np.isfinite(self.gram).all())
