"""Kernels of softmax with very many classes on a GPU: stochastic steps, their parts, hashed scores.

On the CPU `run_steps` has ``n_threads`` threads, without locks and in whatever order they take. Here it works
in rounds. In each, every one of ``n_threads`` parts of the order takes its next batch. All of them start from
the weights as they are at the round's start. Then each class gets its changes in the order of the parts. One
part makes the steps of one thread on the CPU, with the same classes from the same generator. The classes of
many rounds are drawn and sorted ahead; no block waits for another, nothing is added atomically and equal
calls give equal bits. Only a hashed table, whose classes share entries, is added to atomically: its last bits
change from run to run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import DeviceArray
from ..shared._compile import kernel

# Multiply-adds after which a call ends, as on the CPU. Its end is waited for: some tenths of a second.
WORK_PER_CALL = 2**32
# drawn classes that one launch has a buffer for: 24 bytes each
PLACES = 2**22
# phases of a round
_CHANGE, _MOVE = np.int64(0), np.int64(1)
_FINITE = np.iinfo(np.uint64).max


def _absent(xp, x, dtype):
    """x, or where it is None an array that no kernel reads."""
    return xp.zeros(1, dtype=dtype) if x is None else x


def _address(x, dtype):
    """The address of x, or 0 without entries; TypeError for another ``dtype``, which kernels do not check."""
    if x is None or not x.size:
        return 0
    if x.dtype != dtype:
        raise TypeError(f"a kernel reads {np.dtype(dtype)} and got an array of {x.dtype}")
    return x.data.ptr


def _threads(width):
    """Threads that share a row of ``width`` entries."""
    return 32 if width <= 128 else 128 if width <= 1024 else 256


class _Rounds:
    """Arrays of the drawn classes and of the workspaces, and the launches over them."""

    def __init__(self, xp, *, real, index, units, stride, rounds):
        places = units * stride
        self.per_draw = max(1, min(rounds, PLACES // places))
        self.units, self.stride = units, stride
        n = self.per_draw * units
        self.k = xp.empty(n * stride, dtype=np.int64)
        self.r = xp.empty(n * stride)
        self.keys = xp.empty(n * stride, dtype=np.int64)
        self.count = xp.empty(n, dtype=np.int64)
        self.doubles = xp.empty(units * (4 * stride + 2))  # as in extreme.cu
        self.steps = kernel("extreme/extreme", "sk_extreme_steps", real=real, index=index)
        self.draw = kernel("extreme/extreme", "sk_extreme_draw", real=real, index=index)


def _parts(noise: Any) -> tuple[DeviceArray | None, ...]:
    """Probabilities, their logarithms and their alias table; nothing of the uniform distribution."""
    return (None,) * 4 if noise is None else (noise.p, noise.log, noise.keep, noise.alias)


def workspace_sizes(options: Any) -> tuple[int, int]:
    """No workspace: a thread of a GPU has none of its own."""
    return 0, 0


def run_steps(
    data: DeviceArray, indices: DeviceArray, indptr: DeviceArray, W: DeviceArray, rows: Any, state: Any,
    work: Any, options: Any, eta: float, begin: int, end: int,
) -> int:  # fmt: skip
    """Steps of length eta over the examples work.examples[begin : end], options.n_threads parts at a time.

    Arguments are those of ``_cython.extreme._extreme.run_steps``; the work space of the CPU's threads is not
    used. ``n_threads`` is the number of parts, which take one batch each in a round; see this module.

    Returns -1, or the index in order of the first step that was not finite: the first round's, and in it the
    lowest index. Nothing moved in that round or after it. This is the only value that is waited for.
    """
    import cupy

    n, K, width = end - begin, state.n_classes, rows.n_features
    u, bias, scale = work.u, state.bias, state.scale
    method, n_negatives, batch_size = options.method_number, options.n_negatives, options.batch_size
    noise, log_noise, keep, alias = _parts(work.noise)
    if n <= 0:
        return -1
    parts = max(1, min(options.n_threads, n // batch_size))
    units, stride = parts * batch_size, n_negatives + 1
    if noise is None and method != 3:
        stride = min(stride, K)
    batches = -(-n // batch_size)
    rounds = -(-batches // parts)
    sparse = len(indptr) > 0
    shares = data.size / max(1, len(indptr) - 1) if sparse else width
    real, index = data.dtype, indptr.dtype if sparse else np.dtype(np.int32)
    R = _Rounds(cupy, real=real, index=index, units=units, stride=stride, rounds=rounds)
    flags = sum(1 << bit for bit, x in enumerate((u, bias, scale)) if x is not None)
    # in the order of extreme.cuh
    integer, double = np.int64, np.float64
    addresses = [
        _address(x, dtype)
        for x, dtype in (
            (data, real), (indices, index), (indptr, index), (work.examples, integer),
            (rows.row_of, integer), (rows.y, integer), (rows.weight, double), (work.beta, double),
            (log_noise, double), (noise, double), (keep, double), (alias, integer), (R.k, integer),
            (R.r, double), (R.count, integer), (R.keys, integer),
        )
    ]  # fmt: skip
    numbers = cupy.asarray(np.array([eta, options.alpha], dtype=np.float64))
    bad = cupy.full(1, _FINITE, dtype=np.uint64)
    before = (
        _absent(cupy, u, double), _absent(cupy, W if W.size else None, real), _absent(cupy, bias, real),
        _absent(cupy, scale, double), R.doubles, bad,
    )  # fmt: skip
    drawing = work.states, R.k, R.r, R.count, R.keys
    changing = 32 * min(8, stride)
    moving = _threads(shares)
    for first in range(0, rounds, R.per_draw):
        here = min(R.per_draw, rounds - first)
        whole = [
            flags, width, K, state.shift, begin, n, parts, batch_size, method, n_negatives, stride,
            units, first, *addresses,
        ]  # fmt: skip
        numbers_ = (cupy.asarray(np.array(whole, dtype=np.int64)), numbers)
        R.draw(-(-parts // 64), min(parts, 64), (*drawing, *numbers_, here))
        R.keys[: here * units * stride].sort()
        for round_ in range(first, first + here):
            # as Launcher would convert them, which takes as long as a small round
            now = np.int64(round_)
            R.steps.function((units,), (changing,), (*before, *numbers_, _CHANGE, now))
            R.steps.function((units * stride,), (moving,), (*before, *numbers_, _MOVE, now))
    where = int(bad[0])
    return -1 if where == _FINITE else begin + where % n


def hashed_scores(
    data: DeviceArray, indices: DeviceArray, indptr: DeviceArray, width: int, lo: int, hi: int,
    W: DeviceArray, shift: int, classes: DeviceArray, out: DeviceArray,
) -> None:  # fmt: skip
    """out (hi - lo, n) = scores of rows lo .. hi for the n classes, from a hashed table W."""
    import cupy

    sparse, n = len(indptr) > 0, len(classes)
    if hi <= lo or not n:
        return
    if not sparse or not len(indices):
        indices = cupy.zeros(1, dtype=indptr.dtype if sparse else np.int32)
    launch = kernel("extreme/extreme", "sk_hashed_scores", real=W.dtype, index=indices.dtype)
    launch(
        min(-(-(hi - lo) * n // 8), 2**20), 256,
        (
            _absent(cupy, data if data.size else None, W.dtype), indices, indptr if sparse else indices,
            width,
            int(sparse), lo, hi - lo, W, shift, classes, n, out,
        ),
    )  # fmt: skip
