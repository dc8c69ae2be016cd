"""Opening text files, plain or compressed, and errors that say where in a file something is wrong."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from .. import _messages as messages
from .._storage.npz import MAX_BYTES

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# errors of these modules for a damaged file; bz2 raises a plain OSError
_DAMAGE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
# Largest number of columns of a file if the user gives none. Public sets have fewer, and vectors of this
# length fit into memory.
WIDEST = 500_000_000


class FileFormatError(ValueError):
    """A file does not follow its format; the message names file, line and what is wrong."""

    def __init__(self, path, line, problem):
        where = os.fspath(path) if line is None else f"{os.fspath(path)}, line {line}"
        super().__init__(f"{where}: {problem}")


class _Limited(io.RawIOBase):
    """The bytes of a decompressor, counted as they are read."""

    def __init__(self, file, path, max_bytes):
        self.file, self.path, self.max_bytes, self.count = file, path, max_bytes, 0

    def readable(self):
        return True

    def seekable(self):
        return self.file.seekable()

    def seek(self, offset, whence=io.SEEK_SET):
        # skipped bytes were unpacked as well
        self.count = self.file.seek(offset, whence)
        return self.count

    def readinto(self, buffer):
        size = self.file.readinto(buffer)
        self.count += size
        if self.count > self.max_bytes:
            raise FileFormatError(
                self.path,
                None,
                f"unpacks to more than max_bytes={self.max_bytes} bytes; raise max_bytes if it may",
            )
        return size

    def close(self):
        if not self.closed:
            self.file.close()
        super().close()


@contextmanager
def open_bytes(path, max_bytes=None):
    """Open a file for reading bytes; .gz, .bz2 and .xz are uncompressed on the way.

    A byte-order mark of UTF-8 at the start is skipped.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        Uncompressed bytes of a compressed file at which reading ends with an error; None: `MAX_BYTES`.

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As from ``open``; they name the file.
    FileFormatError
        If a compressed file is damaged, not compressed at all, or unpacks to too much.
    """
    max_bytes = MAX_BYTES if max_bytes is None else max_bytes
    if not isinstance(max_bytes, Integral) or max_bytes < 1:
        raise ValueError(f"max_bytes must be a whole number, at least 1; got {messages.shown(max_bytes)}")
    opener = OPENERS.get(os.path.splitext(os.fspath(path))[1].lower())
    try:
        with open(path, "rb") as raw:
            if opener is None:
                yield _past_mark(raw)
            else:
                unpacked = _Limited(opener(raw, "rb"), path, int(max_bytes))
                with io.BufferedReader(unpacked, 2**17) as file:
                    yield _past_mark(file)
    except _DAMAGE as error:
        raise FileFormatError(path, None, f"damaged or not compressed as its name says ({error})") from error
    except OSError as error:
        # bz2 reports damage as an OSError without a number; errors of the operating system have one
        if error.errno is not None:
            raise
        raise FileFormatError(path, None, f"damaged or not compressed as its name says ({error})") from error


def _past_mark(file):
    """The buffered file, a byte-order mark of UTF-8 at its start read."""
    mark = codecs.BOM_UTF8
    if file.peek(len(mark)).startswith(mark):
        file.read(len(mark))
    return file


def whole_number(token):
    """The integer in a text, or None where there is none; of very many digits one beyond every limit."""
    try:
        return int(token)
    except ValueError:
        text = token.decode("utf-8", "replace") if isinstance(token, bytes) else token
        digits = text.strip().removeprefix("+")
        # Python converts no more than some thousand digits, which takes the square of their number in time
        return 10**30 if len(digits) > 1000 and digits.isascii() and digits.isdigit() else None


def numeral(token):
    """A number as a file has it, its digits cut off where they are too many for a message."""
    return shown(token)[1:-1]


def shown(token, limit=40):
    """A piece of a file, as text short enough for an error message."""
    if isinstance(token, bytes):
        token = token.decode("utf-8", "replace")
    return repr(token if len(token) <= limit else token[: limit - 3] + "...")
