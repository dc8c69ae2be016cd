"""The emulation of CUDA C for tests of GPU kernels: what it computes is what a device would."""

import numpy as np
import pytest
from emulation import Array, cuda_build


@pytest.fixture
def build():
    """The module cuda_build."""
    return cuda_build()


BLOCKS = r"""
#define SK_KERNEL extern "C" __global__ void
typedef REAL real;

SK_KERNEL __launch_bounds__(256) sk_sum(
    const real* __restrict__ x,  // the numbers, (all) of them
    long long n, double* out)
{
    __shared__ double sums[32];
    double sum = 0.0;
    const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long step = (long long)blockDim.x * gridDim.x;
    for (long long i = first; i < n; i += step) sum += x[i];
#pragma unroll
    for (int far = 16; far > 0; far >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, far);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0;
        for (int far = 16; far > 0; far >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, far);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

// scan of a block in dynamic shared memory, two arrays in one pool
SK_KERNEL sk_scan(const int* x, long long* out) {
    SK_DYNAMIC_SHARED(long long, buffer);
    long long *from = buffer, *to = buffer + blockDim.x;
    const int i = threadIdx.x;
    from[i] = x[i];
    __syncthreads();
    for (int far = 1; far < (int)blockDim.x; far *= 2) {
        to[i] = from[i] + (i >= far ? from[i - far] : 0);
        __syncthreads();
        long long* kept = from;
        from = to;
        to = kept;
    }
    out[i] = from[i];
}

SK_KERNEL sk_positions(long long* out) {
    const long long thread = threadIdx.x + blockDim.x * (threadIdx.y + (long long)blockDim.y * threadIdx.z);
    const long long block = blockIdx.x + gridDim.x * (blockIdx.y + (long long)gridDim.y * blockIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread;
}

#ifdef NEVER
SK_KERNEL sk_never(int this_would_be_refused) {}
#endif
"""

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

FUNCTIONS = r"""
extern "C" __global__ void sk_atomics(int* i, unsigned long long* l, float* f, double* d) {
    const int t = threadIdx.x + blockIdx.x * blockDim.x;
    atomicAdd(i, t); atomicMin(l, (unsigned long long)t); atomicAdd(f, 0.5f); atomicAdd(d, 0.25 * t);
}
extern "C" __global__ void sk_functions(long long* out) {
    long long n = 3;
    out[0] = __popc(0xf0f0u) + 100 * sizeof(exp(1.0f)) + 1000 * sizeof(exp(1.0));
    out[1] = max(n, 2ll) + 10 * min(n, 2ll);
    out[2] = __int_as_float(0x3f800000) == 1.0f;
}
"""
REAL = {"float32": "float", "float64": "double"}


@pytest.mark.parametrize("seed, dtype", [(0, "float32"), (2, "float64")])
def test_block_sums(build, seed, dtype):
    module = build.RawModule(code=BLOCKS, options=(f"-DREAL={REAL[dtype]}", "--std=c++17"))
    build.seed(seed)
    x = np.arange(5000, dtype=dtype)
    out = np.full(7, np.nan)
    before = build.counts["launches"]
    module.get_function("sk_sum")((7,), (128,), (Array(x), len(x), Array(out)))
    assert build.counts["launches"] == before + 1
    blocks = (np.arange(5000) // 128) % 7
    np.testing.assert_array_equal(out, np.bincount(blocks, x))


@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("threads", [1, 33, 1024])
def test_scan_in_dynamic_shared_memory(build, seed, threads):
    module = build.RawModule(code=BLOCKS, options=("-DREAL=float", "--std=c++17"))
    build.seed(seed)
    x = np.random.default_rng(0).integers(-100, 100, threads).astype(np.int32)
    out = np.zeros(threads, np.int64)
    module.get_function("sk_scan")((1,), (threads,), (Array(x), Array(out)), shared_mem=16 * threads)
    np.testing.assert_array_equal(out, np.cumsum(x))


@pytest.mark.parametrize("seed", [0, 1, 3])
@pytest.mark.parametrize(("grid", "block"), [((3, 2, 2), (4, 3, 2)), ((7,), (16, 2)), ((2, 5), (5,))])
def test_positions(build, seed, grid, block):
    """Every thread of every block runs once, under its own indices."""
    module = build.RawModule(code=BLOCKS, options=("-DREAL=float", "--std=c++17"))
    build.seed(seed)
    n_blocks, n_threads = np.prod(grid), np.prod(block)
    out = np.zeros(n_blocks * n_threads, np.int64)
    module.get_function("sk_positions")(grid, block, (Array(out),))
    expected = 1000 * np.arange(n_blocks)[:, None] + np.arange(n_threads)
    np.testing.assert_array_equal(out, expected.ravel())


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


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_atomics(build, seed):
    build.seed(seed)
    i, least = np.zeros(1, np.int32), np.array([99], np.uint64)
    f, d = np.zeros(1, np.float32), np.zeros(1)
    kernel = build.RawModule(code=FUNCTIONS).get_function("sk_atomics")
    kernel((3,), (64,), tuple(map(Array, (i, least, f, d))))
    total = np.arange(192).sum()
    assert (i[0], least[0], f[0], d[0]) == (total, 0, 96, 0.25 * total)
