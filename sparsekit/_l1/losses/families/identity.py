r"""Families with the identity link: numbers, whose loss is one of the residual r = z - y.

It is :math:`r^2 / 2`, or Huber's: the same up to :math:`|r| = \epsilon`, and
:math:`\epsilon |r| - \epsilon^2 / 2` beyond.
"""

import numpy as np

from .family import Family


class Gaussian(Family):
    """Any numbers; the variance is constant."""

    lowest = -np.inf
    dispersion_is_known = False

    def link(self, mean):
        return mean

    def mean(self, z):
        return z

    def evaluate(self, z, y, zy):
        r = z - y
        return 0.5 * r * r, r, np.ones_like(r)

    def conjugate(self, theta, y, zy):
        return theta * (0.5 * theta + y)


class Huber(Gaussian):
    """Any numbers, a few of which may be far off; ``epsilon`` > 0 is in the unit of y."""

    def __init__(self, epsilon):
        self.epsilon = self.bend = float(epsilon)

    def evaluate(self, z, y, zy):
        r = z - y
        u = np.clip(r, -self.epsilon, self.epsilon)
        return u * (r - 0.5 * u), u, (np.abs(r) <= self.epsilon).astype(np.float64)

    def behind(self, z, y, zy):
        return np.abs(z - y) / self.epsilon - 1.0

    def conjugate(self, theta, y, zy):
        # the domain is |theta| <= epsilon
        return np.where(np.abs(theta) <= self.epsilon, theta * (0.5 * theta + y), np.inf)
