"""Attributes and quoted values of ARFF files."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ._files import FileFormatError, are_numerals, shown

# A name or value is quoted with ' or " (a backslash escapes), or is anything up to a comma or a tab.
# No repetition gives anything back (++, *+): a match, or its failure, takes time linear in what it reads.
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_ATTRIBUTE = re.compile(rf"@attribute\s++({_QUOTED}|[^\s{{]++)\s*+(.*+)$", re.IGNORECASE)
_VALUE = rf"(?:({_QUOTED})|([^,'\"\t]*+))(?:\s*+(?:,|$)|[ ]*+\t)"
_FIELD = re.compile(rf"\s*+{_VALUE}")
SPARSE_FIELD = re.compile(rf"\s*+(\d++)\s++{_VALUE}")
# types of attributes; a comment may follow each
_NUMERIC = re.compile(r"(?:numeric|real|integer)\s*+(?:\[[^\]]*+\]\s*+)?(?:%.*)?$", re.IGNORECASE)
_NOMINAL = re.compile(rf"\{{((?:{_QUOTED}|[^'\"}}])*+)\}}\s*+(?:%.*)?$")
_TEXT = re.compile(r"(?:string\s*+(?:%.*)?|date(?:\s.*)?)$", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([0-7]{3})|(.))")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True)
class Attribute:
    """One column.

    categories : None if it is numeric, else value -> number stored for it.
    numbers : whether its values mean numbers, as nominal values that are all numbers do (Mulan's {0,1}).
    is_text : whether it is a string or a date, which is left out.
    """

    name: str
    categories: dict | None = None
    numbers: bool = True
    is_text: bool = False

    def number(self, field):
        """The number stored for a field as the file has it, quoted or not."""
        if field == "?":
            return np.nan
        if self.categories is not None:
            return self.categories[unquote(field)]
        if self.is_text:
            return 0.0
        try:
            return float(field)
        except ValueError:
            return float(unquote(field))


def unquote(text):
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return _ESCAPE.sub(_unescape, text[1:-1]) if "\\" in text else text[1:-1]
    return text


def _unescape(match):
    by_hexadecimal, by_octal, letter = match.groups()
    if letter is not None:
        return _ESCAPED.get(letter, letter)
    return chr(int(by_hexadecimal, 16) if by_hexadecimal else int(by_octal, 8))


def fields_of(text, pattern=_FIELD):
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


def read_attribute(line, path, number, skip_strings):
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise FileFormatError(path, number, f"{shown(line)} is not @attribute name type")
    name, kind = unquote(match[1]), match[2].strip()
    if _NUMERIC.match(kind):
        return Attribute(name)
    nominal = _NOMINAL.match(kind)
    if nominal is None:
        if _TEXT.match(kind) and skip_strings:
            return Attribute(name, is_text=True)
        problem = (
            f"attribute {shown(name)} has type {shown(kind)}; numeric, real, integer and {{...}} can be read"
            + ("; skip_strings=True leaves it out" if _TEXT.match(kind) else "")
        )
        raise FileFormatError(path, number, problem)
    fields = fields_of(nominal[1].strip())
    if not fields:
        raise FileFormatError(path, number, f"attribute {shown(name)}: cannot read the values {shown(kind)}")
    values = [unquote(field[0]) for field in fields]
    if len(set(values)) != len(values):
        raise FileFormatError(path, number, f"attribute {shown(name)} lists a value twice")
    if are_numerals(values):
        numbers = [float(value) for value in values]
        if len(set(numbers)) == len(numbers):
            return Attribute(name, dict(zip(values, numbers, strict=True)))
    return Attribute(name, {value: float(code) for code, value in enumerate(values)}, numbers=False)
