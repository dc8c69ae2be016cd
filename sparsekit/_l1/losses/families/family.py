"""What a family has: half the unit deviance of a row as a function of its linear predictor z."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ...._linalg.special import entropies
from ...._messages import shown
from ...._typing import FloatArray


class Family(ABC):
    """A convex loss of z for each target y, zero where z is ``saturated(y)`` and larger elsewhere.

    Arrays have shape (n,) and float64. A subclass may have a ``conjugate``.

    Attributes
    ----------
    lowest, highest : float
        Range of y.
    is_open : bool
        Whether y must be above ``lowest``.
    bend : float
        Width of the curved part between straight ones.
    dispersion_is_known : bool
        Whether the loss is a negative log-likelihood, and not only in proportion to one.
    """

    lowest, highest, is_open = 0.0, np.inf, False
    bend = 1.0
    dispersion_is_known = True

    @abstractmethod
    def link(self, mean: FloatArray) -> FloatArray:
        """Linear predictor of a mean; infinite at the ends of its range."""

    @abstractmethod
    def mean(self, z: FloatArray) -> FloatArray:
        """Mean of y at z."""

    @abstractmethod
    def evaluate(self, z: FloatArray, y: FloatArray, zy: FloatArray) -> tuple[FloatArray, ...]:
        """Value, first and second derivative in z; ``zy`` is ``saturated(y)``."""

    def conjugate(self, theta: FloatArray, y: FloatArray, zy: FloatArray) -> FloatArray | None:
        """Convex conjugate in z at theta, infinite outside its domain; None where it has no formula."""
        return None

    def behind(self, z: FloatArray, y: FloatArray, zy: FloatArray) -> FloatArray | None:
        """How far each row is in a straight part of its loss, in units of ``bend``; None: has none."""
        return None

    def saturated(self, y: FloatArray) -> FloatArray:
        """The z at which the mean is y; 0 where that is infinite."""
        z = self.link(y)
        return np.where(np.isfinite(z), z, 0.0)

    def has_zero(self, y: FloatArray) -> bool:
        """Whether each target has a z where its loss is zero."""
        return bool(np.isfinite(self.link(y)).all())

    def check(self, y: FloatArray) -> None:
        """ValueError if a target is outside the family's range."""
        is_inside = (y > self.lowest) if self.is_open else (y >= self.lowest)
        wrong = ~(np.isfinite(y) & is_inside & (y <= self.highest))
        if wrong.any():
            row = int(wrong.argmax())
            least = "above" if self.is_open else "at least"
            least = "finite" if self.lowest == -np.inf else f"{least} {self.lowest:g}"
            most = "" if self.highest == np.inf else f" and at most {self.highest:g}"
            raise ValueError(
                f"y must be {least}{most} for this family; got {shown(float(y[row]))} in row {row}. Remove "
                "such rows, or choose a family that has them."
            )


def xlogx(x: FloatArray) -> FloatArray:
    """x log x, 0 at 0 and inf below."""
    return -entropies(x)
