"""Losses of one predictor a row on the GPU; the twin of ``sparsekit._cython._row_losses``.

All arrays have length n and float64. Values are sums in a fixed order: the same data gives the same bits on
the same kind of device.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from .._typing import DeviceArray
from ._compile import grid1d, kernel
from ._dense import matvec, rmatvec
from ._reduce import block_of, finish


class PiecewiseLoss(Protocol):
    """What `dense_pass` reads of a loss with kinks."""

    is_logistic: Literal[False]
    t: DeviceArray
    c: DeviceArray | None
    s: DeviceArray
    lo: float
    hi: float
    eps: float


class LogLoss(Protocol):
    """What it reads of the log loss."""

    is_logistic: Literal[True]
    t: DeviceArray
    c: DeviceArray
    s: DeviceArray


class LossRows(Protocol):
    """Where slopes, dual variables and curvatures go."""

    u: DeviceArray
    dual: DeviceArray
    curvature: DeviceArray


def _value(
    name: str, z: DeviceArray, arguments: tuple[object, ...], filled: tuple[DeviceArray, ...] = ()
) -> float:
    n = len(z)
    if n == 0:
        return 0.0
    threads = block_of(n)
    part = np.empty((grid1d(n, threads), 1), like=z)
    kernel("row_losses", name)(len(part), threads, (*arguments, n, *filled, part))
    return float(finish(part)[0])


def _maybe(x: DeviceArray | None, instead: DeviceArray) -> tuple[DeviceArray, int]:
    """An array and whether it is there; ``instead`` is passed, and never read, where it is None."""
    return (instead, 0) if x is None else (x, 1)


def _shape(lo: float, hi: float, eps: float, delta: float) -> tuple[float, ...]:
    # a kink is the limit of small delta: r / delta leaves [lo, hi] unless r is 0
    inverse = 1.0 / delta if delta > 0 else 1e300
    return float(lo), float(hi), float(eps), float(delta), inverse


def piecewise_all(
    z: DeviceArray, t: DeviceArray, c: DeviceArray | None, s: DeviceArray, prev: DeviceArray | None,
    lo: float, hi: float, eps: float, delta: float, u: DeviceArray, dual: DeviceArray, d: DeviceArray,
) -> float:  # fmt: skip
    """sum_i s_i h(c_i (z_i - t_i)), h* = eps |a| + delta/2 (a - prev_i)^2 on lo <= a <= hi.

    Fills ``dual`` with a_i, the slope of h, u with s c a (the slope in z), d with the second derivative in z.
    """
    arguments = z, t, *_maybe(c, z), s, *_maybe(prev, z), *_shape(lo, hi, eps, delta)
    return _value("sk_piecewise_all", z, arguments, (u, dual, d))


def piecewise_along(
    z: DeviceArray, dz: DeviceArray, step: float, t: DeviceArray, c: DeviceArray | None, s: DeviceArray,
    prev: DeviceArray | None, lo: float, hi: float, eps: float, delta: float,
) -> float:  # fmt: skip
    """The derivative of `piecewise_all` along z + step dz."""
    arguments = z, dz, float(step), t, *_maybe(c, z), s, *_maybe(prev, z), *_shape(lo, hi, eps, delta)
    return _value("sk_piecewise_along", z, arguments)


def log_loss_all(
    z: DeviceArray, t: DeviceArray, c: DeviceArray, s: DeviceArray, u: DeviceArray, dual: DeviceArray,
    d: DeviceArray,
) -> float:  # fmt: skip
    """sum_i s_i log(1 + exp(-c_i (z_i - t_i))), c_i in {-1, +1}; fills the others as `piecewise_all` does."""
    return _value("sk_log_loss_all", z, (z, t, c, s), (u, dual, d))


def log_loss_along(
    z: DeviceArray, dz: DeviceArray, step: float, t: DeviceArray, c: DeviceArray, s: DeviceArray
) -> float:
    """The derivative of `log_loss_all` along z + step dz."""
    return _value("sk_log_loss_along", z, (z, dz, float(step), t, c, s))


def dense_pass(
    X: DeviceArray,
    w: DeviceArray,
    b: float,
    loss: PiecewiseLoss | LogLoss,
    delta: float,
    prev: DeviceArray | None,
    z: DeviceArray,
    rows: LossRows,
    gradient: DeviceArray,
) -> float:
    """Value at z = X w + b, for X (n, p) in C order; fills z, gradient = X^T u and ``rows``.

    X is read twice, with float64 sums whatever its type: the rows of a device's blocks would not stay in a
    cache between the two products.
    """
    matvec(X, w.astype(np.float64, copy=False), z)
    if b:
        z += b
    filled = rows.u, rows.dual, rows.curvature
    if loss.is_logistic:
        value = log_loss_all(z, loss.t, loss.c, loss.s, *filled)
    else:
        shape = loss.lo, loss.hi, loss.eps, delta
        value = piecewise_all(z, loss.t, loss.c, loss.s, prev, *shape, *filled)
    rmatvec(X, rows.u, gradient)
    return value
