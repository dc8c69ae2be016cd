"""Losses of one predictor a row on the GPU; the twin of that in ``_cython``.

All arrays have length n and float64. Values are sums in a fixed order: the same data gives the same bits on
the same kind of device.
"""

from __future__ import annotations

from ..._typing import DeviceArray
from ..shared._reduce import finish, reduced


def _evaluate(
    is_logistic: bool,
    z: DeviceArray,
    along: tuple[DeviceArray, float] | None,
    t: DeviceArray,
    c: DeviceArray | None,
    s: DeviceArray,
    prev: DeviceArray | None = None,
    shape: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
    filled: tuple[DeviceArray, DeviceArray, DeviceArray] | None = None,
) -> float:
    """Value and ``filled`` = (u, dual, d) at z, or the slope along (dz, step); shape = lo, hi, eps, delta."""
    n = len(z)
    # a kink is the limit of small delta: r / delta leaves [lo, hi] unless r is 0
    inverse = 1.0 / shape[3] if shape[3] > 0 else 1e300
    dz, step = along or (z, 0.0)
    # z is passed for what is None, and neither read nor written there
    args = (
        is_logistic, along is not None, z, dz, float(step), t, z if c is None else c, c is not None, s,
        z if prev is None else prev, prev is not None, *map(float, shape), inverse, n, *(filled or (z, z, z)),
    )  # fmt: skip
    return float(finish(reduced("bounded/row_losses", "sk_row_losses", n, args, z))[0])


def piecewise_all(
    z: DeviceArray, t: DeviceArray, c: DeviceArray | None, s: DeviceArray, prev: DeviceArray | None,
    lo: float, hi: float, eps: float, delta: float, u: DeviceArray, dual: DeviceArray, d: DeviceArray,
) -> float:  # fmt: skip
    """sum_i s_i h(c_i (z_i - t_i)), h* = eps |a| + delta/2 (a - prev_i)^2 on lo <= a <= hi.

    Fills ``dual`` with a_i, the slope of h, u with s c a (the slope in z), d with the second derivative in z.
    """
    return _evaluate(False, z, None, t, c, s, prev, (lo, hi, eps, delta), (u, dual, d))


def piecewise_along(
    z: DeviceArray, dz: DeviceArray, step: float, t: DeviceArray, c: DeviceArray | None, s: DeviceArray,
    prev: DeviceArray | None, lo: float, hi: float, eps: float, delta: float,
) -> float:  # fmt: skip
    """The derivative of `piecewise_all` along z + step dz."""
    return _evaluate(False, z, (dz, step), t, c, s, prev, (lo, hi, eps, delta))


def log_loss_all(
    z: DeviceArray, t: DeviceArray, c: DeviceArray, s: DeviceArray, u: DeviceArray, dual: DeviceArray,
    d: DeviceArray,
) -> float:  # fmt: skip
    """sum_i s_i log(1 + exp(-c_i (z_i - t_i))), c_i in {-1, +1}; fills the others as `piecewise_all` does."""
    return _evaluate(True, z, None, t, c, s, filled=(u, dual, d))


def log_loss_along(
    z: DeviceArray, dz: DeviceArray, step: float, t: DeviceArray, c: DeviceArray, s: DeviceArray
) -> float:
    """The derivative of `log_loss_all` along z + step dz."""
    return _evaluate(True, z, (dz, step), t, c, s)
