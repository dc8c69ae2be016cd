"""The orthant of OBA on the GPU; the twin of ``sparsekit._cython._orthant``."""

from __future__ import annotations

from .._typing import DeviceArray
from ._reduce import finish, reduced


def identify(
    x: DeviceArray,
    g: DeviceArray,
    l1: DeviceArray,
    kind: DeviceArray,
    size: DeviceArray,
    one_sided: bool = False,
) -> tuple[float, int, int]:
    """Sets of eqs. (2.5)-(2.7) and the optimality measure max_j |mid(g - l1, x, g + l1)|.

    ``kind`` gets 0 for A (stays zero), 1 for F (free), 2 for U (wants to leave zero);
    ``size`` the absolute minimum-norm subgradient on U and zero elsewhere.
    ``one_sided``: variables with a penalty, l1 > 0, must not be negative, as if their penalty were infinite
    below zero. Returns (measure, |F|, |U|).
    """
    args = x, g, l1, int(one_sided), len(x), kind, size
    found = finish(reduced("model", "sk_identify", len(x), args, x, 4), maxima=1)
    return float(found[0] + found[1]), int(found[2]), int(found[3])


def measure(x: DeviceArray, g: DeviceArray, l1: DeviceArray, one_sided: bool = False) -> float:
    """max_j |mid(g_j - l1_j, x_j, g_j + l1_j)|, the semi-smooth optimality measure; as for `identify`."""
    found = finish(reduced("model", "sk_measure", len(x), (x, g, l1, int(one_sided), len(x)), x, 2), maxima=1)
    return float(found[0] + found[1])


def penalty(x: DeviceArray, l1: DeviceArray) -> float:
    """sum_j l1_j |x_j|."""
    return float(finish(reduced("model", "sk_penalty", len(x), (x, l1, len(x)), x))[0])


def ista_bound(x: DeviceArray, g: DeviceArray, l1: DeviceArray, L: float, one_sided: bool = False) -> float:
    """Gamma - f(x) of eq. (2.14): the upper model with constant L at its minimiser, the ISTA point.

    ``one_sided`` as for `identify`.
    """
    args = (x, g, l1, float(L), int(one_sided), len(x))
    return float(finish(reduced("model", "sk_ista_bound", len(x), args, x))[0])
