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
        log_r = np.log(self.r)
        share, rest = expit(z - log_r), expit(log_r - z)
        value = (y + self.r) * (np.logaddexp(log_r, z) - np.log(self.r + y)) - y * (z - zy)
        # as r share - y rest the derivative keeps its digits at both ends
        return np.maximum(value, 0.0), self.r * share - y * rest, (y + self.r) * share * rest

    def conjugate(self, theta, y, zy):
        # the domain is -y <= theta <= r
        left = self.r - theta
        return xlogx(theta + y) + xlogx(left) - left * np.log(self.r) - y * zy
