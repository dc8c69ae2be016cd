"""Counts how often the host waits for the device, and the launches, by CUPTI's callbacks of driver calls."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
from collections import Counter
from pathlib import Path

DRIVER_API = 1  # CUPTI_CB_DOMAIN_DRIVER_API
ENTER = 0  # CUPTI_API_ENTER, the first field of the callback's data
_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int)
)
# a copy to pageable memory that is not asynchronous, and what ends in "Synchronize"
BLOCKING_COPIES = ("cuMemcpyDtoH", "cuMemcpyDtoH_v2")


class NoCounts(RuntimeError):
    """Driver calls cannot be counted here; the text says why."""


def find_cupti():
    """Path of CUPTI, of a toolkit or of the wheel nvidia-cuda-cupti."""
    folders = [Path("/usr/local/cuda/extras/CUPTI/lib64"), Path("/usr/local/cuda/lib64")]
    found = importlib.util.find_spec("nvidia")
    for location in found.submodule_search_locations if found else ():
        folders += [*Path(location).glob("cu*/lib"), Path(location) / "cuda_cupti" / "lib"]
    for folder in folders:
        for path in sorted(folder.glob("libcupti.so*")):
            return path
    raise NoCounts(f"libcupti.so is in none of {', '.join(map(str, folders))}")


def _check(status, call):
    if status:
        raise NoCounts(f"CUPTI's {call} ended with error {status}")


@contextlib.contextmanager
def driver_calls(library):
    """Counter of the driver's calls by name, filled when the block ends; ``library`` is CUPTI's path."""
    cupti, calls, ids = ctypes.CDLL(str(library)), Counter(), Counter()

    def called(data, domain, number, site):
        if site[0] == ENTER:
            ids[number] += 1

    callback, subscriber = _CALLBACK(called), ctypes.c_void_p()
    _check(cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None), "cuptiSubscribe")
    try:
        _check(cupti.cuptiEnableDomain(1, subscriber, DRIVER_API), "cuptiEnableDomain")
        yield calls
    finally:
        _check(cupti.cuptiUnsubscribe(subscriber), "cuptiUnsubscribe")
    for number, count in ids.items():
        name = ctypes.c_char_p()
        _check(
            cupti.cuptiGetCallbackName(DRIVER_API, ctypes.c_uint32(number), ctypes.byref(name)),
            "cuptiGetCallbackName",
        )
        calls[name.value.decode().removesuffix("_ptsz").removesuffix("_ptds")] += count


def count_calls(cupy, call, dry_run):
    """Run ``call``; a dict of waits, launches and copies to the host. NoCounts where CUPTI cannot count."""
    if dry_run:
        cupy.emulation.reset()
        call()
        return {"waits": cupy.emulation.counts["syncs"], "launches": cupy.emulation.counts["launches"]}
    with driver_calls(find_cupti()) as calls:
        call()
    return summarize(calls)


def summarize(calls):
    """Waits, launches and copies to the host among the driver's calls, and how many calls there were."""

    def is_wait(name):
        return name.split("_")[0].endswith("Synchronize") or name in BLOCKING_COPIES

    return {
        "waits": sum(n for name, n in calls.items() if is_wait(name)),
        "launches": sum(n for name, n in calls.items() if name.startswith("cuLaunchKernel")),
        "copies_to_host": sum(n for name, n in calls.items() if name.startswith("cuMemcpyDtoH")),
        "driver_calls": sum(calls.values()),
    }
