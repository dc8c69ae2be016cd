"""The svmlight (LIBSVM) format: scikit-learn reads it, this module says which line is broken."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from .._messages import shown
from .._typing import FileName
from ._files import MAX_BYTES, WIDEST, FileFormatError, open_bytes

# Bytes of text parsed at a time: small against a block of rows, large against the cost of a call.
CHUNK = 2**22
# what scikit-learn raises for text that is not in the format
_BROKEN = (ValueError, OverflowError, IndexError)


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
        If the file is not in the format, holds no row, or holds NaN or infinity. The message names the file
        and the line (counted from 1).

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
    rules = Rules(highest, int(zero_based is False), multilabel, np.dtype(dtype))
    try:
        with open_bytes(path, max_bytes) as file:
            X, y = load_svmlight_file(
                file, n_features=n_features, dtype=dtype, multilabel=multilabel, zero_based=zero_based
            )
        if X.shape[0] == 0:
            raise FileFormatError(path, None, "holds no row")
        if n_features is None and X.shape[1] > WIDEST:
            raise ValueError(f"its largest index is {X.shape[1]}; give n_features if there are so many")
        rules.check_values(X, None if multilabel else y)
    except FileFormatError:
        raise
    except _BROKEN as error:
        with open_bytes(path, max_bytes) as file:
            for text, line in chunks(file):
                read_rows(text, path, line, rules)
        raise FileFormatError(path, None, str(error)) from error
    return X, y


@dataclass(frozen=True)
class Rules:
    """What lines must keep to.

    highest, lowest : indices allowed.
    multilabel : whether labels are lists.
    dtype : of the values.
    n_labels : where given, labels are whole numbers below it.
    """

    highest: int
    lowest: int = 0
    multilabel: bool = False
    dtype: DTypeLike = np.float64
    n_labels: int | None = None

    def parse(self, text: bytes) -> tuple[csr_matrix, Any]:
        """Rows of lines, with indices as in the text; labels (n,), lists of them, or a matrix of 0 and 1.

        Raises
        ------
        ValueError
            If a line breaks a rule; it says what that line is or has.
        """
        try:
            X, y = load_svmlight_file(
                BytesIO(text), dtype=self.dtype, multilabel=self.multilabel, zero_based=True
            )
        except _BROKEN as error:
            raise ValueError(
                "is not of the form `label index:value ...` with indices that increase"
            ) from error
        self.check_values(X, None if self.multilabel else y)
        if X.nnz and X.indices.min() < self.lowest:
            raise ValueError(f"has the index {X.indices.min()}; the lowest allowed is {self.lowest}")
        if X.nnz and X.indices.max() > self.highest:
            hint = "; give n_features if there are so many" if self.highest == WIDEST else ""
            raise ValueError(f"has the index {X.indices.max()}; the largest allowed is {self.highest}{hint}")
        return X, y if self.n_labels is None else _indicators(y, self.n_labels)

    def check_values(self, X: csr_matrix, y: Any) -> None:
        """ValueError where values, or labels unless they are None, are not finite."""
        if not np.isfinite(X.data).all() or not (y is None or np.isfinite(y).all()):
            raise ValueError(f"has a value that is NaN, infinite or too large for {np.dtype(self.dtype)}")


def _indicators(y: list[tuple[float, ...]], n_labels: int) -> csr_matrix:
    ends = np.concatenate([[0], np.cumsum([len(labels) for labels in y], dtype=np.int64)])
    found = np.fromiter(chain.from_iterable(y), dtype=np.float64, count=ends[-1])
    if not ((found >= 0) & (found < n_labels) & (found == np.floor(found))).all():
        raise ValueError(f"has a label that is no whole number from 0 to {n_labels - 1}")
    ones = np.ones(len(found), dtype=np.int8)
    Y = csr_matrix((ones, found.astype(np.int64), ends), shape=(len(y), n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def chunks(file: Any, line: int = 1) -> Iterator[tuple[bytes, int]]:
    """Whole lines of a file, some megabytes at a time, and the number of the first one."""
    while text := file.read(CHUNK) + file.readline():
        yield text, line
        line += text.count(b"\n")


def read_rows(text: bytes, path: str, first: int, rules: Rules) -> tuple[csr_matrix, Any]:
    """`Rules.parse` of whole lines, the first of which has the number ``first``.

    Raises
    ------
    FileFormatError
        It names the first line that breaks a rule.
    """
    try:
        return rules.parse(text)
    except ValueError as error:
        lines, low = text.split(b"\n"), 0
        high = len(lines)
        while high - low > 1:  # the first broken line is in lines[low:high]
            middle = (low + high) // 2
            if _problem(lines[low:middle], rules):
                high = middle
            else:
                low = middle
        problem = _problem(lines[low:high], rules) or error
        line = shown(lines[low].decode("utf-8", "replace"))
        raise FileFormatError(path, first + low, f"{line} {problem}") from error


def _problem(lines: list[bytes], rules: Rules) -> ValueError | None:
    try:
        rules.parse(b"\n".join(lines))
    except ValueError as error:
        return error
    return None
