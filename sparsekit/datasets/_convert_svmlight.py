"""Text files in the svmlight format to a folder of CSR blocks, in constant memory."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from .._messages import check_whole, shown
from .._row_blocks.ahead import read_ahead
from .._typing import FileName
from ._block_files import MANIFEST, PROGRESS, Progress, read_manifest
from ._csr_folder import CSRFolder
from ._files import FileFormatError, open_counted
from ._svmlight import LineForm
from ._write_csr import BLOCK_BYTES, MOST, Block, check_format

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
    # do not resume if a file has changed, or CHUNK; the result does not depend on these
    changed = [os.stat(path).st_mtime_ns for path in paths]
    progress = Progress(folder, {**settings, "changed": changed, "chunk": CHUNK}, resume)
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
        self.paths, self.progress, self.settings, self.verbose = paths, progress, settings, verbose
        self.dtype, self.multilabel = dtype, settings["multilabel"]
        zero_based, n_features = settings["zero_based"], settings["n_features"]
        # with indices from 1 (always, or as "auto" finds it) index n_features is still a column
        highest = (MOST if n_features is None else n_features) - (zero_based is True)
        if zero_based == "auto" and n_features is None:
            highest -= 1  # a column, wherever the indices begin
        lowest = 1 if zero_based is False else 0
        self.form = LineForm(
            self.multilabel, lowest, highest, n_features, MOST if self.multilabel else None, dtype
        )
        kind = "indicator" if self.multilabel else "float64"
        self.block = Block(progress, dtype, kind, settings["block_bytes"])
        # the least index, the largest index and the largest label so far
        self.found = [MOST, -1, -1]
        # file, its byte and line where a chunk of text begins, and rows of that chunk that are in blocks
        self.place = [0, 0, 0, 0]
        self.on_disk = 0
        if progress.blocks:
            last = progress.blocks[-1]
            self.place, self.found, self.on_disk = last["next"], last["found"], last["on_disk"]
        self.started = time.monotonic(), self._bytes_before()

    def run(self) -> None:
        """Read all files from where an earlier run has stopped, and finish the folder."""
        while self.place[0] < len(self.paths):
            path = self.paths[self.place[0]]
            with open_counted(path) as (file, position):
                file.seek(self.place[1], os.SEEK_CUR)  # skips a byte-order mark
                with closing(read_ahead(_texts(file, position))) as texts:
                    for text, self.on_disk in texts:
                        self._take(path, text)
            self.place, self.on_disk = [self.place[0] + 1, 0, 0, 0], 0
        if self.block.rows:
            self._write(self.place)
        if not self.progress.blocks:
            self.progress.clear()
            raise FileFormatError(", ".join(self.paths), None, "holds no row")
        self._finish()

    def _take(self, path: str, text: bytes) -> None:
        """The rows of a chunk of text, but for those that an earlier run has written."""
        number, offset, line, done = self.place
        X, y = self.form.read(text, path, line + 1)
        self.found = [
            int(X.indices.min(initial=self.found[0])),
            int(X.indices.max(initial=self.found[1])),
            int(y.indices.max(initial=self.found[2])) if self.multilabel else -1,
        ]
        for start in self.block.add(X[done:], y[done:]):
            self._write([number, offset, line, done + start])
        self.place = [number, offset + len(text), line + text.count(b"\n"), 0]

    def _write(self, place: list[int]) -> None:
        self.block.write(next=place, found=self.found, on_disk=self.on_disk)
        if self.verbose > 0:
            print(self._line(), flush=True)

    def _finish(self) -> None:
        zero_based, n_features = self.settings["zero_based"], self.settings["n_features"]
        least, largest, largest_label = self.found
        # as scikit-learn: from 0 unless the indices suggest 1
        from_one = least > 0 and largest >= 0 if zero_based == "auto" else not zero_based
        last = largest - from_one if largest >= 0 else 0
        if n_features is not None and last >= n_features:
            problem = f"index {largest} is too large for {n_features} features, as index 0 occurs too"
            raise FileFormatError(", ".join(self.paths), None, problem)
        n_labels = self.settings["n_labels"]
        if n_labels is not None and largest_label >= n_labels:
            problem = f"label {largest_label} is too large for n_labels={n_labels}"
            raise FileFormatError(", ".join(self.paths), None, problem)
        self.progress.finish(
            n_features=last + 1 if n_features is None else n_features,
            dtype=self.dtype.name,
            first_index=int(from_one),
            y=self.block.kind,
            n_labels=(largest_label + 1 if n_labels is None else n_labels) if self.multilabel else 0,
            source=self.settings,
        )

    def _bytes_before(self) -> int:
        """Bytes of the files that have been read."""
        return sum(file["bytes"] for file in self.settings["files"][: self.place[0]]) + self.on_disk

    def _line(self) -> str:
        total = sum(file["bytes"] for file in self.settings["files"])
        read = min(self._bytes_before(), total)
        began, before = self.started
        rate = max(read - before, 1) / max(time.monotonic() - began, 1e-9)
        rows = sum(block["rows"] for block in self.progress.blocks)
        return (
            f"[convert_svmlight] block {len(self.progress.blocks)}: {rows} rows, "
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
