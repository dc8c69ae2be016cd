"""Least squares with coefficients >= 0 by OBA.

A variable that must not be negative is one whose penalty below zero is infinite. The model's orthant is then
always the positive one; and of the dual, |X_j^T theta| <= l1_j, one half is left, -X_j^T theta <= l1_j. Which
variables these are the penalty itself says: all that have one. The intercept has none, and features without
get `BARE`, which no sum of floating point notices.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

from ..._linalg.special import largest
from ..._solver.tolerances import ROUNDING
from ..losses.losses import LeastSquaresLoss
from .duality import dual_with_ridge
from .oba import minimize_oba
from .oba_run import Kernels

# the least normal number
BARE = float(np.finfo(np.float64).tiny)


class NonnegativeSquares(LeastSquaresLoss):
    """Half the weighted sum of squares, whose features' coefficients must not be negative."""

    one_sided = True


def minimize_nonnegative(loss, l1, x0=None, **options):
    """`minimize_oba` of a loss with features first, from x0 or, where that is negative, zero."""
    p = loss.n_features
    l1 = one_sided(l1, p)
    if x0 is not None:
        x0 = x0.copy()
        x0[:p] = np.maximum(x0[:p], 0.0)
    return minimize_oba(loss, l1, x0, make_kernels=OneSided, **options)


def one_sided(l1, n_features):
    """Penalties that say which variables must not be negative: those of all features are > 0."""
    l1 = l1.copy()
    l1[:n_features] = np.maximum(l1[:n_features], BARE)
    return l1


def least_penalties(g, l1):
    """The least penalty at which each variable with gradient g (n,) stays at zero."""
    return np.where(l1 > 0.0, np.maximum(-g, 0.0), np.abs(g))


class OneSided(Kernels):
    """Kernels for variables of which those with a penalty must not be negative."""

    def __init__(self, like):
        super().__init__(like)
        model, orthant = self.model, self.orthant
        self.model = SimpleNamespace(solve_model=partial(model.solve_model, one_sided=True))
        self.orthant = SimpleNamespace(
            identify=partial(orthant.identify, one_sided=True),
            measure=partial(orthant.measure, one_sided=True),
            ista_bound=partial(orthant.ista_bound, one_sided=True),
            penalty=orthant.penalty,
        )

    def ista_point(self, x, g, l1, bound):
        point = x - (g + l1) / bound
        return np.where(l1 > 0.0, np.maximum(point, 0.0), point)

    def certificate(self, loss, problem, x, l1, g, *_):
        """Primal minus dual value, >= 0 up to rounding; inf where no dual point was found.

        It is made of the derivatives by row at x as in `duality.duality_gap`. They are corrected until the
        gradient of variables without penalty and ridge is zero. Then they are scaled until others are at most
        l1 without a ridge.
        """
        l2, fun, below = problem.l2, problem.f, problem.inner
        theta = below.state.u
        grad = g if l2 is None else g - l2 * x
        bare = (l1 <= BARE) & (True if l2 is None else l2 == 0.0)
        theta, grad, price = self._corrected(below, bare, l1, x, theta, grad)
        if theta is None:
            return np.inf
        primal = fun + price + l1 @ np.abs(x)
        sizes = np.where(bare, 0.0, least_penalties(grad, l1))
        l1 = np.where(l1 > BARE, l1, 0.0)
        l2 = np.zeros_like(l1) if l2 is None else l2
        dual = dual_with_ridge(lambda t: loss.dual_value(t * theta), sizes, l1, l2)
        return np.nan if dual is None else float(primal - dual)

    def _corrected(self, problem, bare, l1, x, theta, grad):
        """theta whose gradient on ``bare`` variables is rounding, that gradient, and a price.

        See `FreeSystem.price`.
        """
        price = 0.0
        free = bare & (l1 == 0.0)  # the intercept, whose correction costs nothing
        for chosen in (free, free | (bare & ((x > 0.0) | (grad < 0.0)))):
            if bool(chosen.any()):
                theta, grad, _, price = problem.project_free(np.flatnonzero(chosen), theta, grad, x)
                if theta is None:
                    return None, None, np.inf
            rounding = ROUNDING * max(1.0, float(np.abs(theta).sum()))
            if largest(least_penalties(grad, l1)[bare]) <= rounding:
                return theta, grad, price
        return None, None, np.inf
