"""The CUDA sources of the package, their kernels, and the macros that launches set."""

import re
from pathlib import Path

import sparsekit
from sparsekit.gpu.shared import _compile

FOLDER = Path(sparsekit.__file__).parent / "gpu"
# folder/name
FILES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.cu"))
SINGLE, DOUBLE = ("float", "int"), ("double", "long long")
# those that a macro makes are indented in it; where their names clash, nvcc says so
KERNEL = re.compile(r'(?m)^extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(')


def own_text(file):
    """Text of a file and its headers but for the one that all share."""
    return _compile.source(file).replace((FOLDER / "shared" / "common.cuh").read_text(encoding="utf-8"), "")


def has_types(file):
    """Whether the kernels of a file depend on ``real`` or ``index_t``."""
    return re.search(r"\b(real|index_t|REAL|INDEX)\b", own_text(file)) is not None
