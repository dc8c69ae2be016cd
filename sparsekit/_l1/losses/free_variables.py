"""Dual points for variables without a penalty: X_F^T theta = 0, and the price of what is left of it."""

import numpy as np

from ..._arrays import to_host

# Curvature of directions whose eigenvalue is lost in rounding, so that it may be anything down to zero. A
# gradient of about 1e-15 there, which is rounding too, has a price of 1e-10.
UNKNOWN_CURVATURE = 1e-20


class FreeSystem:
    """The Hessian H of the free variables, scaled to a unit diagonal, which no unit of a column changes.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Finite, in main memory.
    """

    def __init__(self, H):
        diagonal = np.diagonal(H)
        self.scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
        values, self.vectors = np.linalg.eigh(H * self.scale[:, None] * self.scale)
        # smaller eigenvalues are rounding of m sums
        least = 10.0 * len(values) * np.finfo(np.float64).eps
        known = values > least
        inverse = 1.0 / np.where(known, values, 1.0)
        self.inverse = np.where(known, inverse, 0.0)
        self.largest_inverse = np.where(known, inverse, 1.0 / UNKNOWN_CURVATURE)

    def solve(self, gradient):
        """Least-squares solution of H step = gradient, (m,)."""
        return self.scale * (self.vectors @ (self.inverse * (self.vectors.T @ (self.scale * gradient))))

    def price(self, gradient, x, moved):
        """How much lower the optimum may be than the dual value where ``gradient`` is left on free variables.

        For all x* the objective is at least the dual value plus gradient . x*, and |x*| is at most
        |x| + |x* - x|. To first order x* - x is ``moved``, the step whose change of the derivatives theta
        got, and the Newton step of what is left.
        """
        along = self.vectors.T @ (self.scale * gradient)
        return float(np.abs(gradient) @ (np.abs(x) + np.abs(moved)) + along @ (self.largest_inverse * along))


def correct(H, free, g, x, evaluate, enough):
    """The step of the free variables whose change of theta leaves the least price, see `FreeSystem.price`.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        Hessian of the free variables, finite, in main memory.
    free : ndarray of int of shape (m,)
    g : ndarray
        Gradient without a step.
    x : ndarray of shape (m,)
        Values of the free variables, in main memory.
    evaluate : callable
        From a step (m,) to theta less its change by the step, and the gradient X^T theta.
    enough : float
        Price below which no further step is worth its pass over X.

    Returns
    -------
    moved, price, found
        The step, its price, and what ``evaluate`` returned for it, None for no step.
    """
    system, moved = FreeSystem(H), np.zeros(len(free))
    left = to_host(g[free])
    best = moved, system.price(left, x, moved), None
    is_better = True
    while is_better and best[1] > enough:  # later corrections mend the rounding of the first
        moved = moved + system.solve(left)
        found = evaluate(moved)
        left = to_host(found[1][free])
        price = system.price(left, x, moved)
        is_better = price < best[1]
        if is_better:
            best = moved, price, found
    return best
