"""What the tests of files of data share: how files are packed, and what an error says of one."""

import bz2
import gzip
import lzma
from pathlib import Path

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def says(path, line, problem):
    """Regular expression of an error that names file, line and problem."""
    where = f"{path.name}, line {line}" if line else path.name
    return rf"{where}: .*{problem}"


def packed(folder, name, text):
    """A file of a name, whose ending says how it is packed."""
    path = folder / name
    path.write_bytes(COMPRESS.get(path.suffix, bytes)(text if isinstance(text, bytes) else text.encode()))
    return path


def files(path):
    """Contents of the files of a folder by their names."""
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}
