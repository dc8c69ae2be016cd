"""Tables of the user, CSV and parquet: columns of numbers as they are, columns of words one-hot encoded."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .._messages import shown

# a column with more words than this, and more than half as many as rows, is text rather than a category
MAX_WORDS = 20
# rows of a CSV file whose fields are held as text at a time
CHUNK = 10_000
# a one-hot encoded table with less than this share of non-zeros is made sparse
DENSE_SHARE = 0.2
# a number as much of Europe writes it, or one with a separator of thousands
COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
# the index of a data frame, which pandas writes beside its columns
PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class DataError(Exception):
    """A file cannot be used; the message names the file, the line where there is one, and the fault."""


@dataclass
class Table:
    """Features and labels as a file has them.

    names : of the features.
    columns : float64 arrays, or object arrays of str.
    labels : numbers or strings.
    forced : names of the features that may have any number of words.
    """

    names: list[str]
    columns: list[np.ndarray]
    labels: np.ndarray
    forced: set[str] = field(default_factory=set)


@dataclass
class Encoding:
    """How words became numbers, so that held-out rows are treated alike.

    names : of the table's features.
    words : for each column its sorted words, or None for numbers.
    """

    names: list[str]
    words: list[np.ndarray | None]
    notes: list[str] = field(default_factory=list)


def is_number(text):
    """Whether Python reads a number in it, NaN and inf included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _are_comma_numbers(words):
    """Whether all of them, one at least, are numbers but for their comma."""
    return len(words) > 0 and all(COMMA_NUMBER.fullmatch(word) for word in words)


def _says_comma(what, word, name):
    return (
        f"{what} holds {shown(word)}, a number with a comma; write it with a point, or, if it is one of "
        f"categories: --categorical {name}"
    )


def _column_number(names, name, path):
    if names.count(name) > 1:
        numbers = ", ".join(str(i + 1) for i, other in enumerate(names) if other == name)
        raise DataError(f"{path}: columns {numbers} are all called {shown(name)}; say which by its number")
    if name in names:
        return names.index(name)
    if name.isdigit() and 1 <= int(name) <= len(names):
        return int(name) - 1
    some = ", ".join(names[:10]) + (" ..." if len(names) > 10 else "")
    raise DataError(f"{path}: no column {shown(name)}; columns are {some}")


def _roles(names, path, target, categorical, drop):
    """Number of the target column, set of numbers of forced categories, set of columns that are left out."""
    out = len(names) - 1 if target is None else _column_number(names, target, path)
    forced, dropped = ({_column_number(names, name, path) for name in given} for given in (categorical, drop))
    if out in dropped:
        raise DataError(f"{path}: column {shown(names[out])} is the target and cannot be left out")
    return out, forced, dropped


def read_csv(path, opener, target=None, categorical=(), drop=()):
    """The table in a CSV or TSV file.

    Parameters
    ----------
    path : Path
    opener : callable
        Opens the file, compressed or not.
    target : str, optional
        Name or number from 1 of the column of labels; the last by default.
    categorical, drop : sequence of str
        Columns that hold categories though they have numbers, and columns to leave out.

    Raises
    ------
    DataError
    """
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text: {error}") from error
    rows = _rows(text, path)
    line, head = next(rows, (0, []))
    if len(head) < 2:
        raise DataError(f"{path}:1: at least two columns (features and target) are needed, found {len(head)}")
    # a header is a first line with no number in it, or with words where the second line has numbers
    second = next(rows, None)
    numeric = [is_number(field) for field in head]
    has_header = not any(numeric) or (
        second is not None and any(not a and is_number(b) for a, b in zip(numeric, second[1]))
    )
    names = [field.strip() for field in head] if has_header else [str(i + 1) for i in range(len(head))]
    out, forced, dropped = _roles(names, path, target, categorical, drop)
    columns = {
        j: _CsvColumn(f"column {shown(names[j])}", names[j], path, j in forced)
        for j in range(len(names))
        if j not in dropped and j != out
    }
    labels = _CsvColumn(f"target column {shown(names[out])}", names[out], path, True)
    lines, chunk = [], []

    def flush():
        fields = list(zip(*chunk))
        for j, column in (*columns.items(), (out, labels)):
            if chunk:
                column.add(fields[j], lines)
        chunk.clear()
        lines.clear()

    def take(line, row):
        if len(row) != len(names):
            flush()  # a fault in an earlier line comes first
            raise DataError(f"{path}:{line}: has {len(row)} fields where {len(names)} are expected")
        chunk.append(row)
        lines.append(line)
        if len(chunk) == CHUNK:
            flush()

    if not has_header:
        take(line, head)
    if second is not None:
        take(*second)
    for line, row in rows:
        take(line, row)
    flush()
    y = labels.values()
    if len(y) and all(map(is_number, y)):
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            raise DataError(f"{path}: target column {shown(names[out])} holds NaN or inf")
    else:
        y = y.astype(str)
    return Table(
        [names[j] for j in columns],
        [column.values() for column in columns.values()],
        y,
        {names[j] for j in forced},
    )


def _rows(text, path):
    """Number of the last line and fields of each row; lines of nothing but spaces are none."""
    first = text.split("\n", 1)[0]
    fields = first.split(";")
    if len(fields) > 1 and all(is_number(f) or COMMA_NUMBER.fullmatch(f.strip()) for f in fields):
        delimiter = ";"  # although decimal commas may be as many
    else:
        delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    # the process has one, and others lift it (scipy.io.arff): an open quote would hide the rest of the file
    limit = csv.field_size_limit(131_072)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}") from error
    finally:
        csv.field_size_limit(limit)


class _CsvColumn:
    """Fields of one column, as numbers as long as they all are."""

    def __init__(self, what, name, path, as_words):
        self.what, self.name, self.path, self.as_words = what, name, path, as_words
        self.is_words = as_words or None  # not known before there are any
        self.parts = []

    def add(self, fields, lines):
        fields = [text.strip() for text in fields]
        empty = next((i for i, text in enumerate(fields) if not text), None)
        if empty is not None:
            raise DataError(f"{self.path}:{lines[empty]}: {self.what} is empty")
        if not self.as_words:
            kinds = [is_number(text) for text in fields]
            if self.is_words is None:
                self.is_words = not kinds[0]
            other = next((i for i, numeric in enumerate(kinds) if numeric == self.is_words), None)
            if other is not None:
                commas = [i for i, numeric in enumerate(kinds) if not numeric]
                if _are_comma_numbers([fields[i] for i in commas]):
                    text = _says_comma(self.what, fields[commas[0]], self.name)
                    raise DataError(f"{self.path}:{lines[commas[0]]}: {text}")
                kind = "a number among words" if self.is_words else "which is not a number"
                raise DataError(
                    f"{self.path}:{lines[other]}: {self.what} holds {shown(fields[other])}, {kind}; if it "
                    f"is one of categories: --categorical {self.name}"
                )
        if self.is_words:
            self.parts.append(np.array(fields, dtype=object))
            return
        values = np.array([float(text) for text in fields])
        if not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise DataError(f"{self.path}:{lines[bad]}: {self.what} holds NaN or inf")
        self.parts.append(values)

    def values(self):
        return np.concatenate(self.parts) if self.parts else np.zeros(0)


def read_parquet(path, target=None, categorical=(), drop=()):
    """The table in a parquet file, by pyarrow; the arguments are those of `read_csv`."""
    stored = _stored_columns(path)
    names = [name for name in stored if not PANDAS_INDEX.fullmatch(name)]
    if len(names) < 2:
        raise DataError(f"{path}: at least two columns (features and target) are needed, found {len(names)}")
    out, forced, dropped = _roles(names, path, target, categorical, drop)
    columns = {}
    for j, name in enumerate(names):
        if j in dropped:
            continue
        values = stored[name]
        if isinstance(values, str):
            raise DataError(
                f"{path}: column {shown(name)} is {values}; numbers and words are needed"
                + ("" if j == out else f". Leave it out: --drop {name}")
            )
        if values.dtype != object and not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0]) + 1
            raise DataError(f"{path}: column {shown(name)} holds NaN or inf (row {row})")
        if j in forced and values.dtype != object:
            values = np.array([text_of(value) for value in values], dtype=object)
        columns[j] = values
    labels = columns.pop(out)
    labels = labels.astype(str) if labels.dtype == object else labels
    return Table([names[j] for j in columns], list(columns.values()), labels, {names[j] for j in forced})


def _stored_columns(path):
    """Columns by name: float64 arrays, object arrays of str, or a string that says why it is neither."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyarrow import types
    except ImportError:
        raise DataError(f"{path}: to read parquet files pyarrow is needed: pip install pyarrow") from None

    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise DataError(f"{path}: is not a readable parquet file: {error}") from error
    numeric = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal
    found = {}
    for name, column in zip(table.column_names, table.columns):
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if column.null_count:
            found[name] = _says_empty(column.null_count)
        elif any(is_kind(kind) for is_kind in numeric):
            found[name] = column.to_numpy().astype(np.float64)
        elif "string" in str(kind):
            found[name] = np.array(column.to_pylist(), dtype=object)
        else:
            found[name] = f"of type {kind}"
    return found


def _says_empty(count):
    return f"empty in {count} row{'s' if count > 1 else ''}"


def text_of(value):
    """A number as a user writes it: 3 and not 3.0."""
    return str(int(value)) if float(value).is_integer() else str(float(value))


def encode(table, path, encoding=None):
    """Matrix of a table, with a column of zeros and ones for each word of a column of words.

    Parameters
    ----------
    table : Table
    path : Path
        For messages.
    encoding : Encoding, optional
        That of the training rows, for held-out ones: words that are not in it become zeros.

    Returns
    -------
    X : ndarray or csr_matrix, float64
    encoding : Encoding
        Its ``notes`` say what was done.

    Raises
    ------
    DataError
        If a column holds text rather than categories, or the columns are others than those of ``encoding``.
    """
    n = len(table.labels)
    if encoding is None:
        words = [_words(name, column, path, table.forced) for name, column in zip(table.names, table.columns)]
        encoding = Encoding(table.names, words)
        counts = [(name, len(w)) for name, w in zip(table.names, words) if w is not None]
        if counts:
            listed = ", ".join(f"{name} ({count})" for name, count in counts[:6])
            more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
            encoding.notes.append(f"one-hot encoded (values): {listed}{more}")
    elif encoding.names != table.names:
        raise DataError(
            f"{path}: its columns are not those of the training rows: {', '.join(table.names[:10])}"
        )
    parts, unknown = [], 0
    for name, column, words in zip(table.names, table.columns, encoding.words):
        if (words is None) != (column.dtype != object):
            kinds = ("numbers", "words") if words is None else ("words", "numbers")
            raise DataError(f"{path}: column {shown(name)} holds {kinds[1]}, in the training rows {kinds[0]}")
        if words is None:
            parts.append(sparse.csc_matrix(column[:, None]))
            continue
        place = np.minimum(np.searchsorted(words, column.astype(str)), len(words) - 1)
        known = words[place] == column.astype(str)
        unknown += int(np.count_nonzero(~known))
        rows = np.flatnonzero(known)
        parts.append(sparse.csc_matrix((np.ones(len(rows)), (rows, place[rows])), shape=(n, len(words))))
    if unknown:
        encoding.notes.append(f"{unknown} words of held-out rows are in no training row; they count as none")
    if all(words is None for words in encoding.words):
        return np.column_stack(table.columns) if table.columns else np.zeros((n, 0)), encoding
    X = sparse.hstack(parts, format="csr")
    is_dense = len(table.columns) > DENSE_SHARE * X.shape[1]
    return (X.toarray() if is_dense else sparse.csr_matrix(X)), encoding


def _words(name, column, path, forced):
    if column.dtype != object:
        return None
    words = np.unique(column.astype(str))
    if name not in forced and _are_comma_numbers(words):
        raise DataError(f"{path}: {_says_comma(f'column {shown(name)}', column[0], name)}")
    if len(words) > MAX_WORDS and len(words) > len(column) / 2 and name not in forced:
        raise DataError(
            f"{path}: column {shown(name)} holds {len(words)} different words in {len(column)} rows, text "
            f"rather than categories. Leave it out (--drop {name}) or encode it (--categorical {name})."
        )
    return words
