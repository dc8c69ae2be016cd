"""Kernels of sparsemax: the transform of rows, its loss, its Jacobian."""

from __future__ import annotations

import numpy as np

from ..._typing import DeviceArray
from ..shared._compile import Launcher
from ._rows_in_registers import Shape, neighbours, parts, row_kernel, shape, step, wide

# bits of the kernels' argument ``wanted``
_PROBABILITIES, _THRESHOLD, _SIZE, _MINUS, _DISTRIBUTION, _CODE, _LOSS = (1 << i for i in range(7))
# entries of a part's list, as a share of the part; more are read again
_LISTED = 16
_SCRATCH_BYTES = 64 << 20  # for the lists of as many rows as are worked in one go
_GRID_ROWS = 65535  # of a grid's second dimension


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
    (n,), size (n,), loss (n,). p may be z itself. With ``minus`` p becomes p - q. Entries of a row of p are
    neighbours; rows of z and q that are not so are copied. Returns whether all targets q were distributions,
    which waits for the device; without q nothing waits.
    """
    import cupy

    n, K = z.shape
    if n == 0:
        return True
    z = neighbours(z)
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
    no_real, no_code = z, cupy.empty(1, np.int64)
    no_value = tau if tau is not None else loss if loss is not None else cupy.empty(1)
    q = no_real if q is None else neighbours(q)
    p = no_real if p is None else p
    arrays = [z, p, q]
    call = _Call(
        z, q, no_code if y is None else y, p,
        no_value if tau is None else tau, no_code if size is None else size,
        no_value if loss is None else loss, wrong, wanted, wide(K, *arrays),
    )  # fmt: skip
    held = shape(K, z.itemsize)
    if held is None:
        call.long()
    else:
        call.short(held)
    return not (wanted & _DISTRIBUTION and bool(wrong[0]))


class _Call:
    """One call of `sparsemax_rows`: its arrays, and what of them is wanted."""

    def __init__(self, z, q, y, p, tau, size, loss, wrong, wanted, wide):
        self.z, self.q, self.y, self.p = z, q, y, p
        self.tau, self.size, self.loss, self.wrong = tau, size, loss, wrong
        self.wanted, self.wide = wanted, wide
        self.targets = int(bool(wanted & (_DISTRIBUTION | _CODE)))

    def kernel(self, file: str, name: str, held: Shape) -> Launcher:
        return row_kernel(file, name, self.z.dtype, held, self.wide, TARGETS=self.targets)

    def short(self, held: Shape) -> None:
        n, K = self.z.shape
        args = (
            self.z, step(self.z), self.q, step(self.q), self.y, self.p, step(self.p), self.tau, self.size,
            self.loss, self.wrong, self.wanted, n, K,
        )  # fmt: skip
        if held.lanes:
            self.kernel("fenchel_young/sparsemax", "sk_sparsemax_warp", held)(
                -(-n * held.lanes // held.threads), held.threads, args
            )
        else:
            self.kernel("fenchel_young/sparsemax_block", "sk_sparsemax_block", held)(n, held.threads, args)

    def long(self) -> None:
        n, K = self.z.shape
        n_parts, chunk, held = parts(K, self.z.itemsize)
        space = max(chunk // _LISTED, 1)
        per_row = n_parts * space * (self.z.itemsize + 4)
        at_once = max(1, min(n, _SCRATCH_BYTES // per_row, _GRID_ROWS))
        for first in range(0, n, at_once):
            self._long(slice(first, min(n, first + at_once)), n_parts, chunk, space, held)

    def _long(self, rows: slice, n_parts: int, chunk: int, space: int, held: Shape) -> None:
        import cupy

        z, q, p = self.z[rows], self.q[rows], self.p[rows]
        y, tau, size, loss = (
            x[rows] if len(x) == len(self.z) else x for x in (self.y, self.tau, self.size, self.loss)
        )
        n, K = z.shape
        kept, where = cupy.empty(n * n_parts * space, z.dtype), cupy.empty(n * n_parts * space, np.int32)
        counts = cupy.empty(n * n_parts, np.int32)
        tops, lows = cupy.empty(n * n_parts, z.dtype), cupy.empty(n * n_parts, z.dtype)
        found = cupy.empty(4 * n)
        sums = cupy.empty(4 * n * n_parts if self.targets else 1)
        grid = (n_parts, n)
        self.kernel("fenchel_young/sparsemax_long", "sk_sparsemax_parts", held)(
            grid, held.threads,
            (z, step(z), p, step(p), kept, where, counts, tops, lows, self.wanted, K, chunk, space),
        )  # fmt: skip
        self.kernel("fenchel_young/sparsemax_long", "sk_sparsemax_join", held)(
            n, min(1024, max(128, 32 * n_parts)),
            (z, step(z), p, step(p), kept, where, counts, tops, lows, found, tau, size, self.wanted, K,
             n_parts, chunk, space),
        )  # fmt: skip
        self.kernel("fenchel_young/sparsemax_long", "sk_sparsemax_spread", held)(
            grid, held.threads,
            (z, step(z), q, step(q), y, p, step(p), counts, found, sums, self.wanted, K, chunk),
        )  # fmt: skip
        if self.wanted & _LOSS:
            self.kernel("fenchel_young/sparsemax_long", "sk_sparsemax_total", held)(
                -(-n // 4), 128, (sums, loss, self.wrong, self.wanted, n, n_parts)
            )


def sparsemax_jvp_rows(p: DeviceArray, v: DeviceArray, out: DeviceArray) -> None:
    """out = s (v - mean of v over s), s the support of p; all (n, K).

    ``out`` may be v; entries of its rows are neighbours, rows of p and v that are not so are copied.
    """
    import cupy

    n, K = p.shape
    if n == 0 or K == 0:
        return
    p, v = neighbours(p), neighbours(v)
    held, width = shape(K, p.itemsize), wide(K, p, v, out)
    if held is not None:
        name = "sk_sparsemax_jvp_warp" if held.lanes else "sk_sparsemax_jvp_block"
        launch = row_kernel("fenchel_young/sparsemax_jvp", name, p.dtype, held, width)
        args = (p, step(p), v, step(v), out, step(out))
        if held.lanes:
            launch(-(-n * held.lanes // held.threads), held.threads, (*args, n, K))
        else:
            launch(n, held.threads, (*args, K))
        return
    n_parts, chunk, held = parts(K, p.itemsize)
    for first in range(0, n, _GRID_ROWS):
        rows = slice(first, min(n, first + _GRID_ROWS))
        a, b, c = p[rows], v[rows], out[rows]
        sums, grid = cupy.empty(2 * len(a) * n_parts), (n_parts, len(a))
        row_kernel("fenchel_young/sparsemax_jvp", "sk_sparsemax_jvp_parts", p.dtype, held, width)(
            grid, held.threads, (a, step(a), b, step(b), sums, K, chunk)
        )
        row_kernel("fenchel_young/sparsemax_jvp", "sk_sparsemax_jvp_spread", p.dtype, held, width)(
            grid, held.threads, (a, step(a), b, step(b), c, step(c), sums, K, chunk)
        )
