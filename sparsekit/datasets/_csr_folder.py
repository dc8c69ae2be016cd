"""Sparse matrices on disk, of which one block of rows is in memory at a time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .._linalg.structure import check_sparse
from .._typing import Array, FileName
from ._block_files import block_path, read_arrays, read_manifest
from ._on_disk import BlocksOnDisk


class CSRFolder(BlocksOnDisk):
    """A CSR matrix in a folder, of which one block of rows is read at a time.

    `write_csr` and `convert_svmlight` return it, and ``open_csr`` is another name of it. Only the manifest is
    read, and the sizes of the files are compared with it. It can be pickled: what is pickled is the path.

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
        If the folder or one of its files is not there.
    ValueError
        If the folder is not finished or a file has another size than when it was written; the message names
        it.

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

    The checksums in an archive are checked whenever a block is read. The order and range of its indices are
    checked the first time.

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
        manifest = read_manifest(self.path)
        self._blocks = manifest["blocks"]
        rows = [block["rows"] for block in self._blocks]
        self.starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)]).astype(np.int64)
        self.shape = int(self.starts[-1]), manifest["n_features"]
        self.dtype = np.dtype(manifest["dtype"])
        self.nnz = sum(block["nnz"] for block in self._blocks)
        self._y, self._n_labels = manifest["y"], manifest["n_labels"]
        self._first_index = manifest["first_index"]
        self._known: set[tuple[int, str]] = set()  # matrices whose indices are checked
        for i, block in enumerate(self._blocks):
            path = block_path(self.path, i)
            size = os.path.getsize(path)
            if size != block["bytes"]:
                raise ValueError(f"{path}: has {size} bytes, and not {block['bytes']} as when it was written")

    def __repr__(self) -> str:
        return f"<CSRFolder: {self._described(f'{self.nnz} stored values, {self.path}')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def _read_block(self, i: int) -> csr_matrix:
        indptr, indices, data = self._read(i, "indptr", "indices", "data")
        indices -= self._first_index
        return self._matrix(i, "X", data, indices, indptr, self.shape[1])

    def _read_y(self, i: int) -> Array | csr_matrix | None:
        if self._y is None:
            return None
        if self._y == "indicator":
            indptr, labels = self._read(i, "y_indptr", "y_indices")
            ones = np.ones(len(labels), dtype=np.int8)
            return self._matrix(i, "y", ones, labels, indptr, self._n_labels)
        return self._read(i, "y")[0]

    def _read(self, i: int, *names: str) -> list[Array]:
        """Arrays of a block; a ValueError where a type or length is not that of the manifest."""
        path, block = block_path(self.path, i), self._blocks[i]
        arrays = read_arrays(path, block["bytes"], *names)
        types = {"data": self.dtype, "y": self._y}
        rows, nnz = block["rows"], block["nnz"]
        lengths = {"indptr": rows + 1, "indices": nnz, "data": nnz, "y": rows, "y_indptr": rows + 1}
        for name, array in zip(names, arrays, strict=True):
            dtype = np.dtype(types.get(name, np.int32))
            length = lengths.get(name, array.size)  # the manifest does not count labels
            if array.dtype != dtype or array.shape != (length,):
                raise ValueError(
                    f"{path}: {name} is {array.dtype} of shape {array.shape}, and not {dtype} of shape "
                    f"({length},)"
                )
        return arrays

    def _matrix(
        self, i: int, kind: str, data: Array, indices: Array, indptr: Array, n_columns: int
    ) -> csr_matrix:
        """The matrix of a block; a ValueError that names its file where the arrays are none."""
        path, rows = block_path(self.path, i), self._blocks[i]["rows"]
        try:
            out = csr_matrix((data, indices, indptr), shape=(rows, n_columns), copy=False)
            if (i, kind) not in self._known:
                out = check_sparse(out, kind)
                if not out.has_canonical_format:
                    raise ValueError(f"columns of {kind} do not increase in each row")
                self._known.add((i, kind))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        out.has_canonical_format = True
        return out
