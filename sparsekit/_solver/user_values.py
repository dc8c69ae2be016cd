"""What a user's function returns, as solvers take it: a number, and a vector of one per variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import namespace, to_host
from .._messages import numbers, shown


def as_number(value: Any, name: str) -> float:
    """A real number as a float; ValueError, which names the function, where it is none."""
    try:
        value = np.asarray(to_host(value))
    except ValueError:
        raise ValueError(f"{name} must return a number; got {shown(value)}.") from None
    if value.size != 1 or value.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must return a number; got an array of shape {value.shape} and type {value.dtype}."
        )
    return float(value.reshape(()))


def as_vector(values: Any, x: Any, name: str) -> Any:
    """Real numbers as a new float64 array of the shape of ``x``, where ``x`` is; else a ValueError."""
    xp = namespace(x0=x, **{name: values})
    out = xp.array(numbers(values, name, xp))
    if out.shape != x.shape:
        raise ValueError(f"{name} must have shape {x.shape}, as x0 has; got {out.shape}.")
    return out


def check_start(f: float, g: Any, function: str, gradient: str) -> None:
    """ValueError where f or its gradient at the start are not finite."""
    if not np.isfinite(f):
        raise ValueError(f"{function} must be finite at x0; it is {f}.")
    if not np.isfinite(g).all():
        i = int(np.flatnonzero(~np.isfinite(g))[0])
        raise ValueError(f"{gradient} must be finite at x0; entry {i} is {float(g[i])}.")
