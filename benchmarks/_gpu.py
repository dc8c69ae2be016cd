"""What the GPU benchmarks share: a device or a clear end, times by events, and floors for comparison."""

from __future__ import annotations

import statistics
import sys
import time
import warnings

import _common

KERNELS = ["kernel", "time", "floor", "reached", "of the copy"]


def add_fits(parser):
    """The options of fits on both sides."""
    parser.add_argument("--n-threads", type=int, default=2, help="threads of the CPU's fits")
    parser.add_argument("--max-time", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=3)


def report(title, args, tables):
    """Print tables row by row, then as Markdown; 0.

    ``tables`` are pairs of the columns' names and a function of (cupy, bandwidth, args) that yields the rows.
    """
    cupy = device_or_exit()
    warnings.simplefilter("ignore")
    bandwidth = copy_bandwidth(cupy)
    lines = [f"# {title} on a GPU", "", *_common.environment(()), describe(cupy)]
    lines += [f"A copy within its memory moves {bandwidth / 1e9:.0f} GB/s, read and written.", ""]
    for titles, measure in tables:
        rows = []
        for cells in measure(cupy, bandwidth, args):
            rows.append(cells)
            print(*cells, sep="  ", flush=True)
        lines += _common.markdown_table(titles, rows)
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


def median_seconds(cupy, run, repeats):
    """Median seconds of runs but the first, which compiles kernels; and the last one's result."""
    times = []
    while len(times) <= repeats and sum(times) < 60.0:
        start = time.perf_counter()
        result = run()
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times), result


def fit_twice(cupy, cls, options, here, there, args):
    """Seconds and model of a fit in main memory, and of the same fit on the device."""
    model = cls(n_jobs=args.n_threads, **options)
    slow, first = median_seconds(cupy, lambda: model.fit(*here), args.repeats)
    fast, second = median_seconds(cupy, lambda: cls(**options).fit(*there), args.repeats)
    return slow, first, fast, second


def to_device(cupy, X):
    """A matrix of main memory on the device."""
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix(X) if hasattr(X, "nnz") else cupy.asarray(X)


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
