"""Text files in the svmlight format to a folder of CSR blocks, in constant memory."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from .._cython.datasets._row_files import ALL_READ, ODD_LINE, SvmlightRows
from .._messages import check_whole, shown
from .._row_blocks.ahead import read_ahead
from .._typing import FileName
from ._block_files import MANIFEST, PROGRESS, Progress, read_manifest
from ._csr_folder import INT32, CSRFolder
from ._files import FileFormatError, open_counted
from ._svmlight import read_line
from ._write_csr import BLOCK_BYTES, MOST, check_format

# bytes of text read at a time: small against a block, large against the cost of a call
CHUNK = 2**22


def convert_svmlight(
    files: FileName | Iterable[FileName],
    folder: FileName,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
    n_labels: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    resume: bool = True,
    verbose: int = 0,
) -> CSRFolder:
    """Convert files of lines ``label index:value index:value ...`` to a folder of CSR blocks.

    The files may be larger than the memory: only one block and some text are in memory. After an
    interruption, repeat the call with the same arguments: it goes on after the last block written. The result
    is the same, byte for byte.

    Parameters
    ----------
    files : str or path-like, or iterable of them
        The files, whose rows follow each other; names ending in .gz, .bz2 or .xz are uncompressed while
        reading.
    folder : str or path-like
        A new or empty folder, or one that an earlier call has begun.
    n_features : int, default=None
        Number of columns of X; the largest index in the files if None. Give the training set's number when
        converting a test set.
    dtype : dtype, default=float64
        Of the values of X, float32 or float64. Labels are float64.
    zero_based : bool or "auto", default="auto"
        Whether the indices start at 0 or at 1; "auto" takes 0 if a 0 occurs in any of the files.
    multilabel : bool, default=False
        Labels are comma-separated lists of whole numbers from 0 on, possibly empty; ``y`` has a column for
        each.
    n_labels : int, default=None
        With ``multilabel``, number of columns of ``y``; one more than the largest label if None.
    block_bytes : int, default=2**28
        Blocks take so many bytes at most, unless a single row takes more.
    resume : bool, default=True
        Go on with what an interrupted call has left in the folder; False begins anew. A finished folder of
        the same files and arguments is returned as it is.
    verbose : int, default=0
        1 prints a line after each block.

    Returns
    -------
    CSRFolder
        The folder, opened.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileExistsError
        If the folder holds something else.
    ValueError
        If a file is not in the format, holds NaN or infinity, or there is no row. The message names the file
        and the line (counted from 1). If the folder holds an unfinished conversion of other files or
        arguments.

    See Also
    --------
    load_svmlight : Read a file into memory.
    open_csr : Open the folder later.
    write_csr : Make such a folder of matrices.

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsekit.datasets import convert_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     X = convert_svmlight(path, os.path.join(folder, "train"))
    ...     X[:].toarray(), X.y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    paths = [os.fspath(path) for path in ([files] if isinstance(files, str | os.PathLike) else files)]
    if not paths:
        raise ValueError("files names no file")
    dtype, block_bytes = check_format(dtype, block_bytes)
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto"; got {shown(zero_based)}')
    for name, value in (("n_features", n_features), ("n_labels", n_labels)):
        if value is not None and check_whole(value, name, 1) > MOST:
            raise ValueError(f"{name} must be at most {MOST}, got {shown(value)}")
    if n_labels is not None and not multilabel:
        raise ValueError("n_labels goes with multilabel=True")
    folder = os.path.abspath(os.fspath(folder))
    settings = {
        "function": "convert_svmlight", "n_features": n_features, "dtype": dtype.name,
        "zero_based": zero_based, "multilabel": bool(multilabel), "n_labels": n_labels,
        "block_bytes": block_bytes,
        "files": [{"name": os.path.basename(path), "bytes": os.path.getsize(path)} for path in paths],
    }  # fmt: skip
    if resume and os.path.exists(os.path.join(folder, MANIFEST)):
        if read_manifest(folder).get("source") != settings:
            raise FileExistsError(
                f"{folder} holds a finished data set of other files or arguments: name another folder, "
                "or empty this one"
            )
        found = CSRFolder(folder)
        with suppress(FileNotFoundError):  # an earlier call may have been killed before
            os.remove(os.path.join(folder, PROGRESS))
        return found
    # do not resume if a file has changed; the result does not depend on this list
    changed = [os.stat(path).st_mtime_ns for path in paths]
    progress = Progress(folder, {**settings, "changed": changed}, resume)
    _Conversion(paths, progress, settings, dtype, verbose).run()
    return CSRFolder(folder)


class _Conversion:
    """Where in which file the rows come from, and the block that is being filled."""

    def __init__(
        self,
        paths: list[str],
        progress: Progress,
        settings: dict[str, Any],
        dtype: np.dtype[Any],
        verbose: int,
    ):
        self.paths, self.progress, self.settings, self.dtype = paths, progress, settings, dtype
        self.verbose = verbose
        self.multilabel: bool = settings["multilabel"]
        zero_based, n_features = settings["zero_based"], settings["n_features"]
        self.lowest = 1 if zero_based is False else 0
        # with indices from 1 (always, or as "auto" finds it) index n_features is still a column
        self.highest = (MOST if n_features is None else n_features) - (zero_based is True)
        if zero_based == "auto" and n_features is None:
            self.highest -= 1  # a column, wherever the indices begin
        self.least, self.largest, self.largest_label = self.highest + 1, -1, -1
        self.file, self.offset, self.line = 0, 0, 0
        self.on_disk = 0
        if progress.blocks:
            last = progress.blocks[-1]
            self.file, self.offset, self.line, self.on_disk = last["next"]
            self.least, self.largest, self.largest_label = last["found"]
        self.done = sum(block["rows"] for block in progress.blocks)
        self.started = time.monotonic(), self._bytes_before()
        self._allocate(1)

    def _allocate(self, more: int) -> None:
        """Allocate arrays for ``more`` times the bytes of a block: one row may need more than a block."""
        size = self.settings["block_bytes"] * more
        entries = size // (4 + self.dtype.itemsize) + 2
        rows = size // 8 + 2
        if entries > MOST:
            entries = MOST
        self.indptr, self.indices = np.empty(rows + 1, np.int32), np.empty(entries, np.int32)
        self.data = np.empty(entries, self.dtype)
        self.labels = np.empty(0 if self.multilabel else rows)
        self.label_indptr = np.empty(rows + 1 if self.multilabel else 0, np.int32)
        self.label_indices = np.empty(size // 4 + 2 if self.multilabel else 0, np.int32)
        narrow, wide = np.empty(0, np.float32), np.empty(0)
        values = (narrow, self.data) if self.dtype == np.float64 else (self.data, wide)
        self.rows = SvmlightRows(
            self.indptr, self.indices, *values, self.labels, self.label_indptr, self.label_indices,
            self.settings["block_bytes"], self.lowest, self.highest,
        )  # fmt: skip
        self.factor = more

    def run(self) -> None:
        """Read all files from where an earlier run has stopped, and finish the folder."""
        while self.file < len(self.paths):
            path = self.paths[self.file]
            with open_counted(path) as (file, position):
                file.seek(self.offset, os.SEEK_CUR)  # skips a byte-order mark
                with closing(read_ahead(_texts(file, position))) as texts:
                    for text, self.on_disk in texts:
                        self._read(path, text)
            self.file, self.offset, self.line, self.on_disk = self.file + 1, 0, 0, 0
        if self.rows.rows:
            self._write()
        if not self.progress.blocks:
            self.progress.clear()
            raise FileFormatError(", ".join(self.paths), None, "holds no row")
        self._finish()

    def _read(self, path: str, text: bytes) -> None:
        start = 0
        while start < len(text):
            stop, status = self.rows.read(text, start)
            self.offset += stop - start
            self.line += self.rows.lines
            start = stop
            if status == ODD_LINE:
                end = text.index(b"\n", start) + 1
                start += self._read_odd(path, text[start:end])
            elif status != ALL_READ:
                self._next_block()

    def _read_odd(self, path: str, line: bytes) -> int:
        """Read a line that Python understands and the kernel does not; how many bytes of it are done."""
        found = read_line(
            line, path, self.line + 1, self.multilabel, self.lowest, self.highest, self.settings["n_features"]
        )
        labels, entries = found or ([], [])
        for label in labels if self.multilabel else ():
            if not (0 <= label < MOST and label == int(label)):
                problem = f"label {shown(label)} is not a whole number from 0 to {MOST - 1}"
                raise FileFormatError(path, self.line + 1, problem)
        for index, value in entries:
            with np.errstate(over="ignore"):
                fits = np.isfinite(self.dtype.type(value))
            if not fits:
                problem = f"value of index {index} is {shown(value)}, too large for {self.dtype}"
                raise FileFormatError(path, self.line + 1, problem)
        plain = ",".join(map(repr, labels)) + "".join(f" {index}:{value:.17g}" for index, value in entries)
        _, status = self.rows.read(plain.encode("ascii") + b"\n", 0)
        if status == ODD_LINE:
            raise FileFormatError(path, self.line + 1, f"cannot be read: {shown(line)}")
        if status != ALL_READ:
            self._next_block()
            return 0
        self.offset += len(line)
        self.line += 1
        return len(line)

    def _next_block(self) -> None:
        """The next row does not fit."""
        if self.rows.rows:
            self._write()
            if self.factor > 1:
                self._allocate(1)
        else:  # it does not fit even an empty block
            self._update_ranges()
            self._allocate(2 * self.factor)

    def _update_ranges(self) -> None:
        least, largest, largest_label = self.rows.found
        self.least = min(self.least, least)
        self.largest, self.largest_label = max(self.largest, largest), max(self.largest_label, largest_label)

    def _write(self) -> None:
        self._update_ranges()
        n, nnz = self.rows.rows, self.rows.entries
        arrays = {
            "indptr": (INT32, [self.indptr[: n + 1]]),
            "indices": (INT32, [self.indices[:nnz]]),
            "data": (self.dtype, [self.data[:nnz]]),
        }
        if self.multilabel:
            labels = self.label_indices[: self.rows.n_labels]
            Y = csr_matrix(
                (np.ones(len(labels), np.int8), labels, self.label_indptr[: n + 1]),
                shape=(n, MOST),
                copy=True,
            )
            Y.sum_duplicates()  # also sorts
            arrays |= {"y_indptr": (INT32, [Y.indptr]), "y_indices": (INT32, [Y.indices])}
        else:
            arrays["y"] = (np.dtype(np.float64), [self.labels[:n]])
        self.progress.add(
            arrays,
            next=[self.file, self.offset, self.line, self.on_disk],
            found=[self.least, self.largest, self.largest_label],
        )
        self.done += n
        if self.verbose > 0:
            print(self._line(), flush=True)
        self.rows.clear()

    def _finish(self) -> None:
        zero_based, n_features = self.settings["zero_based"], self.settings["n_features"]
        # as scikit-learn: from 0 unless the indices suggest 1
        from_one = self.least > 0 and self.largest >= 0 if zero_based == "auto" else not zero_based
        largest = self.largest - from_one if self.largest >= 0 else 0
        if n_features is not None and largest >= n_features:
            problem = f"index {self.largest} is too large for {n_features} features, as index 0 occurs too"
            raise FileFormatError(", ".join(self.paths), None, problem)
        n_labels = self.settings["n_labels"]
        if n_labels is not None and self.largest_label >= n_labels:
            problem = f"label {self.largest_label} is too large for n_labels={n_labels}"
            raise FileFormatError(", ".join(self.paths), None, problem)
        self.progress.finish(
            n_features=largest + 1 if n_features is None else n_features,
            dtype=self.dtype.name,
            first_index=int(from_one),
            y="indicator" if self.multilabel else "float64",
            n_labels=(self.largest_label + 1 if n_labels is None else n_labels) if self.multilabel else 0,
            source=self.settings,
        )

    def _bytes_before(self) -> int:
        """Bytes of the files that have been read."""
        return sum(file["bytes"] for file in self.settings["files"][: self.file]) + self.on_disk

    def _line(self) -> str:
        total = sum(file["bytes"] for file in self.settings["files"])
        read = min(self._bytes_before(), total)
        began, before = self.started
        rate = max(read - before, 1) / max(time.monotonic() - began, 1e-9)
        return (
            f"[convert_svmlight] block {len(self.progress.blocks)}: {self.done} rows, "
            f"{100 * read / max(total, 1):.0f} % of {total / 1e6:.0f} MB, {rate / 1e6:.0f} MB/s, "
            f"{(total - read) / rate:.0f} s left"
        )


def _texts(file: Any, position: Any) -> Generator[tuple[bytes, int]]:
    """Whole lines, some megabytes at a time, and how much of the file on the disk was read for them."""
    rest = b""
    while piece := file.read(CHUNK):
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end], position()
            rest = piece[end:]
        else:
            rest += piece
    if rest:
        yield rest + b"\n", position()
