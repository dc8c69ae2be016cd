r"""Gamma targets with the log link: :math:`\log(\mu / y) + y / \mu - 1` at :math:`\mu = e^z`."""

import numpy as np

from .family import Family, log_of, xlogx


class Gamma(Family):
    """Amounts y > 0; the standard deviation is in proportion to the mean."""

    is_open = True
    dispersion_is_known = False

    def link(self, mean):
        return log_of(mean)

    def mean(self, z):
        return np.exp(z)

    def evaluate(self, z, y, zy):
        t = z - zy
        q = np.expm1(-t)
        return q + t, -q, q + 1.0

    def conjugate(self, theta, y, zy):
        # the domain is theta <= 1
        return xlogx(1.0 - theta) + theta + theta * zy
