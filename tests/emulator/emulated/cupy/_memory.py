"""Memory of the emulated device: guard zones around each array, and nothing in it that was not written.

A device pointer is the host's address, so kernels compiled for the CPU run on these arrays.
"""

import math

import numpy as np

from . import emulation

GUARD = 512
ALIGNMENT = 512
# A quiet NaN as float32, as either half of a float64, and as bfloat16's high half; as an integer far from
# any index. The same bits stand in the guard zones (reads outside give NaN) and in memory nobody wrote to.
PATTERN = np.frombuffer(np.uint32(0x7FFDA3C1).tobytes(), np.uint8)
_GUARD_BYTES = np.tile(PATTERN, GUARD // PATTERN.size)

# CuPy has no others (Unsupported dtype)
DTYPES = frozenset(np.dtype(code) for code in "?bBhHiIlLqQefdFD")


class Memory:
    """One allocation; an array and the views of it share it."""

    __slots__ = ("__weakref__", "raw", "size", "start")

    def __init__(self, n_bytes):
        self.raw = np.empty(n_bytes + 2 * GUARD + ALIGNMENT, np.uint8)
        self.start = GUARD + -(self.raw.ctypes.data + GUARD) % ALIGNMENT
        self.size = n_bytes
        self.raw[self.start - GUARD : self.start] = _GUARD_BYTES
        self.raw[self.start + n_bytes : self.start + n_bytes + GUARD] = _GUARD_BYTES

    def array(self, shape, dtype, order):
        return np.ndarray(shape, dtype, buffer=self.raw, offset=self.start, order=order)

    def damage(self):
        """Where the guard zones were written to ('3 bytes before its start'), or None."""
        before = self.raw[self.start - GUARD : self.start] != _GUARD_BYTES
        end = self.start + self.size
        behind = self.raw[end : end + GUARD] != _GUARD_BYTES
        if before.any():
            return f"{GUARD - int(np.flatnonzero(before)[-1])} bytes before its start"
        if behind.any():
            return f"{int(np.flatnonzero(behind)[0]) + 1} bytes behind its end ({self.size} bytes long)"
        return None


def check_dtype(dtype):
    dtype = np.dtype(dtype)
    if dtype not in DTYPES:
        raise ValueError(f"Unsupported dtype {dtype}")
    return dtype


def allocate(shape, dtype, order="C"):
    """A NumPy array of unwritten device memory, and that memory."""
    dtype = check_dtype(dtype)
    if order not in ("C", "F"):
        raise ValueError("order not understood")
    shape = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else (int(shape),)
    if any(n < 0 for n in shape):
        raise ValueError("Negative dimensions are not allowed")
    memory = Memory(math.prod(shape) * dtype.itemsize)
    array = memory.array(shape, dtype, "F" if order == "F" else "C")
    poison(memory, dtype)
    emulation.counts["allocations"] += 1
    return array, memory


def poison(memory, dtype):
    body = memory.raw[memory.start : memory.start + memory.size]
    if dtype == np.bool_:
        body[:] = 1
    elif dtype.kind in "fc":
        body.view(dtype)[:] = np.nan
    else:
        whole = body.size // PATTERN.size * PATTERN.size
        body[:whole].reshape(-1, PATTERN.size)[:] = PATTERN
        body[whole:] = PATTERN[: body.size - whole]


def device_copy(array, dtype=None, order="K"):
    """A copy of a host array in device memory, and that memory."""
    array = np.asarray(array)
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    if order in ("K", "A", None):
        order = "F" if fortran else "C"
    out, memory = allocate(array.shape, array.dtype if dtype is None else dtype, order)
    out[...] = array
    return out, memory
