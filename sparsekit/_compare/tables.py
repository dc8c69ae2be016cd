"""Tables of the user: columns of numbers as they are, columns of words one-hot encoded; parquet files."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .._messages import shown

# a column with more words than this, and more than half as many as rows, is text rather than a category
MAX_WORDS = 20
# a one-hot encoded table with less than this share of non-zeros is made sparse
DENSE_SHARE = 0.2
# a number with commas, a currency or a percent sign: its commas may separate thousands or decimals
WRITTEN_NUMBER = re.compile(r"[+-]?[$€£]? ?[+-]?(\d+(,\d+)*(\.\d+)?|(,\d+)+|\.\d+)([eE][+-]?\d+)? ?[%$€£]?")
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
    notes : what a reader of the results must know.
    is_row_number : for each feature whether it counts the rows of the file.
    left_out : names of features that are none after all.
    """

    names: list[str]
    columns: list[np.ndarray]
    labels: np.ndarray
    forced: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    is_row_number: list[bool] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass
class Encoding:
    """How words became numbers, so that held-out rows are treated alike.

    names : of the table's features.
    words : for each column its sorted words, or None for numbers.
    left_out : names of columns that held-out rows may have beside them.
    """

    names: list[str]
    words: list[np.ndarray | None]
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def is_number(text):
    """Whether Python reads a number in it, NaN and inf included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def are_written_numbers(words):
    """Whether all of them, one at least, are numbers but for commas, currencies or percent signs."""
    return len(words) > 0 and all(map(WRITTEN_NUMBER.fullmatch, words))


def says_written(what, word, name):
    return (
        f"{what} holds {shown(word)}, a number with a comma or a sign; write it with digits and a point, or, "
        f"if it is one of categories: --categorical {name}"
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


def roles_of(names, path, target, categorical, drop):
    """Number of the target column, set of numbers of forced categories, set of columns that are left out."""
    out = len(names) - 1 if target is None else _column_number(names, target, path)
    forced, dropped = ({_column_number(names, name, path) for name in given} for given in (categorical, drop))
    if out in dropped:
        raise DataError(f"{path}: column {shown(names[out])} is the target and cannot be left out")
    return out, forced, dropped


def finish_table(path, names, columns, missing, out, forced, drop_missing, places):
    """The table of columns as they were read, its rows all complete.

    Parameters
    ----------
    path : Path
    names : list of str
        Of all columns of the file.
    columns, missing, places : dict
        By the number of each column that is used, the target included: its values, which rows have none,
        and where the first of these is.
    out : int
        Number of the target.
    forced : set of int
        Columns of categories.
    drop_missing : bool
        Leave rows out that have not all values.
    """
    numbers = {j: _counts_rows(values) for j, values in columns.items()}
    rows, notes = _complete_rows(path, names, missing, out, drop_missing, places)
    if rows is not None:
        columns = {j: values[rows] for j, values in columns.items()}
    features = [j for j in columns if j != out]
    return Table(
        [names[j] for j in features],
        [columns[j] for j in features],
        columns[out],
        {names[j] for j in forced},
        notes,
        [numbers[j] for j in features],
    )


def without_index(table, unnamed=()):
    """The table without columns that have no name and count the rows; notes on others like that."""
    for name in list(table.names):
        j = table.names.index(name)
        if name in unnamed and table.is_row_number[j]:
            table.notes.append(f"left out: column {name}, which has no name and counts the rows")
            table.left_out.append(name)
            for of_columns in (table.names, table.columns, table.is_row_number):
                del of_columns[j]
        elif name in unnamed or table.is_row_number[j]:
            what = "has no name" if name in unnamed else "counts the rows"
            option = _options(table.names, [j])
            table.notes.append(f"column {name} {what} and is a feature; --drop {option} leaves it out")
    return table


def _counts_rows(values):
    """Whether these are the numbers of the rows from 0 or 1, in any order."""
    if values.dtype == object or not len(values) or np.isnan(values).any():
        return False
    return bool((np.sort(values) - values.min() == np.arange(len(values))).all() and values.min() in (0, 1))


def _complete_rows(path, names, missing, out, drop_missing, places):
    """Which rows have all values, None for all of them, and notes."""
    gaps = {j: where for j, where in missing.items() if where.any()}
    if not gaps:
        return None, []
    incomplete = np.logical_or.reduce(list(gaps.values()))
    count, n = int(incomplete.sum()), len(incomplete)
    counts = [
        f"{names[j]}{', the target' if j == out else ''} ({where.sum()}, first in {places[j]})"
        for j, where in gaps.items()
    ]
    listed = ", ".join(counts[:10]) + (f" and {len(counts) - 10} more" if len(counts) > 10 else "")
    if drop_missing and count < n:
        return ~incomplete, [f"left out: {count} of {n} rows, with missing values in {listed}"]
    features = [j for j in gaps if j != out]
    remedies = [] if drop_missing else ["the rows out (--drop-missing)"]
    remedies += [f"columns out (--drop {_options(names, features)})"] if features else []
    which = "every row has" if count == n else f"{count} of {n} rows have"
    raise DataError(
        f"{path}: {which} missing values, in the columns {listed}"
        + (f". Leave {' or '.join(remedies)}." if remedies else ".")
    )


def _option(names, j):
    """A column as the command line takes it: by its name, or by its number where the name won't do."""
    return names[j] if names.count(names[j]) == 1 and "," not in names[j] else str(j + 1)


def _options(names, columns):
    """Several columns, as a shell takes them."""
    return shlex.quote(",".join(_option(names, j) for j in columns))


def read_parquet(path, target=None, categorical=(), drop=(), drop_missing=False):
    """The table in a parquet file, by pyarrow; the arguments are those of `read_csv`."""
    stored, missing = _stored_columns(path)
    names = [name for name in stored if not PANDAS_INDEX.fullmatch(name)]
    if len(names) < 2:
        raise DataError(f"{path}: at least two columns (features and target) are needed, found {len(names)}")
    out, forced, dropped = roles_of(names, path, target, categorical, drop)
    columns = {}
    for j, name in enumerate(names):
        if j in dropped:
            continue
        values = stored[name]
        if isinstance(values, str):
            raise DataError(
                f"{path}: column {shown(name)} is {values}; numbers and words are needed"
                + ("" if j == out else f". Leave it out: --drop {_options(names, [j])}")
            )
        if values.dtype != object and np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0]) + 1
            raise DataError(f"{path}: column {shown(name)} holds inf (row {row})")
        if j in forced and values.dtype != object:
            values = np.array([text_of(value) for value in values], dtype=object)
        columns[j] = values
    gaps = {j: missing[names[j]] for j in columns}
    places = {j: f"row {int(np.argmax(where)) + 1}" for j, where in gaps.items() if where.any()}
    table = finish_table(path, names, columns, gaps, out, forced, drop_missing, places)
    if table.labels.dtype == object:
        table.labels = table.labels.astype(str)
    return without_index(table)


def _stored_columns(path):
    """Columns by name, and where they have no value, (n,) of bools.

    A column is a float64 array, an object array of str, or a string that says why it is neither.
    """
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
    found, missing = {}, {}
    for name, column in zip(table.column_names, table.columns):
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        gaps = column.is_null().to_numpy()
        if any(is_kind(kind) for is_kind in numeric):
            found[name] = np.full(len(gaps), np.nan)
            found[name][~gaps] = column.drop_null().to_numpy().astype(np.float64)
            gaps = np.isnan(found[name])
        elif "string" in str(kind):
            found[name] = np.array([text or "" for text in column.to_pylist()], dtype=object)
        else:
            found[name] = f"of type {kind}"
        missing[name] = gaps
    return found, missing


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
        words = _words(table, path)
        encoding = Encoding(table.names, words, table.notes, table.left_out)
        counts = [(name, len(w)) for name, w in zip(table.names, words) if w is not None]
        if counts:
            listed = ", ".join(f"{name} ({count})" for name, count in counts[:6])
            more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
            encoding.notes.append(f"one-hot encoded (values): {listed}{more}")
    else:
        used = [j for j, name in enumerate(table.names) if name not in encoding.left_out]
        table.names, table.columns = [table.names[j] for j in used], [table.columns[j] for j in used]
        encoding.notes += [f"held-out rows: {note}" for note in table.notes if note not in encoding.notes]
        if encoding.names != table.names:
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


def _words(table, path):
    """For each column its sorted words, or None for numbers."""
    found, texts = [], []
    for j, (name, column) in enumerate(zip(table.names, table.columns)):
        if column.dtype != object:
            found.append(None)
            continue
        words = np.unique(column.astype(str))
        if name not in table.forced:
            if are_written_numbers(words):
                raise DataError(f"{path}: {says_written(f'column {shown(name)}', column[0], name)}")
            if len(words) > MAX_WORDS and len(words) > len(column) / 2:
                texts.append((j, len(words)))
        found.append(words)
    if texts:
        counts = ", ".join(f"{shown(table.names[j])} ({count})" for j, count in texts)
        options = _options(table.names, [j for j, _ in texts])
        raise DataError(
            f"{path}: text rather than categories, by the number of different words in {len(table.labels)} "
            f"rows: {counts}. Leave it out (--drop {options}) or encode it (--categorical {options})."
        )
    return found
