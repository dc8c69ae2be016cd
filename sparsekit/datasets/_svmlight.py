"""The svmlight (LIBSVM) format: scikit-learn reads it, this module says where a file is broken."""

from __future__ import annotations

import math
import os
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from sklearn.datasets import load_svmlight_file

from .._typing import FileName
from ._files import MAX_BYTES, WIDEST, FileFormatError, numeral, open_bytes, shown, whole_number


def load_svmlight(
    path: FileName,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    multilabel: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    max_bytes: int = MAX_BYTES,
) -> tuple[Any, Any]:
    """Read a file of lines ``label index:value index:value ...``.

    Parameters
    ----------
    path : str or path-like
        The file; names ending in .gz, .bz2 or .xz are uncompressed while reading.
    n_features : int, default=None
        Number of columns of X; the largest index in the file if None, which may then be 500 million at the
        most. Give the training set's number when reading a test set.
    dtype : dtype, default=float64
        Of the values of X (and of y where it is one label a line).
    multilabel : bool, default=False
        Labels are comma-separated lists, possibly empty.
    zero_based : bool or "auto", default="auto"
        Whether the indices start at 0 or at 1; "auto" takes 0 if a 0 occurs.
    max_bytes : int, default=2**34
        Bytes that a compressed file may unpack to: more are an error, once so many have been read.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Values.
    y : ndarray of shape (n_samples,), or list of tuples of float if multilabel
        Labels.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not in the format, holds no row, or holds NaN or infinity. The message names the file,
        the line (counted from 1) and the error.

    See Also
    --------
    sklearn.datasets.load_svmlight_file : Does the reading.

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsekit.datasets import load_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     X, y = load_svmlight(path)
    >>> X.toarray(), y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    path = os.fspath(path)
    try:
        with open_bytes(path, max_bytes) as file:
            X, y = load_svmlight_file(
                file, n_features=n_features, dtype=dtype, multilabel=multilabel, zero_based=zero_based
            )
    except FileFormatError:
        raise
    except (ValueError, OverflowError, IndexError) as error:
        # scikit-learn's message names no line: read again, slowly, to find it
        _diagnose(path, multilabel, zero_based, n_features, max_bytes)
        raise FileFormatError(path, None, str(error)) from error
    if n_features is None and X.shape[1] > WIDEST:
        _diagnose(path, multilabel, zero_based, n_features, max_bytes)
    if X.shape[0] == 0:
        raise FileFormatError(path, None, "holds no row")
    if not np.isfinite(X.data).all() or not (multilabel or np.isfinite(y).all()):
        _diagnose(path, multilabel, zero_based, n_features, max_bytes)
        raise FileFormatError(path, None, f"a value is NaN, infinite or too large for {np.dtype(dtype)}")
    return X, y


def _diagnose(path, multilabel, zero_based, n_features, max_bytes):
    """Raise FileFormatError for the first line that breaks the format, if one does."""
    lowest = 1 if zero_based is False else 0
    # with indices from 1 (always, or as "auto" finds it) index n_features is still a column
    highest = WIDEST if n_features is None else n_features - (zero_based is True)
    with open_bytes(path, max_bytes) as file:
        for number, line in enumerate(file, start=1):
            read_line(line, path, number, multilabel, lowest, highest, n_features)


def read_line(line, path, number, multilabel, lowest, highest, n_features):
    """Labels and pairs (index, value) of a line, None where it has no row, or a FileFormatError."""
    tokens = line.partition(b"#")[0].split()
    if not tokens:
        return None
    labels, entries = [], []
    if b":" not in tokens[0]:
        label, tokens = tokens[0], tokens[1:]
        for part in label.split(b",") if multilabel else [label]:
            labels.append(_number(part, "label", path, number))
    elif not multilabel:
        raise FileFormatError(path, number, f"the line starts with {shown(tokens[0])}, not with a label")
    previous = -1
    for token in tokens:
        index, colon, value = token.partition(b":")
        if not colon:
            raise FileFormatError(path, number, f"{shown(token)} is not of the form index:value")
        if index == b"qid":
            continue
        column = whole_number(index)
        if column is None:
            raise FileFormatError(path, number, f"index {shown(index)} is not an integer")
        if column < lowest:
            raise FileFormatError(path, number, f"index {column} is below {lowest}, the lowest allowed")
        if column > highest:
            limit = "int32" if n_features is None else f"{n_features} features"
            if highest == WIDEST:
                limit = f"{WIDEST} features; give n_features if there are so many"
            raise FileFormatError(path, number, f"index {numeral(index)} is too large for {limit}")
        if column <= previous:
            problem = f"index {column} comes after {previous}; indices must increase along a line"
            raise FileFormatError(path, number, problem)
        previous = column
        entries.append((column, _number(value, f"value of index {column}", path, number)))
    return labels, entries


def _number(token, what, path, line):
    try:
        value = float(token)
    except ValueError:
        raise FileFormatError(path, line, f"{what} is {shown(token)}, not a number") from None
    if not math.isfinite(value):
        raise FileFormatError(path, line, f"{what} is {shown(token)}, not a finite number")
    return value
