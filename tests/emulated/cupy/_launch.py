"""Kernels: ``RawModule`` over the CPU build of CUDA C, and what is checked around a launch."""

import numpy as np

from . import emulation
from ._convert import is_array


def build():
    """The module that compiles and runs CUDA C on the CPU."""
    import cuda_build

    return cuda_build


class RawModule:
    """CUDA C source, compiled when a kernel of it is asked for."""

    def __init__(
        self,
        *,
        code=None,
        path=None,
        options=(),
        backend="nvrtc",
        translate_cucomplex=False,
        enable_cooperative_groups=False,
        name_expressions=None,
        jitify=None,
    ):
        if not isinstance(options, tuple):
            raise TypeError(
                f"Argument 'options' has incorrect type (expected tuple, got {type(options).__name__})"
            )
        if not isinstance(code, str):
            raise TypeError(f"Argument 'code' has incorrect type (expected str, got {type(code).__name__})")
        if path is not None or name_expressions is not None or enable_cooperative_groups:
            raise NotImplementedError("the emulation compiles plain source only")
        if backend not in ("nvrtc", "nvcc"):
            raise ValueError(f"Invalid backend: {backend}")
        self.code, self.options, self.backend = code, options, backend
        self._built = None

    def compile(self, log_stream=None):
        if self._built is None:
            self._built = build().RawModule(code=self.code, options=self.options)

    def get_function(self, name):
        self.compile()
        return RawKernel(self._built.get_function(name), name)


class RawKernel:
    """One kernel. CuPy checks neither the number nor the types of the arguments; the emulation does."""

    def __init__(self, built, name):
        self._built = built
        self.name = name

    def __call__(self, grid, block, args, *, shared_mem=0):
        for text, size in (("grid", grid), ("block", block)):
            if not isinstance(size, tuple) or not 1 <= len(size) <= 3:
                raise TypeError(f"{text} must be a tuple of 1 to 3 integers, got {size!r}")
            if any(n < 1 for n in size):
                raise RuntimeError(f"CUDA_ERROR_INVALID_VALUE: invalid argument ({text} {size})")
        if not isinstance(args, tuple):
            raise TypeError(f"args must be a tuple, got {type(args).__name__}")
        for position, argument in enumerate(args):
            if isinstance(argument, np.ndarray) and argument.ndim:
                raise TypeError(f"Unsupported type {type(argument)} (argument {position} of {self.name})")
        build().seed = emulation.seed
        self._built(grid, block, args, shared_mem=shared_mem)
        emulation.counts["launches"] += 1
        check_guards(self.name, args)


def check_guards(name, args):
    """AssertionError where a kernel wrote outside the memory of one of its arguments."""
    for position, argument in enumerate(args):
        if is_array(argument):
            damage = argument._memory.damage()
            if damage is not None:
                raise AssertionError(
                    f"kernel {name} wrote outside its argument {position} ({argument.dtype}, shape "
                    f"{argument.shape}): {damage}"
                )
