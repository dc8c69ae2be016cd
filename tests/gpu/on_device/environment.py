"""Versions of driver, CUDA and packages, the device, and the bandwidth of a copy within its memory."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess

from .options import benchmark_helpers

TASK_LIMIT, AT_ONCE = 40, False
PACKAGES = ("cupy", "sparsekit", "numpy", "scipy", "scikit-learn", "torch", "triton", "pytest", "hypothesis")
COPIED = 1 << 30  # bytes


def tasks(options):
    return ["versions", "device", "copy"]


def _version(name):
    """Version of a package, or None where it is not installed; CuPy's is named for its CUDA."""
    names = [name] if name != "cupy" else ["cupy", "cupy-cuda12x", "cupy-cuda13x"]
    for name in names:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _driver():
    """First line of what nvidia-smi says of the devices, or why it says nothing."""
    if shutil.which("nvidia-smi") is None:
        return "nvidia-smi is not installed"
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=30)
    return (done.stdout or done.stderr).strip()


def _versions():
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": len(os.sched_getaffinity(0)),
        "packages": [version for version in map(_version, PACKAGES) if version],
        "driver": _driver(),
        "sanitizer": shutil.which("compute-sanitizer"),
        "nvcc": shutil.which("nvcc"),
    }


def _device(cupy):
    found = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    x = cupy.arange(1000.0)
    total = float((x * 2.0).sum())
    assert total == 999000.0, f"the device adds 0, 2, ... 1998 up to {total}"
    return {
        "name": found["name"].decode(),
        "compute_capability": str(cupy.cuda.Device().compute_capability),
        "multiprocessors": int(found["multiProcessorCount"]),
        "l2_mib": int(found["l2CacheSize"]) >> 20,
        "memory_gib": round(found["totalGlobalMem"] / 2**30, 1),
        "cuda_runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cuda_driver": cupy.cuda.runtime.driverGetVersion(),
        "cupy": cupy.__version__,
    }


def run(task, options):
    if task == "versions":
        return _versions()
    cupy = options.cupy()
    if task == "device":
        return _device(cupy)
    nbytes = options.size(COPIED, 1 << 16)
    rate = benchmark_helpers().copy_bandwidth(cupy, nbytes)
    return {"gb_per_s": round(rate / 1e9, 1), "bytes": nbytes}
