"""Newton's matrix of a linear model on some variables and the rows with curvature, and its step in a box."""

import numpy as np
from scipy.linalg import LinAlgError

from .._linalg.positive import positive_solver

# largest side of a matrix that is factorised: 3000 is 72 MB and about a second
LARGEST = 3000
# rounds of the active set of a step
ROUNDS = 20
# of these the ones that may also let coefficients go
RELEASES = 3
# the dual side divides by the ridge, which must not drown the rest in rounding
LEAST_DUAL_RIDGE = 1e-8


class NewtonSystem:
    """H = A^T D A + l2 I + a ridge, A the chosen rows and columns of [X, 1]; the last column has no l2.

    Of H and of the rows' matrix D^-1 + A (l2 I + ridge)^-1 A^T the smaller one is formed.
    """

    def __init__(self, data, d, l2, gram=None, A=None):
        self.data, self.d, self.l2, self.gram, self.A = data, d, l2, gram, A

    @classmethod
    def build(cls, problem, rows, cols, curvature):
        """The system, or None if both of its sides are too large."""
        size = len(cols) + problem.fit_intercept
        d = curvature[rows]
        l2 = np.full_like(curvature, problem.l2, shape=size)
        if problem.fit_intercept:
            l2[-1] = 0.0
        if min(size, len(rows)) > LARGEST:
            return None
        if size <= max(len(rows), 300):
            return cls(problem.data, d, l2, gram=problem.data.gram(rows, cols, d, problem.fit_intercept))
        return cls(problem.data, d, l2, A=problem.data.part(rows, cols, problem.fit_intercept))

    def factor(self, loose, ridge):
        """A function that solves with H's rows and columns ``loose``."""
        diagonal = (self.l2 + ridge)[loose]
        if self.gram is not None:
            H = self.gram[np.ix_(loose, loose)]
            _add_to_diagonal(H, diagonal)
            return positive_solver(H)
        A = self.A[:, loose]
        inverse = 1.0 / np.maximum(diagonal, LEAST_DUAL_RIDGE * ridge.max() if ridge.any() else 1e-300)
        G = self.data.outer(A, inverse)
        _add_to_diagonal(G, 1.0 / self.d)
        solve_rows = positive_solver(G)

        def solve(v):  # Woodbury
            t = inverse * v
            return t - inverse * (A.T @ solve_rows(A @ t))

        return solve

    def product(self, v):
        """H v without the ridge."""
        if self.gram is not None:
            return self.gram @ v + self.l2 * v
        return self.A.T @ (self.d * (self.A @ v)) + self.l2 * v


def direction(system, gradient, low, high, ridge, releases=RELEASES):
    """Minimiser of the quadratic model with low <= step <= high, by a primal-dual active set method.

    What leaves the box is put on its bound, what is on its bound for no reason is let go, and the rest is
    solved for again. That ends at the minimiser or, seldom, goes round; then the bounds of the last round
    stay.
    """
    m = len(gradient)
    step, loose = np.zeros_like(gradient), np.ones_like(gradient, dtype=bool)
    for k in range(ROUNDS):
        s, freed = step, loose.nonzero()[0]
        if len(freed):
            rhs = gradient[freed]
            if len(freed) < m:
                fixed = np.where(loose, 0.0, step)
                rhs = rhs + system.product(fixed)[freed]
            try:
                solve = system.factor(freed, ridge)
            except LinAlgError:
                return np.full_like(gradient, np.nan)  # the caller tries again with a larger ridge
            s = step.copy()
            s[freed] = -solve(rhs)
        beyond = loose & ((s < low) | (s > high))
        step = np.clip(s, low, high)
        wrong = np.zeros_like(loose)
        if len(freed) < m and k < releases:
            # of the model with the unclipped step
            slope = gradient + system.product(s) + ridge * s
            wrong = ~loose & (((step <= low) & (slope < 0)) | ((step >= high) & (slope > 0)))
        if not (beyond | wrong).any():
            break
        loose = (loose & ~beyond) | wrong
    return step


def _add_to_diagonal(H, values):
    at = np.arange(len(H), like=H)
    H[at, at] += values
