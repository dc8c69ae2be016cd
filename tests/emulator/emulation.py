"""What the tests of the emulation itself share: its modules, and an array as a launch sees one."""

import importlib
import sys
from pathlib import Path

import pytest


def cuda_build():
    """Module ``cuda_build`` of tests/emulator/emulated; skips the test where it cannot work."""
    # on the path for the import alone: cupy lies there too
    folder = str(Path(__file__).resolve().parent / "emulated")
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module("cuda_build")
    finally:
        sys.path.remove(folder)
    if module.unavailable() is not None:
        pytest.skip(module.unavailable())
    return module


class _Memory:
    def __init__(self, ptr):
        self.ptr = ptr


class Array:
    """What a launch asks of a device array; ``host`` is what it stands for."""

    def __init__(self, host):
        self.host = host
        self.dtype = host.dtype
        self.flags = host.flags
        self.data = _Memory(host.ctypes.data)
