r"""Families with the log link: counts and amounts, :math:`\mu = e^z`.

Half their unit deviances are

- Poisson: :math:`y \log(y / \mu) - y + \mu`;
- gamma: :math:`\log(\mu / y) + y / \mu - 1`;
- negative binomial, whose variance is :math:`\mu + \phi \mu^2`, with r = 1 / phi:
  :math:`(y + r) \log((r + \mu) / (r + y)) - y \log(\mu / y)`;
- Tweedie (compound Poisson-gamma), whose variance is :math:`\mu^p` for p from 1 to 2, with a = 2 - p and
  b = p - 1: :math:`(\mu^a - y^a) / a + (y \mu^{-b} - y^a) / b`.
"""

import numpy as np

from ...._linalg.special import expit
from ...._messages import shown
from ..null_intercept import MAX_NEWTON_STEPS
from ..rounding import VALUE_ROUNDING
from .family import Family, xlogx
from .identity import Gaussian


class LogLink(Family):
    """A family whose predictor is the logarithm of the mean."""

    def link(self, mean):
        with np.errstate(divide="ignore"):
            return np.log(mean)

    def mean(self, z):
        return np.exp(z)


class Poisson(LogLink):
    """Counts, or rates with weights, y >= 0; the variance is the mean."""

    def evaluate(self, z, y, zy):
        # by the distance t from the saturated predictor: large counts keep the digits of small residuals
        t, is_zero = z - zy, y == 0.0
        u = (y + is_zero) * np.expm1(t) + is_zero
        return u - y * t, u, u + y

    def conjugate(self, theta, y, zy):
        # the domain is theta >= -y
        m = theta + y
        return xlogx(m) - theta - y * zy


class Gamma(LogLink):
    """Amounts y > 0; the standard deviation is in proportion to the mean."""

    is_open = True
    dispersion_is_known = False

    def evaluate(self, z, y, zy):
        t = z - zy
        q = np.expm1(-t)
        return q + t, -q, q + 1.0

    def conjugate(self, theta, y, zy):
        # the domain is theta <= 1
        return xlogx(1.0 - theta) + theta + theta * zy


class NegativeBinomial(LogLink):
    """Counts y >= 0 with more variance than Poisson's; ``dispersion`` is phi > 0."""

    def __init__(self, dispersion):
        self.r = 1.0 / dispersion

    def evaluate(self, z, y, zy):
        log_r, is_zero = np.log(self.r), y == 0.0
        share, rest = expit(z - log_r), expit(log_r - z)
        # (r + mu) / (r + y) by its distance from 1, where that is small: near Poisson's loss r is large
        change = np.where(is_zero, np.exp(z), y * np.expm1(z - zy)) / (self.r + y)
        is_near = np.abs(change) < 0.5
        far = np.logaddexp(log_r, z) - np.log(self.r + y)
        log_ratio = np.where(is_near, np.log1p(np.where(is_near, change, 0.0)), far)
        value = (y + self.r) * log_ratio - y * (z - zy)
        # as r share - y rest the derivative keeps its digits at both ends
        return np.maximum(value, 0.0), self.r * share - y * rest, (y + self.r) * share * rest

    def conjugate(self, theta, y, zy):
        # the domain is -y <= theta <= r
        left = self.r - theta
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(left > 0.0, left * np.log1p(-theta / self.r), xlogx(left))
        return xlogx(theta + y) + rest - y * zy


def tweedie(power):
    """The family of a power: 0 is Gaussian, 1 Poisson, 2 gamma."""
    special = {0: Gaussian, 1: Poisson, 2: Gamma}.get(power)
    if special is None and not 1.0 < power < 2.0:
        raise ValueError(
            "power must be 0, or from 1 to 2, where the loss is convex in the coefficients; got "
            f"{shown(power)}."
        )
    return Tweedie(power) if special is None else special()


class Tweedie(LogLink):
    """Amounts y >= 0 with exact zeros, as total claims of a policy."""

    dispersion_is_known = False

    def __init__(self, power):
        self.a, self.b = 2.0 - power, power - 1.0

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
