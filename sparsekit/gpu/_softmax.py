"""Softmax of rows, read and written as sparsemax is: what the benchmarks compare with."""

from __future__ import annotations

from .._typing import DeviceArray
from ._rows_in_registers import Shape, neighbours, row_kernel, shape, step, wide


def softmax_rows(z: DeviceArray, p: DeviceArray) -> None:
    """p (n, K) = softmax of the rows of z (n, K), K > 0; p may be z itself. A row has a finite maximum."""
    n, K = z.shape
    if n == 0:
        return
    z = neighbours(z)
    held, width, args = shape(K, z.itemsize), wide(K, z, p), (z, step(z), p, step(p))
    if held is None:
        # the kernel holds no row: any shape will do
        row_kernel("softmax", "sk_softmax_long", z.dtype, Shape(0, 16, 512), width)(n, 512, (*args, K))
    elif held.lanes:
        launch = row_kernel("softmax", "sk_softmax_warp", z.dtype, held, width)
        launch(-(-n * held.lanes // held.threads), held.threads, (*args, n, K))
    else:
        row_kernel("softmax", "sk_softmax_block", z.dtype, held, width)(n, held.threads, (*args, K))
