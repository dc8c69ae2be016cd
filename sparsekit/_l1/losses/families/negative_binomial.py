r"""Negative binomial counts with the log link, whose variance is :math:`\mu + \phi \mu^2`.

With r = 1 / phi half the unit deviance is :math:`(y + r) \log((r + \mu) / (r + y)) - y \log(\mu / y)`.
"""

import numpy as np

from ...._linalg.special import expit
from .family import Family, log_of, xlogx


class NegativeBinomial(Family):
    """Counts y >= 0 with more variance than Poisson's; ``dispersion`` is phi > 0."""

    def __init__(self, dispersion):
        self.r = 1.0 / dispersion

    def link(self, mean):
        return log_of(mean)

    def mean(self, z):
        return np.exp(z)

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
