"""Dense tables in Parquet files, of which one row group is in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._messages import shown
from .._typing import Array, FileName, FloatArray
from ._on_disk import BlocksOnDisk


class ParquetTable(BlocksOnDisk):
    """Numeric columns of a Parquet file or folder, of which one row group is read at a time.

    ``open_parquet`` is another name of it. Only what the files say of themselves is read. It needs pyarrow
    (``pip install "sparsekit[parquet]"``). It can be pickled: what is pickled is the path.

    Parameters
    ----------
    path : str or path-like
        A file, or a folder whose files ending in .parquet follow each other by name.
    columns : sequence of str, default=None
        The columns of the matrix, in this order: whole numbers, floats, decimals or booleans; all but the
        target if None.
    target : str, default=None
        The column of the targets.
    dtype : dtype, default=None
        Of the values, float32 or float64; if None float32 if all columns are, else float64.

    Attributes
    ----------
    path : str
        The file or folder, absolute.
    columns, feature_names : list of str
        Names of the columns, which become ``feature_names_in_`` of an estimator that is fitted.
    shape : tuple of int
        Rows and columns.
    dtype : dtype
        Of the values.
    starts : ndarray of shape (n_blocks + 1,), int64
        Block i, a row group, has the rows ``starts[i]`` to ``starts[i + 1]``. Groups should be small against
        the memory: writers have an option for their rows (``row_group_size`` in pyarrow and pandas).

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    FileNotFoundError
        If there is no such file, or the folder has none.
    ValueError
        If a column is missing or not numeric, or a file is damaged; the message names the file. Nulls are
        found when a block is read.

    See Also
    --------
    CSRFolder : Sparse matrices on disk.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> from sparsekit.datasets import open_parquet
    >>> table = pd.DataFrame({"age": [31, 45, 27], "size": [1.8, 1.7, 1.6], "label": ["a", "b", "a"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.parquet")
    ...     table.to_parquet(path, row_group_size=2)
    ...     X = open_parquet(path, target="label")
    ...     X.shape, X.n_blocks, X.block(1), X.y
    ((3, 2), 2, array([[27. ,  1.6]]), array(['a', 'b', 'a'], dtype=object))
    """

    def __init__(
        self,
        path: FileName,
        *,
        columns: Sequence[str] | None = None,
        target: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names, got the text {shown(columns)}")
        self.target = target
        self._groups: list[tuple[str, int]] = []  # file and row group of each block
        self._files: dict[str, tuple[Any, int]] = {}  # metadata and size of each file, read once
        rows, types = [0], set()
        for file in _files(self.path):
            with _opened(file) as parquet:
                schema, about = parquet.schema_arrow, parquet.metadata
            if columns is None:  # the first file's
                columns = [name for name in schema.names if name != target]
            types |= self._checked_types(file, schema, columns)
            self._files[file] = about, os.path.getsize(file)
            for group in range(about.num_row_groups):
                self._groups.append((file, group))
                rows.append(about.row_group(group).num_rows)
        self.columns = self.feature_names = list(columns or ())
        if not self.columns:
            raise ValueError(f"{self.path}: no columns are left")
        self.starts = np.cumsum(rows, dtype=np.int64)
        self.shape = int(self.starts[-1]), len(self.columns)
        self.dtype = np.dtype(
            dtype if dtype is not None else np.float32 if types == {"float"} else np.float64
        )

    def _checked_types(self, file: str, schema: Any, columns: Sequence[str]) -> set[str]:
        import pyarrow.types

        names = set(schema.names)
        for name in [*columns, *([] if self.target is None else [self.target])]:
            if name not in names:
                raise ValueError(f"{file}: has no column {shown(name)}; it has {shown(schema.names)}")
        if self.target in columns:
            raise ValueError(f"columns must not hold the target {shown(self.target)}")
        found = {name: schema.field(name).type for name in columns}
        of = pyarrow.types
        kinds = (of.is_integer, of.is_floating, of.is_boolean, of.is_decimal)
        other = [name for name, kind in found.items() if not any(is_of(kind) for is_of in kinds)]
        if other:
            raise ValueError(
                f"{file}: column {shown(other[0])} is of type {found[other[0]]}; name the numeric ones by "
                "`columns`"
            )
        return {str(kind) for kind in found.values()}

    def __repr__(self) -> str:
        return f"<ParquetTable: {self._described(self.path)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(ParquetTable, columns=self.columns, target=self.target, dtype=self.dtype)
        return make, (self.path,)

    def _read_block(self, i: int) -> FloatArray:
        """A row group in C order."""
        file, group = self._groups[i]
        out = np.empty((self.starts[i + 1] - self.starts[i], self.shape[1]), dtype=self.dtype)
        done = 0
        with self._open(file) as parquet:
            for batch in parquet.iter_batches(row_groups=[group], columns=self.columns):
                for j, name in enumerate(self.columns):
                    column = batch.column(name)
                    _no_nulls(column, file, group, name)
                    out[done : done + batch.num_rows, j] = column.to_numpy(zero_copy_only=False)
                done += batch.num_rows
        return out

    def _read_y(self, i: int) -> Array | None:
        import pyarrow.types

        file, group = self._groups[i]
        if self.target is None:
            return None
        with self._open(file) as parquet:
            column = parquet.read_row_group(group, columns=[self.target]).column(0)
        _no_nulls(column, file, group, self.target)
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.to_numpy()

    def _open(self, file: str) -> Any:
        # a file each time: one object must not be read by two threads
        about, size = self._files[file]
        if os.path.getsize(file) != size:
            raise ValueError(f"{file}: was changed since it was opened")
        return _opened(file, metadata=about)


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = sorted(str(file) for file in Path(path).glob("*.parquet"))
    if not found:
        raise FileNotFoundError(f"{path}: holds no file that ends in .parquet")
    return found


@contextmanager
def _opened(file: str, **options: Any) -> Iterator[Any]:
    """The file, closed at the end; what is wrong with it is a ValueError that names it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "sparsekit[parquet]"') from error
    try:
        with pyarrow.parquet.ParquetFile(file, page_checksum_verification=True, **options) as parquet:
            yield parquet
    except (pyarrow.ArrowException, OSError) as error:
        # damage is an OSError without a number too; errors of the operating system have one
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{file}: damaged, or not in the Parquet format ({error})") from error


def _no_nulls(column: Any, file: str, group: int, name: str) -> None:
    if column.null_count:
        raise ValueError(f"{file}: column {shown(name)} has nulls in row group {group}")
