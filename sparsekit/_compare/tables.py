"""CSV and parquet files of the user, read by pandas: numbers as they are, words one-hot encoded."""

from __future__ import annotations

import codecs
import io
import re
import shlex

import numpy as np
from scipy import sparse

from .._messages import listed, shown
from ..datasets._files import open_bytes

# More different words than this, and more than half as many as rows, are text rather than categories. More
# numbers than this are measurements rather than classes.
MAX_VALUES = 20
_DECIMAL_COMMA, _DECIMAL_POINT = re.compile(r"\d,\d"), re.compile(r"\d\.\d")


class DataError(Exception):
    """A file cannot be used; the message names the file and the fault."""


def is_number(text):
    """Whether Python reads a number in it, NaN and inf included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def text_of(value):
    """A number as a user writes it: 3 and not 3.0."""
    return str(int(value)) if float(value).is_integer() else str(float(value))


def read_table(path, kind, target, drop):
    """Features and labels of a CSV, TSV or parquet file; rows with missing values are left out.

    Parameters
    ----------
    path : Path
    kind : str
        Suffix of its name.
    target, drop
        As the options of the command line.

    Returns
    -------
    frame : DataFrame
        Columns of numbers, and of words as categories.
    labels : ndarray of numbers or str
    notes : list of str

    Raises
    ------
    DataError
    """
    try:
        import pandas as pd
    except ImportError:
        raise DataError(
            f"{path}: to read CSV and parquet files pandas is needed: pip install pandas"
        ) from None
    frame = _read_parquet(pd, path) if kind == ".parquet" else _read_csv(pd, path)
    frame.columns = [str(name) for name in frame.columns]
    if not len(frame):
        raise DataError(f"{path}: holds 0 rows")
    if frame.shape[1] < 2:
        raise DataError(
            f"{path}: at least two columns (features and target) are needed, found {frame.shape[1]}"
        )
    out = frame.columns[-1] if target is None else _column(frame, target, path)
    dropped = [_column(frame, name, path) for name in drop]
    if out in dropped:
        raise DataError(f"{path}: column {shown(out)} is the target and cannot be left out")
    frame, notes = _without_index(frame.drop(columns=dropped), out)
    frame, more = _complete_rows(frame, path)
    labels = frame.pop(out)
    is_numeric = pd.api.types.is_numeric_dtype(labels)
    for name, column in frame.items():
        frame[name] = _checked_column(pd, path, column)
    labels = labels.to_numpy(np.float64) if is_numeric else labels.astype(str).to_numpy().astype(str)
    if is_numeric and not np.isfinite(labels).all():
        raise DataError(f"{path}: the target holds NaN or inf")
    return frame, labels, notes + more


def _read_csv(pd, path):
    with open_bytes(path) as stream:
        content = stream.read()
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
        first = text.partition("\n")[0]
        # of those that are as frequent a comma comes last: it may be a decimal comma
        delimiter = max(";\t,", key=first.count)
        has_commas = delimiter != "," and _DECIMAL_COMMA.search(text) and not _DECIMAL_POINT.search(text)
        has_names = not any(is_number(name.replace(",", ".")) for name in first.split(delimiter))
        frame = pd.read_csv(
            io.StringIO(text), sep=delimiter, decimal="," if has_commas else ".", na_values=["?"],
            header=0 if has_names else None, skipinitialspace=True, low_memory=False,
        )  # fmt: skip
        return frame if has_names else frame.rename(columns=lambda number: number + 1)
    except UnicodeError as error:
        raise DataError(f"{path}: is not text in UTF-8, nor in UTF-16 with its mark: convert it") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error


def _read_parquet(pd, path):
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise DataError(f"{path}: to read parquet files pyarrow is needed: pip install pyarrow") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is not a readable parquet file: {error}") from error
    return frame if frame.index.name is None else frame.reset_index()


def _column(frame, name, path):
    """The name of a column that is given by its name or its number from 1."""
    if name in frame.columns:
        return name
    if name.isdigit() and 1 <= int(name) <= frame.shape[1]:
        return frame.columns[int(name) - 1]
    raise DataError(f"{path}: no column {shown(name)}; columns are {listed(frame.columns)}")


def _without_index(frame, out):
    """The frame without the unnamed column that pandas writes to number the rows."""
    first = frame.columns[0]
    if first != out and first in ("Unnamed: 0", "index") and frame[first].is_unique:
        values = frame[first]
        if (
            values.dtype.kind in "iu"
            and values.min() in (0, 1)
            and values.max() - values.min() == len(values) - 1
        ):
            return frame.drop(columns=first), [f"left out: column {first}, which counts the rows"]
    return frame, []


def _complete_rows(frame, path):
    """The rows that have all values, and notes."""
    gaps = frame.isna()
    incomplete, counts = gaps.any(axis=1), gaps.sum()[lambda count: count > 0]
    if counts.empty:
        return frame, []
    where = f"missing values in {', '.join(f'{name} ({count})' for name, count in counts.items())}"
    if incomplete.all():
        raise DataError(f"{path}: every row has {where}. Leave columns out (--drop).")
    return frame[~incomplete].copy(), [f"left out: {incomplete.sum()} of {len(frame)} rows, with {where}"]


def _checked_column(pd, path, column):
    """The column as float64, or as categories of str."""
    name, types = column.name, pd.api.types
    if types.is_numeric_dtype(column):
        values = column.to_numpy(np.float64)
        if not np.isfinite(values).all():
            raise DataError(f"{path}: column {shown(name)} holds inf")
        return values
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        fault = f"is of type {column.dtype}; numbers and words are needed"
        raise DataError(f"{path}: column {shown(name)} {fault}. Leave it out: --drop {shlex.quote(name)}")
    words = column.astype(str).astype("category")
    n_words = len(words.cat.categories)
    if n_words > MAX_VALUES and n_words > len(words) / 2:
        raise DataError(
            f"{path}: column {shown(name)} is text rather than a category: {n_words} different words in "
            f"{len(words)} rows, such as {shown(words.iloc[0])}. Leave it out: --drop {shlex.quote(name)}"
        )
    return words


def encode(frame, path, encoder=None):
    """Matrix of a table, with a column of zeros and ones for each word of a column of words.

    Parameters
    ----------
    frame : DataFrame
        From `read_table`.
    path : Path
        For messages.
    encoder : ColumnTransformer, optional
        That of the training rows, for held-out ones: words that are not in it become zeros.

    Returns
    -------
    X : ndarray or csr_matrix, float64
    encoder : ColumnTransformer
    notes : list of str
        What a reader of the results must know.

    Raises
    ------
    DataError
        If the columns are others than those that ``encoder`` has seen.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    words, notes = list(frame.columns[frame.dtypes == "category"]), []
    if encoder is None:
        one_hot = OneHotEncoder(handle_unknown="ignore")
        encoder = ColumnTransformer([("words", one_hot, words)], remainder="passthrough").fit(frame)
        if words:
            counts = ", ".join(f"{name} ({len(frame[name].cat.categories)})" for name in words)
            notes = [f"one-hot encoded (values): {counts}"]
    else:
        names, trained = list(encoder.feature_names_in_), encoder.transformers_[0][2]
        if names != list(frame.columns) or words != trained:
            raise DataError(
                f"{path}: its columns are not those of the training rows, which are {listed(names)}, with "
                f"words in {', '.join(trained) or 'none'}"
            )
    X = encoder.transform(frame)
    return (X.tocsr() if sparse.issparse(X) else X), encoder, notes
