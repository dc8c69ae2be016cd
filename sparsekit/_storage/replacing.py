"""Files that are complete or absent: written to a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to. It is renamed to ``path`` if no exception is raised.

    An existing file is unchanged if the writing fails or is interrupted. If ``path`` is a link, the file that
    it leads to is replaced. Pipes and devices are written to directly. So is a file in a folder that is
    read-only.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode
    if mode is not None and not stat.S_ISREG(mode):
        yield target
        return
    try:
        with open(part, "xb"):
            pass
    except PermissionError:
        if mode is None:
            raise
        yield target
        return
    try:
        yield part
        if mode is not None:
            part.chmod(stat.S_IMODE(mode))
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
