"""Losses of one predictor a row on the GPU; as those in ``_cython``.

All arrays have length n and float64. Values are sums in a fixed order: the same data gives the same bits on
the same kind of device.
"""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ..shared._compile import elementwise

_ROWS = "float64 z, float64 t, float64 c, float64 s"
_FILLED = "float64 value, float64 u, float64 dual, float64 d"
_PIECEWISE = """
    const sk_piecewise h = {lo, hi, eps, delta, inverse};
    int inside;
    value = s * sk_piecewise_row(c * (z - t), previous, &h, &dual, &inside);
    u = s * c * dual;
    d = inside ? s * inverse : 0.0;
"""
_LOGISTIC = """
    value = s * sk_logistic(c * (z - t), s, &dual, &d);
    dual = -dual;
    u = s * c * dual;
"""


def _piecewise(z, t, c, s, prev, lo, hi, eps, delta, *filled):
    """Values of the rows, and what ``filled`` (value, u, dual, d) are."""
    # a kink is the limit of small delta: r / delta leaves [lo, hi] unless r is 0
    inverse = 1.0 / delta if delta > 0 else 1e300
    shape = "float64 previous, float64 lo, float64 hi, float64 eps, float64 delta, float64 inverse"
    launch = elementwise(f"{_ROWS}, {shape}", _FILLED, _PIECEWISE, "sk_piecewise_rows", "losses.h")
    c, prev = 1.0 if c is None else c, 0.0 if prev is None else prev
    return launch(z, t, c, s, prev, lo, hi, eps, delta, inverse, *filled)


def _log_loss(z, t, c, s, *filled):
    return elementwise(_ROWS, _FILLED, _LOGISTIC, "sk_logistic_rows", "losses.h")(z, t, c, s, *filled)


def piecewise_all(
    z: DeviceArray, t: DeviceArray, c: DeviceArray | None, s: DeviceArray, prev: DeviceArray | None,
    lo: float, hi: float, eps: float, delta: float, u: DeviceArray, dual: DeviceArray, d: DeviceArray,
) -> float:  # fmt: skip
    """sum_i s_i h(c_i (z_i - t_i)), h* = eps |a| + delta/2 (a - prev_i)^2 on lo <= a <= hi.

    Fills ``dual`` with a_i, the slope of h, u with s c a (the slope in z), d with the second derivative in z.
    """
    values, *_ = _piecewise(z, t, c, s, prev, lo, hi, eps, delta, np.empty_like(z), u, dual, d)
    return float(values.sum())


def piecewise_along(
    z: DeviceArray, dz: DeviceArray, step: float, t: DeviceArray, c: DeviceArray | None, s: DeviceArray,
    prev: DeviceArray | None, lo: float, hi: float, eps: float, delta: float,
) -> float:  # fmt: skip
    """The derivative of `piecewise_all` along z + step dz."""
    _, u, *_ = _piecewise(z + step * dz, t, c, s, prev, lo, hi, eps, delta)
    return float(u @ dz)


def log_loss_all(
    z: DeviceArray, t: DeviceArray, c: DeviceArray, s: DeviceArray, u: DeviceArray, dual: DeviceArray,
    d: DeviceArray,
) -> float:  # fmt: skip
    """sum_i s_i log(1 + exp(-c_i (z_i - t_i))), c_i in {-1, +1}; fills the others as `piecewise_all` does."""
    values, *_ = _log_loss(z, t, c, s, np.empty_like(z), u, dual, d)
    return float(values.sum())


def log_loss_along(
    z: DeviceArray, dz: DeviceArray, step: float, t: DeviceArray, c: DeviceArray, s: DeviceArray
) -> float:
    """The derivative of `log_loss_all` along z + step dz."""
    _, u, *_ = _log_loss(z + step * dz, t, c, s)
    return float(u @ dz)
