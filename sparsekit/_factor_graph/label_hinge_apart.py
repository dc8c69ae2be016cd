"""Proximal steps of the hinge loss for labels that are apart: Newton's method, all at once."""

import numpy as np

from .._linalg.class_products import class_sums
from .label_newton import ApartLabels, Point


class ApartHinge:
    """The labels' problems, each with its bounds, at the proximal term that the loss has.

    Parameters
    ----------
    loss : LabelLoss
        Its pairs are not looked at.
    x : ndarray of shape (n_variables,)
        Where to begin.
    """

    # by what sigma falls after a step
    fall = 0.2

    def __init__(self, loss, x):
        self.loss, self.xp = loss, loss.xp
        self.labels = ApartLabels(loss)
        size = loss.shape[0] * loss.shape[1]
        self.point = Point(self.labels, loss.xp.array(x[:size]).reshape(loss.shape))
        self.every = loss.xp.arange(loss.shape[1])

    @property
    def x(self):
        return self.point.table.ravel()

    def keep(self, x, better):
        """Put the labels of which this is the best point into x."""
        x.reshape(self.loss.shape)[:, better] = self.point.table[:, better]

    def at_zero(self):
        """Objectives (K,) of no coefficients."""
        return self.xp.ones(self.loss.shape[1])

    def primal(self):
        """Objectives (K,)."""
        rows = np.maximum(1.0 + (1.0 - 2.0 * self.loss.Y) * self.point.eta, 0.0)
        return self.loss.weight @ rows + self.labels.ridge(self.point.table)

    def marginals(self):
        return self.labels.marginals(self.point.eta, self.every)

    def dual(self, mu):
        """Lower bounds (K,) on the optima, and whether they are certain."""
        loss, point = self.loss, self.point
        if not loss.alpha > 0.0:
            # about the minimum of the proximal step's problem, which is not above that of the loss
            return point.f - abs(point.G * point.table).sum(axis=0), False
        E = (mu - loss.Y) * loss.weight[:, None]
        if loss.fit_intercept:
            E = balanced(E)
        pulled = class_sums(loss.design, self.xp.ascontiguousarray(E), False)
        return abs(E).sum(axis=0) - (pulled**2).sum(axis=0) / (2.0 * loss.alpha), True

    def descend(self, enough, steps):
        """Newton steps until what is left of the labels' problems is about ``enough`` (K,); status."""
        point, alpha = self.point, self.loss.alpha
        point.look()
        unit = float(point.worst.max()) if len(self.every) else 0.0
        # what is left is at most |G| |table - best| and, at the mean of Y, |G|^2 / (2 alpha)
        limit = enough / np.maximum(np.sqrt((point.table**2).sum(axis=0)), 1.0)
        if alpha > 0.0:
            limit = np.minimum(limit, np.sqrt(2.0 * alpha * enough))
        point.nit, before = steps.nit, point.nfev
        status = point.descend(
            limit / np.sqrt(max(len(point.G), 1)), unit or 1.0, steps.limits,
            lambda p: steps.tell(p.table.ravel().copy(), float(p.f.sum())),
        )  # fmt: skip
        steps.nfev += point.nfev - before
        return status


def balanced(E):
    """Each column's positive or negative entries shrunk until its sum is 0."""
    plus, minus = E.clip(0.0, None).sum(axis=0), -E.clip(None, 0.0).sum(axis=0)
    least = np.minimum(plus, minus)
    return E * np.where(E > 0.0, least / np.maximum(plus, 1e-300), least / np.maximum(minus, 1e-300))
