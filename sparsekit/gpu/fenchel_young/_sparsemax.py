"""Kernels of sparsemax: the transform of rows, its loss, its Jacobian."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..._typing import DeviceArray
from ..shared._compile import THREADS, kernel
from ..shared._reduce import WARP

# bits of the kernels' argument ``wanted``
_PROBABILITIES, _THRESHOLD, _SIZE, _MINUS, _DISTRIBUTION, _CODE, _LOSS = (1 << i for i in range(7))
# Entries for each thread of a row, up to 1024 threads. A device has not been measured.
ENTRIES_PER_THREAD = 16


def contiguous(rows: DeviceArray) -> DeviceArray:
    """An array like ``rows``, without gaps, for a kernel to write to: itself or a new one."""
    import cupy

    return rows if rows.flags.c_contiguous else cupy.empty(rows.shape, rows.dtype)


def _launch(name: str, real: DTypeLike, n: int, K: int, args: tuple[object, ...]) -> None:
    """Run a kernel on n rows of K entries, a warp or a block a row."""
    threads = min(1024, WARP * -(-K // (WARP * ENTRIES_PER_THREAD)))
    rows = THREADS // WARP if threads == WARP else 1
    kernel("fenchel_young/sparsemax", name, real=real)(-(-n // rows), (threads, rows), (*args, n, K))


def sparsemax_rows(
    z: DeviceArray,
    q: DeviceArray | None,
    y: DeviceArray | None,
    p: DeviceArray | None,
    tau: DeviceArray | None,
    size: DeviceArray | None,
    loss: DeviceArray | None,
    minus: bool,
) -> bool:
    """Sparsemax of the rows of z (n, K), K > 0.

    Each of the other arrays may be None. They are targets q (n, K) or codes y (n,), and results p (n, K), tau
    (n,), size (n,), loss (n,). p may be z itself. With ``minus`` p becomes p - q. Arrays that are not
    contiguous are copied. Returns whether all targets q were distributions, which waits for the device;
    without q nothing waits.
    """
    import cupy

    n, K = z.shape
    if n == 0:
        return True
    wanted = 0
    for bit, given in (
        (_PROBABILITIES, p is not None),
        (_THRESHOLD, tau is not None),
        (_SIZE, size is not None),
        (_MINUS, minus),
        (_DISTRIBUTION, q is not None),
        (_CODE, y is not None),
        (_LOSS, loss is not None and (q is not None or y is not None)),
    ):
        wanted |= bit if given else 0
    # a kernel gets an array for each pointer; it does not touch those that are not wanted
    wrong = (cupy.empty if q is None else cupy.zeros)(1, np.int32)
    no_code, no_value = cupy.empty(1, np.int64), cupy.empty(1)
    z = cupy.ascontiguousarray(z)
    q, out = z if q is None else cupy.ascontiguousarray(q), z if p is None else contiguous(p)
    args = (
        z, q, no_code if y is None else y, out, no_value if tau is None else tau,
        no_code if size is None else size, no_value if loss is None else loss, wrong, wanted,
    )  # fmt: skip
    _launch("sk_sparsemax", z.dtype, n, K, args)
    if p is not None and out is not p:
        p[...] = out
    return not (wanted & _DISTRIBUTION and bool(wrong[0]))


def sparsemax_jvp_rows(p: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    """out = s (v - mean of v over s), s the support of p; all (n, K).

    ``out`` may be v. Arrays that are not contiguous are copied.
    """
    import cupy

    n, K = p.shape
    if n == 0 or K == 0:
        return
    rows = contiguous(out)
    _launch("sk_sparsemax_jvp", p.dtype, n, K, (cupy.ascontiguousarray(p), cupy.ascontiguousarray(v), rows))
    if rows is not out:
        out[...] = rows
