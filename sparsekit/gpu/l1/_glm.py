"""Losses of two-class and regression models on the GPU; as those in ``_cython``.

Values are sums in a fixed order: the same data gives the same bits on the same kind of device.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._typing import DeviceArray
from ..shared._compile import elementwise

# a row's value and derivatives in z, without its weight; formulas in ``_cython.l1._glm``
_LOGISTIC = "double miss; value = sk_logistic(y * z, 1.0, &miss, &d); u = -y * miss;"
_SQUARED = "u = z - y; d = 1.0; value = 0.5 * u * u;"


def _evaluate(
    body: str,
    name: str,
    z: DeviceArray,
    y: DeviceArray,
    s: DeviceArray,
    u: DeviceArray | None = None,
    d: DeviceArray | None = None,
) -> float:
    """The loss at z; u and d, where they are given, get its derivatives."""
    launch = elementwise(
        "float64 z, float64 y, float64 s", "float64 value, float64 u, float64 d",
        f"{body} value *= s; u *= s; d *= s;", f"sk_glm_{name}", "losses.h",
    )  # fmt: skip
    filled = () if u is None else (np.empty_like(z), u, d)
    values, *_ = launch(z, y, s if s.size else 1.0, *filled)
    return float(values.sum())


logistic_value = logistic_derivatives = partial(_evaluate, _LOGISTIC, "logistic")
squared_value = squared_derivatives = partial(_evaluate, _SQUARED, "squared")


def axpy_rows(z: DeviceArray, step: float, dz: DeviceArray, out: DeviceArray) -> None:
    """out = z + step * dz."""
    np.multiply(dz, step, out=out)
    out += z
