"""Docstrings that share entries: what several of them say of a parameter is written in one of them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_HEADING = re.compile(r"^(\w[\w ]*)\n---+\n", re.MULTILINE)
# a line that is not indented, and all that is until the next such line
_ENTRY = re.compile(r"^(\S[^:\n]*+)(?::.*)?(?:\n+ +\S.*)+", re.MULTILINE)
_NAMED = re.compile(r"^( *)\{([\w*. ]+(?:, [\w*. ]+)*)\}$", re.MULTILINE)


def shares_entries(*sources: Any) -> Callable[[T], T]:
    """Decorator of a function or a class: a line ``{tol, max_iter}`` of a docstring stands for two entries.

    An entry is what a section of numpydoc says of a parameter, an attribute or an error; ``{Raises}`` is a
    whole section. It is that of the first of ``sources`` whose docstring has it. Methods of a class are
    sources of one another, after the others. Indented lines below ``{tol}`` continue its entry.

    Raises
    ------
    KeyError
        If there is no such entry.
    ValueError
        If one entry describes several parameters, and the line names only some of these.
    """
    known = _entries(sources)

    def decorate(target: T) -> T:
        members = vars(target).values() if inspect.isclass(target) else ()
        # of scikit-learn's available_if, and of class methods
        functions = (getattr(member, "fn", getattr(member, "__func__", member)) for member in members)
        methods = [function for function in functions if inspect.isfunction(function)]
        entries = _entries(methods) | known

        def texts(match: re.Match[str]) -> str:
            wanted = match[2].split(", ")
            found = dict.fromkeys(entries[name] for name in wanted)
            for names, _ in found:
                if not set(names) <= set(wanted):
                    raise ValueError(
                        f"One entry describes {', '.join(names)}: name all; got {match[0].strip()}."
                    )
            return textwrap.indent("\n".join(text for _, text in found), match[1])

        for one in (target, *methods):
            if one.__doc__:  # there is none where Python is run with -OO
                one.__doc__ = _NAMED.sub(texts, one.__doc__)
        return target

    return decorate


def _entries(sources: Any) -> dict[str, tuple[tuple[str, ...], str]]:
    """Of the name of a section or an entry: all names that the entry describes, and its text."""
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for source in sources:
        _, *parts = _HEADING.split(inspect.cleandoc(source.__doc__ or ""))
        for heading, body in zip(parts[::2], parts[1::2]):
            found.setdefault(heading, ((heading,), f"{heading}\n{'-' * len(heading)}\n{body.rstrip()}"))
            for match in _ENTRY.finditer(body):
                names = tuple(match[1].strip().split(", "))
                for name in names:
                    found.setdefault(name, (names, match[0]))
    return found
