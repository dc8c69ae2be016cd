"""Newton's matrix of a linear model on some variables and the rows with curvature, and its step in a box."""

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError

from .._device import is_device
from .._linalg.positive import positive_solver

# largest side of a matrix that is factorised: 3000 is 72 MB and about a second
LARGEST = 3000
# rows of a block while a Gram matrix is summed up
BLOCK = 2048
# entries of such a block on a GPU, which a product is to fill
DEVICE_BLOCK = 2**26
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

    def __init__(self, A, d, l2, gram):
        self.A, self.d, self.l2, self.gram = A, d, l2, gram

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
            return cls(None, d, l2, _gram(problem, rows, cols, d))
        return cls(_block(problem, rows, cols), d, l2, None)

    def factor(self, loose, ridge):
        """A function that solves with H's rows and columns ``loose``."""
        diagonal = (self.l2 + ridge)[loose]
        if self.gram is not None:
            H = self.gram[np.ix_(loose, loose)]
            _add_to_diagonal(H, diagonal)
            return positive_solver(H)
        A = self.A[:, loose]
        inverse = 1.0 / np.maximum(diagonal, LEAST_DUAL_RIDGE * ridge.max() if ridge.any() else 1e-300)
        G = A.multiply(inverse) @ A.T if is_sparse(A) else (A * inverse) @ A.T
        G = G.toarray() if is_sparse(G) else G
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


def is_sparse(X):
    """Whether X is a sparse matrix of SciPy or of CuPy."""
    return hasattr(X, "nnz")


def _add_to_diagonal(H, values):
    at = np.arange(len(H), like=H)
    H[at, at] += values


def _block(problem, rows, cols):
    X = problem.X
    if is_device(X):
        return _device_block(X, rows, cols, problem.fit_intercept)
    if sp.issparse(X):
        if X.format == "csc":
            A = X[:, cols].tocsr()[rows]
        else:
            A = X[rows][:, cols]
        A = A.astype(np.float64)
        return sp.hstack([A, np.ones((len(rows), 1))], format="csr") if problem.fit_intercept else A
    A = (
        np.asarray(X[rows], dtype=np.float64)[:, cols]
        if len(cols) < X.shape[1]
        else np.asarray(X[rows], dtype=np.float64)
    )
    return np.hstack([A, np.ones((len(rows), 1))]) if problem.fit_intercept else A


def _device_block(X, rows, cols, intercept):
    if not is_sparse(X):
        A = (X[np.ix_(rows, cols)] if len(cols) < X.shape[1] else X[rows]).astype(np.float64, copy=False)
        return np.hstack([A, np.ones_like(A, shape=(len(rows), 1))]) if intercept else A
    from cupyx.scipy.sparse import csr_matrix, hstack

    A = X[rows]
    A = (A[:, cols] if len(cols) < X.shape[1] else A).astype(np.float64)
    ones = np.ones_like(A.data, shape=(len(rows), 1))
    return hstack([A, csr_matrix(ones)], format="csr") if intercept else A


def _gram(problem, rows, cols, d):
    device = is_device(problem.X)
    if is_sparse(problem.X) and not device:
        A = _block(problem, rows, cols)
        return (A.multiply(d[:, None]).T @ A).toarray()
    size = len(cols) + problem.fit_intercept
    G = np.zeros((size, size), like=d)
    height = max(BLOCK, DEVICE_BLOCK // size) if device else BLOCK
    for at in range(0, len(rows), height):
        A = _block(problem, rows[at : at + height], cols)
        A = A.toarray() if is_sparse(A) else A
        A *= np.sqrt(d[at : at + height])[:, None]
        G += A.T @ A
    return G
