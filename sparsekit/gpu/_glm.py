"""Losses of two-class and regression models on the GPU; the twin of ``sparsekit._cython._glm``.

Values are sums in a fixed order: the same data gives the same bits on the same kind of device.
"""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray
from ._reduce import finish, reduced

_LOGISTIC, _SQUARED, _PROBIT = range(3)  # as in glm.cu


def _evaluate(
    loss: int,
    z: DeviceArray,
    y: DeviceArray,
    s: DeviceArray,
    u: DeviceArray | None = None,
    d: DeviceArray | None = None,
) -> float:
    n = len(z)
    fills = u is not None and d is not None
    filled = (u, d) if fills else (z, z)  # not written then
    args = loss, z, y, s, s.size > 0, fills, n, *filled
    return float(finish(reduced("glm", "sk_glm", n, args, z))[0])


def logistic_value(z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    """sum_i s_i log(1 + exp(-y_i z_i)), y_i in {-1, +1}."""
    return _evaluate(_LOGISTIC, z, y, s)


def logistic_derivatives(
    z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    """Value; u = -s y sigma(-y z), d = s sigma(z) sigma(-z)."""
    return _evaluate(_LOGISTIC, z, y, s, u, d)


def squared_value(z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    """1/2 sum_i s_i (z_i - y_i)^2."""
    return _evaluate(_SQUARED, z, y, s)


def squared_derivatives(
    z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    """Value; u = s (z - y), d = s."""
    return _evaluate(_SQUARED, z, y, s, u, d)


def probit_value(z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    """-sum_i s_i log Phi(y_i z_i), y_i in {-1, +1}."""
    return _evaluate(_PROBIT, z, y, s)


def probit_derivatives(
    z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    """Value; with r = phi(t)/Phi(t), t = y z: u = -s y r, d = s r (r + t)."""
    return _evaluate(_PROBIT, z, y, s, u, d)


def axpy_rows(z: DeviceArray, step: float, dz: DeviceArray, out: DeviceArray) -> None:
    """out = z + step * dz."""
    np.multiply(dz, step, out=out)
    out += z
