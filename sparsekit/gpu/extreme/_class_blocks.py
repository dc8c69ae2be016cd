"""Kernels of softmax with very many classes whose negatives are blocks of neighbouring classes, on a GPU.

Steps are made in rounds, as in `sparsekit.gpu.extreme._extreme`: ``n_threads`` rows at a time from the
weights as they are at the round's start. Each block of classes then gets its changes in the order of the
rows. One row at a time makes the CPU's steps. Nothing is added atomically: equal calls give equal bits.
"""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ..shared._compile import kernel
from ._extreme import _CHANGE, _FINITE, _MOVE, PLACES, _absent
from ._step_arguments import BlockOptions, Rows, State, Work

BLOCK = 16
# entries of a copy of some rows of weights
COPIED = 2**24


def run_block_steps(
    data: DeviceArray, indices: DeviceArray, indptr: DeviceArray, W: DeviceArray, rows: Rows, state: State,
    work: Work, options: BlockOptions, eta: float, begin: int, end: int, value: bool,
) -> int:  # fmt: skip
    """Steps of length eta over work.examples[begin : end], with blocks of negatives, some rows at a time.

    Arguments are those of ``_cython.extreme._class_blocks.run_block_steps``; the work space of the CPU's
    threads is not used. Returns what `_extreme.run_steps` does.
    """
    import cupy

    n, width, order, y, plan = end - begin, rows.n_features, work.examples, work.columns, options.plan
    row_of, weight, u, bias, scale = rows.row_of, rows.weight, work.u, state.bias, state.scale
    beta, log_noise, n_classes, noise = work.beta, work.log_noise, state.n_classes, work.noise
    method, n_threads = options.method_number, options.n_threads
    n_blocks, n_head, n_drawn = plan.n_blocks, plan.n_head, plan.n_drawn
    p, keep, alias = (None,) * 3 if noise is None else (noise.p, noise.keep, noise.alias)
    if n <= 0:
        return -1
    parts = max(1, min(n_threads, n))
    most = min(n_blocks, n_head + n_drawn)
    rounds = -(-n // parts)
    places = parts * (most + 1)
    per_draw = max(1, min(rounds, PLACES // places))
    sparse = len(indptr) > 0
    if not sparse or not len(indices):
        indices = cupy.zeros(1, dtype=indptr.dtype if sparse else np.int32)
    given = (sparse or None, row_of, weight, u, bias, scale, beta, log_noise, p, value or None)
    flags = sum(1 << bit for bit, x in enumerate(given) if x is not None)
    height = most * BLOCK + 1
    blocks = cupy.empty(per_draw * parts * most, dtype=np.int64)
    weights, count = cupy.empty(per_draw * parts * most), cupy.empty(per_draw * parts, dtype=np.int64)
    keys = cupy.empty(per_draw * places, dtype=np.int64)
    values = cupy.zeros((2, per_draw * parts if value else 1))
    bad = cupy.full(1, _FINITE, dtype=np.uint64)
    numbers = cupy.asarray(np.array([eta, options.alpha]))
    real, float64, int64 = data.dtype, np.float64, np.int64
    before = (
        _absent(cupy, data if data.size else None, real), indices, indptr if sparse else indices, order,
        _absent(cupy, row_of, int64), y, _absent(cupy, weight, float64), _absent(cupy, u, float64),
        _absent(cupy, W if W.size else None, real), _absent(cupy, bias, real), _absent(cupy, scale, float64),
        _absent(cupy, beta, float64), _absent(cupy, log_noise, float64), blocks, weights, count, keys,
        cupy.empty(parts * (5 * height + 1)), cupy.empty(parts * height, dtype=int64), values, bad,
    )  # fmt: skip
    drawing = (
        order, y, _absent(cupy, p, float64), _absent(cupy, keep, float64), _absent(cupy, alias, int64),
        work.states, blocks, weights, count, keys,
    )  # fmt: skip
    types = {"real": real, "index": indices.dtype}
    steps = kernel("extreme/class_blocks", "sk_blocks_steps", **types)
    draw = kernel("extreme/class_blocks", "sk_blocks_draw", **types)
    shares = data.size / max(1, len(indptr) - 1) if sparse else width
    changing, moving = (32 * max(1, min(8, most)),), (64 if shares <= 64 else 256,)
    for first in range(0, rounds, per_draw):
        here = min(per_draw, rounds - first)
        whole = [
            flags, width, n_classes, begin, n, parts, method, W.shape[1], n_blocks, n_head, n_drawn, first,
        ]  # fmt: skip
        whole = cupy.asarray(np.array(whole, dtype=np.int64))
        draw(-(-parts // 64), min(parts, 64), (*drawing, whole, numbers, here))
        keys[: here * places].sort()
        for round_ in range(first, first + here):
            # as Launcher would convert them, which takes as long as a small round
            rest = (whole, numbers, _CHANGE, np.int64(round_), np.int64(per_draw))
            steps.function((parts,), changing, (*before, *rest))
            rest = (whole, numbers, _MOVE, np.int64(round_), np.int64(per_draw))
            steps.function((places,), moving, (*before, *rest))
        if value:
            work.loss[:parts] += values[:, : here * parts].reshape(2, here, parts).sum(axis=1).T
            values[...] = 0.0
    where = int(bad[0])
    return -1 if where == _FINITE else begin + where % n


def permute_columns(W: DeviceArray, order: DeviceArray) -> None:
    """W[:, : len(order)] = W[:, order], some rows at a time."""
    n = len(order)
    height = max(1, COPIED // max(1, n))
    for lo in range(0, W.shape[0], height):
        W[lo : lo + height, :n] = W[lo : lo + height].take(order, axis=1)
