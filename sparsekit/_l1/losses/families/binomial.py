r"""Shares y in [0, 1] of successes: :math:`-y \log p - (1 - y) \log(1 - p)` less its least value.

The links are logit, probit and the complementary log-log, :math:`p = 1 - \exp(-e^z)`."""

import numpy as np

from ...._arrays import scipy_module
from ...._linalg.special import expit
from .family import Family, xlogx

# Distance from zero from which five terms of Mills' ratio are exact to 1e-11. Its definition is up to there.
TAIL = 30.0


class Logit(Family):
    """Successes 0 and 1, or their shares with the trials as weights."""

    highest = 1.0

    def link(self, mean):
        return scipy_module("special", mean).logit(mean)

    def mean(self, z):
        return expit(z)

    def evaluate(self, z, y, zy):
        e = np.exp(-np.abs(z))
        major = 1.0 / (1.0 + e)
        minor = e * major
        p, q = np.where(z > 0.0, major, minor), np.where(z > 0.0, minor, major)
        return np.log1p(e) + (np.maximum(z, 0.0) - y * z) + entropy(y), (1.0 - y) * p - y * q, minor * major

    def behind(self, z, y, zy):
        # a share between 0 and 1 has a straight part on both sides: beyond zero, and beyond its link
        above = np.where(y < 1.0, z - np.maximum(zy, 0.0), -np.inf)
        return np.maximum(above, np.where(y > 0.0, np.minimum(zy, 0.0) - z, -np.inf))

    def conjugate(self, theta, y, zy):
        # the domain is -y <= theta <= 1 - y
        return xlogx(theta + y) + xlogx(1.0 - theta - y) - entropy(y)


class Probit(Logit):
    """The same with p the normal distribution function at z; its conjugate has no formula."""

    conjugate, behind = Family.conjugate, Family.behind

    def link(self, mean):
        return scipy_module("special", mean).ndtri(mean)

    def mean(self, z):
        return scipy_module("special", z).ndtr(z)

    def evaluate(self, z, y, zy):
        (log_p, up, bend), (log_q, down, other) = log_and_ratio(z), log_and_ratio(-z)
        d = y * up * bend + (1.0 - y) * down * other
        # 0 times an infinite logarithm is 0
        value = entropy(y) - np.where(y > 0.0, y * log_p, 0.0) - np.where(y < 1.0, (1.0 - y) * log_q, 0.0)
        return value, (1.0 - y) * down - y * up, d


def log_and_ratio(z):
    """log Phi(z), r = phi(z) / Phi(z) and r + z >= 0; far below zero by Mills' ratio, where they cancel."""
    log_p = scipy_module("special", z).log_ndtr(z)
    ratio = np.exp(-0.5 * (z * z + np.log(2 * np.pi)) - log_p)
    a = np.maximum(-z, TAIL)
    b = 1.0 / (a * a)
    excess = (1.0 - b * (2.0 - b * (10.0 - b * (74.0 - b * 706.0)))) / a
    is_far = z < -TAIL
    return log_p, np.where(is_far, a + excess, ratio), np.where(is_far, excess, np.maximum(ratio + z, 0.0))


class Cloglog(Logit):
    """The same with the complementary log-log link, of whether a Poisson count is positive."""

    conjugate, behind = Family.conjugate, Family.behind

    def link(self, mean):
        with np.errstate(divide="ignore"):
            return np.log(-np.log1p(-mean))

    def mean(self, z):
        return -np.expm1(-np.exp(z))

    def evaluate(self, z, y, zy):
        m = np.exp(np.clip(z, -700.0, 700.0))
        p = -np.expm1(-m)
        h = np.exp(-m) * m / p  # m / (e^m - 1) without an overflow
        bend = np.where(m < 1e-4, 0.5 * m, m / p - 1.0)
        return entropy(y) - y * np.log(p) + (1.0 - y) * m, (1.0 - y) * m - y * h, (1.0 - y) * m + y * h * bend


def entropy(y):
    # zero where all targets are 0 or 1, which then takes half the time
    return xlogx(y) + xlogx(1.0 - y) if np.any(y * (1.0 - y)) else 0.0
