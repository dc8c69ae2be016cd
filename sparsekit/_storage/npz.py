"""Arrays behind a header, in one ``.npz`` file: written atomically, validated when read.

A file is a zip archive of ``header.json`` and of one ``.npy`` file an array. The header says what schema it
has, and names, shapes and types of all arrays, which the file must agree with. Nothing of it is ever run:
`Reader` has its own parser for the arrays' headers and takes the few types below. It asks for no more memory
than the file's size warrants.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from .._messages import shown
from .replacing import replacing

HEADER = "header.json"
MAX_BYTES = 2**34
# what zipfile and zlib raise for what is damaged; their OSErrors are of impossible positions in the file
_DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error,
    EOFError, KeyError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError,
)  # fmt: skip
_MAGIC = b"\x93NUMPY\x01\x00"
_ARRAY = re.compile(
    rb"\{'descr': '([<|][a-zA-Z][0-9]{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(([0-9, ]{0,200})\), *\} *\n"
)
_TYPES = re.compile(r"(<f[248]|\|b1|\|[iu]1|<[iu][248]|<U[1-9][0-9]{0,8}|\|S[1-9][0-9]{0,8})")
_CHUNK = 2**20


def type_name(array: np.ndarray) -> str | None:
    """A type as files have it, little-endian, or None if they can't have it."""
    name = array.dtype.newbyteorder("<").str
    return name if _TYPES.fullmatch(name) else None


def write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    compress: bool = False,
) -> None:
    """Replace the file: at any moment it is the old or the new one, complete and on disk.

    Parameters
    ----------
    path : str or path-like
    header : dict
        What JSON has; ``arrays`` is added to it.
    arrays : dict of ndarray
        Of the types of `type_name`.
    compress : bool, default=False
        Whether to deflate.
    """
    listed = {name: {"dtype": type_name(array), "shape": list(array.shape)} for name, array in arrays.items()}
    wrong = [name for name, entry in listed.items() if entry["dtype"] is None]
    if wrong:
        raise TypeError(f"{shown(wrong[0])} has the dtype {arrays[wrong[0]].dtype}, which no file takes")
    text = json.dumps({**header, "arrays": listed})
    how = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with replacing(path) as part, open(part, "wb") as file:
        with zipfile.ZipFile(file, "w", how) as archive:
            archive.writestr(_member(HEADER, how), text)
            for name, array in arrays.items():
                with archive.open(_member(f"{name}.npy", how), "w", force_zip64=True) as member:
                    _write_array(member, array)
        file.flush()
        if file.seekable():  # no pipe
            os.fsync(file.fileno())
    _sync_folder(os.path.dirname(os.path.realpath(path)))


def _member(name, how):
    """A part of an archive, without the time: equal contents are equal bytes."""
    member = zipfile.ZipInfo(name)
    member.compress_type = how
    return member


def _write_array(file, array):
    array = np.asarray(array, dtype=array.dtype.newbyteorder("<"))
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        # the order that is nearer to its strides
        array = np.asarray(array, order="F" if np.argmin(np.abs(array.strides)) == 0 else "C")
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def _bytes(array):
    """The memory of a contiguous array."""
    return array.reshape(-1, order="A").view(np.uint8) if array.size else np.empty(0, dtype=np.uint8)


class Reader:
    """An open file of `write`: ``header``, and `arrays` where the header is as it should be.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=2**34
        Unpacked bytes of all that is in it at which it is refused.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is damaged, or none of `write`.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int = MAX_BYTES):
        self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115  (`__exit__` closes it)
        try:
            self._begin(max_bytes)
        except _DAMAGE as error:
            self._file.close()
            raise ValueError(_reason(error)) from error
        except BaseException:
            self._file.close()
            raise

    def _begin(self, max_bytes):
        self._archive = zipfile.ZipFile(self._file)
        members = self._archive.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise ValueError("two of its members have one name")
        total = sum(member.file_size for member in members)
        if total > max_bytes:
            raise ValueError(f"it unpacks to {total} bytes, more than max_bytes={max_bytes}")
        if HEADER not in self._members:
            raise ValueError(f"it has no {HEADER}")
        header = json.loads(self._read(HEADER))
        if not isinstance(header, dict) or not isinstance(header.get("arrays"), dict):
            raise ValueError("its header lists no arrays")
        self.listed = header.pop("arrays")
        self.header: dict[str, Any] = header

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._archive.close()
        self._file.close()

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name, checked against the header."""
        found = {name.removesuffix(".npy") for name in self._members if name != HEADER}
        if found != self.listed.keys():
            names = sorted(found ^ self.listed.keys())
            raise ValueError(f"its header lists other arrays than it has: {shown(names)}")
        return {name: self.array(name) for name in self.listed}

    def array(self, name: str) -> np.ndarray:
        """One array, checked against the header."""
        try:
            return self._array(name)
        except _DAMAGE as error:
            raise ValueError(_reason(error)) from error

    def _read(self, name):
        with self._archive.open(self._members[name]) as member:
            return member.read()

    def _array(self, name):
        info = self._members.get(f"{name}.npy")
        if info is None or name not in self.listed:
            raise ValueError(f"it has no {shown(name)}")
        with self._archive.open(info) as file:
            start = _exactly(file, 10)
            if start[:8] != _MAGIC:
                raise ValueError(f"{shown(name)} is no array")
            size = struct.unpack("<H", start[8:])[0]
            said = _ARRAY.fullmatch(_exactly(file, size))
            if said is None or not _TYPES.fullmatch(said[1].decode("ascii")):
                raise ValueError(f"{shown(name)} has a type or a shape that is never written")
            dtype = np.dtype(said[1].decode("ascii"))
            shape = tuple(int(n) for n in said[3].decode("ascii").split(",") if n.strip())
            if self.listed[name] != {"dtype": dtype.str, "shape": list(shape)}:
                raise ValueError(
                    f"{shown(name)} has the shape {shape} and the dtype {dtype.str}, by the header "
                    f"{shown(self.listed[name])}"
                )
            # an empty array may have any other dimension
            left = info.file_size - len(start) - size
            if math.prod(shape) * dtype.itemsize != left or max(shape, default=0) > max(left, 2**31):
                raise ValueError(f"{shown(name)} of shape {shape} has {left} bytes")
            array = np.empty(shape, dtype=dtype, order="F" if said[2] == b"True" else "C")
            into = _bytes(array)
            for at in range(0, left, _CHUNK):
                part = into[at : at + _CHUNK]
                part[:] = np.frombuffer(_exactly(file, len(part)), dtype=np.uint8)
            if file.read(1):  # at its end the sum of the bytes is compared
                raise ValueError(f"{shown(name)} is too long")
        _check_values(name, array)
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _exactly(file, size):
    data = file.read(size)
    if len(data) < size:
        raise ValueError("it ends early")
    return data


def _check_values(name, array):
    """ValueError where bytes are no value of their type, which NumPy does not check."""
    flat = array.reshape(-1, order="A")
    if array.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{shown(name)} has a truth value that is neither 0 nor 1")
    if array.dtype.kind == "U" and array.size and flat.view("<u4").max() > 0x10FFFF:
        raise ValueError(f"{shown(name)} has a character that there is not")


def _reason(error):
    if isinstance(error, RecursionError):
        return "its header is nested too deeply"
    return f"{error}" if isinstance(error, ValueError) else f"damaged ({error})"


def _sync_folder(folder):
    """Have the new name on disk too, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
