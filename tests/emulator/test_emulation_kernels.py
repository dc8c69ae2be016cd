"""The emulation of CUDA C for tests of GPU kernels: what it computes is what a device would."""

import numpy as np
import pytest
from emulation import Array, cuda_build


@pytest.fixture
def build():
    """The module cuda_build."""
    return cuda_build()


WARPS = r"""
extern "C" __global__ void sk_shuffles(const VALUE* x, VALUE* out, long long width, long long by) {
    const int n = blockDim.x, i = threadIdx.x, w = (int)width;
    out[i] = __shfl_sync(0xffffffffu, x[i], (int)by, w);
    out[n + i] = __shfl_up_sync(0xffffffffu, x[i], (unsigned)by, w);
    out[2 * n + i] = __shfl_down_sync(0xffffffffu, x[i], (unsigned)by, w);
    out[3 * n + i] = __shfl_xor_sync(0xffffffffu, x[i], (int)by, w);
}

extern "C" __global__ void sk_part_masks(const VALUE* x, VALUE* sums, unsigned* votes) {
    const int lane = threadIdx.x % 32;
    VALUE sum = x[threadIdx.x];
    if (lane < 8) {
        for (int far = 4; far > 0; far >>= 1) sum += __shfl_xor_sync(0x000000ffu, sum, far);
        votes[threadIdx.x] = __ballot_sync(0x000000ffu, lane % 3 == 0);
    } else {
        for (int far = 4; far > 0; far >>= 1) sum += __shfl_xor_sync(0xffffff00u, sum, far, 8);
        votes[threadIdx.x] = __any_sync(0xffffff00u, lane == 9) + 8 * __any_sync(0xffffff00u, lane == 1);
        votes[threadIdx.x] += 2 * __all_sync(0xffffff00u, lane > 7) + 4 * __all_sync(0xffffff00u, lane > 8);
    }
    __syncwarp();
    sums[threadIdx.x] = sum;
}
"""


def _shuffled(x, width, by):
    """The four shuffles, lane by lane, as CUDA's documentation has them."""
    lane = np.arange(len(x))
    first, last = lane // width * width, lane // width * width + width - 1
    up, down, across = lane - by, lane + by, lane ^ by
    sources = [
        first + by % width,
        np.where(up < first, lane, up),
        np.where(down > last, lane, down),
        np.where(across > last, lane, across),
    ]
    return np.concatenate([x[source] for source in sources])


C_NAMES = {
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_shuffles(build, seed, dtype):
    module = build.RawModule(code=WARPS, options=(f"-DVALUE={C_NAMES[dtype]}",))
    build.seed(seed)
    x = np.random.default_rng(1).integers(0, 2**31 - 1, 64).astype(dtype)
    for width, by in ((32, 1), (32, 16), (32, 31), (16, 5), (8, 3), (2, 1), (1, 0), (16, 16)):
        out = np.zeros(4 * 64, dtype)
        module.get_function("sk_shuffles")((1,), (64,), (Array(x), Array(out), width, by))
        expected = np.concatenate([_shuffled(x[:32], width, by), _shuffled(x[32:], width, by)])
        # one warp's four results follow one another there, all warps' first results here
        expected = expected.reshape(2, 4, 32).transpose(1, 0, 2).ravel()
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_masks_of_some_lanes(build, seed):
    module = build.RawModule(code=WARPS, options=("-DVALUE=double",))
    build.seed(seed)
    x = np.arange(64.0) ** 2
    sums, votes = np.zeros(64), np.zeros(64, np.uint32)
    module.get_function("sk_part_masks")((1,), (64,), (Array(x), Array(sums), Array(votes)))
    np.testing.assert_array_equal(sums, np.repeat(x.reshape(8, 8).sum(axis=1), 8))
    lane = np.arange(64) % 32
    np.testing.assert_array_equal(votes, np.where(lane < 8, 0b01001001, 3))
