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
# macros of kernels as they are launched, in addition to their defaults: long rows, wide reads, targets
VARIANTS = [
    ("fenchel_young/sparsemax", SINGLE, "LANES=32 EACH=32 WIDE=4"),
    ("fenchel_young/sparsemax", SINGLE, "LANES=4 EACH=8 WIDE=4 TARGETS=1"),
    ("fenchel_young/sparsemax_block", SINGLE, "LANES=32 EACH=32 WIDE=4"),
    ("fenchel_young/sparsemax_long", SINGLE, "LANES=32 EACH=16 WIDE=4"),
    ("shared/spmm", SINGLE, "SUM=float SPMM_LANES=32 SPMM_COLUMNS=2"),
    ("extreme/extreme", SINGLE, "SK_EXTREME_ALONE=1"),
]


def own_text(file):
    """Text of a file and its headers but for the one that all share."""
    return _compile.source(file).replace((FOLDER / "shared" / "common.cuh").read_text(encoding="utf-8"), "")


def has_types(file):
    """Whether the kernels of a file depend on ``real`` or ``index_t``."""
    return re.search(r"\b(real|index_t|REAL|INDEX)\b", own_text(file)) is not None
