"""Sparse matrices on disk, of which one block of rows is in memory at a time."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .._linalg.structure import check_sparse
from .._messages import shown
from .._typing import Array, FileName
from ._on_disk import BlocksOnDisk

MANIFEST = "manifest.json"
SCHEMA, VERSION = "sparsekit CSR folder", 2
# what NumPy and zipfile raise for a damaged archive, or one whose arrays are larger than the memory
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, MemoryError, OSError, OverflowError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip


def block_path(folder: str, i: int) -> str:
    """Path of block i."""
    return os.path.join(folder, f"{i:06d}.csr.npz")


def _read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a finished folder; a ValueError where it has not all that `CSRFolder` reads."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError as error:
        problem = "no such file; write_csr and convert_svmlight make such folders, and write it at their end"
        raise FileNotFoundError(f"{path}: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({error})") from error
    if not isinstance(found, dict) or (found.get("schema"), found.get("version")) != (SCHEMA, VERSION):
        raise ValueError(f"{path}: not the manifest of a folder of CSR blocks of version {VERSION}")
    try:
        counts = [found["n_features"], found["n_labels"]]
        counts += [block[name] for block in found["blocks"] for name in ("rows", "nnz")]
        is_valid = (
            all(type(count) is int and 0 <= count < 2**62 for count in counts)
            and found["dtype"] in ("float32", "float64")
            and found["y"] in (None, "indicator", "float32", "float64", "int32", "int64")
            and found["first_index"] in (0, 1)
        )
    except (KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise ValueError(f"{path}: damaged (it holds {shown(found)})")
    return found


class CSRFolder(BlocksOnDisk):
    """A CSR matrix in a folder, of which one block of rows is read at a time.

    `write_csr` and `convert_svmlight` return it, and ``open_csr`` is another name of it. Only the manifest is
    read at first. It can be pickled: what is pickled is the path.

    Parameters
    ----------
    path : str or path-like
        A folder that `write_csr` or `convert_svmlight` made.

    Attributes
    ----------
    path : str
        The folder, absolute.
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        Of the values, float32 or float64.
    nnz : int
        Number of stored values.
    starts : ndarray of shape (n_blocks + 1,), int64
        Block i has the rows ``starts[i]`` to ``starts[i + 1]``.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or it is not finished.
    ValueError
        If its manifest is damaged.

    See Also
    --------
    write_csr : Make such a folder of matrices.
    convert_svmlight : Make such a folder of text files.

    Notes
    -----
    Blocks have fewer than 2^31 stored values, so that their indices are int32. A folder holds for block i
    ``i.csr.npz``, with i in six digits: NumPy's archive of ``indptr``, ``indices`` and ``data``, columns
    increasing in each row and counted from ``first_index``, a number in the manifest. The labels of its rows
    are ``y``, or, where a row may have several, ``y_indptr`` and ``y_indices``. ``manifest.json`` has
    types, the number of columns, and the counts of each block.

    The checksums in an archive, and the order and range of its indices, are checked whenever a block is read.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, scipy.sparse as sp
    >>> from sparsekit.datasets import open_csr, write_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train")
    ...     _ = write_csr(path, sp.eye_array(5, format="csr"), y=np.arange(5), block_bytes=60)
    ...     X = open_csr(path)
    ...     sums = [float(block.sum()) for block in X.blocks()]
    ...     X.starts, X.y, X[1:3].toarray(), sums
    (array([0, 2, 4, 5]), array([0, 1, 2, 3, 4]), array([[0., 1., 0., 0., 0.],
           [0., 0., 1., 0., 0.]]), [2.0, 2.0, 1.0])
    """

    def __init__(self, path: FileName) -> None:
        self.path = os.path.abspath(os.fspath(path))
        manifest = _read_manifest(self.path)
        rows = [block["rows"] for block in manifest["blocks"]]
        self.starts = np.append(0, np.cumsum(rows)).astype(np.int64)
        self.shape = int(self.starts[-1]), manifest["n_features"]
        self.dtype = np.dtype(manifest["dtype"])
        self._block_nnz = [block["nnz"] for block in manifest["blocks"]]
        self.nnz = sum(self._block_nnz)
        self._y, self._n_labels = manifest["y"], manifest["n_labels"]
        self._first_index = manifest["first_index"]

    def __repr__(self) -> str:
        return f"<CSRFolder: {self._described(f'{self.nnz} stored values, {self.path}')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def _read_block(self, i: int) -> csr_matrix:
        indices, indptr, data = self._arrays(i, "indices", "indptr", "data")
        if data.dtype != self.dtype or len(data) != self._block_nnz[i]:
            raise ValueError(
                f"{block_path(self.path, i)}: holds {len(data)} values of {data.dtype}, and not "
                f"{self._block_nnz[i]} of {self.dtype}"
            )
        return self._matrix(i, "X", (data, indices, indptr), self.shape[1], self._first_index)

    def _read_y(self, i: int) -> Array | csr_matrix | None:
        if self._y is None:
            return None
        if self._y == "indicator":
            indices, indptr = self._arrays(i, "y_indices", "y_indptr")
            ones = np.ones(len(indices), dtype=np.int8)
            return self._matrix(i, "y", (ones, indices, indptr), self._n_labels)
        (y,) = self._arrays(i, "y")
        if y.dtype != self._y or y.shape != (self._n_rows(i),):
            raise ValueError(
                f"{block_path(self.path, i)}: y is {y.dtype} of shape {y.shape}, and not {self._y} of shape "
                f"({self._n_rows(i)},)"
            )
        return y

    def _n_rows(self, i: int) -> int:
        return int(self.starts[i + 1] - self.starts[i])

    def _arrays(self, i: int, *names: str) -> list[Array]:
        path = block_path(self.path, i)
        try:
            with np.load(path, allow_pickle=False) as archive:
                # what is not compressed is no larger than its file
                if any(member.compress_type != zipfile.ZIP_STORED for member in archive.zip.infolist()):
                    raise ValueError("its arrays are compressed")
                return [archive[name] for name in names]
        except _DAMAGE as error:
            # errors of the operating system have a number
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{path}: was changed or damaged since it was written: {error}") from error

    def _matrix(
        self, i: int, kind: str, arrays: tuple[Array, ...], n_columns: int, first_index: int = 0
    ) -> csr_matrix:
        """The matrix of a block; a ValueError that names its file where the arrays are none."""
        try:
            if any(array.dtype not in (np.int32, np.int64) for array in arrays[1:]):
                raise ValueError("its indices are neither int32 nor int64")
            arrays[1][...] -= first_index
            X = check_sparse(csr_matrix(arrays, shape=(self._n_rows(i), n_columns), copy=False), kind)
            if not X.has_canonical_format:
                raise ValueError(f"columns of {kind} do not increase in each row")
        except ValueError as error:
            raise ValueError(f"{block_path(self.path, i)}: {error}") from error
        return X
