"""The point of least norm in a convex hull; the twin of ``sparsekit._cython._min_norm``.

The program has as many variables as there are points, a few dozen, and a step of Wolfe's method follows from
the one before: their inner products, fetched once, are worked on in main memory.
"""

from __future__ import annotations

import numpy as np

from .._cython import _min_norm
from .._typing import DeviceArray


def min_norm_weights(
    gram: DeviceArray, tol: float, weights: DeviceArray, chosen: DeviceArray | None = None
) -> int:
    """weights (k,) become those of the point of least norm in the hull; returns how many are above 0.

    gram (k, k) holds the points' inner products. The first entries of ``chosen`` (k,), if given, become the
    points of weight above 0.
    """
    host = np.ascontiguousarray(gram.get())
    k = len(host)
    found, points = np.empty(k), np.empty(k, dtype=np.intp)
    count = int(_min_norm.min_norm_weights(host, tol, found, points))
    weights.set(found)
    if chosen is not None:
        points[count:] = -1
        chosen.set(points)
    return count
