"""CUDA twins of those in ``_cython``.

Sums stay on the device as `Value`, and their quotients as `Ratio`, until somebody asks for a number: a step
of conjugate gradients needs one answer, whether to go on, and not three.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..._typing import DeviceArray
from ._class_scores import row_blocks, score_lanes
from ._compile import THREADS, grid1d, kernel
from ._spmm import multiply

# blocks of a vector pass for each multiprocessor: each of them adds up all parts of its scalars
_PER_SM = 4


class Value:
    """A sum on the device, as the parts of its blocks; ``float`` brings it to the host, once."""

    def __init__(self, parts: DeviceArray) -> None:
        self.parts = parts
        self._value: float | None = None

    def __float__(self) -> float:
        if self._value is None:
            self._value = float(self.parts.get().sum())
        return self._value

    def __truediv__(self, other: Value) -> Ratio:
        return Ratio(self.parts, other.parts)

    def __gt__(self, other: Value | float) -> bool:
        return float(self) > float(other)


def numbers(values: list[Value]) -> list[float]:
    """Several sums as numbers, for which the host waits once."""
    import cupy

    together = cupy.concatenate([value.parts for value in values]).get()
    ends = np.cumsum([value.parts.size for value in values])
    return [float(part.sum()) for part in np.split(together, ends[:-1])]


class Ratio:
    """A quotient of two sums, which kernels form from their parts."""

    def __init__(self, above: DeviceArray, below: DeviceArray) -> None:
        self.above, self.below = above, below

    def arguments(self) -> tuple[DeviceArray, int, DeviceArray, int]:
        """The kernels' four arguments for it."""
        return self.above, self.above.size, self.below, self.below.size


def _ratio(scalar: Ratio | float) -> Ratio:
    import cupy

    return scalar if isinstance(scalar, Ratio) else Ratio(cupy.full(1, float(scalar)), cupy.ones(1))


def _launch(name: str, n: int, arguments: tuple[object, ...], real: DTypeLike | None = None) -> Value:
    import cupy

    blocks = grid1d(n, per_sm=_PER_SM)
    parts = cupy.empty(blocks)
    kernel("shared/curvature", name, real=real)(blocks, THREADS, (*arguments, n, parts))
    return Value(parts)


def product32(
    indptr: DeviceArray,
    indices: DeviceArray,
    data: DeviceArray,
    V: DeviceArray,
    out: DeviceArray,
) -> None:
    """out (rows, K) = A V for A in compressed rows and V (columns or more, K); K need not be padded."""
    multiply("shared/curvature", "sk_product32", indptr, indices, data, V, out)


def curve_scores(
    S: DeviceArray,
    P: DeviceArray,
    top: DeviceArray,
    weight: DeviceArray,
    first: DeviceArray | None,
    last: DeviceArray | None,
) -> None:
    """S (n, K) becomes weight (diag(p) - p p^T) (s + first) row by row; ``last`` (K,) its sum, or both None.

    P (n, K) is zero at each row's ``top``, and where K is padded.
    """
    n, K = S.shape
    if n:
        macros = score_lanes(K)
        kernel("shared/curvature", "sk_curve_scores", defines=macros)(
            row_blocks(n, macros["SCORE_LANES"]),
            THREADS,
            (S, P, top, weight, weight if first is None else first, first is not None, n, K),
        )
    if last is not None:
        last[:] = S.sum(axis=0)


def dot(a: DeviceArray, b: DeviceArray) -> Value:
    """<a, b>, which stays on the device until ``float`` asks for it."""
    return _launch("sk_dot", a.size, (a, b), real=a.dtype)


def cg_curve(p: DeviceArray, Hp: DeviceArray, alpha: float, penalised: int) -> Value:
    """Hp += alpha p in the first ``penalised`` entries; returns <p, Hp> over all, still on the device."""
    return _launch("sk_cg_curve", p.size, (p, Hp, float(alpha), penalised))


def cg_step(
    c: Ratio | float,
    p: DeviceArray,
    Hp: DeviceArray,
    inverse: DeviceArray,
    d: DeviceArray,
    r: DeviceArray,
) -> Value:
    """d += c p, r -= c Hp; returns <r, inverse r>, which stays on the device.

    Where c is a quotient whose lower part is not positive, nothing moves and the value is NaN: so a caller
    need not ask for the curvature before the step.
    """
    return _launch("sk_cg_step", p.size, (*_ratio(c).arguments(), p, Hp, inverse, d, r))


def cg_turn(beta: Ratio | float, r: DeviceArray, inverse: DeviceArray, p: DeviceArray) -> None:
    """p = beta p + inverse r."""
    n = p.size
    kernel("shared/curvature", "sk_cg_turn")(
        grid1d(n, per_sm=_PER_SM), THREADS, (*_ratio(beta).arguments(), r, inverse, p, n)
    )
