"""Newton systems of linear models for several outputs: (X^T D_k X + diag(ridge)) d_k = -g_k, D_k of each.

`SystemCosts` chooses one of three algorithms. With conjugate gradients one product with X serves all
outputs. A Cholesky factor of the Hessian is for few columns. Woodbury's identity is for few rows with
curvature.
"""

import numpy as np

from ..._arrays import namespace
from ..._linalg.class_products import class_sums, matmat
from ..._linalg.conjugate_gradients import conjugate_gradients
from ..._linalg.dense_design import DenseDesign
from ..._linalg.positive import solve_positive
from ..plan import BY_COLUMNS, BY_PRODUCTS, BY_ROWS, FIRST_PRODUCTS, SystemCosts

# Largest number of products of a step by conjugate gradients.
MAX_PRODUCTS = 60
# Ridge of an intercept in units of its curvature.
INTERCEPT_RIDGE = 1e-6
# Ridge of a feature in units of its mean square.
FEATURE_RIDGE = 1e-8
# Part of the diagonal that keeps a matrix positive definite to rounding.
ROUNDING = 1e-11


class OutputSystems:
    """The systems of one X.

    Parameters
    ----------
    design : of shape (n, p)
    weight : ndarray of shape (n,)
        Of sum 1.
    alpha : float
    fit_intercept : bool
    """

    def __init__(self, design, weight, alpha, fit_intercept):
        self.design, self.weight, self.alpha, self.fit_intercept = design, weight, alpha, fit_intercept
        self.p, self.xp = design.shape[1], namespace(weight=weight)
        self.squares = design.squares(weight)
        self.feature_ridge = np.maximum(self.squares * FEATURE_RIDGE, alpha)
        self.size = self.p + fit_intercept
        self.is_dense = isinstance(design, DenseDesign)
        self.costs = SystemCosts(design, self.size, alpha)
        self.kernel = None
        self.expected = FIRST_PRODUCTS
        # Means of dense columns. Columns are centred, since large means would cancel all digits.
        self.shift = np.zeros(self.p)
        if self.costs.has_row_matrix and fit_intercept and self.is_dense:
            self.shift = weight @ design.X

    def scores(self, table):
        """X W + b, (n, k)."""
        eta = matmat(self.design, table[: self.p])
        return eta + table[self.p] if self.fit_intercept else eta

    def sums(self, U):
        """[X, 1]^T U, (size, k)."""
        return class_sums(self.design, self.xp.ascontiguousarray(U), self.fit_intercept)

    def solve(self, G, D, enough):
        """Steps (size, k) for gradients G and the rows' curvatures D (n, k), times their weights.

        Those by conjugate gradients have residuals of at most ``enough`` (k,).
        """
        choice = self.costs.choose((D > 0.0).sum(axis=0), self.expected, self.kernel is not None)
        solvers = {BY_PRODUCTS: self._by_products, BY_COLUMNS: self._by_columns, BY_ROWS: self._by_rows}
        return solvers[choice](G, D, enough)

    def _ridge(self, D):
        """Ridges (size, k); those of intercepts keep systems regular where no row is curved."""
        own = INTERCEPT_RIDGE * _intercept_curvatures(D)
        ridge = self.feature_ridge[:, None] + np.zeros_like(D[:1])
        return np.concatenate([ridge, own[None]]) if self.fit_intercept else ridge

    def _by_columns(self, G, D, enough):
        d, at, ridge = np.empty_like(G), np.arange(self.size), self._ridge(D)
        for j, curvature in enumerate(D.T):
            curved = np.flatnonzero(curvature)
            H = self.design.sandwich(curvature[curved], rows=curved, intercept=self.fit_intercept)
            H[at, at] += ridge[:, j]
            # relative to each entry: columns may be copies of others, and of any scale
            H[at, at] += ROUNDING * H.diagonal() + (H.diagonal() == 0.0)
            d[:, j] = solve_positive(H, -G[:, j])
        return d

    def _by_rows(self, G, D, enough):
        if self.kernel is None:
            centre = self.shift if self.fit_intercept and self.is_dense else None
            self.kernel = self.design.row_gram(np.ones(self.p), centre=centre) / self.alpha
        own = np.full_like(G, self.alpha)
        own[self.p :] = INTERCEPT_RIDGE * _intercept_curvatures(D)
        G = self._centred(G)
        along = self.scores(self._uncentred(G / own))
        back = np.zeros_like(D)
        for j, curvature in enumerate(D.T):
            at = np.flatnonzero(curvature)
            if len(at):
                M = self.kernel[np.ix_(at, at)]
                M += (1.0 / own[self.p :, j]).sum()
                M[np.diag_indices_from(M)] += 1.0 / curvature[at]
                back[at, j] = solve_positive(M, along[at, j])
        return self._uncentred((self._centred(self.sums(back)) - G) / own)

    def _centred(self, G):
        """A gradient as that of columns without their means."""
        return np.concatenate([G[: self.p] - self.shift[:, None] * G[self.p :].sum(axis=0), G[self.p :]])

    def _uncentred(self, table):
        """The table, in place, of columns with their means for one without."""
        table[self.p :] -= self.shift @ table[: self.p]
        return table

    def _by_products(self, G, D, enough):
        ridge = self._ridge(D)
        squares = np.concatenate([self.squares, self.weight.sum()[None]])[: self.size]
        M = squares[:, None] * D.sum(axis=0) + ridge
        M = np.maximum(M, 1e-12 * float(M.max()) or 1.0)

        def needs_step(r, *_):
            return np.sqrt((r**2).sum(axis=0)) > enough

        def select(left):  # the other outputs have converged
            nonlocal M, D, ridge, enough
            M, D, ridge, enough = (A[..., left] for A in (M, D, ridge, enough))

        def product(p):
            return self.sums(D * self.scores(p)) + ridge * p

        d, n_products = conjugate_gradients(product, lambda r: r / M, -G, needs_step, MAX_PRODUCTS, select)
        self.expected = 1 + n_products
        return d


def _intercept_curvatures(D):
    """Sums (k,) of curvatures; 1 of none."""
    total = D.sum(axis=0)
    return np.where(total > 0.0, total, 1.0)
