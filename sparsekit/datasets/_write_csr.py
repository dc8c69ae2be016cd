"""Matrices, or an iterator of their rows, into a folder of CSR blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from .._messages import check_whole, shown
from .._typing import Array, FileName, MatrixLike
from ._block_files import FolderWriter
from ._csr_folder import CSRFolder

# default size of a block in bytes: large against the cost of opening a file, small against the memory
BLOCK_BYTES = 2**28
# limit of int32: entries of a block, and columns
MOST = 2**31 - 1


def check_format(dtype: DTypeLike, block_bytes: int) -> tuple[np.dtype[Any], int]:
    """The type of the values, and the bytes of a block, with fewer than 2^31 values."""
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    return dtype, min(check_whole(block_bytes, "block_bytes", 1), MOST * (4 + dtype.itemsize))


def write_csr(
    folder: FileName,
    X: MatrixLike | Iterable[Any],
    y: MatrixLike | None = None,
    *,
    dtype: DTypeLike | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> CSRFolder:
    """Write a matrix, or the chunks of an iterator, to a folder of CSR blocks.

    Parameters
    ----------
    folder : str or path-like
        A new or empty folder, or one that an earlier call has not finished.
    X : sparse matrix, ndarray, or iterable of them
        The matrix, or chunks of its rows, each with the same number of columns; or pairs (X, y) of a chunk
        and its targets. Chunks are taken one at a time. How the rows are cut into blocks does not depend on
        the chunks.
    y : array-like of shape (n_samples,) or (n_samples, n_labels), default=None
        Targets: numbers, one a row, or indicators, dense or sparse, of which labels a row has. None where
        there are none or the chunks have theirs.
    dtype : dtype, default=None
        Of the values of X, float32 or float64; if None the first chunk's if that is float32, else float64.
    block_bytes : int, default=2**28
        Blocks take so many bytes at most, unless a single row takes more.

    Returns
    -------
    CSRFolder
        The folder, opened.

    Raises
    ------
    FileExistsError
        If the folder holds something already.
    ValueError
        If there is no row, the chunks do not fit together, or a value is NaN or infinite.

    See Also
    --------
    convert_svmlight : The same of text files.
    open_csr : Open the folder later.

    Notes
    -----
    One chunk, and twice the bytes of a block, are in memory at a time. The manifest, without which a folder
    cannot be opened, is written at the end; what was interrupted begins anew in the next call.

    Examples
    --------
    >>> import os, tempfile
    >>> import scipy.sparse as sp
    >>> from sparsekit.datasets import write_csr
    >>> chunks = ((sp.eye_array(4, format="csr"), [k, k, k, k]) for k in range(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X = write_csr(os.path.join(folder, "train"), chunks)
    ...     X.shape, X.y
    ((12, 4), array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]))
    """
    whole = sp.issparse(X) or isinstance(X, np.ndarray)
    if y is not None and not whole:
        raise ValueError("y must be None where X is an iterator: let it yield pairs (X, y)")
    chunks = iter([(X, y)] if whole else X)  # type: ignore[arg-type]
    try:
        first = _pair(next(chunks), 0)
    except StopIteration:
        raise ValueError("X holds no chunk") from None
    if dtype is None:
        dtype = np.float32 if first[0].dtype == np.float32 else np.float64
    dtype, block_bytes = check_format(dtype, block_bytes)
    targets = _Targets(first[1])
    n_features = first[0].shape[1]
    if n_features > MOST:
        raise ValueError(f"X has {n_features} columns; at most {MOST} can be written")
    writer = FolderWriter(os.path.abspath(os.fspath(folder)), {"function": "write_csr"}, resume=False)
    block = BlockBuffer(writer, dtype, targets.kind, block_bytes)
    pairs = chain([first], (_pair(chunk, k) for k, chunk in enumerate(chunks, start=1)))
    del first
    for k, (part, target) in enumerate(pairs):
        if part.shape[1] != n_features:
            raise ValueError(f"chunk {k} has {part.shape[1]} columns, the first one {n_features}")
        if not np.isfinite(part.data).all():
            raise ValueError(f"chunk {k} holds NaN or infinity")
        block.add(part, targets.checked(target, part.shape[0], k))
        del part, target  # before the next one is made
    block.write()
    if not writer.blocks:
        raise ValueError("X holds no row")
    writer.finish(
        n_features=n_features, dtype=dtype.name, first_index=0, y=targets.kind, n_labels=targets.n_labels
    )
    return CSRFolder(folder)


def _pair(chunk: Any, k: int) -> tuple[Any, Any]:
    """A chunk as CSR, and its targets."""
    X, y = chunk if isinstance(chunk, tuple) and len(chunk) == 2 else (chunk, None)
    if not (sp.issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        raise TypeError(
            f"chunk {k} must be a matrix, or a pair of a matrix and its targets; got {shown(type(X))}"
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"chunk {k} must hold real numbers; its type is {X.dtype}")
    return (X.tocsr() if sp.issparse(X) else csr_matrix(X)), y


class _Targets:
    """Of one kind in all chunks, the first one's: none, numbers, or indicators."""

    def __init__(self, first: Any):
        self.kind: str | None = None
        self.n_labels = 0
        if first is None:
            return
        first = first if sp.issparse(first) else np.asarray(first)
        if first.ndim == 2:
            self.kind, self.n_labels = "indicator", first.shape[1]
            return
        types = {"i": np.int64, "u": np.int64, "b": np.int64, "f": np.float64}
        if first.dtype.kind not in types:
            raise ValueError(
                f"y must hold numbers, got {first.dtype}; sklearn's LabelEncoder makes numbers of names"
            )
        narrow = first.dtype in (np.float32, np.int32)
        self.kind = (first.dtype if narrow else np.dtype(types[first.dtype.kind])).name

    def checked(self, y: Any, n_rows: int, k: int) -> Any:
        if (y is None) != (self.kind is None):
            raise ValueError(
                f"chunk {k} has {'no targets' if y is None else 'targets'}, unlike the first one"
            )
        if y is None:
            return None
        y = y if sp.issparse(y) else np.asarray(y)
        if y.shape[0] != n_rows:
            raise ValueError(f"chunk {k} has {n_rows} rows and {y.shape[0]} targets")
        if self.kind == "indicator":
            if y.ndim != 2 or y.shape[1] != self.n_labels:
                raise ValueError(
                    f"targets of chunk {k} must have shape (n_rows, {self.n_labels}), got {y.shape}"
                )
            y = csr_matrix(y)
            if not np.isin(y.data, (0, 1)).all():
                raise ValueError(f"targets of chunk {k}: indicators must be 0 or 1")
            return y
        if y.ndim != 1 or not np.can_cast(y.dtype, str(self.kind), casting="same_kind"):
            raise ValueError(
                f"targets of chunk {k} must be {self.kind}, one a row; got {y.dtype} of shape {y.shape}"
            )
        if not np.isfinite(y).all():
            raise ValueError(f"targets of chunk {k} hold NaN or infinity")
        return y.astype(self.kind, copy=False)


class BlockBuffer:
    """Rows until they fill a block, which is then written.

    Parameters
    ----------
    writer : FolderWriter
    dtype : dtype
        Of the values.
    kind : str or None
        Type of the targets, or "indicator".
    most : int
        Bytes of a block.
    """

    def __init__(self, writer: FolderWriter, dtype: np.dtype[Any], kind: str | None, most: int):
        self.writer, self.dtype, self.kind, self.most = writer, dtype, kind, most
        self._clear()

    def _clear(self) -> None:
        self.X: list[Any] = []
        self.y: list[Any] = []
        self.bytes = 4  # the first 0 of indptr
        self.rows = 0

    def add(self, X: Any, y: Any, state: dict[str, Any] | None = None) -> None:
        """Rows, and targets where there are any; blocks that get full are written.

        Of a ``state`` the entry "row" is the first row to take, and the next one where a block was written.
        """
        start = 0 if state is None else state["row"]
        while start < X.shape[0]:
            sizes = self._sizes(X, y, start)
            count = int(np.searchsorted(sizes, self.most - self.bytes, side="right"))
            if not count and not self.rows:
                count = 1  # a row larger than a block has its own
            if count:
                self._append(X[start : start + count], None if y is None else y[start : start + count])
                self.bytes += int(sizes[count - 1])
                start += count
            if start < X.shape[0]:
                self.write(None if state is None else {**state, "row": start})

    def _sizes(self, X: Any, y: Any, start: int) -> Array:
        """Bytes of the rows from start to each later one, as many rows as may fit into a block."""
        end = min(X.shape[0], start + self.most // 4 + 1)
        indptr = X.indptr[start : end + 1].astype(np.int64)
        sizes = (indptr[1:] - indptr[0]) * (4 + self.dtype.itemsize) + 4 * np.arange(1, end - start + 1)
        if self.kind == "indicator":
            labels = y.indptr[start : end + 1].astype(np.int64)
            sizes += 4 * (labels[1:] - labels[0]) + 4 * np.arange(1, end - start + 1)
        elif self.kind is not None:
            sizes += np.dtype(self.kind).itemsize * np.arange(1, end - start + 1)
        return sizes

    def _append(self, X: Any, y: Any) -> None:
        with np.errstate(over="ignore"):  # checked below
            X = _canonical(X).astype(self.dtype)
        if not np.isfinite(X.data).all():
            raise ValueError(f"a value is too large for {self.dtype}")
        X.resize(X.shape[0], MOST)  # chunks of text differ in width
        self.X.append(X)
        if self.kind == "indicator":
            y = _canonical(y)
            y.eliminate_zeros()
        self.y.append(y if y is None else y.copy())
        self.rows += X.shape[0]

    def write(self, state: dict[str, Any] | None = None) -> None:
        """Write the rows that wait as a block, with the ``state`` to go on from."""
        if not self.rows:
            return
        parts, y = self.X, self.y
        self._clear()
        X = sp.vstack(parts, format="csr")
        del parts
        arrays = {"indptr": X.indptr, "indices": X.indices, "data": X.data}
        if self.kind == "indicator":
            Y = sp.vstack(y, format="csr")
            arrays |= {"y_indptr": Y.indptr, "y_indices": Y.indices}
        elif self.kind is not None:
            arrays["y"] = np.concatenate(y)
        for name in arrays.keys() - {"data", "y"}:
            arrays[name] = arrays[name].astype(np.int32, copy=False)
        self.writer.add(arrays, state)


def _canonical(X: Any) -> Any:
    """X with columns in their order and no column twice; never X itself, which is the user's."""
    X = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    X.sum_duplicates()
    return X
