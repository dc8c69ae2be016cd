"""The files of a folder of CSR blocks: an archive of arrays for each block, and the manifest.

Nothing is unpickled or executed, and no name of a file is taken from another file: names follow from the
number of a block.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from .._messages import shown
from .._storage.npz import Reader, write
from .._storage.replacing import replacing
from .._typing import Array

MANIFEST = "manifest.json"
SCHEMA, VERSION = "sparsekit CSR folder", 2
# block files of an earlier conversion, finished or not
_OURS = re.compile(r"\d{6,}\.csr\.npz|\.\d{6,}\.csr\.\d+\.part\.npz|\.manifest\.\d+\.part\.json")


def block_path(folder: str, i: int) -> str:
    """Path of block i."""
    return os.path.join(folder, f"{i:06d}.csr.npz")


def read_arrays(path: str, n_bytes: int, *names: str) -> list[Array]:
    """Arrays of a block whose file has ``n_bytes``.

    Raises
    ------
    ValueError
        If the file is another one than was written.
    """
    try:
        with Reader(path, n_bytes) as file:
            return [file.array(name) for name in names]
    except ValueError as error:
        raise ValueError(f"{path}: was changed or damaged since it was written: {error}") from error


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
        if os.path.exists(block_path(folder, 0)):
            raise ValueError(
                f"{folder}: the conversion was not finished; the same call goes on where it stopped"
            ) from None
        raise FileNotFoundError(
            f"{path}: no such file; write_csr and convert_svmlight make such folders"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({error})") from error
    # version 1 had "format" in place of "schema"
    if not isinstance(found, dict) or found.get("schema", found.get("format")) != SCHEMA:
        raise ValueError(f"{path}: not the manifest of a folder of CSR blocks")
    if found.get("version") != VERSION:
        raise ValueError(f"{path}: has version {shown(found.get('version'))}; this package reads {VERSION}")
    if not _is_sound(found):
        raise ValueError(f"{path}: damaged (it holds {shown(found)})")
    return found


def _is_sound(found: dict[str, Any]) -> bool:
    """Whether a manifest has all that `CSRFolder` reads."""
    blocks = found.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return False
    counts = [found.get("n_features"), found.get("n_labels")]
    counts += [block.get(name) for block in blocks for name in ("rows", "nnz", "bytes")]
    return (
        found.get("dtype") in ("float32", "float64")
        and found.get("y") in (None, "indicator", "float32", "float64", "int32", "int64")
        and found.get("first_index") in (0, 1)
        and all(type(count) is int and 0 <= count < 2**62 for count in counts)
    )


class FolderWriter:
    """A folder that is being written: its blocks, one after another, and at the end the manifest.

    Each file is complete or absent, and a block says how the next one goes on.

    Parameters
    ----------
    folder : str
        Made if it does not exist.
    source : dict
        What is written; ``blocks`` of another source are not gone on with.
    resume : bool
        Go on with the blocks that are there.

    Attributes
    ----------
    blocks : list of dict
        Rows, nnz and bytes of each block.
    state : dict or None
        That of the last block.

    Raises
    ------
    FileExistsError
        If the folder holds something else.
    """

    def __init__(self, folder: str, source: dict[str, Any], resume: bool):
        self.folder, self.source = folder, json.loads(json.dumps(source))
        self.blocks: list[dict[str, int]] = []
        self.state: dict[str, Any] | None = None
        os.makedirs(folder, exist_ok=True)
        names = os.listdir(folder)
        others = [name for name in names if not _OURS.fullmatch(name)]
        if others:
            what = "a finished data set" if MANIFEST in others else f"other files ({shown(others[0])})"
            raise FileExistsError(f"{folder} holds {what}: name another folder, or empty this one")
        while resume and os.path.exists(block_path(folder, len(self.blocks))):
            self._resume()
        kept = {os.path.basename(block_path(folder, i)) for i in range(len(self.blocks))}
        for name in set(names) - kept:
            os.remove(os.path.join(folder, name))

    def _resume(self) -> None:
        path = block_path(self.folder, len(self.blocks))
        try:
            with Reader(path) as file:
                header = file.header
        except ValueError as error:
            raise ValueError(f"{path}: damaged ({error}); resume=False begins anew") from error
        if header.get("source") != self.source:
            raise ValueError(
                f"{self.folder} holds an unfinished conversion of other files (or files that have changed "
                "since), or with other settings. Give resume=False to begin anew, or name another folder."
            )
        self.state = header["state"]
        self.blocks.append({**header["counts"], "bytes": os.path.getsize(path)})

    def add(self, arrays: Mapping[str, Array], state: dict[str, Any] | None) -> None:
        """Write the next block."""
        path = block_path(self.folder, len(self.blocks))
        counts = {"rows": len(arrays["indptr"]) - 1, "nnz": len(arrays["indices"])}
        write(path, {"source": self.source, "counts": counts, "state": state}, arrays)
        self.blocks.append({**counts, "bytes": os.path.getsize(path)})

    def finish(self, **content: Any) -> None:
        """Write the manifest."""
        manifest = {"schema": SCHEMA, "version": VERSION, **content}
        with (
            replacing(os.path.join(self.folder, MANIFEST)) as part,
            open(part, "w", encoding="utf-8", newline="\n") as file,
        ):
            json.dump({**manifest, "source": self.source, "blocks": self.blocks}, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
