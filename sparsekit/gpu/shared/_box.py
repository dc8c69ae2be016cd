"""Steps in a box on the GPU; the version of that in ``_cython``."""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray


def leaves(x: DeviceArray, p: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> DeviceArray:
    """Whether a step along p leaves the box at once, (n,)."""
    return ((x <= lower) & (p < 0.0)) | ((x >= upper) & (p > 0.0))


def _largest(values: DeviceArray) -> float:
    """The largest of values, 0 of none and where all are NaN, which is not larger than anything."""
    return float(np.fmax(values, 0.0).max()) if values.size else 0.0


def free_variables(
    x: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray, free: DeviceArray
) -> DeviceArray:
    """free (n,) becomes 1 outside B(g) of (3.4), else 0.

    Returns the number of free variables as an array () of the device, so that nobody waits who does not ask.
    """
    free[:] = ~(((x <= lower) & (g >= 0.0)) | ((x >= upper) & (g <= 0.0)))
    return free.sum()


def feasible_part(
    x: DeviceArray, p: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray, out: DeviceArray
) -> float:
    """out (n,) becomes T(x, p) of (3.3); returns g . T(x, p)."""
    out[:] = np.where(leaves(x, p, lower, upper), 0.0, p)
    return float(g @ out)


def feasible_slope(
    x: DeviceArray, p: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray
) -> float:
    """g . T(x, p)."""
    return float(np.where(leaves(x, p, lower, upper), 0.0, g * p).sum())


def optimality(x: DeviceArray, g: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> float:
    """max_i |T(x, -g)_i|."""
    return _largest(np.where(leaves(x, -g, lower, upper), 0.0, np.abs(g)))


def trial_point(
    x: DeviceArray, p: DeviceArray, alpha: float, lower: DeviceArray, upper: DeviceArray, out: DeviceArray
) -> None:
    """out (n,) becomes P(x + alpha p)."""
    np.minimum(np.maximum(x + alpha * p, lower), upper, out=out)


def longest_step(x: DeviceArray, p: DeviceArray, lower: DeviceArray, upper: DeviceArray) -> float:
    """The largest step at which some variable is still on its way to its bound; p = T(x, p), x in the box."""
    way = np.where(p > 0.0, upper - x, x - lower)
    return _largest(np.where(p != 0.0, way / np.abs(p), 0.0))
