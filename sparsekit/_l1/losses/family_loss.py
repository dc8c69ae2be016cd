"""Loss of a generalised linear model: half the deviance of a family at z = X w + b + offset."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import full
from ..._messages import shown
from ..._typing import FloatArray
from .families.family import Family
from .linear_loss import LinearLoss
from .null_intercept import find_root
from .rounding import VALUE_ROUNDING

# Rows that are evaluated at once. Their arrays stay in a core's cache: 100,000 Poisson rows take 0.5 ms, and
# 1.4 at once.
BLOCK_ROWS = 8192


class FamilyLoss(LinearLoss):
    """sum_i s_i l(x_i.w + b + o_i, y_i) with l of a `Family`; all are at least 0.

    Parameters
    ----------
    family : Family
    X, y, sample_weight, fit_intercept, n_threads, offset : as of `LinearLoss`
    one_sided : bool
        Whether the features' coefficients must not be negative.
    """

    lower_bound = 0.0

    def __init__(
        self, family: Family, X: Any, y: Any, sample_weight: Any = None, *, one_sided: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        self.family, self.one_sided = family, one_sided
        self._set(X, y, sample_weight, **options)
        self.zy = family.saturated(self.y)
        # targets that the offset predicts to rounding, as those of one value: their loss is exactly zero
        self.is_saturated = (
            self.offset is not None and family.has_zero(self.y) and np.array_equal(self.offset, self.zy)
        )
        self.counted = self.s > 0.0 if self.s.size and not self.s.all() else None

    def _value(self, z, y, s):
        return self._derivatives(z, y, s, np.empty_like(z), np.empty_like(z))

    def _derivatives(self, z, y, s, u, d):
        """The value, infinite where it overflows; ``u`` and ``d`` (n,) get the derivatives."""
        value, size = 0.0, max(len(z), 1) if self.design.is_on_device else BLOCK_ROWS
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for start in range(0, len(z), size):
                rows = slice(start, start + size)
                value += self._derivatives_of_block(rows, z[rows], y[rows], s[rows], u[rows], d[rows])
        return value if value < np.inf else np.inf

    def _derivatives_of_block(self, rows, z, y, s, u, d):
        zy = self.zy[rows]
        values, u[:], d[:] = self.family.evaluate(z, y, zy)
        if self.is_saturated:
            values[z == zy] = u[z == zy] = 0.0
        if self.counted is not None:  # a row without weight may overflow
            missed = ~self.counted[rows]
            values[missed] = u[missed] = d[missed] = 0.0
        if not s.size:
            return float(values.sum())
        u *= s
        d *= s
        return float(s @ values)

    def behind(self, z: FloatArray) -> Any:
        return self.family.behind(z, self.y, self.zy)

    def majorant(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        # a straight row has the curvature that leads its model to the middle of the curved part
        _, slope, own = self.derivatives(z)
        with np.errstate(divide="ignore", invalid="ignore"):  # rows without a radius
            return np.where(radius > 0.0, np.abs(slope) / (self.family.bend * (1.0 + self.behind(z))), own)

    def _curvature_along(self, dz, d):
        return float(dz @ (d * dz))

    def curvature_weights(self) -> FloatArray:
        # the second derivative may have no bound: this is its value at zero, which failed steps double
        z = np.zeros_like(self.y) if self.offset is None else self.offset
        return np.maximum(self.derivatives(z)[2], np.finfo(np.float64).tiny)

    def dual_value(self, theta: FloatArray) -> float | None:
        s = self.s if self.s.size else 1.0
        if self.counted is not None and theta[~self.counted].any():
            return -np.inf
        # a multiple of a dual point is one: at the ends of the domain rounding leads inwards
        theta = (1.0 - VALUE_ROUNDING) * theta
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = np.where(theta == 0.0, 0.0, theta / s)
            conjugates = self.family.conjugate(t, self.y, self.zy)
            if conjugates is None:
                return None
            if self.counted is not None:
                conjugates = np.where(self.counted, conjugates, 0.0)
            # added by row: with a large offset both are large, and nearly cancel
            value = float(np.sum(self._of_offset(theta) - s * conjugates))
        return value if value > -np.inf else -np.inf


def null_shift(family: Family, y: np.ndarray, null: float, offset: np.ndarray | None) -> np.ndarray | None:
    """The predictor of the null model with intercept ``null``, (n,), or None for zeros.

    Where it differs from that of a model without a loss by rounding alone, it is the latter.
    """
    shift = offset if not null else full(len(y), null, like=y) if offset is None else offset + null
    if shift is None:
        return None
    zy = family.saturated(y)
    is_saturated = np.all(np.abs(shift - zy) <= VALUE_ROUNDING * np.maximum(1.0, np.abs(zy)))
    return zy if is_saturated and family.has_zero(y) else shift


def null_predictor(
    family: Family, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
) -> float:
    """The intercept of the best model without features: Newton's method between two bounds.

    Raises
    ------
    ValueError
        If it is infinite, as for counts that are all zero.
    """
    s, shift = np.ones(len(y)) if weight is None else weight, np.zeros(len(y)) if offset is None else offset
    y, shift, s = y[s > 0.0], shift[s > 0.0], s[s > 0.0]
    start = family.link(np.array([np.average(y, weights=s)]))[0]
    if not np.isfinite(start):
        raise ValueError(
            f"y is {shown(float(y[0]))} in every row with a positive weight, so that the best intercept is "
            "infinite. Use fit_intercept=False, or rows with other targets."
        )
    zy = family.saturated(y)

    def derivatives(b):
        with np.errstate(over="ignore", invalid="ignore"):
            _, u, d = family.evaluate(b + shift, y, zy)
        return float(s @ u), float(s @ d), float(s @ np.abs(u))

    # without an offset the mean of y is the mean of the model, but for a robust loss
    b = start - float(np.average(shift, weights=s))
    return float(find_root(derivatives, b, rounding=1e-15))


def deviance(family: Family, z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
    """Weighted mean of half the unit deviances at the predictor z (n,); infinite where it overflows."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values = family.evaluate(z.astype(np.float64), y, family.saturated(y))[0]
        if weight is not None:
            values = np.where(weight > 0.0, values, 0.0)
        value = float(np.average(values, weights=weight))
    return value if value < np.inf else np.inf
