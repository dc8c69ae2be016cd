"""The CUDA runtime's questions, answered for the emulated device."""


class CUDARuntimeError(RuntimeError):
    """An error of the runtime."""


is_hip = False


def getDeviceCount():
    return 1


def setDevice(device):
    if device != 0:
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")


def getDeviceProperties(device):
    setDevice(device)
    return {
        "name": b"emulated",
        "major": 9,
        "minor": 0,
        "multiProcessorCount": 2,
        "l2CacheSize": 50 << 20,
        "totalGlobalMem": 8 << 30,
    }


def deviceSynchronize():
    from .._convert import sync

    sync()


def runtimeGetVersion():
    return 12090


def driverGetVersion():
    return 12090
