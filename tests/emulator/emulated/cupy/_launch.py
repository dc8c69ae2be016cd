"""Kernels: ``RawModule`` over the CPU build of CUDA C, and what is checked after each launch."""

from . import emulation
from ._convert import is_array


class RawModule:
    """CUDA C source, compiled when a kernel of it is asked for; the kernels check their arguments' types."""

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
        import cuda_build

        self._built = cuda_build.RawModule(
            code=code,
            path=path,
            options=options,
            backend=backend,
            translate_cucomplex=translate_cucomplex,
            enable_cooperative_groups=enable_cooperative_groups,
            name_expressions=name_expressions,
            jitify=jitify,
        )
        self._built.after_launch = check_guards
        self.code, self.options, self.backend = code, options, backend

    def compile(self, log_stream=None):
        self._built.compile(log_stream)

    def get_function(self, name):
        return self._built.get_function(name)


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
