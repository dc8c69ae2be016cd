"""Compact L-BFGS: which pairs join the memory, the scale of B_0, and B as an operator on some variables.

Byrd, Nocedal, Schnabel, "Representations of quasi-Newton matrices and their use in limited memory methods"
(1994). From k pairs (s_i, y_i) with s_i.y_i > 0 and B_0 = theta I,

    B = theta I - V N V^T,   V = [theta S, Y],   N^-1 = [ theta S^T S    L ]
                                                        [ L^T           -D ]

with D and L the diagonal and the strictly lower part of S^T Y. The kernels have the memory, `Pairs`.
It also solves with B on the free variables.
"""

import math

import numpy as np

from .._arrays import kernel_module
from .special import largest

# Least cosine of the s and y of a pair: B stays positive definite.
MIN_COSINE = 1e-8


def new_pairs(n, memory, like):
    """An empty memory of at most ``memory`` pairs of n variables, for the library of ``like``."""
    if not memory >= 1 or memory != int(memory):
        raise ValueError(f"memory must be a whole number of pairs, at least 1; got {memory}")
    return kernel_module("shared._pairs", like).Pairs(int(n), int(memory))


def add_pair(pairs, x, x_new, g, g_new, min_cosine=MIN_COSINE):
    """Add the step s = x_new - x and the gradient's change y = g_new - g, (n,); the oldest pair may go.

    Returns False, and changes nothing, if the cosine of s and y is too small, or one is zero or not finite.
    """
    norm, size, cosine = _norms_and_cosine(x, x_new, g, g_new)
    if not cosine > min_cosine or not 0.0 < size / norm < np.inf:
        return False
    # scale by powers of two, and of four where the solve takes a root: they change no digit
    pairs.put(x, x_new, g, g_new, 2.0 ** _exponent(norm), 4.0 ** (_exponent(size / norm) // 2))
    return True


def _exponent(value):
    return min(max(math.frexp(value)[1], -1000), 1000)


def _norms_and_cosine(x, x_new, g, g_new):
    sy, ss, yy = kernel_module("shared._pairs", x).pair_norms(x, x_new, g, g_new)
    if np.finfo(np.float64).tiny <= min(ss, yy) and max(ss, yy) < np.inf:
        norm, size = math.sqrt(ss), math.sqrt(yy)
        return norm, size, sy / (norm * size)
    # squares overflow, or lose digits as they vanish
    with np.errstate(over="ignore", invalid="ignore"):
        s, y = x_new - x, g_new - g
    norm, size = _norm(s), _norm(y)
    if not (0.0 < norm < np.inf and 0.0 < size < np.inf):
        return norm, size, 0.0
    return norm, size, float((s / norm) @ (y / size))


def _norm(v):
    """The norm of v where squares overflow or vanish; 0, inf or NaN only where its largest entry is."""
    most = largest(np.abs(v))
    return most * float(np.linalg.norm(v / most)) if 0.0 < most < np.inf else most


def scale(pairs, rows=None):
    """theta = y.y / s.y of the newest pair, over ``rows`` only if given.

    Where s is nonzero on few rows, the other entries of y say nothing about the curvature along s. They would
    only make theta too large there. Where s is zero on ``rows`` all of the pair counts.
    """
    if not len(pairs):
        raise ValueError("no pair to take theta from; give theta")
    products = [pairs.newest_products()]
    if rows is not None:
        s, y = (values[rows] for values in pairs.newest())
        products.insert(0, (float(s @ s), float(s @ y), float(y @ y)))
    for ss, sy, yy in products:
        if sy > MIN_COSINE * math.sqrt(ss * yy):
            return yy / sy * pairs.unit
    raise np.linalg.LinAlgError("the newest pair has lost its curvature to rounding")


def operator(pairs, rows=None, theta=None, ridge=0.0):
    """B[rows, rows] + ridge theta I as an operator with exact solves, `LBFGSOperator`.

    Parameters
    ----------
    pairs : Pairs
    rows : array of int of shape (m,), default=None
        Variables of the model; None means all.
    theta : float, default=None
        Scale of B_0; None means ``scale(pairs, rows)``.
    ridge : float, default=0.0
        Multiple of theta that is added to the diagonal.
    """
    is_given = theta is not None
    theta = float(theta) if is_given else scale(pairs, rows)
    if not 0.0 < theta < np.inf:
        wrong = f"theta must be positive and finite; got {theta}"
        raise ValueError(wrong) if is_given else np.linalg.LinAlgError(wrong)
    return pairs.restricted(rows).operator(theta, ridge)
