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
from typing import Any

from .._messages import check_whole

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# errors of these modules for a damaged file; bz2 raises a plain OSError
_DAMAGE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
# Bytes that a compressed file may unpack to, unless the user says otherwise.
MAX_BYTES = 2**34
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

    def readinto(self, buffer):
        size = self.file.readinto(buffer)
        self.count += size
        if self.count > self.max_bytes:
            problem = f"unpacks to more than max_bytes={self.max_bytes} bytes; raise max_bytes if it may"
            raise FileFormatError(self.path, None, problem)
        return size

    def close(self):
        if not self.closed:
            self.file.close()
        super().close()


@contextmanager
def open_bytes(path, max_bytes=None):
    """Open a file for reading bytes: uncompressed, and behind a byte-order mark of UTF-8.

    A compressed file that is damaged, or holds more than ``max_bytes`` (`MAX_BYTES` if None), is a
    FileFormatError.
    """
    max_bytes = MAX_BYTES if max_bytes is None else check_whole(max_bytes, "max_bytes", 1)
    opener = OPENERS.get(os.path.splitext(os.fspath(path))[1].lower())
    try:
        with open(path, "rb") as raw:
            if opener is None:
                yield _past_mark(raw)
            else:
                with io.BufferedReader(_Limited(opener(raw, "rb"), path, max_bytes), 2**17) as file:
                    yield _past_mark(file)
    except (*_DAMAGE, OSError) as error:
        # errors of the operating system have a number
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FileFormatError(path, None, f"damaged or not compressed as its name says ({error})") from error


def _past_mark(file):
    """The buffered file, a byte-order mark of UTF-8 at its start read."""
    mark = codecs.BOM_UTF8
    if file.peek(len(mark)).startswith(mark):
        file.read(len(mark))
    return file
