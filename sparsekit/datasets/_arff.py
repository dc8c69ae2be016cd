"""ARFF, dense and sparse."""

from __future__ import annotations

import io
import math
import os
import re
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

from .._typing import FileName
from ._arff_syntax import SPARSE_FIELD, fields_of, read_attribute, unquote
from ._files import MAX_BYTES, FileFormatError, numeral, open_bytes, shown, whole_number
from ._mulan import mulan_labels

# bytes that are not text of the encoding, as surrogateescape leaves them
_UNDECODED = re.compile("[\udc80-\udcff]")


def load_arff(
    path: FileName,
    *,
    target: FileName | list[str] | None = None,
    dtype: DTypeLike = np.float64,
    encoding: str = "utf-8",
    skip_strings: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Bunch:
    """Read an ARFF file, dense or sparse, with numeric and nominal attributes.

    Parameters
    ----------
    path : str or path-like
        The file; names ending in .gz, .bz2 or .xz are uncompressed while reading.
    target : str, list of str or path-like, default=None
        What to predict. A name ending in .xml is Mulan's file of label names; any other string is the name of
        one attribute, a list names several. None leaves every attribute in ``data``.
    dtype : dtype, default=float64
        Of ``data``.
    encoding : str, default="utf-8"
        Of the text; a byte-order mark of UTF-8 is skipped. Comments may hold any bytes.
    skip_strings : bool, default=False
        Leave attributes of type string and date out, instead of refusing the file.
    max_bytes : int, default=2**34
        Bytes that a compressed file may unpack to: more are an error, once so many have been read.

    Returns
    -------
    sklearn.utils.Bunch
        With the items

        data : ndarray or scipy.sparse.csr_matrix of shape (n_samples, n_features)
            CSR if the file's rows are sparse (``{index value, ...}``). Nominal values that are all numbers
            are these numbers, others their position in the declaration; a missing value ? is NaN. Values
            with leading zeros, or of which two are the same number ({1e2,100}), are names.
        target : ndarray, csr_matrix or None
            One attribute: shape (n_samples,), strings if it is nominal with values that are no numbers. A
            list or an XML file: shape (n_samples, n_targets), sparse if the rows are.
        feature_names, target_names : list of str
            Names of the columns.
        categories : dict of str to list of str
            Declared values of each nominal attribute.
        sample_weight : ndarray of shape (n_samples,), float64, or None
            The weights that rows have at their end (``..., {5}``), 1 for a row without; None if no row has
            one.
        relation : str
            Name of the relation.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not in the format or the encoding, unpacks to too much or lacks a target. If it has
        attributes of type string or date (see ``skip_strings``) or relational. The message names the file,
        the line (counted from 1) and the error.

    Notes
    -----
    Values of a line are separated by commas or tabs. In quoted names and values, ``\\t``, ``\\n``, ``\\r``,
    ``\\uXXXX`` and three octal digits are escapes, as Weka writes them. Any other character after a backslash
    is itself. The range of ``integer [0,9]`` is not checked.

    In sparse rows the absent value is 0, for a nominal attribute the first of its values, as ARFF defines it.

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsekit.datasets import load_arff
    >>> lines = ["@relation r", "@attribute x numeric", "@attribute y {a,b}", "@data", "0.5,b", "2,a"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.arff")
    ...     with open(path, "w") as file:
    ...         _ = file.write("\\n".join(lines))
    ...     bunch = load_arff(path, target="y")
    >>> bunch.data.tolist(), bunch.target.tolist()
    ([[0.5], [2.0]], ['b', 'a'])
    """
    path = os.fspath(path)
    with open_bytes(path, max_bytes) as file, _opened_text(file, encoding) as text:
        lines = _lines(text, path)
        relation, attributes = _read_header(lines, path, skip_strings)
        matrix, weight = _read_rows(lines, attributes, path, dtype)
    names = [attribute.name for attribute in attributes]
    target_names, single = _targets(target, attributes, path)
    chosen = set(target_names)
    features = [j for j, a in enumerate(attributes) if a.name not in chosen and not a.is_text]
    columns = [names.index(name) for name in target_names]
    y = None
    if single:
        y = matrix[:, columns[0]]
        y = y.toarray().ravel() if sp.issparse(y) else y
        y = _as_labels(y, attributes[columns[0]], path)
    elif columns:
        y = matrix[:, columns]
    return Bunch(
        data=matrix[:, features],
        target=y,
        feature_names=[names[j] for j in features],
        target_names=target_names,
        categories={a.name: list(a.categories) for a in attributes if a.categories is not None},
        sample_weight=weight,
        relation=relation,
    )


@contextmanager
def _opened_text(file, encoding):
    """The file as text; bytes that are none are escaped."""
    try:
        text = io.TextIOWrapper(file, encoding=encoding, errors="surrogateescape")
    except LookupError:
        raise ValueError(f"encoding must name one that Python knows; got {shown(encoding)}") from None
    try:
        yield text
    finally:
        text.detach()  # the caller closes the file


def _lines(text, path):
    """Number from 1 and text of each line, without spaces at its ends."""
    number = 0
    try:
        for number, raw in enumerate(text, start=1):
            line = raw.strip()
            if not line.isascii() and not line.startswith("%") and _UNDECODED.search(line):
                raise FileFormatError(path, number, _no_text(text.encoding))
            yield number, line
    except UnicodeDecodeError as error:
        raise FileFormatError(path, number + 1, _no_text(text.encoding)) from error


def _no_text(encoding):
    return f'is not text in {encoding}; give the encoding, such as encoding="latin-1" or "utf-16"'


def _read_header(lines, path, skip_strings):
    relation, attributes, seen, number = "", [], set(), 0
    for number, line in lines:
        word = line.split(None, 1)[0].lower() if line else "%"
        if word.startswith("%"):
            continue
        if word == "@relation":
            relation = unquote(line[len(word) :].strip())
        elif word == "@attribute":
            attribute = read_attribute(line, path, number, skip_strings)
            if attribute.name in seen:
                raise FileFormatError(path, number, f"attribute {shown(attribute.name)} is declared twice")
            seen.add(attribute.name)
            attributes.append(attribute)
        elif word == "@data":
            if not attributes:
                raise FileFormatError(path, number, "@data without any @attribute before it")
            if all(attribute.is_text for attribute in attributes):
                raise FileFormatError(path, number, "all attributes are strings or dates")
            return relation, attributes
        else:
            problem = f"expected @relation, @attribute or @data, found {shown(line)}"
            raise FileFormatError(path, number, problem)
    raise FileFormatError(path, number or None, "the file ends without @data")


def _read_rows(lines, attributes, path, dtype):
    """The data section as one matrix, all attributes in it, and the weights of the rows or None."""
    dense: list = []
    weights: dict = {}
    indptr, indices, values = [0], [], []
    for number, line in lines:
        if not line or line.startswith("%"):
            continue
        is_sparse = line.startswith("{")
        if line.endswith("}"):
            line, weight = _without_weight(line, is_sparse, path, number)
            if weight is not None:
                weights[len(dense) + len(indptr) - 1] = weight
        if is_sparse:
            if dense:
                raise FileFormatError(path, number, "a sparse row after dense ones")
            columns, row = _sparse_row(line, attributes, path, number)
            indices.extend(columns)
            values.extend(row)
            indptr.append(len(indices))
        else:
            if len(indptr) > 1:
                raise FileFormatError(path, number, "a dense row after sparse ones")
            dense.append(_dense_row(line, attributes, path, number, dtype))
    weight = None
    if weights:
        weight = np.ones(len(dense) + len(indptr) - 1)
        weight[list(weights)] = list(weights.values())
    if dense:
        return np.vstack(dense), weight
    if len(indptr) == 1:
        raise FileFormatError(path, None, "holds no row after @data")
    try:
        stored = np.array(values, dtype=dtype)
    except (OverflowError, ValueError) as error:
        raise FileFormatError(path, None, f"a value does not fit into {np.dtype(dtype)}: {error}") from error
    return _sparse_matrix(stored, indices, indptr, attributes), weight


def _without_weight(line, is_sparse, path, number):
    """A row that ends in }, without the weight in braces at its end, and that weight or None."""
    opening = line.rfind("{")
    before = line[:opening].rstrip()
    row = before.removesuffix(",").rstrip()
    # without a separator the brace belongs to a value
    if opening <= 0 or (not row.endswith("}") if is_sparse else before == line[:opening] and row == before):
        return line, None
    text = line[opening + 1 : -1].strip()
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise FileFormatError(path, number, f"the weight of the row is {shown(text)}, not a number from 0 on")
    return row, weight


def _sparse_matrix(values, indices, indptr, attributes):
    shape = (len(indptr) - 1, len(attributes))
    # absent means "the first declared value", which need not be the number 0
    base = [0.0 if a.categories is None else next(iter(a.categories.values())) for a in attributes]
    shifted = np.flatnonzero(base)
    matrix = sp.csr_matrix((values, indices, indptr), shape=shape)
    if len(shifted):
        given = sp.csr_matrix((np.ones(len(values), dtype=bool), indices, indptr), shape=shape).tocsc()
        matrix = matrix.tolil()
        for j in shifted:
            absent = np.setdiff1d(np.arange(shape[0]), given[:, [j]].indices)
            matrix[absent, j] = base[j]
        matrix = matrix.tocsr()
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


def _dense_row(line, attributes, path, number, dtype):
    # without quotes and tabs a plain split is the same as the pattern and much faster
    if "'" in line or '"' in line or "\t" in line:
        fields = fields_of(line)
        texts = None if fields is None else [field[0] for field in fields]
    else:
        texts = [text.strip() for text in line.split(",")]
    if texts is None or len(texts) != len(attributes):
        found = "an unreadable row" if texts is None else f"{len(texts)} values"
        raise FileFormatError(path, number, f"{found}, but {len(attributes)} attributes are declared")
    row = np.empty(len(texts), dtype=dtype)
    for j, (text, attribute) in enumerate(zip(texts, attributes, strict=True)):
        value = _value(text, attribute, path, number)
        try:
            row[j] = value
        except (OverflowError, ValueError):
            problem = f"attribute {shown(attribute.name)} has the value {shown(text)}, no {row.dtype}"
            raise FileFormatError(path, number, problem) from None
    return row


def _sparse_row(line, attributes, path, number):
    body = line[1:-1].strip() if line.endswith("}") else None
    fields = None if body is None else fields_of(body, SPARSE_FIELD)
    if fields is None:
        raise FileFormatError(path, number, f"{shown(line)} is not a sparse row {{index value, ...}}")
    columns = [whole_number(index) for index, _ in fields]
    for column, (index, _) in zip(columns, fields, strict=True):
        if column is None or column >= len(attributes):
            problem = (
                f"index {numeral(index)}, but only {len(attributes)} attributes are declared (counted from 0)"
            )
            raise FileFormatError(path, number, problem)
    if len(set(columns)) != len(columns):
        raise FileFormatError(path, number, "an index occurs twice in the row")
    row = [_value(text, attributes[j], path, number) for j, (_, text) in zip(columns, fields, strict=True)]
    return columns, row


def _value(text, attribute, path, number):
    try:
        return attribute.number(text)
    except (ValueError, KeyError):
        allowed = (
            "a number" if attribute.categories is None else f"one of {shown(', '.join(attribute.categories))}"
        )
        problem = f"attribute {shown(attribute.name)} has the value {shown(text)}, which is not {allowed}"
        raise FileFormatError(path, number, problem) from None


def _targets(target, attributes, path):
    """Names of the target attributes, and whether it is one column rather than a table."""
    if target is None:
        return [], False
    single = isinstance(target, str) and not target.lower().endswith(".xml")
    if single:
        wanted = [target]
    elif isinstance(target, (list, tuple)):
        wanted = list(target)
    else:
        wanted = mulan_labels(os.fspath(target))
    known = {attribute.name: attribute for attribute in attributes}
    for name in wanted:
        if name not in known:
            raise FileFormatError(path, None, f"no attribute is named {shown(name)}, which target asks for")
        if known[name].is_text:
            raise FileFormatError(path, None, f"the target {shown(name)} is a string or date, not nominal")
    return wanted, single


def _as_labels(codes, attribute, path):
    """The values of one nominal target as they are written in the file; numbers stay numbers."""
    if attribute.numbers:
        return codes
    # a missing label has no name
    if np.isnan(codes).any():
        raise FileFormatError(path, None, f"the target {shown(attribute.name)} has missing values")
    return np.array(list(attribute.categories))[codes.astype(np.intp)]
