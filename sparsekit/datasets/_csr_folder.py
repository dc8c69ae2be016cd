"""Sparse matrices on disk, of which one block of rows is in memory at a time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csr_matrix

from .._cython.datasets._row_files import first_bad_row
from .._typing import Array, FileName
from ._block_files import block_path, read_array, read_manifest
from ._on_disk import BlocksOnDisk

INT32 = np.dtype(np.int32)


class CSRFolder(BlocksOnDisk):
    """A CSR matrix in a folder, of which one block of rows is read at a time.

    `open_csr`, `write_csr` and `convert_svmlight` return it. It can be pickled: what is pickled is the path.

    Parameters
    ----------
    path : str or path-like
        The folder.

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

    See Also
    --------
    open_csr : The same as a function.
    write_csr : Make such a folder of matrices.
    convert_svmlight : Make such a folder of text files.

    Notes
    -----
    Blocks have fewer than 2^31 stored values, so that their indices are int32. A folder holds, for block i:

    - ``i.indptr.npy``, ``i.indices.npy``, ``i.data.npy`` with i in six digits: the arrays of the block in
      CSR, columns increasing in each row, in NumPy's format. Columns are counted from ``first_index``, a
      number in the manifest;
    - ``i.y.npy``, the labels of its rows, or ``i.y_indptr.npy`` and ``i.y_indices.npy``, which labels a row
      has;

    and ``manifest.json``: shape, types, and for each block its counts, and size and CRC-32 of its files.

    The first time that a block is read, checksums of its files and the order and range of its indices are
    checked. Later only the sizes of the files are.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, scipy.sparse as sp
    >>> from sparsekit.datasets import CSRFolder, write_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train")
    ...     _ = write_csr(path, sp.eye_array(5, format="csr"), y=np.arange(5), block_bytes=60)
    ...     X = CSRFolder(path)
    ...     sums = [float(block.sum()) for block in X.blocks()]
    ...     X.starts, X.y, X[1:3].toarray(), sums
    (array([0, 2, 4, 5]), array([0, 1, 2, 3, 4]), array([[0., 1., 0., 0., 0.],
           [0., 0., 1., 0., 0.]]), [2.0, 2.0, 1.0])
    """

    def __init__(self, path: FileName) -> None:
        self.path = os.path.abspath(os.fspath(path))
        manifest = read_manifest(self.path)
        self.shape = tuple(manifest["shape"])
        self.dtype = np.dtype(manifest["dtype"])
        self.nnz = manifest["nnz"]
        self._y, self._n_labels = manifest["y"], manifest.get("n_labels", 0)
        self._first_index = manifest["first_index"]
        self._blocks = manifest["blocks"]
        rows = [block["rows"] for block in self._blocks]
        self.starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)]).astype(np.int64)
        self._checked_parts: set[tuple[int, str]] = set()
        for i, block in enumerate(self._blocks):
            for part, record in block["files"].items():
                file = block_path(self.path, i, part)
                size = os.path.getsize(file)
                if size != record["bytes"]:
                    raise ValueError(
                        f"{file}: has {size} bytes, and not {record['bytes']} as when it was written"
                    )

    def __repr__(self) -> str:
        return f"<CSRFolder: {self._described(f'{self.nnz} stored values, {self.path}')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def __getitem__(self, key: slice) -> csr_matrix:
        """Rows a to b of ``X[a:b]``, in memory."""
        parts = self._rows_between(key)
        if not parts:
            return csr_matrix((0, self.shape[1]), dtype=self.dtype)
        return parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")

    def block(self, i: int) -> csr_matrix:
        """Read a block of rows into memory of its own.

        Parameters
        ----------
        i : int
            Its number, below ``n_blocks``.

        Returns
        -------
        csr_matrix of shape (starts[i + 1] - starts[i], n_features)
            Its rows, with int32 indices; the memory is free again when it is dropped.

        Raises
        ------
        ValueError
            If one of its files is not as it was written; the message names the file.
        """
        i = self._checked(i)
        rows, nnz = self._blocks[i]["rows"], self._blocks[i]["nnz"]
        indptr = self._read(i, "indptr", INT32, rows + 1)
        indices = self._read(i, "indices", INT32, nnz)
        data = self._read(i, "data", self.dtype, nnz)
        self._check_rows(i, "", indptr, indices, self._first_index, self.shape[1])
        if self._first_index:
            indices -= self._first_index
        return _csr(data, indices, indptr, self.shape[1])

    def block_y(self, i: int) -> Array | csr_matrix | None:
        """Read the targets of a block.

        Parameters
        ----------
        i : int
            Its number, below ``n_blocks``.

        Returns
        -------
        ndarray of shape (n_rows,), csr_matrix of shape (n_rows, n_labels), or None
            As `y`, of the rows of block i.

        Raises
        ------
        ValueError
            If one of its files is not as it was written; the message names the file.
        """
        i = self._checked(i)
        rows = self._blocks[i]["rows"]
        if self._y is None:
            return None
        if self._y != "indicator":
            return self._read(i, "y", np.dtype(self._y), rows)
        indptr = self._read(i, "y_indptr", INT32, rows + 1)
        size = self._blocks[i]["files"]["y_indices"]["bytes"] - 128
        labels = self._read(i, "y_indices", INT32, max(size, 0) // 4)
        self._check_rows(i, "y_", indptr, labels, 0, self._n_labels)
        return _csr(np.ones(len(labels), dtype=np.int8), labels, indptr, self._n_labels)

    @property
    def y(self) -> Array | csr_matrix | None:
        """Targets: ndarray of shape (n_rows,), int8 indicators of shape (n_rows, n_labels) in CSR, or None.

        They are read anew each time.
        """
        if self._y is None:
            return None
        if self._y == "indicator":
            parts = [csr_matrix((0, self._n_labels), dtype=np.int8), *map(self.block_y, range(self.n_blocks))]
            return sp.vstack(parts, format="csr")
        out = np.empty(self.shape[0], dtype=self._y)
        for i, (start, stop) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            out[start:stop] = self.block_y(i)
        return out

    def _read(self, i: int, part: str, dtype: np.dtype[Any], length: int) -> Array:
        new = (i, part) not in self._checked_parts
        out = read_array(
            block_path(self.path, i, part), dtype, length, self._blocks[i]["files"][part], check=new
        )
        self._checked_parts.add((i, part))
        return out

    def _check_rows(
        self, i: int, kind: str, indptr: Array, indices: Array, first: int, n_columns: int
    ) -> None:
        if (i, f"{kind}rows") in self._checked_parts:
            return
        bad = first_bad_row(indptr, indices, first, first + n_columns - 1)
        if bad >= 0:
            path, other = (block_path(self.path, i, kind + part) for part in ("indices", "indptr"))
            raise ValueError(
                f"{path} (with {os.path.basename(other)}): row {bad} of the block is none; "
                f"its columns must increase and be among the {n_columns} that the manifest says"
            )
        self._checked_parts.add((i, f"{kind}rows"))


def _csr(data: Array, indices: Array, indptr: Array, n_columns: int) -> csr_matrix:
    out = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns), copy=False)
    # checked already: SciPy would check all indices again
    out.has_canonical_format = True
    return out


def open_csr(folder: FileName) -> CSRFolder:
    """Open a folder of CSR blocks.

    Only the manifest is read, and the sizes of the files are compared with it.

    Parameters
    ----------
    folder : str or path-like
        A folder that `write_csr` or `convert_svmlight` made.

    Returns
    -------
    CSRFolder
        The matrix, whose blocks are read when they are asked for.

    Raises
    ------
    FileNotFoundError
        If the folder or one of its files is not there.
    ValueError
        If the folder is not finished or a file has another size than when it was written; the message names
        it.

    See Also
    --------
    convert_svmlight : Make such a folder of text files.
    write_csr : Make such a folder of matrices.

    Examples
    --------
    >>> import os, tempfile
    >>> import scipy.sparse as sp
    >>> from sparsekit.datasets import open_csr, write_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train")
    ...     _ = write_csr(path, sp.eye_array(5, format="csr"))
    ...     X = open_csr(path)
    ...     X.shape, X.nnz, X.n_blocks, X.block(0).shape
    ((5, 5), 5, 1, (5, 5))
    """
    return CSRFolder(folder)
