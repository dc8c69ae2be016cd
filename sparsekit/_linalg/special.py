"""Functions of each entry or row of an array, in main memory or on a GPU.

`entropies` and `expit` call SciPy, which takes half the time of NumPy's expressions, or CuPy. The other
functions are NumPy expressions, which take no longer than SciPy's.
"""

from __future__ import annotations

import numpy as np

from .._arrays import scipy_module
from .._typing import EitherArray


def largest(values: EitherArray) -> float:
    """Largest of values that are at least 0; 0 of none (CuPy's ``max`` has no ``initial``)."""
    return float(np.max(values)) if values.size else 0.0


def entropies(t: EitherArray) -> EitherArray:
    """-t log t, 0 at 0, for t >= 0."""
    return scipy_module("special", t).entr(t)


def expit(z: EitherArray) -> EitherArray:
    """1 / (1 + exp(-z)) without overflow, a small probability with all its digits."""
    return scipy_module("special", z).expit(z)


def log_expit(z: EitherArray) -> EitherArray:
    """log(1 / (1 + exp(-z)))."""
    return np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))


def softmax(Z: EitherArray) -> EitherArray:
    """Softmax of each row of Z, (n, K)."""
    E = np.exp(Z - _tops(Z))
    return E / E.sum(axis=1)[:, None]


def log_softmax(Z: EitherArray) -> EitherArray:
    """Logarithm of the softmax of each row of Z, (n, K)."""
    Z = Z - _tops(Z)
    with np.errstate(divide="ignore"):
        return Z - np.log(np.exp(Z).sum(axis=1))[:, None]


def _tops(Z: EitherArray) -> EitherArray:
    """The largest entry of each row where it is finite, else 0, (n, 1)."""
    tops = Z.max(axis=1)[:, None]
    return np.where(np.isfinite(tops), tops, 0.0).astype(Z.dtype, copy=False)
