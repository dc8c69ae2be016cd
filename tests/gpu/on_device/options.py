"""Options of a run, which choose between a device and the emulation: CuPy, and the sizes of the checks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

GPU_TESTS = Path(__file__).resolve().parents[1]
CHECKOUT = GPU_TESTS.parents[1]
EMULATED = GPU_TESTS.parent / "emulator" / "emulated"


class Skipped(Exception):
    """A task that cannot run here; its text is the reason."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    dry_run: bool = False
    widths: tuple[int, ...] = ()
    sanitizer: str | None = None
    check_memory: bool = False  # every array has memory of its own, so that compute-sanitizer sees its ends

    def size(self, device, dry_run):
        """The first on a device, the second in a dry run."""
        return dry_run if self.dry_run else device

    def cupy(self):
        """CuPy with a device, or in a dry run its emulation in ``tests/emulator``."""
        if self.dry_run and str(EMULATED) not in sys.path:
            sys.path.insert(0, str(EMULATED))
        import cupy

        return cupy


def benchmark_helpers():
    """Module ``_gpu`` of the benchmarks: times by events, bandwidth of a copy."""
    folder = str(CHECKOUT / "benchmarks")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import _gpu

    return _gpu
