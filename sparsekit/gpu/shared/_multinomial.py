"""CUDA twins of those in ``_cython``."""

from __future__ import annotations

from ..._typing import DeviceArray
from ._class_operators import ClassDenseOperator, ClassRowOperator, class_factors
from ._class_scores import row_blocks, score_lanes
from ._compile import THREADS, kernel
from ._spmm import multiply


def matmat(
    indptr: DeviceArray,
    indices: DeviceArray,
    data: DeviceArray,
    W: DeviceArray,
    Z: DeviceArray,
) -> None:
    """Z = A W for A in compressed rows, W (p, K), Z (n, K)."""
    multiply(
        "shared/multinomial", "sk_matmat", indptr, indices, data, W, Z, real=data.dtype, index=indices.dtype
    )


def value_and_derivative(Z: DeviceArray, codes: DeviceArray, s: DeviceArray, U: DeviceArray) -> float:
    """sum_i s_i (logsumexp z_i - z_{i, c_i}); U (n, K) gets its derivative in Z."""
    return _loss("sk_multinomial_value", Z, (codes, s, bool(s.size), U))


def target_value_and_derivative(Z: DeviceArray, Q: DeviceArray, s: DeviceArray, U: DeviceArray) -> float:
    """sum_i s_i (logsumexp z_i - <q_i, z_i>); U (n, K) gets its derivative in Z."""
    return _loss("sk_multinomial_targets", Z, (Q, s, U))


def _loss(name: str, Z: DeviceArray, arguments: tuple[object, ...]) -> float:
    import cupy

    n, K = Z.shape
    if n == 0:
        return 0.0
    macros = score_lanes(K)
    blocks = row_blocks(n, macros["SCORE_LANES"])
    parts = cupy.empty(blocks)
    kernel("shared/multinomial", name, defines=macros)(blocks, THREADS, (Z, *arguments, parts, n, K))
    return float(parts.get().sum())


def model_probabilities(
    Z: DeviceArray, radius: DeviceArray, P: DeviceArray, rest: DeviceArray, top: DeviceArray
) -> None:
    """Softmax P (n, K) without each row's largest entry: ``top`` names it, ``rest`` is 1 - it.

    A ``radius`` (n,), or empty, raises the scores of the other classes towards the largest.
    """
    n, K = Z.shape
    if n == 0:
        return
    macros = score_lanes(K)
    kernel("shared/multinomial", "sk_multinomial_model", defines=macros)(
        row_blocks(n, macros["SCORE_LANES"]),
        THREADS,
        (Z, radius, bool(radius.size), P, rest, top, n, K),
    )


__all__ = [
    "ClassDenseOperator",
    "ClassRowOperator",
    "class_factors",
    "matmat",
    "model_probabilities",
    "target_value_and_derivative",
    "value_and_derivative",
]
