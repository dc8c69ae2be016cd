"""What the GPU benchmarks share: a device or a clear end, times by events, and floors for comparison."""

from __future__ import annotations

import statistics
import sys


def device_or_exit():
    """CuPy, where it and a GPU are there; else says what is missing and ends the program with status 0."""
    try:
        import cupy
    except ImportError:
        sys.exit(print("CuPy is not installed: nothing to measure (pip install cupy-cuda12x)"))
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        sys.exit(print(f"no GPU: nothing to measure ({error})"))
    if not count:
        sys.exit(print("no GPU: nothing to measure"))
    return cupy


def describe(cupy):
    """One line: the device, the driver's and the libraries' versions."""
    found = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return (
        f"{found['name'].decode()}, {found['multiProcessorCount']} multiprocessors, L2 "
        f"{found['l2CacheSize'] >> 20} MiB, CUDA {cupy.cuda.runtime.runtimeGetVersion()}, "
        f"CuPy {cupy.__version__}"
    )


def seconds(cupy, call, inputs, *, repeats=20, warm=3):
    """Median seconds of ``call(*arguments)`` on the device, by events.

    ``inputs`` are several sets of arguments, taken in turn: together larger than the L2 cache, they have
    every call read from memory.
    """
    times = []
    for k in range(warm + repeats):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call(*inputs[k % len(inputs)])
        end.record()
        end.synchronize()
        if k >= warm:
            times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return statistics.median(times)


def sets_beyond_cache(cupy, nbytes):
    """How many input sets of ``nbytes`` each to take in turn, so that none is still in the L2 cache."""
    cache = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["l2CacheSize"]
    return max(2, min(16, -(-4 * cache // max(nbytes, 1))))


def copy_bandwidth(cupy, nbytes=1 << 30):
    """Bytes a second, read and written, of a copy within the device's memory: the ceiling of what follows."""
    pairs = [(cupy.random.random(nbytes // 8), cupy.empty(nbytes // 8)) for _ in range(2)]
    return 2 * nbytes / seconds(cupy, lambda a, b: cupy.copyto(b, a), pairs)


def row(name, measured, nbytes, bandwidth, flops=0.0, peak=None):
    """Cells of a table: name, time, its floor, the share of the copy bandwidth that was reached."""
    floor = nbytes / bandwidth
    if peak:
        floor = max(floor, flops / peak)
    return [
        name,
        f"{1e6 * measured:.1f} us",
        f"{1e6 * floor:.1f} us",
        f"{nbytes / measured / 1e9:.0f} GB/s",
        f"{100 * nbytes / measured / bandwidth:.0f} %",
    ]
