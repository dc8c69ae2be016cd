"""Text files in the svmlight format to a folder of CSR blocks, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike

from .._messages import check_whole, shown
from .._row_blocks.reduction import BLOCK_BYTES
from .._typing import FileName
from ._csr_folder import CSRFolder
from ._files import FileFormatError, open_bytes
from ._svmlight import Rules, chunks, read_rows
from ._write_csr import INT32_MAX, FolderWriter, check_format


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
) -> CSRFolder:
    """Convert files of lines ``label index:value index:value ...`` to a folder of CSR blocks.

    The files may be larger than the memory: twice the bytes of a block and some text are in memory.
    scikit-learn reads the text, 20 to 40 MB in a second. What was interrupted begins anew in the next call.

    Parameters
    ----------
    files : str or path-like, or iterable of them
        The files, whose rows follow each other; names ending in .gz, .bz2 or .xz are uncompressed while
        reading.
    folder : str or path-like
        A new or empty folder, or one that an earlier call has not finished.
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

    Returns
    -------
    CSRFolder
        The folder, opened.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileExistsError
        If the folder holds something already.
    ValueError
        If a file is not in the format, holds NaN or infinity, or there is no row. The message names the file
        and the line (counted from 1).

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
        if value is not None and check_whole(value, name, 1) > INT32_MAX:
            raise ValueError(f"{name} must be at most {INT32_MAX}, got {shown(value)}")
    if n_labels is not None and not multilabel:
        raise ValueError("n_labels goes with multilabel=True")
    # with indices from 1 (always, or as "auto" finds it) index n_features is still a column
    highest = (INT32_MAX if n_features is None else n_features) - (zero_based is True)
    if zero_based == "auto" and n_features is None:
        highest -= 1  # a column, wherever the indices begin
    most_labels = (n_labels or INT32_MAX) if multilabel else None
    rules = Rules(highest, int(zero_based is False), bool(multilabel), dtype, most_labels)
    least, largest, largest_label = INT32_MAX, -1, -1
    for path in paths:
        os.stat(path)  # before anything is written
    writer = FolderWriter(folder, dtype, block_bytes)
    for path in paths:
        with open_bytes(path) as file:
            for text, line in chunks(file):
                X, y = read_rows(text, path, line, rules)
                least = int(X.indices.min(initial=least))
                largest = int(X.indices.max(initial=largest))
                if multilabel:
                    largest_label = int(y.indices.max(initial=largest_label))
                writer.add(X, y)
    if not writer.blocks and not writer.waiting:
        raise FileFormatError(", ".join(paths), None, "holds no row")
    # as scikit-learn: from 0 unless the indices suggest 1
    from_one = least > 0 and largest >= 0 if zero_based == "auto" else not zero_based
    width = max(largest + 1 - from_one, 1)
    if n_features is not None and width > n_features:
        problem = f"index {largest} is too large for {n_features} features, as index 0 occurs too"
        raise FileFormatError(", ".join(paths), None, problem)
    writer.finish(
        n_features=n_features or width,
        first_index=int(from_one),
        n_labels=(n_labels or largest_label + 1) if multilabel else 0,
    )
    return CSRFolder(folder)
