"""The svmlight (LIBSVM) format: scikit-learn reads it, this module says where a file is broken."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from .._typing import FileName
from ._files import MAX_BYTES, WIDEST, FileFormatError, numeral, open_bytes, shown, whole_number

DOUBLE = np.dtype(np.float64)
# what scikit-learn's reader raises for text that is not in the format
READ_ERRORS = (ValueError, OverflowError, IndexError)


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
    form = LineForm(multilabel, 1 if zero_based is False else 0, highest, n_features)

    def diagnose():
        with open_bytes(path, max_bytes) as file:
            form.check(file, path)

    try:
        with open_bytes(path, max_bytes) as file:
            X, y = load_svmlight_file(
                file, n_features=n_features, dtype=dtype, multilabel=multilabel, zero_based=zero_based
            )
    except FileFormatError:
        raise
    except READ_ERRORS as error:
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
class LineForm:
    """What lines of rows may hold.

    multilabel : whether labels are lists.
    lowest, highest : bounds of the indices.
    n_features : number of columns that the user gave, None if the file decides.
    n_labels : with ``multilabel``, labels are whole numbers below it; None: any numbers.
    dtype : values are finite in this type.
    """

    multilabel: bool
    lowest: int
    highest: int
    n_features: int | None
    n_labels: int | None = None
    dtype: np.dtype[Any] = DOUBLE

    def read(self, text: bytes, path: str, first: int) -> tuple[csr_matrix, Any]:
        """The rows of whole lines, of which the first has that number in the file.

        Returns
        -------
        X : csr_matrix of shape (n_rows, largest index + 1)
            Values; columns are numbered as in the text.
        y : ndarray of shape (n_rows,), or csr_matrix of shape (n_rows, n_labels), int8
            Labels, or with ``multilabel`` indicators.

        Raises
        ------
        FileFormatError
            If a line is not of this form; it names the line.
        """
        try:
            X, labels = load_svmlight_file(
                io.BytesIO(text), multilabel=self.multilabel, zero_based=True, dtype=np.float64
            )
            y = labels if self.n_labels is None else self._indicators(labels, self.n_labels)
            if self._allows(X, y):
                return X.astype(self.dtype, copy=False), y
            problem = "a value or a label is out of its range"
        except READ_ERRORS as error:
            problem = str(error)
        self.check(io.BytesIO(text), path, first)
        raise FileFormatError(path, first, f"in this line or a later one: {problem}")

    def _allows(self, X: csr_matrix, y: Any) -> bool:
        with np.errstate(over="ignore"):
            values = X.data.astype(self.dtype)
        return bool(
            np.isfinite(values).all()
            and X.indices.min(initial=self.highest) >= self.lowest
            and X.indices.max(initial=self.lowest) <= self.highest
            and (self.multilabel or np.isfinite(y).all())
        )

    def _indicators(self, labels: list[tuple[float, ...]], n_labels: int) -> csr_matrix:
        codes = np.array(list(chain.from_iterable(labels)), dtype=np.float64)
        if not ((codes >= 0) & (codes < n_labels) & (codes == np.floor(codes))).all():
            raise ValueError("a label is out of its range")
        indptr = np.concatenate([[0], np.cumsum(list(map(len, labels)), dtype=np.int64)])
        shape = len(labels), n_labels
        Y = csr_matrix((np.ones(len(codes), np.int8), codes.astype(np.int64), indptr), shape=shape)
        Y.sum_duplicates()
        Y.data[:] = 1
        return Y

    def check(self, lines: Iterable[bytes], path: str, first: int = 1) -> None:
        """Raise FileFormatError for the first line that is not of this form, if one is not."""
        for number, line in enumerate(lines, start=first):
            self._check_line(line, path, number)

    def _check_line(self, line, path, number):
        tokens = line.partition(b"#")[0].split()
        if not tokens:
            return
        if b":" not in tokens[0]:
            label, tokens = tokens[0], tokens[1:]
            for part in label.split(b",") if self.multilabel else [label]:
                value = self._number(part, "label", path, number)
                if self.n_labels is not None and not (0 <= value < self.n_labels and value == int(value)):
                    problem = f"label {numeral(part)} is not a whole number from 0 to {self.n_labels - 1}"
                    raise FileFormatError(path, number, problem)
        elif not self.multilabel:
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
            if column < self.lowest:
                problem = f"index {column} is below {self.lowest}, the lowest allowed"
                raise FileFormatError(path, number, problem)
            if column > self.highest:
                limit = "int32" if self.n_features is None else f"{self.n_features} features"
                if self.highest == WIDEST:
                    limit = f"{WIDEST} features; give n_features if there are so many"
                raise FileFormatError(path, number, f"index {numeral(index)} is too large for {limit}")
            if column <= previous:
                problem = f"index {column} comes after {previous}; indices must increase along a line"
                raise FileFormatError(path, number, problem)
            previous = column
            self._number(value, f"value of index {column}", path, number, self.dtype)

    @staticmethod
    def _number(token, what, path, line, dtype=DOUBLE):
        try:
            value = float(token)
        except ValueError:
            raise FileFormatError(path, line, f"{what} is {shown(token)}, not a number") from None
        if not math.isfinite(value):
            raise FileFormatError(path, line, f"{what} is {shown(token)}, not a finite number")
        with np.errstate(over="ignore"):
            if not np.isfinite(dtype.type(value)):
                raise FileFormatError(path, line, f"{what} is {shown(token)}, too large for {dtype}")
        return value
