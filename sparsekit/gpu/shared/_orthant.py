"""The orthant of OBA on the GPU; the version of that in ``_cython``.

Array expressions: each is asked for once an iteration, so that a few launches more are of no account.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import to_host
from ..._typing import DeviceArray


def _below_zero(l1: DeviceArray, one_sided: bool) -> DeviceArray:
    """The penalty below zero: that above, or infinite where variables with a penalty have one side."""
    return np.where(l1 > 0.0, np.inf, l1) if one_sided else l1


def _residual(x: DeviceArray, g: DeviceArray, l1: DeviceArray, one_sided: bool) -> DeviceArray:
    """|mid(g - l1, x, g + l1)|, (n,)."""
    return np.abs(np.minimum(np.maximum(x, g - _below_zero(l1, one_sided)), g + l1))


def identify(
    x: DeviceArray,
    g: DeviceArray,
    l1: DeviceArray,
    kind: DeviceArray,
    size: DeviceArray,
    one_sided: bool = False,
) -> tuple[float, int, int]:
    """Sets of eqs. (2.5)-(2.7) and the optimality measure max_j |mid(g - l1, x, g + l1)|.

    ``kind`` gets 0 for A (stays zero), 1 for F (free), 2 for U (leaves zero). ``size`` gets the absolute
    minimum-norm subgradient on U and zero elsewhere. ``one_sided``: variables with a penalty, l1 > 0, must
    not be negative, as if their penalty were infinite below zero. Returns (measure, |F|, |U|).
    """
    if not x.size:
        return 0.0, 0, 0
    residual, is_free = _residual(x, g, l1, one_sided), x != 0.0
    leaves = ~is_free & (residual > 0.0)
    kind[:] = np.where(is_free, 1, np.where(leaves, 2, 0))
    size[:] = np.where(leaves, residual, 0.0)
    found = to_host(np.stack([residual.max(), is_free.sum(), leaves.sum()]))
    return float(found[0]), int(found[1]), int(found[2])


def measure(x: DeviceArray, g: DeviceArray, l1: DeviceArray, one_sided: bool = False) -> float:
    """max_j |mid(g_j - l1_j, x_j, g_j + l1_j)|, the semi-smooth optimality measure; as for `identify`."""
    return float(_residual(x, g, l1, one_sided).max()) if x.size else 0.0


def penalty(x: DeviceArray, l1: DeviceArray) -> float:
    """sum_j l1_j |x_j|."""
    return float(np.where(x != 0.0, l1 * np.abs(x), 0.0).sum())  # 0 of an infinite penalty and none


def ista_bound(x: DeviceArray, g: DeviceArray, l1: DeviceArray, L: float, one_sided: bool = False) -> float:
    """Gamma - f(x) of eq. (2.14): the upper model with constant L at its minimiser, the ISTA point.

    ``one_sided`` as for `identify`.
    """
    below, above, point = _below_zero(l1, one_sided) / L, l1 / L, x - g / L
    point = np.where(point > above, point - above, np.where(point < -below, point + below, 0.0))
    move = point - x
    return float((move * (g + 0.5 * L * move) + l1 * np.abs(point)).sum())
