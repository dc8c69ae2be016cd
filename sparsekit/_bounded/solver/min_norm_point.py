"""The point of least norm in the convex hull of a few vectors, from their Gram matrix."""

import numpy as np

from ..._arrays import kernel_module, namespace

TOL = 1e-12


def min_norm_weights(gram, tol=TOL):
    r"""Weights of the point of least norm in a convex hull.

    Solves :math:`\min_\lambda \|\sum_i \lambda_i g_i\|^2` over :math:`\lambda \ge 0, \sum_i \lambda_i = 1` by
    Wolfe's active-set method [1]_: affine minimisers of a growing set of points, of which those leave whose
    weights would turn negative. It needs inner products only.

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
    gram = namespace(gram=gram).ascontiguousarray(gram, dtype=np.float64)
    k = len(gram)
    weights = np.empty(k, like=gram)
    chosen = np.empty(k, dtype=np.intp, like=gram)
    kernel_module("_min_norm", gram).min_norm_weights(gram, tol, weights, chosen)
    return weights
