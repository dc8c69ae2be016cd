"""Compiled kernels in a folder for each wing, and their threads after a fork.

A kernel of one wing is in the folder of its name, a kernel of several wings in ``shared``. A folder imports,
and includes headers of, itself and ``shared``; its ``__init__`` imports nothing.
"""

import os
from importlib.util import find_spec

if find_spec(f"{__name__}.shared._sparse") is None:
    raise ImportError(
        f"{__path__[0]} is sparsekit's source code, without the compiled kernels, and Python found no "
        "installed sparsekit. Install it with `pip install .` in the checkout, or editable: "
        "`pip install --no-build-isolation --editable .`"
    )

from .shared._runtime import LEVELS as _LEVELS
from .shared._runtime import run_on_one_thread as _run_on_one_thread

# a kernel takes an unknown value for "no limit" and reports no error
if os.environ.get("SPARSEKIT_SIMD", "") not in ("", *_LEVELS):
    raise ImportError(
        f"The environment variable SPARSEKIT_SIMD is {os.environ['SPARSEKIT_SIMD']}; it must be one of "
        f"{', '.join(_LEVELS)} (the highest level of instructions that kernels may use) or not be set."
    )

if hasattr(os, "register_at_fork"):
    # libgomp's pool of the thread that forks is copied without its threads, and the next region of the child
    # would wait for them for ever
    os.register_at_fork(after_in_child=_run_on_one_thread)
