"""One emulated device, on which everything is done at once: streams and events keep no time."""

import time as _time

from .. import _convert
from . import runtime


def is_available():
    return True


class Device:
    """The device 0; there is no other."""

    def __init__(self, device=None):
        self.id = 0 if device is None else int(device)
        if self.id != 0:
            raise runtime.CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __int__(self):
        return self.id

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    def __eq__(self, other):
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self):
        return hash(("Device", self.id))

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def use(self):
        return None

    def synchronize(self):
        _convert.sync()

    @property
    def compute_capability(self):
        return "90"

    @property
    def mem_info(self):
        return runtime.memGetInfo()

    @property
    def attributes(self):
        return {
            "MultiProcessorCount": 2,
            "WarpSize": 32,
            "MaxThreadsPerBlock": 1024,
            "MaxSharedMemoryPerBlock": 48 << 10,
            "MaxSharedMemoryPerBlockOptin": 227 << 10,
            "MaxSharedMemoryPerMultiprocessor": 228 << 10,
            "MaxThreadsPerMultiProcessor": 2048,
            "L2CacheSize": 50 << 20,
        }


class Stream:
    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.ptr = 0 if null else 1

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    @property
    def done(self):
        return True

    def synchronize(self):
        _convert.sync()

    def use(self):
        return self

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        return None


Stream.null = Stream(null=True)


class ExternalStream(Stream):
    def __init__(self, ptr, device_id=-1):
        self.ptr, self.device_id = int(ptr), device_id


def get_current_stream(device_id=-1):
    return Stream.null


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._time = None

    @property
    def done(self):
        return True

    def record(self, stream=None):
        self._time = _time.perf_counter()

    def synchronize(self):
        _convert.sync()


def get_elapsed_time(start_event, end_event):
    return 1e3 * (end_event._time - start_event._time)


class MemoryPool:
    """Nothing is pooled: all counts are 0."""

    def __init__(self, allocator=None):
        self._limit = 0

    def used_bytes(self):
        return 0

    def total_bytes(self):
        return 0

    def free_bytes(self):
        return 0

    def n_free_blocks(self):
        return 0

    def free_all_blocks(self, stream=None):
        return None

    def set_limit(self, size=None, fraction=None):
        self._limit = size or 0

    def get_limit(self):
        return self._limit
