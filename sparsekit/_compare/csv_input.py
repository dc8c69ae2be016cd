"""CSV and TSV files of the user: delimiter, header, and columns of numbers or words."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from itertools import pairwise

import numpy as np

from .._messages import shown
from .tables import (
    DataError,
    are_written_numbers,
    finish_table,
    is_number,
    roles_of,
    says_written,
    without_index,
)

# rows whose fields are held as text at a time
CHUNK = 10_000
# lines that are split at each delimiter to find the file's own
_SAMPLE_LINES = 100
# what stands for a missing value, in a column that is not declared to hold categories
MISSING = frozenset(
    ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null")
)
# Excel's first line that names the delimiter
_SEP = re.compile(r"sep=(.)\n", re.IGNORECASE)
_UNNAMED = re.compile(r"|Unnamed: \d+")
# a number as much of Europe writes it: 1,5 and 1.234,5
_COMMA_NUMBER = re.compile(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
_WHOLE = re.compile(r"\d+", re.ASCII)
# "01" is a label of its own beside "1"
_LEADING_ZERO = re.compile(r"[+-]?0\d")


def read_csv(
    path, opener, target=None, categorical=(), drop=(), drop_missing=False, encoding=None, header=None
):
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
    drop_missing : bool, default=False
        Leave rows with missing values out, instead of refusing the file.
    encoding : str, optional
        Of the text; by default the one that a byte-order mark says, or UTF-8.
    header : bool, optional
        Whether the first line holds the columns' names; found out by default.

    Raises
    ------
    DataError
    """
    text, n_before, delimiter = _dialect(_decoded(path, opener, encoding))
    rows = _rows(text, path, delimiter, n_before)
    line, head = next(rows, (n_before, []))
    if len(head) < 2:
        raise DataError(
            f"{path}:{max(line, 1)}: at least two columns (features and target) are needed, found {len(head)}"
        )
    second = next(rows, None)
    decimal_comma = delimiter != ","

    def others():
        found = _rows(text, path, delimiter, n_before)
        next(found)
        return (row for _, row in found)

    is_found = header is None
    if is_found:
        header = _is_header(head, second and second[1], others, decimal_comma)
    given = [field.strip() for field in head] if header else [""] * len(head)
    width, notes = len(head), []
    if not given[-1] and not head[-1].strip():
        width = max((_last_value(row[:width]) for row in others()), default=0)
        notes += ["left out: columns at the end without name and values"] if width < len(head) else []
    names = [name or str(j + 1) for j, name in enumerate(given[:width])]
    if width < 2:
        raise DataError(f"{path}: at least two columns (features and target) are needed, found {width}")
    out, forced, dropped = roles_of(names, path, target, categorical, drop)
    columns = {
        j: _CsvColumn(
            f"{'target ' if j == out else ''}column {shown(names[j])}",
            names[j],
            path,
            as_words=j == out or j in forced,
            missing={""} if j in forced else MISSING,
            decimal_comma=decimal_comma,
        )
        for j in range(width)
        if j not in dropped
    }
    lines, chunk = [], []

    def flush():
        fields = list(zip(*chunk))
        for j, column in columns.items():
            if chunk:
                column.add(fields[j], lines)
        chunk.clear()
        lines.clear()

    def add(line, row):
        if len(row) != len(head):
            flush()  # a fault in an earlier line comes first
            raise DataError(f"{path}:{line}: has {len(row)} fields where {len(head)} are expected")
        chunk.append(row)
        lines.append(line)
        if len(chunk) == CHUNK:
            flush()

    if not header:
        add(line, head)
        if is_found and [field.strip() for field in head] in _counts(len(head)):
            notes.append("line 1 counts the columns and is taken as a row; if it holds names: --header")
    elif is_found and any(map(is_number, given)):
        notes.append("line 1 is taken as names of columns; if it is a row: --no-header")
    if second is not None:
        add(*second)
    for line, row in rows:
        add(line, row)
    flush()
    table = finish_table(
        path,
        names,
        {j: column.values() for j, column in columns.items()},
        {j: column.missing_rows() for j, column in columns.items()},
        out,
        forced,
        drop_missing,
        {j: f"line {column.first_missing}" for j, column in columns.items()},
    )
    table.labels = columns[out].labels(table.labels)
    commas = [column.name for column in columns.values() if column.comma]
    if commas:
        notes.append(f"numbers with decimal commas: {_listed(commas)}")
    unnamed = [j for j in columns if j != out and header and _UNNAMED.fullmatch(given[j])]
    table.notes = notes + table.notes
    return without_index(table, [names[j] for j in unnamed])


def _listed(names, most=6):
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _counts(n):
    """What a line that numbers its n columns holds."""
    return [[str(j + first) for j in range(n)] for first in (0, 1)]


def _decoded(path, opener, encoding):
    """The text of the file, its lines ended by line feeds."""
    with opener(path, "rb") as stream:
        content = stream.read()
    if encoding is None:
        is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if is_utf16 else "utf-8"
    try:
        text = content.decode(encoding)
    except LookupError:
        raise DataError(f"{path}: --encoding {encoding}: Python knows no such encoding") from None
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content.count(b"\n", 0, start) + 1
        raise DataError(
            f"{path}:{line}: is not text in {encoding.upper()}; name its encoding, such as --encoding cp1252"
        ) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _dialect(text):
    """The text without Excel's line that names the delimiter, the number of lines left out, the delimiter."""
    said = _SEP.match(text)
    if said:
        return text[said.end() :], 1, said[1]
    sample = "".join(io.StringIO(text).readlines(2**20)[:_SAMPLE_LINES])

    def fit(delimiter):
        """Lines that have as many fields as the first, several; then how many."""
        counts = []
        with contextlib.suppress(csv.Error):  # said where the rows are read
            counts.extend(len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if row)
        n_fields = counts[0] if counts else 0
        return counts.count(n_fields) * (n_fields > 1), n_fields

    # of those that fit equally well a comma comes last: it may be a decimal comma
    return text, 0, max(";\t,", key=fit)


def _rows(text, path, delimiter, n_before):
    """Number of the last line and fields of each row; a line without any value is none."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    # the process has one, and others lift it (scipy.io.arff): an open quote would hide the rest of the file
    limit = csv.field_size_limit(131_072)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield reader.line_num + n_before, row
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num + n_before}: {error}") from error
    finally:
        csv.field_size_limit(limit)


def _last_value(row):
    """Number of fields up to the last that is not empty."""
    return max((j + 1 for j, field in enumerate(row) if field.strip()), default=0)


def _is_header(head, second, others, decimal_comma):
    """Whether the first line holds names.

    Words above numbers do. Nothing but words does, unless each stands in its column again. Several numbers
    beside a word do where they are whole and increase, as years, and no word stands in its column again.
    Numbers behind an empty field do where they count the columns, as those of a data frame.
    """

    reads = _is_number_with_comma if decimal_comma else is_number
    head = [field.strip() for field in head]
    numeric = [reads(field) for field in head]
    if second is None:
        return not any(numeric)
    missing = [field in MISSING for field in head]
    if any(not a and not gap and reads(b) for a, gap, b in zip(numeric, missing, second)):
        return True
    words = {j: word for j, word in enumerate(head) if not numeric[j] and not missing[j]}
    if not words:
        return not any(numeric) or (head[0] == "" and head[1:] in _counts(len(head) - 1))
    again = {j for row in others() for j, word in words.items() if j < len(row) and row[j].strip() == word}
    if not any(numeric):
        return len(again) < len(words)
    numbers = [field for j, field in enumerate(head) if numeric[j]]
    are_whole = len(numbers) > 1 and all(map(_WHOLE.fullmatch, numbers))
    return are_whole and not again and all(int(a) < int(b) for a, b in pairwise(numbers))


def _is_number_with_comma(text):
    """Whether it is a number, be it with a decimal comma."""
    return is_number(text) or _COMMA_NUMBER.fullmatch(text.strip()) is not None


class _CsvColumn:
    """Fields of one column, as numbers as long as they all are."""

    def __init__(self, what, name, path, as_words, missing, decimal_comma):
        self.what, self.name, self.path, self.as_words = what, name, path, as_words
        self.missing, self.decimal_comma = frozenset(missing), decimal_comma
        self._reads = _is_number_with_comma if decimal_comma else is_number
        self.is_words = as_words or None  # not known before there are any
        self.first_missing = None
        # the first numbers with a decimal comma and with a point
        self.comma = self.point = None
        self.parts, self.gaps = [], []

    def add(self, fields, lines):
        fields = [text.strip() for text in fields]
        gaps, texts, present = np.zeros(len(fields), dtype=bool), fields, slice(None)
        if not self.missing.isdisjoint(fields):
            gaps = np.array([text in self.missing for text in fields])
            if self.first_missing is None:
                self.first_missing = lines[int(np.argmax(gaps))]
            present = np.flatnonzero(~gaps)
            texts, lines = [fields[i] for i in present], [lines[i] for i in present]
        self.gaps.append(gaps)
        if not self.as_words:
            self._check(texts, lines)
        if self.is_words:
            self.parts.append(np.array(fields, dtype=object))
            return
        numbers = np.array(list(map(self._number if self.decimal_comma else float, texts)))
        infinite = np.isinf(numbers)
        if infinite.any():
            raise DataError(f"{self.path}:{lines[int(np.argmax(infinite))]}: {self.what} holds inf")
        values = np.full(len(fields), np.nan)
        values[present] = numbers
        self.parts.append(values)

    def _check(self, texts, lines):
        """That they are numbers, or words, as those before."""
        kinds = list(map(self._reads, texts))
        if self.is_words is None and kinds:
            self.is_words = not kinds[0]
        other = next((i for i, numeric in enumerate(kinds) if numeric == self.is_words), None)
        if other is None:
            return
        commas = [i for i, numeric in enumerate(kinds) if not numeric]
        if are_written_numbers([texts[i] for i in commas]):
            text = says_written(self.what, texts[commas[0]], self.name)
            raise DataError(f"{self.path}:{lines[commas[0]]}: {text}")
        kind = "a number among words" if self.is_words else "which is not a number"
        raise DataError(
            f"{self.path}:{lines[other]}: {self.what} holds {shown(texts[other])}, {kind}; if it "
            f"is one of categories: --categorical {self.name}"
        )

    def _number(self, text):
        if self.decimal_comma and "," in text:
            self.comma = self.comma or text
            text = text.replace(".", "").replace(",", ".")
        elif "." in text:
            self.point = self.point or text
        return float(text)

    def missing_rows(self):
        """Which rows have no value, (n,) of bools."""
        return np.concatenate(self.gaps) if self.gaps else np.zeros(0, dtype=bool)

    def values(self):
        self._refuse_both_marks()
        return np.concatenate(self.parts) if self.parts else np.zeros(0)

    def labels(self, texts):
        """Targets as numbers where they all are, without leading zeros; else as text."""
        if not len(texts) or not all(map(self._reads, texts)) or any(map(_LEADING_ZERO.match, texts)):
            return texts.astype(str)
        y = np.array([self._number(text) for text in texts])
        self._refuse_both_marks()
        if not np.isfinite(y).all():
            raise DataError(f"{self.path}: {self.what} holds NaN or inf")
        return y

    def _refuse_both_marks(self):
        if self.comma and self.point:
            raise DataError(
                f"{self.path}: {self.what} holds both {shown(self.comma)} and {shown(self.point)}; write its "
                f"numbers in one way, or, if they are categories: --categorical {self.name}"
            )
