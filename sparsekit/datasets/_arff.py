"""ARFF, dense and sparse, and the XML files in which Mulan names a data set's labels."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

from .._typing import FileName
from ._files import MAX_BYTES, FileFormatError, numeral, open_bytes, shown, whole_number

_NUMERIC = {"numeric", "real", "integer"}
# a name or value: quoted with ' or " (a backslash escapes), or anything up to a separator. No repetition
# gives anything back (++, *+): a match, or the failure of one, takes time in proportion to what it reads
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_ATTRIBUTE = re.compile(rf"@attribute\s++({_QUOTED}|[^\s{{]++)\s*+(.*+)$", re.IGNORECASE)
_VALUE = rf"(?:({_QUOTED})\s*+|([^,'\"]*+))(?:,|$)"
_FIELD = re.compile(rf"\s*+{_VALUE}")
_SPARSE_FIELD = re.compile(rf"\s*+(\d++)\s++{_VALUE}")


@dataclass(frozen=True)
class _Attribute:
    """One column: categories is None if it is numeric, else value -> number stored for it."""

    name: str
    categories: dict | None
    # nominal values that are all numbers (Mulan's {0,1}) mean these numbers
    numbers: bool

    def number(self, text):
        if text == "?":
            return np.nan
        if self.categories is None:
            return float(text)
        return self.categories[text]


def load_arff(
    path: FileName,
    *,
    target: FileName | list[str] | None = None,
    dtype: DTypeLike = np.float64,
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
    max_bytes : int, default=2**34
        Bytes that a compressed file may unpack to: more are an error, once so many have been read.

    Returns
    -------
    sklearn.utils.Bunch
        With the items

        data : ndarray or scipy.sparse.csr_matrix of shape (n_samples, n_features)
            CSR if the file's rows are sparse (``{index value, ...}``). Nominal values that are all numbers
            are these numbers, others their position in the declaration; a missing value "?" is NaN.
        target : ndarray, csr_matrix or None
            One attribute: shape (n_samples,), strings if it is nominal with values that are no numbers. A
            list or an XML file: shape (n_samples, n_targets), sparse if the rows are.
        feature_names, target_names : list of str
            Names of the columns.
        categories : dict of str to list of str
            Declared values of each nominal attribute.
        relation : str
            Name of the relation.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not in the format, unpacks to too much, has attributes of type string, date or
        relational, or lacks a target; the message names the file, the line (counted from 1) and what is wrong
        there.

    Notes
    -----
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
    with open_bytes(path, max_bytes) as file:
        lines = enumerate((raw.decode("utf-8", "replace") for raw in file), start=1)
        relation, attributes = _read_header(lines, path)
        matrix = _read_rows(lines, attributes, path, dtype)
    names = [attribute.name for attribute in attributes]
    target_names, single = _targets(target, names, path)
    chosen = set(target_names)
    features = [j for j, name in enumerate(names) if name not in chosen]
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
        relation=relation,
    )


def _unquote(text):
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _fields(text, pattern=_FIELD):
    """Split at commas outside quotes; None if the text does not follow the pattern to its end.

    A list of groups, the last of them the value.
    """
    found, position = [], 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None or match.end() == position:
            return None
        *before, quoted, plain = match.groups()
        found.append((*before, plain.rstrip() if quoted is None else quoted))
        position = match.end()
    return found


def _read_header(lines, path):
    relation, attributes, seen, number = "", [], set(), 0
    for number, raw in lines:
        line = raw.strip()
        word = line.split(None, 1)[0].lower() if line else "%"
        if word.startswith("%"):
            continue
        if word == "@relation":
            relation = _unquote(line[len(word) :].strip())
        elif word == "@attribute":
            attribute = _attribute(line, path, number)
            if attribute.name in seen:
                raise FileFormatError(path, number, f"attribute {shown(attribute.name)} is declared twice")
            seen.add(attribute.name)
            attributes.append(attribute)
        elif word == "@data":
            if not attributes:
                raise FileFormatError(path, number, "@data without any @attribute before it")
            return relation, attributes
        else:
            problem = f"expected @relation, @attribute or @data, found {shown(line)}"
            raise FileFormatError(path, number, problem)
    raise FileFormatError(path, number or None, "the file ends without @data")


def _attribute(line, path, number):
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise FileFormatError(path, number, f"{shown(line)} is not @attribute name type")
    name, kind = _unquote(match[1]), match[2].partition("%")[0].strip()
    if kind.lower() in _NUMERIC:
        return _Attribute(name, None, True)
    if not (kind.startswith("{") and kind.endswith("}")):
        problem = (
            f"attribute {shown(name)} has type {shown(kind)}; numeric, real, integer and {{...}} can be read"
        )
        raise FileFormatError(path, number, problem)
    fields = _fields(kind[1:-1].strip())
    if not fields:
        raise FileFormatError(path, number, f"attribute {shown(name)}: cannot read the values {shown(kind)}")
    values = [_unquote(field[0]) for field in fields]
    if len(set(values)) != len(values):
        raise FileFormatError(path, number, f"attribute {shown(name)} lists a value twice")
    try:
        return _Attribute(name, {value: float(value) for value in values}, True)
    except ValueError:
        return _Attribute(name, {value: float(code) for code, value in enumerate(values)}, False)


def _read_rows(lines, attributes, path, dtype):
    """The data section as one matrix, all attributes in it."""
    dense: list = []
    indptr, indices, values = [0], [], []
    for number, raw in lines:
        line = raw.strip()
        if not line or line.startswith("%"):
            continue
        if line.startswith("{"):
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
    if dense:
        return np.vstack(dense)
    if len(indptr) == 1:
        raise FileFormatError(path, None, "holds no row after @data")
    try:
        stored = np.array(values, dtype=dtype)
    except (OverflowError, ValueError) as error:
        raise FileFormatError(path, None, f"a value does not fit into {np.dtype(dtype)}: {error}") from error
    return _sparse_matrix(stored, indices, indptr, attributes)


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
    # without quotes a plain split is the same as the pattern and much faster
    if "'" in line or '"' in line:
        fields = _fields(line)
        texts = None if fields is None else [_unquote(field[0]) for field in fields]
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
    fields = None if body is None else _fields(body, _SPARSE_FIELD)
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
    row = [
        _value(_unquote(text), attributes[j], path, number)
        for j, (_, text) in zip(columns, fields, strict=True)
    ]
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


def _targets(target, names, path):
    """Names of the target attributes, and whether it is one column rather than a table."""
    if target is None:
        return [], False
    single = isinstance(target, str) and not target.lower().endswith(".xml")
    if single:
        wanted = [target]
    elif isinstance(target, (list, tuple)):
        wanted = list(target)
    else:
        wanted = _mulan_labels(os.fspath(target))
    known = set(names)
    for name in wanted:
        if name not in known:
            raise FileFormatError(path, None, f"no attribute is named {shown(name)}, which target asks for")
    return wanted, single


def _mulan_labels(path):
    """Names in Mulan's XML file, ``<labels><label name="..."/>...``, nested labels included."""
    with open_bytes(path) as file:
        try:
            root = ElementTree.parse(file).getroot()
        except ElementTree.ParseError as error:
            raise FileFormatError(path, error.position[0], f"not well-formed XML ({error})") from error
    names = [node.get("name") for node in root.iter() if node.tag.rpartition("}")[2] == "label"]
    if not names or None in names:
        raise FileFormatError(path, None, "holds no <label name=...> elements, or one without a name")
    return names


def _as_labels(codes, attribute, path):
    """The values of one nominal target as they are written in the file; numbers stay numbers."""
    if attribute.numbers:
        return codes
    # a missing label has no name to stand for it
    if np.isnan(codes).any():
        raise FileFormatError(path, None, f"the target {shown(attribute.name)} has missing values")
    return np.array(list(attribute.categories))[codes.astype(np.intp)]
