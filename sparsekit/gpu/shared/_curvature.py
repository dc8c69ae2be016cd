"""Products with the curvature of class scores, and steps of conjugate gradients; as those in ``_cython``.

Sums are arrays () of the device until a caller asks for a number. A step of conjugate gradients needs one
answer, whether to go on, and not three.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import to_host
from ..._typing import DeviceArray
from ._compile import elementwise, sums
from ._sparse import multiply

product32 = multiply  # of float32


def curve_scores(
    S: DeviceArray, P: DeviceArray, top: DeviceArray, weight: DeviceArray, first: DeviceArray | None
) -> None:
    """S (n, K) becomes weight (diag(p) - p p^T) (s + first) row by row; None as ``first`` is 0.

    P (n, K) is zero at each row's ``top``.
    """
    if len(S):
        at = np.arange(len(S), like=S), top
        if first is not None:
            S += first
        # relative to the top class, whose own probability never enters
        S -= S[at][:, None]
        mean = sums()(P, S, axis=1)
        curve = elementwise(
            "float32 p, float32 weight, float32 mean", "float32 s", "s = weight * p * (s - mean)", "sk_curve"
        )
        curve(P, weight[:, None], mean[:, None], S)
        S[at] = -S.sum(axis=1)


def dot(a: DeviceArray, b: DeviceArray) -> DeviceArray:
    """<a, b>, which stays on the device until ``float`` asks for it."""
    return np.dot(a, b)


def numbers(values: list[DeviceArray]) -> list[float]:
    """Several sums as numbers, for which the host waits once."""
    return to_host(np.stack(values)).tolist()


def cg_curve(p: DeviceArray, Hp: DeviceArray, alpha: float, penalised: int) -> DeviceArray:
    """Hp += alpha p in the first ``penalised`` entries; returns <p, Hp> over all, still on the device."""
    Hp[:penalised] += np.float32(alpha) * p[:penalised]
    return np.dot(p, Hp)


def cg_step(
    c: DeviceArray | float,
    p: DeviceArray,
    Hp: DeviceArray,
    inverse: DeviceArray,
    d: DeviceArray,
    r: DeviceArray,
) -> DeviceArray:
    """d += c p, r -= c Hp; returns <r, inverse r>, which stays on the device.

    Where c is negative or not finite, as over a curvature that is not positive, nothing moves and the value
    is NaN. So a caller need not ask for the curvature before the step.
    """
    step = elementwise(
        "float32 c, float32 p, float32 Hp, float32 inverse", "float32 d, float32 r, float32 scaled",
        """
        const bool good = c >= 0.0f && isfinite(c);
        if (good) {
            d += c * p;
            r -= c * Hp;
        }
        scaled = good ? r * inverse : nanf("");
        """,
        "sk_cg_step",
    )  # fmt: skip
    return np.dot(r, step(c, p, Hp, inverse, d, r, np.empty_like(r))[2])


def cg_turn(beta: DeviceArray | float, r: DeviceArray, inverse: DeviceArray, p: DeviceArray) -> None:
    """p = beta p + inverse r."""
    elementwise(
        "float32 beta, float32 r, float32 inverse", "float32 p", "p = beta * p + r * inverse", "sk_cg_turn"
    )(beta, r, inverse, p)
