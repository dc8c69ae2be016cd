"""Proximal steps of the hinge loss for labels that are apart: Newton's method, all at once."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from ..._linalg.class_products import class_sums
from ..._linalg.design import DenseDesign
from .label_newton import _CURVATURE, ApartLabels, Point

# rows of which the products with each other are kept, at most
_ROWS = 3000
# products of a step by conjugate gradients, about, which factors must not cost more than
_PRODUCTS = 100
# multiplications in whose time an entry is gathered
_GATHER = 30.0


class _HingeLabels(ApartLabels):
    """Their systems by factors with a row for each row of X that is at its margin, where those are few."""

    def __init__(self, loss):
        super().__init__(loss)
        self.small = self.xp is np and len(loss.Y) <= _ROWS and loss.alpha > 0.0
        # means of dense columns, which the intercept takes up: large ones would leave nothing of the rest
        self.shift = np.zeros(self.p)
        if self.small and loss.fit_intercept and isinstance(loss.design, DenseDesign):
            self.shift = loss.weight @ loss.design.X
        # multiplications of a product with X, those of compressed rows counted as three
        dense = isinstance(loss.design, DenseDesign)
        self.work = (1.0 if dense else 3.0) * loss.design.nnz if self.small else 0.0
        self.kernel = None

    def direction(self, G, D, enough):
        if not self.small:
            return super().direction(G, D, enough)
        n, k = D.shape
        curved = _CURVATURE * self.loss.weight[:, None] < D
        m, q = curved.sum(axis=0).astype(np.float64), len(G)
        least = _PRODUCTS * 4.0 * self.work * k
        if self.factors:  # of a row for each feature
            least = min(least, float((q**2 * m + q**3 / 3.0).sum()))
        if float((m**3 / 3.0 + _GATHER * m**2).sum()) > least:
            return super().direction(G, D, enough)
        if self.kernel is None:
            self.kernel = _products_of_rows(self.loss.design, self.shift) / self.loss.alpha
            self.kernel += self.loss.fit_intercept / _CURVATURE
        # Woodbury's identity: a diagonal and the square of the curved rows
        own = np.full((len(G), 1), self.loss.alpha)
        own[self.p :] = _CURVATURE
        G = self._shifted(G)
        start = np.ascontiguousarray(G / own)
        along = self.loss.scores(self._back(start.copy()))
        back = np.zeros((n, k))
        for j in range(k):
            at = np.flatnonzero(curved[:, j])
            if len(at):
                M = self.kernel[np.ix_(at, at)]
                M[np.diag_indices_from(M)] += 1.0 / D[at, j]
                factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
                back[at, j] = cho_solve(factor, along[at, j], check_finite=False)
        pulled = self._shifted(class_sums(self.loss.design, back, self.loss.fit_intercept))
        return self._back((pulled - G) / own)

    def _shifted(self, G):
        """A gradient as that of columns without their means."""
        return np.concatenate([G[: self.p] - self.shift[:, None] * G[self.p :].sum(axis=0), G[self.p :]])

    def _back(self, table):
        """The table, in place, of columns with their means for one without."""
        table[self.p :] -= self.shift @ table[: self.p]
        return table


def _products_of_rows(design, shift):
    """X X^T (n, n), of dense X less shift (p,)."""
    if isinstance(design, DenseDesign):
        X = design.X - shift
        return X @ X.T
    X = sp.csr_array((design.data, design.indices, design.indptr), shape=design.shape).astype(np.float64)
    return (X @ X.T).toarray()


class ApartHinge:
    """The labels' problems, each with its bounds, at the proximal term that the loss has.

    Parameters
    ----------
    loss : LabelLoss
        Its pairs are not looked at.
    x : ndarray of shape (n_variables,)
        Where to begin.
    """

    # by what sigma falls after a step
    fall = 0.2

    def __init__(self, loss, x):
        self.loss, self.xp = loss, loss.xp
        self.labels = _HingeLabels(loss)
        size = loss.shape[0] * loss.shape[1]
        self.point = Point(self.labels, loss.xp.array(x[:size]).reshape(loss.shape))
        self.every = loss.xp.arange(loss.shape[1])

    @property
    def x(self):
        return self.point.table.ravel()

    def keep(self, x, better):
        """Put the labels of which this is the best point into x."""
        x.reshape(self.loss.shape)[:, better] = self.point.table[:, better]

    def at_zero(self):
        """Objectives (K,) of no coefficients."""
        return self.xp.ones(self.loss.shape[1])

    def primal(self):
        """Objectives (K,)."""
        rows = np.maximum(1.0 + (1.0 - 2.0 * self.loss.Y) * self.point.eta, 0.0)
        return self.loss.weight @ rows + self.labels.ridge(self.point.table)

    def marginals(self):
        return self.labels.marginals(self.point.eta, self.every)

    def dual(self, mu):
        """Lower bounds (K,) on the optima, and whether they are certain."""
        loss, point = self.loss, self.point
        if not loss.alpha > 0.0:
            # about the minimum of the proximal step's problem, which is not above that of the loss
            reach = 2.0 * np.maximum(np.sqrt((point.table**2).sum(axis=0)), 1.0)
            return point.f - np.sqrt((point.G**2).sum(axis=0)) * reach, False
        E = (mu - loss.Y) * loss.weight[:, None]
        if loss.fit_intercept:
            E = balanced(E)
        pulled = class_sums(loss.design, self.xp.ascontiguousarray(E), False)
        return abs(E).sum(axis=0) - (pulled**2).sum(axis=0) / (2.0 * loss.alpha), True

    def descend(self, enough, steps):
        """Newton steps until what is left of the labels' problems is about ``enough`` (K,); status."""
        point, alpha = self.point, self.loss.alpha
        point.look()
        unit = float(point.worst.max()) if len(self.every) else 0.0
        # what is left is at most |G| |table - best| and, at the mean of Y, |G|^2 / (2 alpha)
        limit = enough / np.maximum(np.sqrt((point.table**2).sum(axis=0)), 1.0)
        if alpha > 0.0:
            limit = np.minimum(limit, np.sqrt(2.0 * alpha * enough))
        point.nit, before = steps.nit, point.nfev
        status = point.descend(
            limit / np.sqrt(max(len(point.G), 1)), unit or 1.0, steps.limits,
            lambda p: steps.tell(p.table.ravel().copy(), float(p.f.sum())),
        )  # fmt: skip
        steps.nfev += point.nfev - before
        return status


def balanced(E):
    """Each column's positive or negative entries shrunk until its sum is 0."""
    plus, minus = E.clip(0.0, None).sum(axis=0), -E.clip(None, 0.0).sum(axis=0)
    least = np.minimum(plus, minus)
    return E * np.where(E > 0.0, least / np.maximum(plus, 1e-300), least / np.maximum(minus, 1e-300))
