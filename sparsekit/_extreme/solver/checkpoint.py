"""Checkpoints of a run over blocks: one file of arrays and a header in JSON, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..._messages import shown
from ..._storage.npz import Reader, write

SCHEMA, VERSION = "sparsekit.ExtremeSoftmaxSGD.checkpoint", 6


class Checkpoint:
    """The file of one run.

    Parameters
    ----------
    path : str or path
    interval : float
        Least time between two checkpoints in seconds.
    identity : dict of dict
        What a run that goes on must agree in, as JSON has it.
    """

    def __init__(self, path: str | os.PathLike, interval: float, identity: dict[str, dict[str, Any]]):
        self.path, self.interval = Path(path), interval
        self.identity = json.loads(json.dumps(identity))
        self.last = time.monotonic()

    def is_due(self) -> bool:
        """Whether the last one was written long enough ago."""
        return time.monotonic() - self.last >= self.interval

    def save(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the file: at any moment it is the old or the new one, complete and on disk."""
        header = {"schema": SCHEMA, "version": VERSION, "identity": self.identity, **header}
        write(self.path, header, arrays)
        self.last = time.monotonic()

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Header and arrays of the file, or None where there is none.

        Raises
        ------
        ValueError
            If the file is no checkpoint, or one of another version, or of a run with other settings or data.
        """
        if not self.path.exists():
            return None
        name = shown(os.fspath(self.path))
        try:
            # of no untrusted source, and perhaps of a model of any size
            with Reader(self.path, max_bytes=sys.maxsize) as file:
                header, arrays = file.header, {}
                if header["schema"] != SCHEMA:
                    raise ValueError(f"its schema is {shown(header['schema'])}")
                if header["version"] == VERSION:
                    self._compare(header["identity"], name)
                    arrays = file.arrays()
        except _OtherRun as error:
            raise ValueError(str(error)) from None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{name} is no checkpoint of ExtremeSoftmaxSGD, or damaged: {error}") from error
        if header["version"] != VERSION:
            raise ValueError(
                f"{name} is a checkpoint of version {shown(header['version'])}; this sparsekit reads version "
                f"{VERSION}. Finish the run with the release that wrote it, or remove the file."
            )
        return header, arrays

    def _compare(self, other, name):
        for part, mine in self.identity.items():
            theirs = other.get(part, {})
            for key in mine.keys() | theirs.keys():
                if mine.get(key) != theirs.get(key):
                    raise _OtherRun(
                        f"{name} is the checkpoint of another run: {part} {shown(key)} was "
                        f"{shown(theirs.get(key))} and is {shown(mine.get(key))} now. Go on with what it was "
                        "written with, or give another path, or remove the file."
                    )

    def remove(self) -> None:
        """Remove the file, if there is one."""
        self.path.unlink(missing_ok=True)


class _OtherRun(Exception):
    """The file is one of another run."""


def digest(arrays: Iterable[np.ndarray | None]) -> str:
    """A number in hexadecimal digits that other arrays are all but certain not to have."""
    found = hashlib.sha256()
    for array in arrays:
        if array is None:
            found.update(b"none;")
            continue
        if array.dtype.kind == "O":
            array = np.array([f"{type(one).__name__} {one}" for one in array.ravel().tolist()], dtype=str)
        array = np.ascontiguousarray(array)
        found.update(f"{array.dtype.str} {array.shape};".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()
