"""Kernels of softmax with very many classes on a GPU: stochastic steps, their parts, hashed scores.

On the CPU `run_steps` has ``n_threads`` threads, without locks and in whatever order they take. Here it works
in rounds. In each, every one of ``n_threads`` parts of the order takes its next batch. All of them start from
the weights as they are at the round's start. Then each class gets its changes in the order of the parts. One
part makes the steps of one thread on the CPU, with the same classes from the same generator. The classes of
many rounds are drawn and sorted ahead; no block waits for another, nothing is added atomically and equal
calls give equal bits. Only a hashed table, whose
classes share entries, is added to atomically: its last bits change from run to run.
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
# the bits of extreme.cuh: which arrays are given
_FLAGS = (
    "indptr", "row_of", "weight", "u", "bias", "scale", "beta", "log_noise", "noise",
)  # fmt: skip
# phases of a round
_CHANGE, _MOVE = np.int64(0), np.int64(1)
_FINITE = np.iinfo(np.uint64).max


def _absent(xp, x, dtype):
    """x, or where it is None an array that no kernel reads."""
    return xp.zeros(1, dtype=dtype) if x is None else x


def _flags(**arrays):
    return sum(
        1 << bit for bit, name in enumerate(_FLAGS) if arrays[name] is not None and arrays[name] is not False
    )


def _threads(width):
    """Threads that share a row of ``width`` entries."""
    return 32 if width <= 128 else 128 if width <= 1024 else 256


class _Rounds:
    """Arrays of the drawn classes and of the workspaces, and the launches over them."""

    def __init__(self, xp, data, indices, *, units, stride, rounds):
        places = units * stride
        self.per_draw = max(1, min(rounds, PLACES // places))
        self.units, self.stride = units, stride
        n = self.per_draw * units
        self.k = xp.empty(n * stride, dtype=np.int64)
        self.r = xp.empty(n * stride)
        self.keys = xp.empty(n * stride, dtype=np.int64)
        self.count = xp.empty(n, dtype=np.int64)
        self.doubles = xp.empty(units * (4 * stride + 2))  # as in extreme.cu
        of = {"real": data.dtype, "index": indices.dtype}
        self.steps = kernel("extreme/extreme", "sk_extreme_steps", **of)
        self.draw = kernel("extreme/extreme", "sk_extreme_draw", **of)


def _parts(noise: Any) -> tuple[DeviceArray | None, ...]:
    """Probabilities, their logarithms and their alias table; nothing of the uniform distribution."""
    return (None,) * 4 if noise is None else (noise.p, noise.log, noise.keep, noise.alias)


def workspace_sizes(options: Any) -> tuple[int, int]:
    """None of the numbers that a thread of the CPU works in."""
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

    n, K, width, order, y = end - begin, state.n_classes, rows.n_features, work.examples, rows.y
    row_of, weight, u, beta = rows.row_of, rows.weight, work.u, work.beta
    bias, scale = state.bias, state.scale
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
    if not sparse or not len(indices):
        indices = cupy.zeros(1, dtype=indptr.dtype if sparse else np.int32)
    shares = data.size / max(1, len(indptr) - 1) if sparse else width
    R = _Rounds(cupy, data, indices, units=units, stride=stride, rounds=rounds)
    flags = _flags(
        indptr=sparse or None, row_of=row_of, weight=weight, u=u, bias=bias, scale=scale, beta=beta,
        log_noise=log_noise, noise=noise,
    )  # fmt: skip
    real = data.dtype
    numbers = cupy.asarray(np.array([eta, options.alpha], dtype=np.float64))
    bad = cupy.full(1, _FINITE, dtype=np.uint64)
    before = (
        _absent(cupy, data if data.size else None, real), indices, indptr if sparse else indices, order,
        _absent(cupy, row_of, np.int64), y, _absent(cupy, weight, np.float64), _absent(cupy, u, np.float64),
        _absent(cupy, W if W.size else None, real), _absent(cupy, bias, real),
        _absent(cupy, scale, np.float64),
        _absent(cupy, beta, np.float64), _absent(cupy, log_noise, np.float64), R.k, R.r,
        R.count, R.keys, R.doubles, bad,
    )  # fmt: skip
    drawing = (
        order, y,
        _absent(cupy, noise, np.float64), _absent(cupy, keep, np.float64), _absent(cupy, alias, np.int64),
        work.states, R.k, R.r, R.count, R.keys,
    )  # fmt: skip
    changing = 32 * min(8, stride)
    moving = _threads(shares)
    for first in range(0, rounds, R.per_draw):
        here = min(R.per_draw, rounds - first)
        whole = [
            flags, width, K, state.shift, begin, n, parts, batch_size, method, n_negatives, stride,
            units, first,
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
