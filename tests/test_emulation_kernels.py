"""The emulation of CUDA C for tests of GPU kernels: right results, and errors where they are due."""

import importlib
import sys

import numpy as np
import pytest

SUM = r"""
typedef REAL real;

extern "C" __global__ void __launch_bounds__(256) sk_sum(
    const real* __restrict__ x,  // the numbers
    long long n, double* out)
{
    __shared__ double sums[32];
    double sum = 0.0;
    const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long step = (long long)blockDim.x * gridDim.x;
    for (long long i = first; i < n; i += step) sum += x[i];
    for (int far = 16; far > 0; far >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, far);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0;
        for (int far = 16; far > 0; far >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, far);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}
"""


@pytest.fixture(scope="module")
def build(checkout):
    """The module cuda_build of tests/emulated."""
    folder = str(checkout / "tests" / "emulated")
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module("cuda_build")
    finally:
        sys.path.remove(folder)
    if module.unavailable() is not None:
        pytest.skip(module.unavailable())
    return module


@pytest.fixture(autouse=True)
def ascending(build):
    yield
    build.seed(0)


class Array:
    """What a launch asks of a device array."""

    class Memory:
        def __init__(self, ptr):
            self.ptr = ptr

    def __init__(self, host):
        self.host = host
        self.dtype = host.dtype
        self.flags = host.flags
        self.data = self.Memory(host.ctypes.data)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_block_sums(build, seed, dtype):
    module = build.RawModule(code=SUM, options=(f"-DREAL={'float' if dtype == 'float32' else 'double'}",))
    build.seed(seed)
    x = np.arange(5000, dtype=dtype)
    out = np.full(7, np.nan)
    before = build.counts["launches"]
    module.get_function("sk_sum")((7,), (128,), (Array(x), len(x), Array(out)))
    assert build.counts["launches"] == before + 1
    blocks = (np.arange(5000) // 128) % 7
    np.testing.assert_array_equal(out, np.bincount(blocks, x))
