"""The format of the Extreme Classification repository: a header, then one row a line, labels first."""

from __future__ import annotations

import os
import warnings
from itertools import islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from .._typing import FileName
from ._files import MAX_BYTES, FileFormatError, numeral, open_bytes, shown, whole_number
from ._write_csr import MOST

# Lines parsed at a time: NumPy's number reader then dominates, and the text is small against the arrays.
_CHUNK = 20_000


def load_xc(
    path: FileName, *, dtype: DTypeLike = np.float64, max_bytes: int = MAX_BYTES
) -> tuple[csr_matrix, csr_matrix]:
    """Read a multi-label data set in the format of the Extreme Classification repository.

    The first line is ``n_samples n_features n_labels``; each following line is one row,
    ``label,label,... index:value index:value ...``, all indices counted from 0. A row may have no label (the
    line starts with a space) and no feature.

    Parameters
    ----------
    path : str or path-like
        The file; names ending in .gz, .bz2 or .xz are uncompressed while reading.
    dtype : dtype, default=float64
        Of the values of X.
    max_bytes : int, default=2**34
        Bytes that a compressed file may unpack to: more are an error, once so many have been read.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        Values.
    Y : scipy.sparse.csr_matrix of shape (n_samples, n_labels), int8
        Label indicators: 1 where the row has the label.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not in the format; the message names the file, the line (counted from 1) and what is
        wrong there.

    See Also
    --------
    sparsekit.ExtremeSoftmaxSGD : A classifier for so many labels.

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsekit.datasets import load_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("2 3 4\\n0,3 0:0.5 2:2\\n1 1:1\\n")
    ...     X, Y = load_xc(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> Y.toarray()
    array([[1, 0, 0, 1],
           [0, 1, 0, 0]], dtype=int8)
    """
    path = os.fspath(path)
    with open_bytes(path, max_bytes) as file:
        n_samples, n_features, n_labels = _header(file.readline(), path)
        parts, line_number, rows = [], 2, 0
        while rows < n_samples:
            lines = list(islice(file, min(_CHUNK, n_samples - rows)))
            if not lines:
                problem = f"the file ends after {rows} rows; its header says {n_samples}"
                raise FileFormatError(path, line_number, problem)
            parts.append(_parse(lines, path, line_number, n_features, n_labels))
            rows += len(lines)
            line_number += len(lines)
        for number, line in enumerate(file, start=line_number):
            if line.strip():
                raise FileFormatError(path, number, f"more rows than the {n_samples} that the header says")
    counts, columns, values, label_counts, labels = (
        [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0)] * 5
    )
    X = _csr(values.astype(dtype, copy=False), columns, counts, (n_samples, n_features))
    Y = _csr(np.ones(len(labels), dtype=np.int8), labels, label_counts, (n_samples, n_labels))
    return X, Y


def _header(line, path):
    fields = line.split()
    sizes = [size for size in map(whole_number, fields) if size is not None]
    if len(sizes) != 3 or len(fields) != 3 or min(sizes) < 0:
        problem = (
            f"the header must be three counts, n_samples n_features n_labels; it is {shown(line.strip())}"
        )
        raise FileFormatError(path, 1, problem)
    for size, field, what in zip(sizes, fields, ("rows", "features", "labels"), strict=True):
        if size > MOST:
            problem = f"the header says {numeral(field)} {what}; no more than {MOST} can be read"
            raise FileFormatError(path, 1, problem)
    return sizes


def _csr(data, indices, counts, shape):
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    small = max(*shape, indptr[-1]) < 2**31
    index = np.int32 if small else np.int64
    matrix = sp.csr_matrix((data, indices.astype(index), indptr.astype(index)), shape=shape)
    matrix.sort_indices()
    return matrix


def _parse(lines, path, first, n_features, n_labels):
    """Parse consecutive lines; returns (features per row, columns, values, labels per row, labels)."""
    heads, tails = [], []
    for line in lines:
        head, _, tail = line.partition(b" ")
        if b":" in head:  # no label, and no separator before the features
            head, tail = b"", line
        heads.append(head.strip())
        tails.append(tail.strip())
    pairs = _numbers(b" ".join(tails).replace(b":", b" "))
    counts = np.array([tail.count(b":") for tail in tails], dtype=np.int64)
    labels = _numbers(b",".join(filter(None, heads)).replace(b",", b" "))
    label_counts = np.array([head.count(b",") + 1 if head else 0 for head in heads], dtype=np.int64)
    is_canonical = (
        pairs is not None
        and labels is not None
        # a token without colon, or with two, shows as a count that does not fit
        and all(len(tail.split()) == count for tail, count in zip(tails, counts, strict=True))
        and len(pairs) == 2 * counts.sum()
        and len(labels) == label_counts.sum()
        and _are_indices(pairs[::2], n_features)
        and _are_indices(labels, n_labels)
        and np.isfinite(pairs[1::2]).all()
        and not _repeats(pairs[::2], counts)
        and not _repeats(labels, label_counts)
    )
    if not is_canonical:
        _diagnose(heads, tails, path, first, n_features, n_labels)
    return counts, pairs[::2].astype(np.int64), pairs[1::2], label_counts, labels.astype(np.int64)


def _numbers(text):
    """The numbers in a text of numbers and white space, or None if anything else is in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy warns of text that it cannot read
        try:
            return np.fromstring(text, dtype=np.float64, sep=" ") if text.strip() else np.zeros(0)
        except (DeprecationWarning, ValueError):
            return None


def _are_indices(values, bound):
    return bool(((values >= 0) & (values < bound) & (values == np.floor(values))).all())


def _repeats(indices, counts):
    """Whether an index occurs twice in one row."""
    row = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((indices, row))
    return bool(((np.diff(indices[order]) == 0) & (np.diff(row[order]) == 0)).any())


def _diagnose(heads, tails, path, first, n_features, n_labels):
    """Raise FileFormatError for the first of the lines that breaks the format."""
    for number, (head, tail) in enumerate(zip(heads, tails, strict=True), start=first):
        seen: set[int] = set()
        for token in head.split(b",") if head else ():
            _index(token, "label", n_labels, seen, path, number)
        seen = set()
        for token in tail.split():
            index, _, value = token.partition(b":")
            if token.count(b":") != 1:
                raise FileFormatError(path, number, f"{shown(token)} is not of the form index:value")
            _index(index, "feature", n_features, seen, path, number)
            try:
                finite = np.isfinite(float(value))
            except ValueError:
                finite = False
            if not finite:
                problem = f"value of feature {numeral(index)} is {shown(value)}, not a finite number"
                raise FileFormatError(path, number, problem)
    raise FileFormatError(path, first, "unreadable numbers in this line or the ones after it")


def _index(token, what, bound, seen, path, line):
    index = whole_number(token)
    if index is None:
        raise FileFormatError(path, line, f"{what} {shown(token)} is not an integer")
    if not 0 <= index < bound:
        raise FileFormatError(path, line, f"{what} {numeral(token)} is not between 0 and {bound - 1}")
    if index in seen:
        raise FileFormatError(path, line, f"{what} {index} occurs twice in the line")
    seen.add(index)
