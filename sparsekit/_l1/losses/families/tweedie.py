r"""Compound Poisson-gamma targets with the log link, whose variance is :math:`\mu^p` for p from 1 to 2.

Half the unit deviance is, with a = 2 - p and b = p - 1, :math:`(\mu^a - y^a) / a + (y \mu^{-b} - y^a) / b`.
"""

import numpy as np

from ...._messages import shown
from ..null_intercept import MAX_NEWTON_STEPS
from ..rounding import VALUE_ROUNDING
from .family import Family, log_of
from .gamma import Gamma
from .gaussian import Gaussian
from .poisson import Poisson


def tweedie(power):
    """The family of a power: 0 is Gaussian, 1 Poisson, 2 gamma."""
    special = {0: Gaussian, 1: Poisson, 2: Gamma}.get(power)
    if special is None and not 1.0 < power < 2.0:
        raise ValueError(
            "power must be 0, or from 1 to 2, where the loss is convex in the coefficients; got "
            f"{shown(power)}."
        )
    return Tweedie(power) if special is None else special()


class Tweedie(Family):
    """Amounts y >= 0 with exact zeros, as total claims of a policy."""

    dispersion_is_known = False

    def __init__(self, power):
        self.a, self.b = 2.0 - power, power - 1.0

    def link(self, mean):
        return log_of(mean)

    def mean(self, z):
        return np.exp(z)

    def evaluate(self, z, y, zy):
        # by the distance t from the saturated predictor, whose two terms are equal
        t, base = z - zy, np.where(y > 0.0, np.exp(self.a * zy), 1.0)
        first, second = np.expm1(self.a * t), np.where(y > 0.0, np.expm1(-self.b * t), -1.0)
        value = np.where(y > 0.0, first / self.a + second / self.b, (first + 1.0) / self.a)
        d = self.a * (first + 1.0) + self.b * (second + 1.0)
        return base * value, base * (first - second), base * d

    def conjugate(self, theta, y, zy):
        # y = 0: e^(a z) = theta, without a zero row's second term; no theta < 0 is in the domain
        zero = y == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(zero, np.log(np.maximum(theta, 0.0)) / self.a, zy)
            t = _root(theta * np.exp(-self.a * zy), self.a, self.b)
            # at the root the loss is known by its derivative's two terms
            first, base = np.exp(self.a * (zy + t)), np.exp(self.a * zy)
            value = (first - base) / self.a + (first - theta - base) / self.b
            of_zero = np.where(theta > 0.0, theta * (z - 1.0 / self.a), np.where(theta == 0.0, 0.0, np.inf))
        return np.where(zero, of_zero, theta * (zy + t) - value)


def _root(k, a, b):
    """The root t of e^(a t) - e^(-b t) = k, elementwise: Newton's method on logarithms, from one side."""
    sign = np.where(k < 0.0, -1.0, 1.0)
    a, b, k, t = np.where(k < 0.0, b, a), np.where(k < 0.0, a, b), np.abs(k), np.zeros_like(k)
    for _ in range(MAX_NEWTON_STEPS):
        rest = np.exp(-b * t)
        step = (np.log(k + rest) - a * t) / (a + b * rest / (k + rest))
        t = t + step
        if not np.any(np.abs(step) > VALUE_ROUNDING * (1.0 + t)):
            break
    return sign * t
