r"""Losses of linear models with bounded coefficients: one number a row, sum_i s_i h(c_i (z_i - t_i)).

The weights s sum to one, so each loss is a mean over the rows; z = X w + b. Piecewise linear and quadratic
losses differ in four numbers only: h is the conjugate of

.. math:: h^*(a) = \epsilon |a| + \tfrac{\delta}{2} a^2, \quad lo \le a \le hi.

Where delta is 0, h has kinks. Its envelope around ``previous`` dual variables, with a term
``smoothing / 2 (a - previous)^2`` instead, has none: that is what the method of multipliers minimises.
"""

from dataclasses import dataclass

import numpy as np

from ..._arrays import kernel_module
from ..._linalg.special import entropies, largest
from ..._solver.tolerances import ROUNDING

INF = np.inf
# A residual above this many spreads of the targets is an outlier's.
OUTLIER_SPREADS = 1e3
# Larger parts of the weight than this are not outliers.
MAX_OUTLIER_WEIGHT = 0.1


@dataclass
class LossRows:
    """What a loss says of a predictor: value f, slopes u = df/dz, dual variables a, curvatures d2f/dz2."""

    u: np.ndarray
    dual: np.ndarray
    curvature: np.ndarray
    f: float = np.nan

    @classmethod
    def empty(cls, n, like=None):
        """Buffers for n rows, on the device of ``like``."""
        return cls(*(np.empty(n, like=like) for _ in range(3)))


def spread_of(values, weight):
    """Standard deviation; a row of weight 2 is two rows."""
    return _root_mean_square(values - weight @ values, weight, max(float(weight.sum()), 1e-300))


def _root_mean_square(values, weight, total):
    # scale by a power of two, which is exact: squares of large values overflow
    top = largest(np.abs(values))
    unit = 2.0 ** int(np.frexp(top)[1] - 1) if 0 < top < np.inf else 1.0
    return unit * float(np.sqrt(weight @ (values / unit) ** 2 / total))


def robust_spread(values, weight):
    """The standard deviation that a normal distribution of these quartiles has; the real one if that is 0.

    Of constant values their size, or 1.
    """
    size = largest(np.where(weight > 0, np.abs(values), 0.0))
    low, high = weighted_quantiles(values, weight, (0.25, 0.75))
    if high - low > ROUNDING * max(abs(low), abs(high)):
        return (high - low) / 1.349
    spread = spread_of(values, weight)
    return spread if spread > ROUNDING * size else size or 1.0


def natural_size(values, weight, centred):
    """What a prediction is likely to be at most a few times of: the size of the targets, outliers cut off.

    About their mean if ``centred``, else about 0.
    """
    middle = robust_spread(values, weight)
    total = max(float(weight.sum()), 1e-300)
    about = values - weight @ values / total if centred else values
    if not centred:
        middle = max(middle, weighted_quantile(np.abs(values), weight, 0.5))
    return float(np.clip(_root_mean_square(about, weight, total), middle, OUTLIER_SPREADS * middle))


def weighted_quantile(values, weight, q):
    """Smallest value that at least the part q of the weight does not exceed."""
    return weighted_quantiles(values, weight, (q,))[0]


def weighted_quantiles(values, weight, parts):
    """`weighted_quantile` for several parts."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    # rounding of the sums must not separate a weight of 2 from two rows
    at = (np.searchsorted(below, (q - 1e-12) * below[-1]) for q in parts)
    return [float(values[order[k]]) for k in at]


class PiecewiseLoss:
    """sum_i s_i h(c_i (z_i - t_i)).

    Parameters
    ----------
    target, weight : ndarray of shape (n,), float64
        t and s >= 0; on a GPU all that the loss is given must be there.
    sign : ndarray of shape (n,) or None
        c, of -1 and 1; None for ones.
    lo, hi, eps, delta : float
        The conjugate h*; lo <= 0 <= hi.
    """

    def __init__(self, target, weight, sign=None, *, lo, hi, eps=0.0, delta=0.0):
        self.t, self.s, self.c = target, weight, sign
        self.lo, self.hi, self.eps, self.delta = float(lo), float(hi), float(eps), float(delta)
        self.has_kinks, self.is_quadratic = delta == 0.0, bool(np.isinf([lo, hi]).all())
        self.kernels = kernel_module("bounded._row_losses", weight)
        # scale of the residuals: the margin, or the spread of the targets without outliers
        self.spread = 1.0 if sign is not None else robust_spread(target, weight)

    def _shape(self, smoothing):
        return self.lo, self.hi, self.eps, self.delta if smoothing is None else smoothing

    def evaluate(self, z, rows, smoothing=None, previous=None):
        """Fill ``rows`` at z; of h itself, or of its envelope where ``smoothing`` is given."""
        rows.f = self.kernels.piecewise_all(
            z, self.t, self.c, self.s, previous, *self._shape(smoothing), rows.u, rows.dual, rows.curvature
        )
        return rows

    def slope_along(self, z, dz, step, smoothing=None, previous=None):
        """Derivative in step of the value at z + step dz."""
        return self.kernels.piecewise_along(
            z, dz, step, self.t, self.c, self.s, previous, *self._shape(smoothing)
        )

    def dual_value(self, rows):
        """The rows' part of the dual: -sum_i s_i h*(a_i) - u . t."""
        a = rows.dual
        conjugate = self.eps * np.abs(a) + 0.5 * self.delta * a * a
        return -float(self.s @ conjugate) - float(rows.u @ self.t)

    def excess(self, z):
        """The part of the value that is due to rows far out: h beyond `OUTLIER_SPREADS` spreads."""
        if self.c is not None or not np.isfinite(self.hi - self.lo):
            return 0.0
        r = z - self.t
        beyond = np.maximum(np.abs(r) - OUTLIER_SPREADS * self.spread, 0.0)
        if self.s @ (beyond > 0) > MAX_OUTLIER_WEIGHT * self.s.sum():
            return 0.0
        return float(self.s @ (np.where(r > 0, self.hi, -self.lo) * beyond))

    def unit(self):
        """An objective that is zero up to rounding of the targets, times 1e6."""
        if self.c is not None:
            return 1.0
        if self.has_kinks:
            return self.spread
        # quadratic losses round less, except Huber's loss far from zero
        return min(1e-3 * self.spread * self.spread, max(-self.lo, self.hi) * self.spread)

    def _residuals(self, z):
        return z - self.t if self.c is None else self.c * (z - self.t)

    def kink_distance(self, z):
        """How far each row's residual is from its next kink, (n,)."""
        return np.abs(np.abs(self._residuals(z)) - self.eps)

    def first_multipliers(self, z):
        """Dual variables to begin with at z, (n,)."""
        r = self._residuals(z)
        if self.eps:
            return np.where(r > 0, 0.5 * self.hi, 0.5 * self.lo)
        return np.full_like(r, 0.5 * (self.lo + self.hi))


class LogLoss:
    """sum_i s_i log(1 + exp(-c_i (z_i - t_i))), c_i in {-1, 1}; the interface of `PiecewiseLoss`."""

    has_kinks = is_quadratic = False

    def __init__(self, target, weight, sign):
        self.t, self.c, self.s = target, sign, weight
        self.kernels = kernel_module("bounded._row_losses", weight)
        self.spread = 1.0

    def evaluate(self, z, rows, smoothing=None, previous=None):
        rows.f = self.kernels.log_loss_all(z, self.t, self.c, self.s, rows.u, rows.dual, rows.curvature)
        return rows

    def slope_along(self, z, dz, step, smoothing=None, previous=None):
        return self.kernels.log_loss_along(z, dz, step, self.t, self.c, self.s)

    def excess(self, z):
        return 0.0

    def unit(self):
        return 1.0

    def dual_value(self, rows):
        a = -rows.dual
        return float(self.s @ (entropies(a) + entropies(1.0 - a))) - float(rows.u @ self.t)


def regression_loss(name, y, weight, *, quantile, epsilon):
    """The loss of the name on targets y (n,); ``weight`` sums to one."""
    shapes = {
        "absolute": dict(lo=-1.0, hi=1.0),
        # of r = z - y: too low costs ``quantile``, too high the rest
        "quantile": dict(lo=-quantile, hi=1.0 - quantile),
        "squared": dict(lo=-INF, hi=INF, delta=1.0),
        "huber": dict(lo=-epsilon, hi=epsilon, delta=1.0),
        "epsilon_insensitive": dict(lo=-1.0, hi=1.0, eps=epsilon),
    }
    return PiecewiseLoss(y, weight, **shapes[name])


def classification_loss(name, sign, weight, offset=None):
    """The loss of the name on labels -1 and 1 (n,); ``weight`` sums to one.

    The predictor is z plus the ``offset`` (n,), None for zero. With r = y (z + offset) - 1: hinge max(0, -r);
    its square; modified_huber that square down to r = -2, then linear.
    """
    if name == "log_loss":
        return LogLoss(np.zeros_like(sign) if offset is None else -offset, weight, sign)
    shapes = {
        "hinge": dict(lo=-1.0, hi=0.0),
        "squared_hinge": dict(lo=-INF, hi=0.0, delta=0.5),
        "modified_huber": dict(lo=-4.0, hi=0.0, delta=0.5),
    }
    # sign * (z + offset) - 1 is sign * (z - target)
    target = sign if offset is None else sign - offset
    return PiecewiseLoss(target, weight, sign, **shapes[name])
