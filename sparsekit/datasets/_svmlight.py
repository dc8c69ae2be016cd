"""The svmlight (LIBSVM) format: scikit-learn reads it, this module says where a file is broken."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix
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
    # with indices from 1 (always, or as "auto" finds it) index n_features is still a column
    highest = WIDEST if n_features is None else n_features - (zero_based is True)
    rules = Rules(highest, n_features, int(zero_based is False), multilabel, np.dtype(dtype))

    def diagnose():
        with open_bytes(path, max_bytes) as file:
            refuse_broken_line(file, path, 1, rules)

    try:
        with open_bytes(path, max_bytes) as file:
            X, y = load_svmlight_file(
                file, n_features=n_features, dtype=dtype, multilabel=multilabel, zero_based=zero_based
            )
    except FileFormatError:
        raise
    except (ValueError, OverflowError, IndexError) as error:
        # scikit-learn's message names no line: read again, slowly, to find it
        diagnose()
        raise FileFormatError(path, None, str(error)) from error
    if n_features is None and X.shape[1] > WIDEST:
        diagnose()
    if X.shape[0] == 0:
        raise FileFormatError(path, None, "holds no row")
    if not np.isfinite(X.data).all() or not (multilabel or np.isfinite(y).all()):
        diagnose()
        raise FileFormatError(path, None, f"a value is NaN, infinite or too large for {np.dtype(dtype)}")
    return X, y


@dataclass(frozen=True)
class Rules:
    """What lines must keep to.

    highest, lowest : indices allowed.
    n_features : what the user gave, for messages.
    multilabel : whether labels are lists.
    dtype : of the values.
    n_labels : where given, labels are whole numbers below it.
    """

    highest: int
    n_features: int | None = None
    lowest: int = 0
    multilabel: bool = False
    dtype: DTypeLike = np.float64
    n_labels: int | None = None


def read_rows(text: bytes, path: str, first: int, rules: Rules) -> tuple[csr_matrix, Any]:
    """Rows of whole lines, with indices as in the text; their labels (n,), or a matrix of zeros and ones.

    Raises
    ------
    FileFormatError
        It names the first line that breaks a rule; that at the start of the text has the number ``first``.
    """
    try:
        X, y = load_svmlight_file(
            BytesIO(text), dtype=rules.dtype, multilabel=rules.multilabel, zero_based=True
        )
    except (ValueError, OverflowError, IndexError) as error:
        refuse_broken_line(BytesIO(text), path, first, rules)
        raise FileFormatError(path, None, str(error)) from error
    is_valid = np.isfinite(X.data).all() and not (
        X.nnz and (X.indices.min() < rules.lowest or X.indices.max() > rules.highest)
    )
    n_labels = rules.n_labels or 0
    if rules.multilabel:
        ends = np.concatenate([[0], np.cumsum([len(labels) for labels in y], dtype=np.int64)])
        y = np.fromiter(chain.from_iterable(y), dtype=np.float64, count=ends[-1])
        is_valid &= bool(((y >= 0) & (y < n_labels) & (y == np.floor(y))).all())
    else:
        is_valid &= np.isfinite(y).all()
    if not is_valid:
        refuse_broken_line(BytesIO(text), path, first, rules)
    if rules.multilabel:
        ones = np.ones(len(y), dtype=np.int8)
        y = csr_matrix((ones, y.astype(np.int64), ends), shape=(X.shape[0], n_labels))
        y.sum_duplicates()
        y.data[:] = 1
    return X, y


def refuse_broken_line(lines: Iterable[bytes], path: str, first: int, rules: Rules) -> None:
    """FileFormatError for the first of the lines that breaks the format, if one does."""
    for number, line in enumerate(lines, start=first):
        problem = _problem(line, rules)
        if problem:
            raise FileFormatError(path, number, problem)


def _problem(line, rules):
    """What is wrong with a line, or None."""
    tokens = line.partition(b"#")[0].split()
    labels: list[bytes] = []
    if tokens and b":" not in tokens[0]:
        labels = tokens.pop(0).split(b",") if rules.multilabel else [tokens.pop(0)]
    elif tokens and not rules.multilabel:
        return f"the line starts with {shown(tokens[0])}, not with a label"
    for label in labels:
        problem = _not_finite(label, "label", np.float64)
        if problem:
            return problem
        if rules.n_labels is not None and not (float(label) == int(float(label)) >= 0):
            return f"label {shown(label)} is not a whole number"
        if rules.n_labels is not None and float(label) >= rules.n_labels:
            return f"label {numeral(label)} is too large for {rules.n_labels} labels"
    if tokens and tokens[0].startswith(b"qid") and b":" in tokens[0]:
        tokens.pop(0)  # scikit-learn takes it there only
    previous = -1
    for token in tokens:
        index, colon, value = token.partition(b":")
        if not colon:
            return f"{shown(token)} is not of the form index:value"
        column = whole_number(index)
        if column is None:
            return f"index {shown(index)} is not an integer"
        if column < rules.lowest:
            return f"index {column} is below {rules.lowest}, the lowest allowed"
        if column > rules.highest:
            limit = "int32" if rules.n_features is None else f"{rules.n_features} features"
            if rules.highest == WIDEST:
                limit = f"{WIDEST} features; give n_features if there are so many"
            return f"index {numeral(index)} is too large for {limit}"
        if column <= previous:
            return f"index {column} comes after {previous}; indices must increase along a line"
        previous = column
        problem = _not_finite(value, f"value of index {column}", rules.dtype)
        if problem:
            return problem
    return None


def _not_finite(token, what, dtype):
    try:
        value = float(token)
    except ValueError:
        return f"{what} is {shown(token)}, not a number"
    if not np.isfinite(value):
        return f"{what} is {shown(token)}, not a finite number"
    if abs(value) <= _largest(dtype):
        return None
    with np.errstate(over="ignore"):  # a little more than the largest is rounded to it
        is_too_large = not np.isfinite(np.asarray(value).astype(dtype))
    return f"{what} is {shown(token)}, too large for {np.dtype(dtype)}" if is_too_large else None


@cache
def _largest(dtype):
    """Largest value of a type, for a quick check; infinite for integers, which any value is cast to."""
    dtype = np.dtype(dtype)
    return float(np.finfo(dtype).max) if dtype.kind == "f" else float("inf")
