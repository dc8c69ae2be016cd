"""Losses of class scores and their products; as those in ``_cython``."""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ._sparse import multiply as matmat


def value_and_derivative(Z: DeviceArray, codes: DeviceArray, s: DeviceArray, U: DeviceArray) -> float:
    """sum_i s_i (logsumexp z_i - z_{i, c_i}); U (n, K) gets its derivative in Z."""
    if not len(Z):
        return 0.0
    own = np.arange(len(Z), like=Z), codes
    high = _terms(Z, U)
    # what the other classes weigh is summed without the row's own: 1 - p loses all digits where p is near one
    mine = U[own]
    U[own] = 0.0
    rest = U.sum(axis=1)
    scale = (s if s.size else 1.0) / (rest + mine)
    U *= scale[:, None]
    U[own] = -rest * scale
    values = np.where(mine == 1.0, np.log1p(rest), np.log(rest + mine) + (high - Z[own]))
    return _total(values, s)


def target_value_and_derivative(Z: DeviceArray, Q: DeviceArray, s: DeviceArray, U: DeviceArray) -> float:
    """sum_i s_i (logsumexp z_i - <q_i, z_i>); U (n, K) gets its derivative in Z."""
    if not len(Z):
        return 0.0
    high = _terms(Z, U)
    total = U.sum(axis=1)
    values = np.log(total) - (Q * (Z - high[:, None])).sum(axis=1)
    U /= total[:, None]
    U -= Q
    U *= s[:, None]
    return _total(values, s)


def _terms(Z: DeviceArray, U: DeviceArray) -> DeviceArray:
    """The largest scores (n,); U becomes exp(Z - largest)."""
    high = Z.max(axis=1)
    np.subtract(Z, high[:, None], out=U)
    np.exp(U, out=U)
    return high


def _total(values: DeviceArray, s: DeviceArray) -> float:
    """The sum of the values times s; rows without weight may have any value."""
    return float((np.where(s > 0.0, s * values, 0.0) if s.size else values).sum())


def model_probabilities(
    Z: DeviceArray, radius: DeviceArray, P: DeviceArray, rest: DeviceArray, top: DeviceArray
) -> None:
    """Softmax P (n, K) without each row's largest entry: ``top`` names it, ``rest`` is 1 - it.

    A ``radius`` (n,), or empty, raises the scores of the other classes towards the largest.
    """
    if not len(Z):
        return
    top[:] = Z.argmax(axis=1)
    at = np.arange(len(Z), like=Z), top
    np.subtract(Z, Z[at][:, None], out=P)
    if radius.size:
        P += radius[:, None]
        np.minimum(P, 0.0, out=P)
    np.exp(P, out=P)
    P[at] = 0.0
    total = P.sum(axis=1)
    P /= 1.0 + total[:, None]
    rest[:] = total / (1.0 + total)


__all__ = ["matmat", "model_probabilities", "target_value_and_derivative", "value_and_derivative"]
