"""Compressed rows and columns on the GPU: products, selections, transposes; the twin of that in ``_cython``.

Sums over one line are made by the threads that share it, so no sum depends on the order in which blocks
run. X^T u therefore needs X by columns: the functions that get rows alone turn them first, which costs as
much as many products; designs turn theirs once (`transpose`) and use `product`.
"""

from __future__ import annotations

import numpy as np

from ..._typing import CompressedParts, DeviceArray
from ._compile import C_REAL, THREADS, grid1d, kernel
from ._reduce import WARP, block_of, over

PLAIN, ABSOLUTE, SQUARE = range(3)
# entries of a line, for each thread that shares it, from which the line gets a block of its own
_LONG = 32


class Lines:
    """How the lines (rows of CSR, columns of CSC) of a compressed matrix are shared among threads."""

    def __init__(self, indptr: DeviceArray, nnz: int) -> None:
        n = len(indptr) - 1
        self.width = width_of(nnz, n)
        self.limit = max(512, _LONG * self.width)
        self.longs = np.flatnonzero(indptr[1:] - indptr[:-1] > self.limit)


class _Short:
    """The same where long lines are not looked for."""

    longs = None
    limit = np.iinfo(np.int64).max

    def __init__(self, nnz: int, n: int) -> None:
        self.width = width_of(nnz, n)


def width_of(nnz: float, n: int) -> int:
    """Threads that share a line: a power of two, two entries each on average."""
    mean, width = nnz / max(n, 1), 1
    while width < WARP and 2 * width < mean:
        width *= 2
    return width


def product(
    indptr: DeviceArray,
    indices: DeviceArray,
    data: DeviceArray,
    t: DeviceArray,
    out: DeviceArray,
    lines: Lines | _Short | None = None,
    mode: int = PLAIN,
    chosen: tuple[DeviceArray, DeviceArray] | None = None,
    sums: DeviceArray | None = None,
    ridge: float = 0.0,
    diagonal: DeviceArray | None = None,
    v: DeviceArray | None = None,
) -> None:
    """out[i] = sum_k f(X[i, k]) t[k] + ridge diagonal[i] v[i] over the lines i; f by ``mode``: X, |X|, X^2.

    ``chosen``: numbers (m,), int32, of the lines that are asked for, and the place of each line among them or
    -1. ``sums`` adds up to the sum of t, which is the product of one more line, of ones.
    """
    if out.size == 0:
        return
    n = len(indptr) - 1 if chosen is None else len(chosen[0])
    lines = lines or _Short(data.size, n)
    nowhere = np.empty(0, dtype=np.int32, like=out)
    longs = nowhere.astype(np.int64) if lines.longs is None else lines.longs
    cols, position = chosen or (nowhere, nowhere)
    threads = THREADS if len(longs) else block_of(n * lines.width)
    launch = kernel("shared/sparse", "sk_lines_product", real=data.dtype, index=indices.dtype)
    launch(
        len(longs) + (sums is not None) + grid1d(n * lines.width, threads, 16), threads,
        (indptr, indices, data, t, longs, len(longs), lines.limit, lines.width, mode, cols, position,
         chosen is not None, t if sums is None else sums, -1 if sums is None else sums.size, ridge,
         t if diagonal is None else diagonal, t if v is None else v, n, out),
    )  # fmt: skip


def transpose(indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, p: int) -> CompressedParts:
    """(cut, rows, values) of the columns of a matrix in CSR; rows ascend within a column."""
    order = np.argsort(indices, kind="stable")
    rows = line_numbers(indptr, len(indices))[order]
    cut = np.searchsorted(indices[order], np.arange(p + 1, dtype=indices.dtype, like=indices))
    return cut.astype(indptr.dtype), rows.astype(indptr.dtype, copy=False), data[order]


def line_numbers(indptr: DeviceArray, nnz: int) -> DeviceArray:
    """The line of each of nnz entries, int32."""
    entries = np.arange(nnz, dtype=indptr.dtype, like=indptr)
    return np.searchsorted(indptr[1:], entries, side="right").astype(np.int32)


def select_count(indptr: DeviceArray, indices: DeviceArray, position: DeviceArray) -> DeviceArray:
    """Row pointers, int64, of the columns with ``position`` >= 0."""
    n = len(indptr) - 1
    out = np.zeros(n + 1, dtype=np.int64, like=indptr)
    if n:
        counts = np.empty(n, dtype=np.int64, like=indptr)
        args = (indptr, indices, position, n, counts)
        over("shared/sparse", "sk_csr_select_count", n, args, lanes=WARP, per_sm=16, index=indices.dtype)
        out[1:] = np.cumsum(counts)
    return out


def select_fill(
    indptr: DeviceArray,
    indices: DeviceArray,
    data: DeviceArray,
    position: DeviceArray,
    out_indptr: DeviceArray,
    out_indices: DeviceArray,
    out_data: DeviceArray,
) -> None:
    """The entries of these columns, from the row pointers of `select_count`, in the type of ``out_data``."""
    n = len(indptr) - 1
    if n:
        over(
            "shared/sparse", "sk_csr_select_fill", n,
            (indptr, indices, data, position, n, out_indptr, out_indices, out_data),
            lanes=WARP, per_sm=16, real=data.dtype, index=indices.dtype,
            defines={"SK_OUT": C_REAL[out_data.dtype]},
        )  # fmt: skip


def gather_columns(
    indptr: DeviceArray, indices: DeviceArray, data: DeviceArray, cols: DeviceArray
) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
    """(cut, rows, new columns, values) of the chosen columns laid side by side; waits for their size."""
    cut = np.zeros(len(cols) + 1, dtype=np.int64, like=data)
    cut[1:] = np.cumsum(indptr[cols + 1] - indptr[cols])
    new = line_numbers(cut, int(cut[-1]))
    entries = np.arange(len(new), like=new) + (indptr[cols] - cut[:-1])[new]
    return cut, indices[entries].astype(np.int32, copy=False), new, data[entries]


def csr_absolute_bound(
    indptr: DeviceArray,
    indices: DeviceArray,
    data: DeviceArray,
    d: DeviceArray,
    v: DeviceArray,
    out: DeviceArray,
    intercept: bool,
    columns: CompressedParts | None = None,
) -> None:
    """out = |A|^T diag(d) |A| v with A = X or [X, 1]: Collatz-Wielandt ratios bound the norm.

    ``columns`` are (cut, rows, values) of the same X where they are at hand; else X is turned.
    """
    n, p = len(indptr) - 1, len(out) - bool(intercept)
    t = np.empty(n, like=out)
    product(indptr, indices, data, v, t, mode=ABSOLUTE)
    if intercept:
        t += v[p]
    t *= d
    columns = columns or transpose(indptr, indices, data, p)
    cut, rows, values = columns
    product(cut, rows, values, t, out[:p], mode=ABSOLUTE)
    if intercept:
        out[p] = t.sum()
