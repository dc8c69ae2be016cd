"""Matrices, or an iterator of their rows, into a folder of CSR blocks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from .._linalg.structure import check_sparse
from .._messages import check_whole, shown
from .._row_blocks.reduction import BLOCK_BYTES
from .._storage.replacing import replacing
from .._typing import FileName, MatrixLike
from ._csr_folder import MANIFEST, SCHEMA, VERSION, CSRFolder, block_path

# entries of a block, and columns
INT32_MAX = np.iinfo(np.int32).max
# files of an interrupted call
_UNFINISHED = re.compile(r"\d{6,}\.csr\.npz|\.manifest\.\d+\.part\.json")


def check_format(dtype: DTypeLike, block_bytes: int) -> tuple[np.dtype[Any], int]:
    """The type of the values, and the bytes of a block, with fewer than 2^31 values."""
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    return dtype, min(check_whole(block_bytes, "block_bytes", 1), INT32_MAX * (4 + dtype.itemsize))


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
    writer, kind, n_labels = None, None, 0
    for k, chunk in enumerate([(X, y)] if whole else X):  # type: ignore[arg-type]
        part, target = _pair(chunk, k)
        if writer is None:  # the first chunk
            n_features, kind = part.shape[1], _kind(target)
            n_labels = target.shape[1] if kind == "indicator" else 0
            if n_features > INT32_MAX:
                raise ValueError(f"X has {n_features} columns; at most {INT32_MAX} can be written")
            if dtype is None:
                dtype = np.float32 if part.dtype == np.float32 else np.float64
            writer = FolderWriter(folder, *check_format(dtype, block_bytes))
        if part.shape[1] != n_features:
            raise ValueError(f"chunk {k} has {part.shape[1]} columns, the first one {n_features}")
        if not np.isfinite(part.data).all():
            raise ValueError(f"chunk {k} holds NaN or infinity")
        writer.add(part, _checked(target, kind, n_labels, part.shape[0], k))
        del chunk, part, target  # before the next one is made
    if writer is None or not (writer.blocks or writer.waiting):
        raise ValueError("X holds no row")
    writer.finish(n_features=n_features, first_index=0, n_labels=n_labels)
    return CSRFolder(folder)


def _pair(chunk: Any, k: int) -> tuple[Any, Any]:
    """A chunk as CSR, and its targets as an array or CSR."""
    X, y = chunk if isinstance(chunk, tuple) and len(chunk) == 2 else (chunk, None)
    if not (sp.issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        raise TypeError(
            f"chunk {k} must be a matrix, or a pair of a matrix and its targets; got {shown(type(X))}"
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"chunk {k} must hold real numbers; its type is {X.dtype}")
    if y is not None and not sp.issparse(y):
        y = np.asarray(y)
    X, y = check_sparse(X), check_sparse(y, "y")
    return csr_matrix(X), csr_matrix(y) if sp.issparse(y) or np.ndim(y) == 2 else y


def _kind(y: Any) -> str | None:
    """What a folder has as targets: "indicator", or the type of numbers, or None."""
    if y is None or sp.issparse(y):
        return None if y is None else "indicator"
    if y.dtype.kind not in "iubf":
        raise ValueError(f"y must hold numbers, got {y.dtype}; sklearn's LabelEncoder makes numbers of names")
    if y.dtype in (np.float32, np.int32):
        return y.dtype.name
    return "float64" if y.dtype.kind == "f" else "int64"


def _checked(y: Any, kind: str | None, n_labels: int, n_rows: int, k: int) -> Any:
    """Targets of chunk k, of the kind of the first one's."""
    if (y is None) != (kind is None):
        raise ValueError(f"chunk {k} has {'no targets' if y is None else 'targets'}, unlike the first one")
    if y is None:
        return None
    shape = (n_rows, n_labels) if kind == "indicator" else (n_rows,)
    if y.shape != shape:
        raise ValueError(f"targets of chunk {k} must have the shape {shape}, got {y.shape}")
    if kind == "indicator":
        if not np.isin(y.data, (0, 1)).all():
            raise ValueError(f"targets of chunk {k}: indicators must be 0 or 1")
        return y
    if not np.can_cast(y.dtype, str(kind), casting="same_kind"):
        raise ValueError(f"targets of chunk {k} must be {kind} as those of the first one, got {y.dtype}")
    if not np.isfinite(y).all():
        raise ValueError(f"targets of chunk {k} hold NaN or infinity")
    return y.astype(kind, copy=False)


class FolderWriter:
    """A folder that is being written: rows until they fill a block of ``most`` bytes, then the manifest.

    Blocks that an interrupted call left are removed; of other files there is a FileExistsError.

    Attributes
    ----------
    blocks : list of dict
        Rows and nnz of each block written.
    waiting : list of csr_matrix
        Rows of the next one.
    """

    def __init__(self, folder: FileName, dtype: np.dtype[Any], most: int):
        self.folder, self.dtype, self.most = os.path.abspath(os.fspath(folder)), dtype, most
        self.blocks: list[dict[str, int]] = []
        self.kind: str | None = None
        os.makedirs(self.folder, exist_ok=True)
        names = os.listdir(self.folder)
        others = [name for name in names if not _UNFINISHED.fullmatch(name)]
        if others:
            what = "a finished data set" if MANIFEST in others else f"other files ({shown(others[0])})"
            raise FileExistsError(f"{folder} holds {what}: name another folder, or empty this one")
        for name in names:
            os.remove(os.path.join(self.folder, name))
        self._clear()

    def _clear(self) -> None:
        self.waiting: list[Any] = []
        self._y: list[Any] = []
        self._free_bytes = self.most - 4  # without the first 0 of indptr

    def add(self, X: Any, y: Any) -> None:
        """Add rows, and targets where there are any; blocks that get full are written."""
        self.kind = _kind(y)
        # bytes before each row
        ends = 4 * np.arange(X.shape[0] + 1) + X.indptr * np.int64(4 + self.dtype.itemsize)
        if self.kind == "indicator":
            ends += 4 * np.arange(len(ends)) + y.indptr * np.int64(4)
        elif self.kind is not None:
            ends += y.dtype.itemsize * np.arange(len(ends))
        start = 0
        while start < X.shape[0]:
            stop = int(np.searchsorted(ends, ends[start] + self._free_bytes, side="right")) - 1
            if stop <= start and self.waiting:
                self._write()
                continue
            stop = max(stop, start + 1)  # a row larger than a block has its own
            self._append(X[start:stop], None if y is None else y[start:stop])
            self._free_bytes -= int(ends[stop] - ends[start])
            start = stop

    def _append(self, X: Any, y: Any) -> None:
        with np.errstate(over="ignore"):  # checked below
            X = _canonical(X).astype(self.dtype)
        if not np.isfinite(X.data).all():
            raise ValueError(f"a value is too large for {self.dtype}")
        X.resize(X.shape[0], INT32_MAX)  # chunks of text differ in width
        self.waiting.append(X)
        if self.kind == "indicator":
            y = _canonical(y)
            y.eliminate_zeros()
        self._y.append(y if y is None else y.copy())

    def _write(self) -> None:
        parts, y = self.waiting, self._y
        self._clear()
        X = sp.vstack(parts, format="csr")
        del parts
        arrays = {"indptr": X.indptr, "indices": X.indices}
        if self.kind == "indicator":
            Y = sp.vstack(y, format="csr")
            arrays |= {"y_indptr": Y.indptr, "y_indices": Y.indices}
        arrays = {name: array.astype(np.int32, copy=False) for name, array in arrays.items()}
        if self.kind not in (None, "indicator"):
            arrays["y"] = np.concatenate(y)
        np.savez(block_path(self.folder, len(self.blocks)), data=X.data, **arrays)
        self.blocks.append({"rows": X.shape[0], "nnz": X.nnz})

    def finish(self, **content: Any) -> None:
        """Write the last block and the manifest."""
        if self.waiting:
            self._write()
        content = {"schema": SCHEMA, "version": VERSION, "dtype": self.dtype.name, "y": self.kind, **content}
        with (
            replacing(os.path.join(self.folder, MANIFEST)) as part,
            open(part, "w", encoding="utf-8", newline="\n") as file,
        ):
            json.dump({**content, "blocks": self.blocks}, file, indent=1)


def _canonical(X: Any) -> Any:
    """X with columns in their order and no column twice; never X itself, which is the user's."""
    X = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    X.sum_duplicates()
    return X
