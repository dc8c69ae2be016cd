"""The format of the Extreme Classification repository: a header, then one row a line, labels first."""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix

from .._messages import shown
from .._typing import FileName
from ._files import MAX_BYTES, FileFormatError, open_bytes
from ._svmlight import Rules, chunks, read_rows
from ._write_csr import INT32_MAX


def load_xc(
    path: FileName, *, dtype: DTypeLike = np.float64, max_bytes: int = MAX_BYTES
) -> tuple[csr_matrix, csr_matrix]:
    """Read a multi-label data set in the format of the Extreme Classification repository.

    The first line is ``n_samples n_features n_labels``; each following line is one row,
    ``label,label,... index:value index:value ...``, all indices counted from 0 and increasing along a line. A
    row may have no label (the line starts with a space) and no feature. A label that stands twice in a row
    counts once.

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
        rules = Rules(n_features - 1, 0, True, np.dtype(dtype), n_labels)
        parts = [(csr_matrix((0, n_features), dtype=dtype), csr_matrix((0, n_labels), dtype=np.int8))]
        n_rows = 0
        for text, number in chunks(file, line=2):
            lines = text.removesuffix(b"\n").split(b"\n")
            for k, line in enumerate(lines):
                if n_rows + k >= n_samples and line.strip():
                    problem = f"more rows than the {n_samples} that the header says"
                    raise FileFormatError(path, number + k, problem)
                if b"#" in line or b"qid" in line:
                    raise FileFormatError(path, number + k, "this format has no comments (#) and no qid")
            lines = lines[: n_samples - n_rows]
            # scikit-learn passes over empty lines, and not over this one
            text = b"\n".join(line if line.strip() else b"qid:0" for line in lines)
            parts.append(read_rows(text, path, number, rules))
            parts[-1][0].resize(len(lines), n_features)
            n_rows += len(lines)
    if n_rows < n_samples:
        problem = f"the file ends after {n_rows} rows; its header says {n_samples}"
        raise FileFormatError(path, n_rows + 2, problem)
    X, Y = zip(*parts, strict=True)
    return sp.vstack(X, format="csr"), sp.vstack(Y, format="csr")


def _header(line, path):
    try:
        sizes = [int(field) for field in line.split()]
    except ValueError:
        sizes = []
    if len(sizes) != 3 or not 0 <= min(sizes) <= max(sizes) <= INT32_MAX:
        problem = f"the header must be three counts up to {INT32_MAX}, n_samples n_features n_labels; it is "
        raise FileFormatError(path, 1, problem + shown(line.strip()))
    return sizes
