"""The point of least norm in the convex hull of a few vectors, from their Gram matrix."""

import numpy as np

from ..._arrays import as_like, to_host
from ..._cython.bounded import _min_norm
from ..._solver.tolerances import ROUNDING


def min_norm_weights(gram, tol=ROUNDING):
    r"""Weights of the point of least norm in a convex hull.

    Solves :math:`\min_\lambda \|\sum_i \lambda_i g_i\|^2` over :math:`\lambda \ge 0, \sum_i \lambda_i = 1` by
    Wolfe's active-set method [1]_. It computes affine minimisers over a growing set of points and removes
    those whose weights would be negative. It needs inner products only.

    Parameters
    ----------
    gram : ndarray of shape (k, k)
        :math:`g_i^T g_j`, k >= 1.
    tol : float
        Where to stop: the gap :math:`\|p\|^2 - \min_j g_j^T p`, relative to the largest diagonal entry. The
        squared distance to the true point is at most the gap.

    Returns
    -------
    ndarray of shape (k,)
        Where ``gram`` is.

    References
    ----------
    .. [1] P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976.
    """
    # a few dozen variables and sequential steps: solve in main memory
    host = np.ascontiguousarray(to_host(gram), dtype=np.float64)
    weights = np.empty(len(host))
    _min_norm.min_norm_weights(host, tol, weights, np.empty(len(host), dtype=np.intp))
    return as_like(weights, gram)
