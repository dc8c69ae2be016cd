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

static __device__ __forceinline__ double plus_one(double x) { return x + 1.0; }

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
    SK_DYNAMIC_SHARED(long long, room);
    long long *from = room, *to = room + blockDim.x;
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

SK_KERNEL sk_votes(const long long* x, int* any, int* all, int* count) {
    const int i = threadIdx.x;
    any[i] = __syncthreads_or(x[i] > 2);
    all[i] = __syncthreads_and(x[i] > 2);
    count[i] = __syncthreads_count(x[i] > 2);
}

// the block that comes last sums up, in the order of the blocks
SK_KERNEL sk_last_block(const double* x, double* parts, unsigned* done, double* out) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = plus_one(x[blockIdx.x]);
        __threadfence();
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x != 0) return;
    double sum = 0.0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    *out = sum;
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
    if (lane % 2)
        votes[threadIdx.x] |= __activemask() & 0xffff0000u;
    else if (lane % 4)
        votes[threadIdx.x] |= __activemask() & 0xffff0000u;
}

extern "C" __global__ void sk_match(const VALUE* x, unsigned* out) {
    out[threadIdx.x] = __match_any_sync(0xffffffffu, x[threadIdx.x]);
}
"""

ATOMICS = r"""
extern "C" __global__ void sk_atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
    const int t = threadIdx.x + blockIdx.x * blockDim.x;
    atomicAdd(i, t); atomicSub(i + 1, t); atomicMax(i + 2, t); atomicMin(i + 3, -t); atomicOr(i + 4, t);
    atomicAnd(i + 5, ~t); atomicXor(i + 6, t);
    if (atomicCAS(i + 7, 0, 1 + t) == 0) i[8] = t;
    atomicAdd(u, 0x80000001u); atomicMax(u + 1, (unsigned)t); atomicExch(u + 2, 7u); atomicInc(u + 3, 5u);
    atomicAdd(l, 1ull << 40); atomicMin(l + 1, (unsigned long long)t);
    atomicAdd(f, 0.5f); atomicAdd(d, 0.25 * t);
    unsigned long long* bits = reinterpret_cast<unsigned long long*>(d + 1);
    unsigned long long old = *bits, assumed;
    do {  // the largest double, as where there is no such atomic
        assumed = old;
        if (__longlong_as_double((long long)assumed) >= 0.5 * t) break;
        old = atomicCAS(bits, assumed, (unsigned long long)__double_as_longlong(0.5 * t));
    } while (assumed != old);
}

// a lock that the threads of a block take in turn
extern "C" __global__ void sk_lock(int* lock, long long* out) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    out[0] = out[0] * 1 + 1;
    __threadfence();
    atomicExch(lock, 0);
}
"""

FUNCTIONS = r"""
static __constant__ double table[3] = {1.5, 2.5, 3.5};
extern "C" __global__ void sk_functions(const float* x, const float4* v, double* out, long long* counts) {
    const float one = __ldg(x);
    const float2 pair = make_float2(one, 2.0f);
    const double2 wide = *reinterpret_cast<const double2*>(out + 30);
    const int4 four = make_int4(1, 2, 3, 4);
    int n = 0;
    out[n++] = sizeof(exp(one)) + 10 * sizeof(exp((double)one)) + 100 * sizeof(sqrt(one));
    out[n++] = exp(one);
    out[n++] = exp((double)one);
    out[n++] = rsqrt((double)one) + rsqrtf(4.0f);
    out[n++] = fmin(1.0, (double)NAN) + max(3.0f, 2.0) + max(1.0f, 4.0) + min(-1.0, 2.0f);
    out[n++] = v[1].x + v[1].w + pair.y + wide.x + wide.y + four.w;
    out[n++] = -INFINITY;
    out[n++] = copysign(3.0, -0.0) + floor(-0.5) + ceil(0.2) + log1p(0.0) + expm1(0.0);
    out[n++] = isfinite(one) + 2 * isnan(NAN) + 4 * isinf(INFINITY) + 8 * isnan(one);
    out[n++] = table[2] + __fma_rn(2.0, 3.0, 1.0) + __dmul_rn(2.0, 0.5);
    n = 0;
    counts[n++] = __popc(0xf0f0u) + 100 * __popcll(0xf0f0ull << 32);
    counts[n++] = __ffs(8) + 100 * __ffsll(1ll << 40) + 10000 * __ffs(0);
    counts[n++] = __clz(1) + 100 * __clz(0) + 10000ll * __clzll(1ll << 40);
    counts[n++] = __brev(1u);
    counts[n++] = __float_as_int(1.0f);
    counts[n++] = (long long)__umul64hi(1ull << 63, 6ull) + __umulhi(1u << 31, 10u) + __mulhi(-(1 << 30), 8);
    counts[n++] = max(-1, 3u) == 0xffffffffu;
    counts[n++] = max(3ll, 2ll) + min(5, 7) + max((unsigned long long)9, (unsigned long long)2);
    counts[n++] = __double_as_longlong(__longlong_as_double(77));
    counts[n++] = warpSize + sizeof(float4) + alignof(float4) + alignof(double2) + sizeof(float3);
}
"""
REAL = {"float32": "float", "float64": "double"}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
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


def test_votes_of_a_block(build):
    module = build.RawModule(code=BLOCKS, options=("-DREAL=float", "--std=c++17"))
    for x in (np.arange(40), np.full(40, 9), np.zeros(40, int)):
        any_, all_, count = (np.full(40, -1, np.int32) for _ in range(3))
        module.get_function("sk_votes")((1,), (40,), tuple(map(Array, (x, any_, all_, count))))
        assert set(any_) == {int((x > 2).any())}
        assert set(all_) == {int((x > 2).all())}
        assert set(count) == {int((x > 2).sum())}


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_last_block_sums_up(build, seed):
    module = build.RawModule(code=BLOCKS, options=("-DREAL=float", "--std=c++17"))
    build.seed(seed)
    x = np.arange(9.0)
    parts, done, out = np.full(9, np.nan), np.zeros(1, np.uint32), np.zeros(1)
    module.get_function("sk_last_block")((9,), (32,), tuple(map(Array, (x, parts, done, out))))
    assert out[0] == 36 + 9
    assert done[0] == 9


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
    expected = np.where(lane < 8, 0b01001001, 3) | np.select(
        [lane % 2 > 0, lane % 4 > 0], [0xAAAA0000, 0x44440000]
    )
    np.testing.assert_array_equal(votes, expected)


def test_lanes_of_equal_values(build):
    module = build.RawModule(code=WARPS, options=("-DVALUE=int",))
    x = np.random.default_rng(2).integers(0, 4, 32).astype(np.int32)
    out = np.zeros(32, np.uint32)
    module.get_function("sk_match")((1,), (32,), (Array(x), Array(out)))
    np.testing.assert_array_equal(out, ((x[:, None] == x) << np.arange(32)).sum(axis=1))


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_atomics(build, seed):
    module = build.RawModule(code=ATOMICS)
    build.seed(seed)
    i, u, f = np.zeros(9, np.int32), np.zeros(4, np.uint32), np.zeros(1, np.float32)
    i[5], u[2] = -1, 1
    long, d = np.array([0, 99], np.uint64), np.zeros(2)
    module.get_function("sk_atomics")((3,), (64,), tuple(map(Array, (i, u, long, f, d))))
    t = np.arange(192)
    anded, ored = np.bitwise_and.reduce(~t), np.bitwise_or.reduce(t)
    first = {0: 0, 1: 191}.get(seed, i[8])
    assert list(i) == [t.sum(), -t.sum(), 191, -191, ored, anded, np.bitwise_xor.reduce(t), 1 + first, first]
    assert list(u) == [192 * 0x80000001 % 2**32, 191, 7, 192 % 6]
    assert list(long) == [192 << 40, 0]
    assert f[0] == 96
    assert list(d) == [0.25 * t.sum(), 95.5]


def test_lock(build):
    lock, out = np.zeros(1, np.int32), np.zeros(1, np.int64)
    build.RawModule(code=ATOMICS).get_function("sk_lock")((2,), (96,), (Array(lock), Array(out)))
    assert (lock[0], out[0]) == (0, 192)


def test_functions_and_vectors(build):
    kernel = build.RawModule(code=FUNCTIONS).get_function("sk_functions")
    x, out, counts = np.array([0.7], np.float32), np.zeros(32), np.zeros(10, np.int64)
    out[30:] = 5, 6
    room = np.zeros(12, np.float32)
    first = -room.ctypes.data % 16 // 4
    v = room[first : first + 8]
    v[:] = np.arange(8)
    kernel((1,), (1,), (Array(x), Array(v), Array(out), Array(counts)))
    one = float(x[0])
    assert out[0] == 4 + 80 + 400
    np.testing.assert_allclose(out[1], np.exp(one), rtol=1e-7)
    np.testing.assert_allclose(out[2:4], [np.exp(one), one**-0.5 + 0.5], rtol=1e-15)
    assert list(out[4:10]) == [1 + 3 + 4 - 1, 4 + 7 + 2 + 11 + 4, -np.inf, -3, 1 + 2 + 4, 3.5 + 7 + 1]
    assert list(counts) == [
        8 + 800,
        4 + 4100,
        31 + 3200 + 230000,
        2**31,
        0x3F800000,
        3 + 5 - 2,
        1,
        3 + 5 + 9,
        77,
        32 + 16 + 16 + 16 + 12,
    ]
