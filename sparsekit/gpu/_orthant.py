"""The orthant of OBA on the GPU; the twin of ``sparsekit._cython._orthant``."""

from __future__ import annotations

import numpy as np

from .._typing import DeviceArray
from ._compile import grid1d, kernel
from ._reduce import block_of, finish


def launch(name: str, n: int, args: tuple[object, ...]) -> None:
    """Run ``name`` over n entries."""
    threads = block_of(n)
    kernel("model", name)(grid1d(n, threads), threads, args)


def reduced(name: str, n: int, columns: int, args: tuple[object, ...], like: DeviceArray) -> DeviceArray:
    """Run ``name`` over n entries; the parts (blocks, columns) that its blocks left."""
    threads = block_of(n)
    part = np.empty((grid1d(n, threads), columns), like=like)
    kernel("model", name)(len(part), threads, (*args, part))
    return part


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
    if not len(x):
        return 0.0, 0, 0
    found = finish(
        reduced("sk_identify", len(x), 4, (x, g, l1, int(one_sided), len(x), kind, size), x), maxima=1
    )
    return float(found[0] + found[1]), int(found[2]), int(found[3])


def measure(x: DeviceArray, g: DeviceArray, l1: DeviceArray, one_sided: bool = False) -> float:
    """max_j |mid(g_j - l1_j, x_j, g_j + l1_j)|, the semi-smooth optimality measure; as for `identify`."""
    if not len(x):
        return 0.0
    found = finish(reduced("sk_measure", len(x), 2, (x, g, l1, int(one_sided), len(x)), x), maxima=1)
    return float(found[0] + found[1])


def penalty(x: DeviceArray, l1: DeviceArray) -> float:
    """sum_j l1_j |x_j|."""
    if not len(x):
        return 0.0
    return float(finish(reduced("sk_penalty", len(x), 1, (x, l1, len(x)), x))[0])


def ista_bound(x: DeviceArray, g: DeviceArray, l1: DeviceArray, L: float, one_sided: bool = False) -> float:
    """Gamma - f(x) of eq. (2.14): the upper model with constant L at its minimiser, the ISTA point.

    ``one_sided`` as for `identify`.
    """
    if not len(x):
        return 0.0
    args = (x, g, l1, float(L), int(one_sided), len(x))
    return float(finish(reduced("sk_ista_bound", len(x), 1, args, x))[0])
