"""What a report of a problem needs: versions, how the kernels were built, and threads."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

# what tests and documentation need says nothing about a problem
_EXTRAS = ("gpu", "torch", "plot", "compare")
# calls of the OpenMP libraries of GCC, Clang and MSVC
_OPENMP = (b"GOMP_parallel", b"__kmpc_fork_call", b"_vcomp_fork")


def show_versions() -> None:
    """Print versions, how the kernels were built, and thread pools, to paste into a report of a problem.

    Optional packages are not imported for it; those that are missing are None.

    See Also
    --------
    sklearn.show_versions : The same of scikit-learn.

    Examples
    --------
    >>> from sparsekit import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    System:
    ...
    """
    from threadpoolctl import threadpool_info

    from .._linalg.threads import count_threads

    kernels = _kernels()
    blocks: dict[str, dict[str, Any]] = {
        "System": {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
        "Packages": _versions(None),
        "Optional packages": _versions(_EXTRAS),
        "Kernels": {**kernels, "threads with n_jobs=-1": count_threads(-1)},
    }
    for number, pool in enumerate(threadpool_info(), start=1):
        blocks[f"Thread pool {number}"] = pool
    for title, rows in blocks.items():
        width = max(map(len, rows))
        print(f"{title}:", *(f"{name:>{width}}: {value}" for name, value in rows.items()), "", sep="\n")


def _versions(extras: tuple[str, ...] | None) -> dict[str, str | None]:
    """Versions of what the package requires, or of what its extras do."""
    found = {} if extras else {"sparsekit": _version("sparsekit")}
    try:
        lines = requires("sparsekit") or []
    except PackageNotFoundError:  # on the path, but not installed
        lines = []
    for line in lines:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        if extra[1] in extras if extra and extras else not (extra or extras):
            name = re.split(r"[^\w.-]", requirement.strip())[0]
            found[name] = _version(name)
    if extras and "gpu" in extras:
        # CuPy comes under another name for each CUDA; the extra names the first
        found.update({name: there for name in ("cupy-cuda13x", "cupy") if (there := _version(name))})
    return found


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _kernels() -> dict[str, str]:
    """Level of instructions, and OpenMP as the compiled file itself shows it."""
    from .._cython.shared import _dense
    from .._cython.shared._runtime import simd_level, simd_levels

    code = Path(_dense.__file__).read_bytes()
    return {
        "compiled file": _dense.__file__,
        "SIMD level": f"{simd_level()} (of {', '.join(simd_levels())}; SPARSEKIT_SIMD sets the highest)",
        "OpenMP": "yes" if any(name in code for name in _OPENMP) else "no",
    }
