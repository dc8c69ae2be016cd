"""The columns of least squares that may be in use, and their Gram matrix, which grows with them."""

from __future__ import annotations

import numpy as np

from ..._linalg.positive import SINGLE_ROUNDING
from .. import plan
from .working_set import WorkingColumns, most_new, room_for_more

# Part of the columns from which a working set becomes all columns.
ALL_PART = 0.25


class WorkingGram(WorkingColumns):
    """A working set of the columns of some `Prepared`.

    Attributes
    ----------
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
        super().__init__(rows.design)

    @property
    def n_bytes(self):
        """Memory in bytes, without X."""
        return self.gram.nbytes + self.columns.nbytes + self.is_used.nbytes

    def clear(self):
        """Remove all columns."""
        super().clear()
        self.gram, self.is_finite = np.empty((0, 0)), True

    def detach(self):
        """Forget X."""
        super().detach()
        self.rows = None

    def attach(self, rows):
        """Go on with the rows of an equal X."""
        self.rows = rows
        super().attach(rows.design)

    def fits(self, columns, has_few_rows=False):
        """Whether a working set is within the limits of the plan.

        ``has_few_rows``: so few that a matrix of the rows fits, and thus one of about as many columns.
        """
        if self.has_all or not self.has_limits:
            return True
        entries = None if has_few_rows else self.count(columns)
        return plan.working_set_fits(self.rows.n, len(columns), entries)

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
        n_old = len(self.columns)
        if n_old + len(joins) == self.p and self.has_all:
            self.clear()
            self.join(np.arange(self.p))
            self._take_all()
            return
        self.join(joins)
        size = len(self.columns)
        dtype = np.float32 if self.rows.is_sparse else np.float64
        new, whole = self.rows.gram(self.columns, len(joins), dtype, self.part), np.empty((size, size))
        whole[:n_old, :n_old], whole[n_old:] = self.gram, new
        whole[:n_old, n_old:] = new[:, :n_old].T
        self.gram, self.is_finite = whole, bool(np.isfinite(whole).all())

    def keep(self, chosen):
        """Remove all columns but the chosen ones, (m,)."""
        super().keep(chosen)
        self.gram = self.gram[np.ix_(chosen, chosen)]
        self.is_finite = bool(np.isfinite(self.gram).all())

    def _take_all(self):
        single = self.p > plan.SMALL_GRAM or self.rows.is_sparse
        self.gram = self.rows.gram(None, self.p, np.float32 if single else np.float64)
        if single:
            self.gram[np.diag_indices(self.p)] *= 1.0 + SINGLE_ROUNDING
        self.is_finite = bool(np.isfinite(self.gram).all())
