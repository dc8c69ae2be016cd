"""One emulated device, on which everything is done at once: streams and events keep no time."""

import time as _time

from .. import _convert
from . import runtime


class Device:
    """The device 0; there is no other."""

    def __init__(self, device=None):
        self.id = 0 if device is None else int(device)
        if self.id != 0:
            raise runtime.CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    @property
    def compute_capability(self):
        return "90"

    @property
    def attributes(self):
        return {"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": 227 << 10, "L2CacheSize": 50 << 20}


class ExternalStream:
    def __init__(self, ptr, device_id=-1):
        self.ptr, self.device_id = int(ptr), device_id

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._time = None

    def record(self, stream=None):
        self._time = _time.perf_counter()

    def synchronize(self):
        _convert.sync()


def get_elapsed_time(start_event, end_event):
    return 1e3 * (end_event._time - start_event._time)
