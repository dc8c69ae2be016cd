"""The emulation of CUDA C for tests of GPU kernels: what it computes is what a device would."""

import numpy as np
import pytest
from emulation import Array, cuda_build


@pytest.fixture
def build():
    """The module cuda_build."""
    return cuda_build()


WARPS = r"""
extern "C" __global__ void sk_shuffles(const VALUE* x, VALUE* out, long long by) {
    const int n = blockDim.x, i = threadIdx.x;
    out[i] = __shfl_sync(0xffffffffu, x[i], (int)by);
    out[n + i] = __shfl_xor_sync(0xffffffffu, x[i], (int)by);
}

extern "C" __global__ void sk_part_masks(const double* x, double* sums, unsigned* votes) {
    const int lane = threadIdx.x % 32;
    const unsigned mask = lane < 8 ? 0x000000ffu : 0xffffff00u;
    double sum = x[threadIdx.x];
    for (int far = 4; far > 0; far >>= 1) sum += __shfl_xor_sync(mask, sum, far);
    votes[threadIdx.x] = __ballot_sync(mask, lane % 3 == 0);
    __syncwarp();
    sums[threadIdx.x] = sum;
}
"""
C_NAMES = {"int32": "int", "uint64": "unsigned long long", "float32": "float", "float64": "double"}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dtype", C_NAMES)
def test_shuffles(build, seed, dtype):
    """Lane by lane, as CUDA's documentation has them."""
    module = build.RawModule(code=WARPS, options=(f"-DVALUE={C_NAMES[dtype]}",))
    build.seed(seed)
    x = np.random.default_rng(1).integers(0, 2**31 - 1, 64).astype(dtype)
    lane = np.arange(64)
    for by in (0, 1, 5, 16, 31):
        out = np.zeros(2 * 64, dtype)
        module.get_function("sk_shuffles")((1,), (64,), (Array(x), Array(out), by))
        np.testing.assert_array_equal(out, np.concatenate([x[lane // 32 * 32 + by], x[lane ^ by]]))


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_masks_of_some_lanes(build, seed):
    module = build.RawModule(code=WARPS, options=("-DVALUE=double",))
    build.seed(seed)
    x = np.arange(64.0) ** 2
    sums, votes = np.zeros(64), np.zeros(64, np.uint32)
    module.get_function("sk_part_masks")((1,), (64,), (Array(x), Array(sums), Array(votes)))
    np.testing.assert_array_equal(sums, np.repeat(x.reshape(8, 8).sum(axis=1), 8))
    lane = np.arange(64) % 32
    thirds = sum(1 << k for k in range(0, 32, 3))
    np.testing.assert_array_equal(votes, np.where(lane < 8, thirds & 0xFF, thirds & 0xFFFFFF00))
