"""The files of a folder of CSR blocks: arrays in the .npy format with checksums, and the manifest.

Nothing is unpickled or executed, and no name of a file is taken from another file: names follow from the
number of a block.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._messages import shown
from .._typing import Array

MANIFEST, PROGRESS = "manifest.json", "progress.jsonl"
FORMAT, VERSION = "sparsekit CSR folder", 1
# block files of an earlier conversion, finished or not
OURS = re.compile(
    r"\d{6,}\.(indptr|indices|data|y|y_indptr|y_indices)\.npy|manifest\.json\.new|progress\.jsonl(\.new)?"
)


def block_path(folder: str, i: int, part: str) -> str:
    """Path of an array of block i."""
    return os.path.join(folder, f"{i:06d}.{part}.npy")


def npy_header(dtype: np.dtype[Any], length: int) -> bytes:
    """What stands before the values of a one-dimensional array in a .npy file, in 128 bytes."""
    text = f"{{'descr': '{dtype.newbyteorder('<').str}', 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode("ascii") + b"\n"


def write_array(path: str, dtype: np.dtype[Any], pieces: Iterable[Array]) -> dict[str, int]:
    """Write the pieces, one behind the other; the record of the file for the manifest."""
    pieces = [np.ascontiguousarray(piece, dtype=dtype.newbyteorder("<")) for piece in pieces]
    header = npy_header(dtype, sum(map(len, pieces)))
    size, crc = len(header), zlib.crc32(header)
    with open(path, "wb") as file:
        file.write(header)
        for piece in pieces:
            raw = piece.view(np.uint8).data
            file.write(raw)
            size, crc = size + raw.nbytes, zlib.crc32(raw, crc)
        _flush(file)
    return {"bytes": size, "crc32": crc}


def read_array(path: str, dtype: np.dtype[Any], length: int, record: dict[str, int], check: bool) -> Array:
    """Read an array that must have this type and length, with ``check`` also the recorded sum.

    Raises
    ------
    ValueError
        If the file is another one than was written.
    """
    header = npy_header(dtype, length)
    out = np.empty(length, dtype=dtype.newbyteorder("<"))
    # copy the bytes: mapped memory would stay resident
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != len(header) + out.nbytes or size != record["bytes"]:
            raise ValueError(f"{path}: has {size} bytes, and not {record['bytes']} as when it was written")
        if file.read(len(header)) != header:
            raise ValueError(f"{path}: does not begin as the array of {length} {dtype} that was written")
        view = out.view(np.uint8).data
        count = file.readinto(view)
        if count < len(view):
            raise ValueError(f"{path}: ends after {len(header) + count} bytes of {size}")
    if check and zlib.crc32(view, zlib.crc32(header)) != record["crc32"]:
        raise ValueError(f"{path}: was changed or damaged since it was written (CRC-32 differs)")
    return out if sys.byteorder == "little" else out.astype(dtype)


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def write_manifest(folder: str, content: dict[str, Any]) -> None:
    """Write the manifest, at once or not at all."""
    path = os.path.join(folder, MANIFEST)
    with open(path + ".new", "w", encoding="utf-8", newline="\n") as file:
        json.dump({"format": FORMAT, "version": VERSION, **content}, file, indent=1)
        file.write("\n")
        _flush(file)
    os.replace(path + ".new", path)


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a finished folder.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it is damaged, of a later version, or the folder is not finished.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        if os.path.exists(os.path.join(folder, PROGRESS)):
            raise ValueError(
                f"{folder}: the conversion was not finished; the same call goes on where it stopped"
            ) from None
        raise FileNotFoundError(
            f"{path}: no such file; write_csr and convert_svmlight make such folders"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: damaged ({error})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{path}: not the manifest of a folder of CSR blocks")
    if found.get("version") != VERSION:
        raise ValueError(f"{path}: has version {shown(found.get('version'))}; this package reads {VERSION}")
    problem = _problem(found)
    if problem:
        raise ValueError(f"{path}: damaged ({problem})")
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _problem(found: dict[str, Any]) -> str | None:
    """What in a manifest cannot be, or None."""
    shape, blocks = found.get("shape"), found.get("blocks")
    if not (isinstance(shape, list) and len(shape) == 2 and all(map(_is_count, shape))):
        return "no shape"
    if found.get("dtype") not in ("float32", "float64") or found.get("first_index") not in (0, 1):
        return "no dtype or first_index"
    if found.get("y") not in (None, "indicator", "float32", "float64", "int32", "int64"):
        return "no type of y"
    if found["y"] == "indicator" and not _is_count(found.get("n_labels")):
        return "no n_labels"
    if not isinstance(blocks, list):
        return "no blocks"
    parts = set(parts_of(found["y"]))
    for i, block in enumerate(blocks):
        if not (
            isinstance(block, dict)
            and _is_count(block.get("rows"))
            and _is_count(block.get("nnz"))
            and isinstance(block.get("files"), dict)
            and set(block["files"]) == parts
            and all(
                isinstance(record, dict) and _is_count(record.get("bytes")) and _is_count(record.get("crc32"))
                for record in block["files"].values()
            )
        ):
            return f"entry of block {i}"
    sums = [sum(block[key] for block in blocks) for key in ("rows", "nnz")]
    if sums != [shape[0], found.get("nnz")]:
        return "the counts of the blocks do not add up"
    return None


def parts_of(y: str | None) -> list[str]:
    """Names of the arrays of a block."""
    targets = [] if y is None else ["y_indptr", "y_indices"] if y == "indicator" else ["y"]
    return ["indptr", "indices", "data", *targets]


class Progress:
    """A conversion under way: which blocks are written, and from where the next goes on.

    The file has a line for the settings and one for each block. A line counts when it is complete; blocks are
    written before their line.

    Parameters
    ----------
    folder : str
        Made if it does not exist.
    settings : dict
        Of the conversion; one with other settings is not gone on with.
    resume : bool
        Go on with what is there.

    Raises
    ------
    FileExistsError
        If the folder holds something else.
    """

    def __init__(self, folder: str, settings: dict[str, Any], resume: bool):
        self.folder = folder
        self.path = os.path.join(folder, PROGRESS)
        self.blocks: list[dict[str, Any]] = []
        os.makedirs(folder, exist_ok=True)
        others = [name for name in os.listdir(folder) if not OURS.fullmatch(name)]
        if others:
            what = "a finished data set" if MANIFEST in others else f"other files ({shown(others[0])})"
            raise FileExistsError(f"{folder} holds {what}: name another folder, or empty this one")
        kept = self._finished_blocks(settings) if resume else []
        self._forget(len(kept))
        with open(self.path + ".new", "w", encoding="utf-8", newline="\n") as file:
            for line in [settings, *kept]:
                file.write(json.dumps(line) + "\n")
            _flush(file)
        os.replace(self.path + ".new", self.path)
        self.blocks = kept

    def _finished_blocks(self, settings: dict[str, Any]) -> list[dict[str, Any]]:
        """The blocks of an earlier call that are there in full."""
        try:
            with open(self.path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        # text after the last newline was being written when the process ended
        try:
            lines = [json.loads(line) for line in text.split("\n")[:-1]]
        except ValueError as error:
            raise ValueError(f"{self.path}: damaged ({error}); resume=False begins anew") from error
        if len(lines) < 2:  # no block to lose
            return []
        if lines[0] != json.loads(json.dumps(settings)):
            raise ValueError(
                f"{self.folder} holds an unfinished conversion of other files (or files that have changed "
                "since), or with other settings. Give resume=False to begin anew, or name another folder."
            )
        kept: list[dict[str, Any]] = []
        for i, block in enumerate(lines[1:]):
            for part, record in block["files"].items():
                path = block_path(self.folder, i, part)
                if not os.path.exists(path) or os.path.getsize(path) != record["bytes"]:
                    return kept
            kept.append(block)
        return kept

    def _forget(self, n_blocks: int) -> None:
        """Remove the files of blocks from that number on."""
        for name in os.listdir(self.folder):
            digits = name.partition(".")[0]
            if digits.isdigit() and int(digits) >= n_blocks:
                os.remove(os.path.join(self.folder, name))

    def add(self, arrays: dict[str, tuple[np.dtype[Any], list[Array]]], **content: Any) -> None:
        """Write the arrays of the next block, each given by its type and pieces, then its line."""
        i = len(self.blocks)
        files = {
            part: write_array(block_path(self.folder, i, part), dtype, pieces)
            for part, (dtype, pieces) in arrays.items()
        }
        nnz = sum(map(len, arrays["indices"][1]))
        rows = sum(map(len, arrays["indptr"][1])) - 1
        block = {"rows": rows, "nnz": nnz, "files": files, **content}
        with open(self.path, "a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(block) + "\n")
            _flush(file)
        self.blocks.append(block)

    def finish(self, **content: Any) -> None:
        """Write the manifest; the record of the progress goes."""
        blocks = [{key: block[key] for key in ("rows", "nnz", "files")} for block in self.blocks]
        shape = [sum(block["rows"] for block in blocks), content.pop("n_features")]
        nnz = sum(block["nnz"] for block in blocks)
        write_manifest(self.folder, {"shape": shape, "nnz": nnz, **content, "blocks": blocks})
        self.clear()

    def clear(self) -> None:
        """Remove the record of the progress."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)
