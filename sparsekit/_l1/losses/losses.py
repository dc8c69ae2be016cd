"""Losses of a linear predictor z = X w + b: logistic, least squares."""

from __future__ import annotations

import numpy as np

from ..._arrays import to_host
from ..._docstrings import shares_entries
from ..._linalg.special import entropies
from ..._messages import shown
from ..._solver.tolerances import ROUNDING
from ..._typing import FloatArray
from .linear_loss import LinearLoss


@shares_entries(LinearLoss)
class LogisticLoss(LinearLoss):
    r"""Logistic loss of two classes.

    .. math:: f(x) = \sum_i s_i \log(1 + \exp(-y_i (x_i^T w + b)))

    over the variables x = [w, b], the intercept b last and only where there is one. It is a loss for
    :func:`~sparsekit.minimize_oba`, as a sum over the rows.

    Parameters
    ----------
    {X}
    y : array-like of shape (n,)
        Classes: -1 or +1.
    {sample_weight, fit_intercept, n_threads, offset}

    {Attributes}

    {Raises}

    {See Also}

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.optimize import LogisticLoss
    >>> loss = LogisticLoss(np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2]]), [-1, 1, 1])
    >>> round(loss.value(np.zeros(2)), 4), loss.gradient(np.zeros(2)).round(4)
    (2.0794, array([-1.5 ,  0.15]))
    """

    curvature = 0.25
    lower_bound = 0.0
    _kernel = "logistic"

    def _check_targets(self):
        check_signs(self.y)

    def behind(self, z: FloatArray) -> FloatArray:
        return -self.y * z

    def _steepest(self, z, radius):
        return np.sign(z) * np.maximum(np.abs(z) - radius, 0.0)

    def slope_range(self) -> FloatArray | None:
        # dl/dz_i lies between 0 and -s_i y_i
        if not hasattr(self.design, "slope_range"):
            return None
        return self.design.slope_range(-self.y * self.s if self.s.size else -self.y)

    def dual_value(self, theta: FloatArray) -> float:
        s = self.s if self.s.size else 1.0
        t = -theta * self.y
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(t == 0, 0.0, t / s)
        if not np.all((t >= -ROUNDING) & (t <= 1 + ROUNDING)):
            return -np.inf
        # those of rows far from the boundary are as small, and a correction for free features moves them
        t = np.clip(t, 0.0, 1.0)
        # added by row: with a large offset both are large, and nearly cancel
        return float(np.sum(s * (entropies(t) + entropies(1 - t)) + self._of_offset(theta)))


@shares_entries(LinearLoss)
class LeastSquaresLoss(LinearLoss):
    r"""Half the weighted sum of squares.

    .. math:: f(x) = \tfrac12 \sum_i s_i (x_i^T w + b - y_i)^2

    over the variables x = [w, b], the intercept b last and only where there is one. It is a loss for
    :func:`~sparsekit.minimize_oba`, as a sum over the rows.

    {Parameters}

    {Attributes}

    {Raises}

    {See Also}

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.optimize import LeastSquaresLoss
    >>> loss = LeastSquaresLoss(np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2]]), [1.0, 0.0, 2.0])
    >>> round(loss.value(np.zeros(2)), 4), loss.gradient(np.zeros(2)).round(4)
    (2.5, array([-4. , -1.4]))
    """

    curvature = 1.0
    lower_bound = 0.0
    _kernel = "squared"

    def _check_targets(self):
        super()._check_targets()
        if self.offset is not None:
            # the same numbers, and no dual of its own
            self.y, self.offset = self.y - self.offset, None

    def dual_value(self, theta: FloatArray) -> float:
        if self.s.size:
            if np.any((self.s == 0) & (theta != 0)):
                return -np.inf
            # theta is about as small or large as s, and its square may not be a number where theta^2 / s is
            square = np.where(self.s > 0, theta * (theta / np.where(self.s > 0, self.s, 1.0)), 0.0)
        else:
            square = theta**2
        return float(-np.dot(theta, self.y) - 0.5 * square.sum())


def check_signs(y):
    wrong = np.flatnonzero(np.abs(y) != 1)
    if wrong.size:
        raise ValueError(f"y must be -1 or +1 in every row; row {wrong[0]} has {shown(to_host(y[wrong[0]]))}")
