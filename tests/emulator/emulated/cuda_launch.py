"""A launch of an emulated kernel: what CuPy and a device would check, and what they would not.

CuPy hands arguments on as they are: a wrong dtype is read as other bytes. Here every argument is compared
with the type that the kernel declares.
"""

import ctypes
import re
import struct
import threading

import numpy as np

MAX_THREADS = 1024
MAX_SHARED = 227 * 1024
DEFAULT_SHARED = 48 * 1024
LARGEST_GRID = (2**31 - 1, 65535, 65535)
LARGEST_BLOCK = (1024, 1024, 64)

counts = {"launches": 0, "syncs": 0}
_order = {"seed": 0}
_lock = threading.Lock()
# the stacks of the fibers, shared by all modules: how many there are, and where those lie that are free
_stacks = (ctypes.c_uint64 * (1 + MAX_THREADS))()


def seed(n):
    """Order of blocks and threads: 0 ascending, 1 descending, else drawn from this seed at every barrier."""
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise ValueError(f"seed must be an int >= 0, got {n!r}")
    _order["seed"] = int(n)


class _Parameter:
    """One parameter of a kernel: its type as the compiler described it, and how a value is checked."""

    def __init__(self, kernel, position, name, described):
        self.where = f"kernel {kernel}, argument {position} ({name})"
        self.scalar = ":" not in described
        if described == "?" or ":?:" in described:
            raise RuntimeError(
                f"{self.where}: a parameter must be long long, double or a pointer to numbers "
                "(signed char, not char); CuPy's launches check no types"
            )
        if self.scalar:
            self.wanted = described
        else:
            access, dtypes, alignment = described.split(":")
            self.changed = access == "mutable"
            self.dtypes = tuple(np.dtype(one) for one in dtypes.split("|"))
            self.wanted = "array of " + " or ".join(str(one) for one in self.dtypes)
            self.alignment = int(alignment)

    def refuse(self, value, why):
        raise TypeError(f"{self.where}: {why}; the kernel asks for {self._asked()}")

    def _asked(self):
        if not self.scalar:
            return f"a device {self.wanted}"
        return (
            "int or numpy.int64 (long long)" if self.wanted == "int64" else "float or numpy.float64 (double)"
        )

    def pack(self, value):
        """The eight bytes that the kernel gets."""
        if not self.scalar:
            return struct.pack("=Q", self._pointer(value))
        python, numpy = (int, np.int64) if self.wanted == "int64" else (float, np.float64)
        # type() and not isinstance: bool is an int, numpy.float64 a float
        if type(value) not in (python, numpy):
            self.refuse(value, f"got {_kind(value)}")
        try:
            return struct.pack("=q" if python is int else "=d", value)
        except struct.error:
            raise OverflowError(f"{self.where}: {value} does not fit into 64 bits") from None

    def _pointer(self, array):
        pointer = getattr(getattr(array, "data", None), "ptr", None)
        if pointer is None or not hasattr(array, "dtype"):
            self.refuse(array, f"got {_kind(array)}")
        if array.dtype not in self.dtypes:
            self.refuse(array, f"got an array of {array.dtype}")
        if self.changed and not getattr(array.flags, "writeable", True):
            self.refuse(array, "got a read-only array, which the kernel may change")
        if pointer % self.alignment:
            self.refuse(array, f"got an array that is not aligned to {self.alignment} bytes")
        return int(pointer)


def _kind(value):
    if isinstance(value, np.ndarray):
        return "a NumPy array, which lies in the host's memory"
    return "None" if value is None else f"{type(value).__module__}.{type(value).__name__}"


class Kernel:
    """Kernel of an emulated module, called as ``cupy.RawKernel`` is."""

    def __init__(self, library, name, code, finished):
        describe = getattr(library, f"sk_emulated_describe_{name}")
        describe.restype = ctypes.c_char_p
        bound, names, *types = re.split(";", describe().decode())
        self.name = name
        self.max_threads_per_block = int(bound)
        static = library.sk_emulated_static_shared
        static.restype = ctypes.c_uint64
        # static arrays count as well; those of the other kernels of the module do here alone
        self._static_shared = int(static())
        self.max_dynamic_shared_size_bytes = DEFAULT_SHARED - self._static_shared
        names, types = names.split(), types[0].split()
        self._parameters = [
            _Parameter(name, i, *pair) for i, pair in enumerate(zip(names, types, strict=True))
        ]
        self._launch = getattr(library, f"sk_emulated_launch_{name}")
        self._launch.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
        self._error = library.sk_emulated_error
        self._code = code
        self._finished = finished

    def _shape(self, what, given, largest):
        if not isinstance(given, tuple):
            raise TypeError(f"kernel {self.name}: {what} must be a tuple, got {type(given).__name__}")
        if not 1 <= len(given) <= 3 or not all(isinstance(d, (int, np.integer)) for d in given):
            raise TypeError(f"kernel {self.name}: {what} must be a tuple of up to three int, got {given!r}")
        shape = tuple(int(d) for d in given) + (1,) * (3 - len(given))
        if any(not 0 < d <= limit for d, limit in zip(shape, largest, strict=True)):
            raise RuntimeError(
                f"CUDA_ERROR_INVALID_VALUE: kernel {self.name}: {what} {given} is not within 1 and {largest}"
            )
        return shape

    def _check_shared(self, shared_mem):
        most = MAX_SHARED - self._static_shared
        if not isinstance(shared_mem, (int, np.integer)) or not 0 <= shared_mem <= most:
            raise RuntimeError(
                f"CUDA_ERROR_INVALID_VALUE: kernel {self.name}: {shared_mem!r} bytes of shared memory, "
                f"not an int between 0 and {most}"
            )
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise RuntimeError(
                f"CUDA_ERROR_INVALID_VALUE: kernel {self.name}: {shared_mem} bytes of shared memory are more "
                f"than its max_dynamic_shared_size_bytes of {self.max_dynamic_shared_size_bytes}"
            )
        return int(shared_mem)

    def _with_source(self, message):
        """The error with the text of the lines that it names."""
        lines = self._code.splitlines()

        def quote(found):
            number = int(found[1])
            text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            return f"(line {number}: {text})" if text else found[0]

        return re.sub(r"\(line (\d+)\)", quote, message)

    def __call__(self, grid, block, args, *, shared_mem=0):
        """Run the kernel; RuntimeError where a thread does what a device would not or should not bear."""
        grid = self._shape("grid", grid, LARGEST_GRID)
        block = self._shape("block", block, LARGEST_BLOCK)
        threads = block[0] * block[1] * block[2]
        if threads > min(MAX_THREADS, self.max_threads_per_block):
            raise RuntimeError(
                f"CUDA_ERROR_INVALID_VALUE: kernel {self.name}: a block of {threads} threads, at most "
                f"{min(MAX_THREADS, self.max_threads_per_block)} are allowed"
            )
        shared_mem = self._check_shared(shared_mem)
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"kernel {self.name}: args must be a tuple, got {type(args).__name__}")
        if len(args) != len(self._parameters):
            raise TypeError(f"kernel {self.name} takes {len(self._parameters)} arguments, got {len(args)}")
        slots = b"".join(one.pack(value) for one, value in zip(self._parameters, args, strict=True))
        shape = (ctypes.c_uint32 * 7)(*grid, *block, shared_mem)
        # one launch at a time: a module has one set of threads, and all modules share the stacks
        with _lock:
            failed = self._launch(slots + b"\0", shape, _order["seed"], _stacks)
            message = self._error().decode(errors="replace") if failed else ""
        counts["launches"] += 1
        if failed:
            raise RuntimeError(self._with_source(message))
        self._finished(self.name, args)
