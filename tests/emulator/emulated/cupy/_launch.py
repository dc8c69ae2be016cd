"""Kernels: the CPU build of CUDA C, and what is checked after each launch."""

import cuda_build

from . import emulation
from ._convert import is_array


def check_guards(name, args):
    """AssertionError where a kernel wrote outside the memory of one of its arguments."""
    emulation.counts["launches"] += 1
    for position, argument in enumerate(args):
        damage = argument._memory.damage() if is_array(argument) else None
        if damage is not None:
            raise AssertionError(
                f"kernel {name} wrote outside its argument {position} (an array of {argument.dtype}, shape "
                f"{argument.shape}): {damage}"
            )


class RawModule(cuda_build.RawModule):
    """CUDA C source, compiled when a kernel of it is asked for; the kernels check their arguments' types."""

    _after_launch = staticmethod(check_guards)
