"""Functions of each entry or row of an array, in main memory or on a GPU.

SciPy has the first in main memory; CuPy's are spread over modules that not every release has.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from .._arrays import is_device
from .._typing import EitherArray


def largest(values: EitherArray) -> float:
    """Largest of values that are at least 0; 0 of none (CuPy's ``max`` has no ``initial``)."""
    return float(np.max(values)) if values.size else 0.0


def entropies(t: EitherArray) -> EitherArray:
    """-t log t, 0 at 0, for t >= 0."""
    if is_device(t):
        return np.where(t > 0, -t * np.log(np.where(t > 0, t, 1.0)), 0.0)
    return special.entr(t)


def expit(z: EitherArray) -> EitherArray:
    """1 / (1 + exp(-z)) without overflow, a small probability with all its digits."""
    if not is_device(z):
        return special.expit(z)
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)


def log_expit(z: EitherArray) -> EitherArray:
    """log(1 / (1 + exp(-z)))."""
    if not is_device(z):
        return special.log_expit(z)
    return np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))


def softmax(Z: EitherArray) -> EitherArray:
    """Softmax of each row of Z, (n, K)."""
    return np.exp(log_softmax(Z)) if is_device(Z) else special.softmax(Z, axis=1)


def log_softmax(Z: EitherArray) -> EitherArray:
    """Logarithm of the softmax of each row of Z, (n, K)."""
    if not is_device(Z):
        return special.log_softmax(Z, axis=1)
    Z = Z - Z.max(axis=1)[:, None]
    return Z - np.log(np.exp(Z).sum(axis=1))[:, None]
