"""Whether the arrays of a sparse matrix describe one: checked once, where a user hands it in.

Kernels, and most of SciPy's and CuPy's own functions, follow indices and pointers unchecked. One that is out
of range would have memory of another object read, or written. SciPy checks when a matrix is made from rows
and columns, but not when it is loaded, made from compressed arrays or changed in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import aligned, kernel_module, namespace, scipy_module

_REMEDY = (
    "Was one of its arrays changed, or the file damaged that it came from? Make it anew from its entries: "
    "scipy.sparse.coo_array((values, (rows, columns)), shape=...) checks them."
)


def check_sparse(X: Any, name: str = "X") -> Any:
    """X itself if it is no sparse matrix, or a well-formed one; else a ValueError.

    Parameters
    ----------
    X : array-like or sparse matrix, on a GPU too
        Anything that is no sparse matrix is returned.
    name : str, default="X"
        What the user knows it by.

    Returns
    -------
    X
        The same object, or an equal matrix where arrays hold more than their matrix, are strided or not
        aligned. Formats other than CSR, CSC, BSR and COO have no such arrays: they give an equal matrix too.

    Raises
    ------
    ValueError
        If pointers or indices are out of range, pointers fall, or arrays have other lengths than they must.
        It names the row or column and the index.
    """
    if not scipy_module("sparse", X).issparse(X):
        return X
    if X.format in ("csr", "csc", "bsr"):
        return _compressed(X, name)
    if X.format == "lil":
        if [len(row) for row in X.rows] != [len(row) for row in X.data] or len(X.rows) != X.shape[0]:
            raise _fault(X, name, "its lists of columns and of values have different lengths")
        return _compressed(X.tocsr(), name)
    if X.format == "dia" and X.data.shape[0] != len(X.offsets):
        raise _fault(X, name, f"it has {len(X.offsets)} offsets for {X.data.shape[0]} diagonals")
    return _coordinates(X.tocoo(), name)


def canonical(X: Any) -> Any:
    """X, CSR or CSC, if its indices are sorted, unique and of one integer type, else a copy that is so."""
    if X.indices.dtype != X.indptr.dtype:
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _fault(X: Any, name: str, what: str) -> ValueError:
    return ValueError(f"{name} is no valid {X.format.upper()} matrix: {what}. {_REMEDY}")


def _integers(X: Any, name: str, what: str) -> Any:
    """An array of indices, contiguous and aligned, for the kernels."""
    values = getattr(X, what)
    xp = namespace(data=X.data)
    if getattr(values, "ndim", 0) != 1 or values.dtype not in (np.int32, np.int64):
        kind = getattr(values, "dtype", type(values).__name__)
        raise _fault(X, name, f"{what} is no vector of int32 or int64 ({kind})")
    return aligned(xp.ascontiguousarray(values))


def _compressed(X: Any, name: str) -> Any:
    kernels = kernel_module("shared._compressed", X.data)
    indptr, indices = _integers(X, name, "indptr"), _integers(X, name, "indices")
    major, minor = ("column", "row") if X.format == "csc" else ("row", "column")
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n, p = (1, *X.shape)[-2:]  # SciPy's CSR may have one dimension
    n, p = (p, n) if X.format == "csc" else (n // height, p // width)
    of = "block " if X.format == "bsr" else ""
    if len(indptr) != n + 1:
        raise _fault(
            X, name, f"indptr has {len(indptr)} entries, and {n + 1} are needed for {n} {of}{major}s"
        )
    if X.data.ndim != (3 if of else 1) or len(indices) != len(X.data):
        raise _fault(X, name, f"data has the shape {X.data.shape} and indices {indices.shape}")
    k = kernels.pointer_fault(indptr, len(indices))
    if k == 0:
        raise _fault(X, name, f"indptr[0] is {int(indptr[0])} and must be 0")
    if k > 0:
        start, end = int(indptr[k - 1]), int(indptr[k])
        what = f"{of}{major} {k - 1} begins at indptr[{k - 1}] = {start} and ends at indptr[{k}] = {end}"
        raise _fault(X, name, what + ("" if end < start else f" of {len(indices)} indices"))
    used = int(indptr[-1])
    indices = indices[:used]
    k = kernels.index_fault(indices, p)
    if k >= 0:
        place = np.asarray([k], dtype=indptr.dtype, like=indptr)
        i = int(np.searchsorted(indptr, place, side="right")[0]) - 1
        what = f"{of}{major} {i} has the {minor} index {int(indices[k])} (indices[{k}])"
        raise _fault(X, name, f"{what}, and {minor}s are 0 .. {p - 1}" if p else f"{what}, and no {minor}s")
    if used == len(X.indices) and all(map(_as_kernels_read, (X.data, X.indices, X.indptr))):
        return X
    # what lies behind the last row is no part of the matrix, and kernels need not know of it
    data = aligned(namespace(data=X.data).ascontiguousarray(X.data[:used]))
    return type(X)((data, indices, indptr), shape=X.shape)


def _as_kernels_read(array: Any) -> bool:
    return array.flags.c_contiguous and getattr(array.flags, "aligned", True)


def _coordinates(X: Any, name: str) -> Any:
    kernels = kernel_module("shared._compressed", X.data)
    if len(X.shape) != 2:
        return X  # who takes matrices alone says so
    for axis, what in enumerate(("row", "col")):
        values, n = _integers(X, name, what), X.shape[axis]
        if values.shape != X.data.shape:
            raise _fault(X, name, f"{what} has {len(values)} entries and data {len(X.data)}")
        k = kernels.index_fault(values, n)
        if k >= 0:
            raise _fault(X, name, f"{what}[{k}] is {int(values[k])}, and the shape is {X.shape}")
    return X
