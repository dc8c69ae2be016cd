"""What a report of a problem needs: versions, how the kernels were built, and threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# of the extras that say something about a problem; CuPy comes under another name for each CUDA
_OPTIONAL = (
    "cupy-cuda12x", "cupy-cuda13x", "cupy", "torch", "liblinear-official", "skglm", "celer", "glum",
    "pyarrow",
)  # fmt: skip
# calls of the OpenMP libraries of GCC, Clang and MSVC
_OPENMP = (b"GOMP_parallel", b"__kmpc_fork_call", b"_vcomp_fork")


def show_versions() -> None:
    """Print versions, how the kernels were built, and thread pools, to paste into a report of a problem.

    What :func:`sklearn.show_versions` prints stands first. Optional packages are not imported for it; those
    that are missing are None.

    Examples
    --------
    >>> from sparsekit import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    <BLANKLINE>
    System:
    ...
    """
    import sklearn

    from .._linalg.threads import count_threads

    sklearn.show_versions()
    blocks: dict[str, dict[str, str | None]] = {
        "Packages": versions(("sparsekit", *_OPTIONAL)),
        "Kernels": {**_kernels(), "threads with n_jobs=-1": str(count_threads(-1))},
    }
    for title, rows in blocks.items():
        width = max(map(len, rows))
        print("", f"{title}:", *(f"{name:>{width}}: {value}" for name, value in rows.items()), sep="\n")


def versions(names: Iterable[str]) -> dict[str, str | None]:
    """Versions of the installed distributions by name; None: not installed."""
    found: dict[str, str | None] = {}
    for name in names:
        found[name] = None
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


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
