r"""Poisson counts with the log link: :math:`y \log(y / \mu) - y + \mu` at :math:`\mu = e^z`."""

import numpy as np

from .family import Family, log_of, xlogx


class Poisson(Family):
    """Counts, or rates with weights, y >= 0; the variance is the mean."""

    def link(self, mean):
        return log_of(mean)

    def mean(self, z):
        return np.exp(z)

    def evaluate(self, z, y, zy):
        # by the distance t from the saturated predictor: large counts keep the digits of small residuals
        t, is_zero = z - zy, y == 0.0
        u = (y + is_zero) * np.expm1(t) + is_zero
        return u - y * t, u, u + y

    def conjugate(self, theta, y, zy):
        # the domain is theta >= -y
        m = theta + y
        return xlogx(m) - theta - y * zy
