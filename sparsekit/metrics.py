"""Measures of a solution's quality. Plain NumPy, independent of the solvers that they judge."""

import numpy as np

__all__ = ["kkt_violation"]


def kkt_violation(coef, grad, l1):
    r"""Largest violation of the optimality conditions of :math:`\min f(x) + \sum_j \lambda_j |x_j|`.

    .. math:: \max_j |\mathrm{mid}(g_j - \lambda_j,\; x_j,\; g_j + \lambda_j)|

    with mid the median of the three numbers and g the gradient of f at x: the semi-smooth residual of
    [1]_, eq. (2.4). It is zero exactly at a minimiser of a convex f, has the unit of the gradient, and
    is continuous in x, where the smallest subgradient is not.

    Parameters
    ----------
    coef : array-like
        The variables x, of any shape.
    grad : array-like of the same shape
        Gradient of the smooth part at x.
    l1 : float or array-like of the same shape
        Penalties :math:`\lambda_j \ge 0`; 0 for unpenalised variables, such as the intercept.

    Returns
    -------
    float
        0.0 for no variables.

    Raises
    ------
    ValueError
        If the shapes disagree or a penalty is negative.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for nonsmooth and large-scale optimization", PhD thesis,
       Northwestern University, 2017, chapter 2.

    Examples
    --------
    >>> from sparsekit.metrics import kkt_violation
    >>> kkt_violation([0.0, 2.0], [0.3, -1.0], 1.0)
    0.0
    >>> kkt_violation([0.0, 2.0], [1.5, -1.0], 1.0)
    0.5
    """
    coef, grad = np.asarray(coef, dtype=np.float64), np.asarray(grad, dtype=np.float64)
    l1 = np.asarray(l1, dtype=np.float64)
    if coef.shape != grad.shape:
        raise ValueError(f"coef and grad must have the same shape, got {coef.shape} and {grad.shape}.")
    if l1.ndim and l1.shape != coef.shape:
        raise ValueError(f"l1 must be a number or have the shape of coef, {coef.shape}; got {l1.shape}.")
    if (l1 < 0).any():
        raise ValueError(f"l1 must be >= 0, got {l1.min():g}.")
    # the median of three with the outer two in order is a clip
    return float(np.max(np.abs(np.clip(coef, grad - l1, grad + l1)), initial=0.0))
