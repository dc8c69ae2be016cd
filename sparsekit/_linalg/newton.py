"""Newton system of a linear model: (A^T D A + diag(l2) + ridge) v = r for rows and columns of [X, 1]."""

import numpy as np

from .matrix import row_products
from .positive import positive_solver

# Largest side of a matrix that is made and factorised: 72 MB and about a second.
MAX_SIDE = 3000
# Columns up to which a matrix of the columns is formed even for fewer rows.
SMALL_SIDE = 300
# The dual matrix divides by the ridge, which has to be at least this part of its largest entry.
MIN_DUAL_RIDGE = 1e-8


class NewtonSystem:
    """H = A^T D A + diag(l2) + a ridge that `factor` is given; the last column, an intercept, has no l2.

    Of H and of the rows' matrix D^-1 + A (l2 + ridge)^-1 A^T, by Woodbury's formula, the smaller is formed.

    Parameters
    ----------
    d : ndarray of shape (n,)
        Curvatures of the rows, positive.
    l2 : ndarray of shape (m,)
    gram : ndarray of shape (m, m)
        A^T D A, for the primal system.
    A : ndarray or CSR matrix of shape (n, m)
        For the dual system.
    """

    def __init__(self, d, l2, gram=None, A=None):
        self.d, self.l2, self.gram, self.A = d, l2, gram, A

    @classmethod
    def build(cls, matrix, rows, columns, d, l2, has_intercept):
        """The system of some rows and columns of X, or None if both of its matrices are too large.

        Parameters
        ----------
        matrix : Matrix
            X.
        rows, columns : ndarray of int
        d : ndarray of shape (len(rows),)
        l2 : float
        has_intercept : bool
        """
        size = len(columns) + has_intercept
        if min(size, len(rows)) > MAX_SIDE:
            return None
        ridge = np.full_like(d, l2, shape=size)
        if has_intercept:
            ridge[-1] = 0.0
        if size <= max(len(rows), SMALL_SIDE):
            return cls(d, ridge, gram=matrix.sandwich(d, columns, rows=rows, intercept=has_intercept))
        part = matrix.with_ones if has_intercept else matrix.part
        return cls(d, ridge, A=part(rows, columns))

    def factor(self, free, ridge):
        """A function that solves with the rows and columns ``free`` of H.

        Raises
        ------
        numpy.linalg.LinAlgError
            If H with ``ridge`` (m,) is not positive definite to rounding.
        """
        diagonal = (self.l2 + ridge)[free]
        if self.gram is not None:
            H = self.gram[np.ix_(free, free)]
            _add_to_diagonal(H, diagonal)
            return positive_solver(H)
        A = self.A[:, free]
        inverse = 1.0 / np.maximum(diagonal, MIN_DUAL_RIDGE * ridge.max() if ridge.any() else 1e-300)
        G = row_products(A, inverse)
        _add_to_diagonal(G, 1.0 / self.d)
        solve_rows = positive_solver(G)

        def solve(v):  # Woodbury
            t = inverse * v
            return t - inverse * (A.T @ solve_rows(A @ t))

        return solve

    def product(self, v):
        """H v without the ridge, (m,)."""
        if self.gram is not None:
            return self.gram @ v + self.l2 * v
        return self.A.T @ (self.d * (self.A @ v)) + self.l2 * v


def _add_to_diagonal(H, values):
    at = np.arange(len(H), like=H)
    H[at, at] += values
