"""Losses of two-class and regression models on the GPU; the twin of ``sparsekit._cython._glm``.

Values are sums in a fixed order: the same data gives the same bits on the same kind of device.
"""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray
from ._compile import grid1d, kernel
from ._reduce import block_of, finish


def _value(name: str, z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    n = len(z)
    if n == 0:
        return 0.0
    threads = block_of(n)
    part = np.empty((grid1d(n, threads), 1), like=z)
    kernel("glm", f"sk_{name}_value")(len(part), threads, (z, y, s, int(s.size > 0), n, part))
    return float(finish(part)[0])


def _derivatives(
    name: str, z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    n = len(z)
    if n == 0:
        return 0.0
    threads = block_of(n)
    part = np.empty((grid1d(n, threads), 1), like=z)
    launch = kernel("glm", f"sk_{name}_derivatives")
    launch(len(part), threads, (z, y, s, int(s.size > 0), n, u, d, part))
    return float(finish(part)[0])


def logistic_value(z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    """sum_i s_i log(1 + exp(-y_i z_i)), y_i in {-1, +1}."""
    return _value("logistic", z, y, s)


def logistic_derivatives(
    z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    """Value; u = -s y sigma(-y z), d = s sigma(z) sigma(-z)."""
    return _derivatives("logistic", z, y, s, u, d)


def squared_value(z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    """1/2 sum_i s_i (z_i - y_i)^2."""
    return _value("squared", z, y, s)


def squared_derivatives(
    z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    """Value; u = s (z - y), d = s."""
    return _derivatives("squared", z, y, s, u, d)


def probit_value(z: DeviceArray, y: DeviceArray, s: DeviceArray) -> float:
    """-sum_i s_i log Phi(y_i z_i), y_i in {-1, +1}."""
    return _value("probit", z, y, s)


def probit_derivatives(
    z: DeviceArray, y: DeviceArray, s: DeviceArray, u: DeviceArray, d: DeviceArray
) -> float:
    """Value; with r = phi(t)/Phi(t), t = y z: u = -s y r, d = s r (r + t)."""
    return _derivatives("probit", z, y, s, u, d)


def axpy_rows(z: DeviceArray, step: float, dz: DeviceArray, out: DeviceArray) -> None:
    """out = z + step * dz."""
    np.multiply(dz, step, out=out)
    out += z
