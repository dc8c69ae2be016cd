"""Losses of two-class and regression models on the GPU; the twin of that in ``_cython``.

Values are sums in a fixed order: the same data gives the same bits on the same kind of device.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._typing import DeviceArray
from ..shared._reduce import finish, reduced

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
    return float(finish(reduced("l1/glm", "sk_glm", n, args, z))[0])


# the value, and the derivatives where arrays u and d for them are given; formulas in ``_cython.l1._glm``
logistic_value = logistic_derivatives = partial(_evaluate, _LOGISTIC)
squared_value = squared_derivatives = partial(_evaluate, _SQUARED)
probit_value = probit_derivatives = partial(_evaluate, _PROBIT)


def axpy_rows(z: DeviceArray, step: float, dz: DeviceArray, out: DeviceArray) -> None:
    """out = z + step * dz."""
    np.multiply(dz, step, out=out)
    out += z
