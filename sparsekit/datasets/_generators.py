"""Generators of the problems that the papers define."""

import numpy as np
from sklearn.utils import check_random_state


def make_oba_synthetic(n, *, random_state=None):
    """The "Synthetic" problem of the OBA paper: as many rows as columns and a dense Hessian.

    The labels are random. With A = U + U^T, U uniform on [0, 1), shifted to A - 2 lambda_min(A) I if its
    smallest eigenvalue is negative, the data matrix is A's upper triangular Cholesky factor R, A = R^T R.

    Parameters
    ----------
    n : int
        Number of rows and of columns; the cost grows as n^3.
    random_state : int, RandomState instance or None, default=None
        Seed of the labels and of U.

    Returns
    -------
    X : ndarray of shape (n, n)
        Upper triangular.
    y : ndarray of shape (n,)
        Labels -1 and 1.

    Notes
    -----
    The paper gives 69.42 for the metric (2.16) of diagonal dominance at n = 5000. Its listing, followed
    here, yields about 1.2 at every n, since the shift makes the diagonal grow like the norm of a column;
    what grows, like sqrt(n), is the sum of a row's off-diagonal entries over its diagonal entry.

    References
    ----------
    N. S. Keskar, thesis, 2017, section 2.7 (MATLAB listing); N. S. Keskar, J. Nocedal,
    F. Oeztoprak, A. Waechter, "A second-order method for convex l1-regularized optimization with active-set
    prediction", Optimization Methods and Software 31 (2016).
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    rng = check_random_state(random_state)
    y = np.where(rng.uniform(size=n) > 0.5, 1.0, -1.0)
    A = rng.uniform(size=(n, n))
    A = A + A.T
    smallest = np.linalg.eigvalsh(A)[0]
    if smallest < 0:
        A[np.diag_indices(n)] -= 2.0 * smallest
    return np.linalg.cholesky(A).T.copy(), y
