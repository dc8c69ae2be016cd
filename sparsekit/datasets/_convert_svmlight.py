"""Text files in the svmlight format to a folder of CSR blocks, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from .._messages import check_whole, shown
from .._typing import FileName
from ._block_files import MANIFEST, FolderWriter, read_manifest
from ._csr_folder import CSRFolder
from ._files import FileFormatError, open_bytes
from ._svmlight import Rules, read_rows
from ._write_csr import BLOCK_BYTES, MOST, BlockBuffer, check_format

# Bytes of text read at a time: small against a block, large against the cost of a call.
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

    The files may be larger than the memory: twice the bytes of a block and some text are in memory. After an
    interruption, repeat the call with the same arguments: it goes on after the last block written. The result
    is the same, byte for byte. scikit-learn reads the text, 20 to 40 MB in a second.

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
    settings: dict[str, Any] = {
        "function": "convert_svmlight", "n_features": n_features, "dtype": dtype.name,
        "zero_based": zero_based, "multilabel": bool(multilabel), "n_labels": n_labels,
        "block_bytes": block_bytes,
        "files": [
            {"name": os.path.basename(path), "bytes": os.path.getsize(path)} for path in paths
        ],
        "changed": [os.stat(path).st_mtime_ns for path in paths],
    }  # fmt: skip
    if resume and os.path.exists(os.path.join(folder, MANIFEST)):
        source = read_manifest(folder).get("source", {})
        if {**source, "changed": settings["changed"]} != settings:  # a copy of the files will do
            raise FileExistsError(
                f"{folder} holds a finished data set of other files or arguments: name another folder, "
                "or empty this one"
            )
        return CSRFolder(folder)
    # with indices from 1 (always, or as "auto" finds it) index n_features is still a column
    highest = (MOST if n_features is None else n_features) - (zero_based is True)
    if zero_based == "auto" and n_features is None:
        highest -= 1  # a column, wherever the indices begin
    rules = Rules(
        highest, n_features, int(zero_based is False), bool(multilabel), dtype,
        (MOST if n_labels is None else n_labels) if multilabel else None,
    )  # fmt: skip
    writer = FolderWriter(folder, settings, resume)
    block = BlockBuffer(writer, dtype, "indicator" if multilabel else "float64", block_bytes)
    found = _read(paths, rules, writer, block, verbose)
    if not writer.blocks:
        raise FileFormatError(", ".join(paths), None, "holds no row")
    # as scikit-learn: from 0 unless the indices suggest 1
    from_one = found["least"] > 0 and found["largest"] >= 0 if zero_based == "auto" else not zero_based
    largest = max(found["largest"] - from_one, 0)
    if n_features is not None and largest >= n_features:
        problem = f"index {found['largest']} is too large for {n_features} features, as index 0 occurs too"
        raise FileFormatError(", ".join(paths), None, problem)
    writer.finish(
        n_features=largest + 1 if n_features is None else n_features,
        dtype=dtype.name,
        first_index=int(from_one),
        y=block.kind,
        n_labels=(found["largest_label"] + 1 if n_labels is None else n_labels) if multilabel else 0,
    )
    return CSRFolder(folder)


def _read(paths, rules, writer, block, verbose):
    """Read the files from where the last block ends; the state at the end.

    A state has the file, its bytes and lines before the chunk that was read, the rows of that chunk that are
    in blocks, and the least and largest index and label so far.
    """
    state = writer.state or dict(file=0, offset=0, line=0, row=0, least=MOST, largest=-1, largest_label=-1)
    done = len(writer.blocks)
    while state["file"] < len(paths):
        path = paths[state["file"]]
        with open_bytes(path) as file:
            file.seek(state["offset"], os.SEEK_CUR)  # skips a byte-order mark
            while text := file.read(CHUNK) + file.readline():
                X, y = read_rows(text, path, state["line"] + 1, rules)
                if X.nnz:
                    state["least"] = min(state["least"], int(X.indices.min()))
                    state["largest"] = max(state["largest"], int(X.indices.max()))
                if rules.multilabel and y.nnz:
                    state["largest_label"] = max(state["largest_label"], int(y.indices.max()))
                block.add(X, y, state)
                state |= dict(
                    offset=state["offset"] + len(text), line=state["line"] + text.count(b"\n"), row=0
                )
                if verbose > 0 and len(writer.blocks) > done:
                    done = len(writer.blocks)
                    rows = sum(one["rows"] for one in writer.blocks)
                    print(f"[convert_svmlight] {done} blocks of {rows} rows, from {shown(path)}", flush=True)
        state |= dict(file=state["file"] + 1, offset=0, line=0, row=0)
    block.write(state)
    return state
