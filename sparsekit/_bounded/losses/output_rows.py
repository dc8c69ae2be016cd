r"""Losses of the rows for several outputs at once, l_ik(eta_ik), as maxima over slopes.

A piecewise linear or quadratic loss is

.. math:: l(\eta) = \max_{lo \le u \le hi} u (\eta - t) - \tfrac{\delta}{2} u^2,

u being its slope. Where delta is 0 it has kinks; a proximal term :math:`-\tfrac{\sigma}{2} (u - c)^2` in the
maximum takes them away.
"""

import numpy as np

from ..._linalg.special import entropies, expit


def _chosen(A, at):
    """Columns ``at``, ascending, of A; A itself where these are all."""
    return A if len(at) == A.shape[1] else A[:, at]


class PiecewiseRows:
    """Piecewise linear or quadratic losses.

    Parameters
    ----------
    target, lo, hi : ndarray of shape (n, K)
        t, and the range of slopes, lo <= 0 <= hi; finite where delta is 0.
    delta : float

    Attributes
    ----------
    smoothing, centre : float, ndarray of shape (n, K)
        sigma and c of the proximal term; 0 for none.
    """

    def __init__(self, target, lo, hi, delta=0.0):
        self.target, self.lo, self.hi, self.delta = target, lo, hi, delta
        self.has_kinks, self.n_outputs = delta == 0.0, target.shape[1]
        self.smoothing, self.centre = 0.0, np.zeros_like(target)

    def _residuals(self, eta, at):
        return eta - _chosen(self.target, at)

    def _unclipped(self, r, at):
        if self.smoothing:
            r = r + self.smoothing * _chosen(self.centre, at)
        return r / (self.delta + self.smoothing)

    def _clipped(self, r, at):
        return self._unclipped(r, at).clip(_chosen(self.lo, at), _chosen(self.hi, at))

    def slopes(self, eta, at):
        """Derivatives (n, k) of the outputs ``at`` at their scores."""
        return self._clipped(self._residuals(eta, at), at)

    def values(self, eta, at):
        r = self._residuals(eta, at)
        u = self._clipped(r, at)
        value = u * (r - 0.5 * self.delta * u)
        if self.smoothing:
            value -= 0.5 * self.smoothing * (u - _chosen(self.centre, at)) ** 2
        return value

    def curvatures(self, eta, at):
        u = self._unclipped(self._residuals(eta, at), at)
        inside = (u >= _chosen(self.lo, at)) & (u <= _chosen(self.hi, at))
        return inside / (self.delta + self.smoothing)

    def exact_values(self, eta):
        """Losses (n, K) without the proximal term."""
        r = eta - self.target
        if self.has_kinks:
            return np.maximum(self.lo * r, self.hi * r)
        u = (r / self.delta).clip(self.lo, self.hi)
        return u * (r - 0.5 * self.delta * u)

    def conjugates(self, u):
        """l*(u) (n, K), without the proximal term."""
        return u * (self.target + 0.5 * self.delta * u)


def hinge_rows(Y):
    """max(0, 1 - eta) where the indicator Y (n, K) is 1, max(0, 1 + eta) where it is 0."""
    return PiecewiseRows(2.0 * Y - 1.0, -Y, 1.0 - Y)


def clipped_square_rows(Y):
    """The sparsemap loss of single labels: half a square between 0 and 1, linear on the wrong side."""
    return PiecewiseRows(Y, -Y, 1.0 - Y, delta=1.0)


class LogisticRows:
    """log(1 + exp(eta)) - y eta for an indicator Y (n, K); the interface of `PiecewiseRows`."""

    has_kinks = False

    def __init__(self, Y):
        self.Y, self.n_outputs = Y, Y.shape[1]

    def slopes(self, eta, at):
        return expit(eta) - _chosen(self.Y, at)

    def values(self, eta, at):
        return np.logaddexp(0.0, eta) - eta * _chosen(self.Y, at)

    def curvatures(self, eta, at):
        mu = expit(eta)
        return mu * (1.0 - mu)

    def exact_values(self, eta):
        return np.logaddexp(0.0, eta) - eta * self.Y

    def conjugates(self, u):
        mu = (u + self.Y).clip(0.0, 1.0)
        return -entropies(mu) - entropies(1.0 - mu)
