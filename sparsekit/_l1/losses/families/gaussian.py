r"""Gaussian targets with the identity link: :math:`(y - z)^2 / 2`."""

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
