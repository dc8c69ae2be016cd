"""Opening text files, plain or compressed, and errors that say where in a file something is wrong."""

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class FileFormatError(ValueError):
    """A file does not follow its format; the message names file, line and what is wrong."""

    def __init__(self, path, line, problem):
        where = os.fspath(path) if line is None else f"{os.fspath(path)}, line {line}"
        super().__init__(f"{where}: {problem}")


@contextmanager
def open_bytes(path):
    """Open a file for reading bytes, as `open_counted`, which yields the file alone."""
    with open_counted(path) as (file, _):
        yield file


@contextmanager
def open_counted(path):
    """Open a file for reading bytes; .gz, .bz2 and .xz are uncompressed on the way.

    Yields the file, and a function that says how many bytes of the file on the disk were read.

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As from ``open``; they name the file.
    FileFormatError
        If a compressed file is damaged or not compressed at all.
    """
    opener = _OPENERS.get(os.path.splitext(os.fspath(path))[1].lower())
    try:
        with open(path, "rb") as raw:
            if opener is None:
                yield raw, raw.tell
            else:
                with opener(raw, "rb") as file:
                    yield file, raw.tell
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise FileFormatError(path, None, f"damaged or not compressed as its name says ({error})") from error
    except OSError as error:
        # bz2 reports damage as a bare OSError; errors of the operating system have a number
        if error.errno is not None:
            raise
        raise FileFormatError(path, None, f"damaged or not compressed as its name says ({error})") from error


def shown(token, limit=40):
    """A piece of a file, as text short enough for an error message."""
    if isinstance(token, bytes):
        token = token.decode("utf-8", "replace")
    return repr(token if len(token) <= limit else token[: limit - 3] + "...")
