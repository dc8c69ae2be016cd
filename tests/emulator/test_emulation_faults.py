"""The emulation of CUDA C names what is wrong with a kernel or a launch, and works on afterwards."""

import numpy as np
import pytest
from emulation import Array, cuda_build

FAULTS = r"""
#define SK_KERNEL extern "C" __global__ void
SK_KERNEL sk_good(double* out) { out[threadIdx.x] = threadIdx.x; }

SK_KERNEL sk_half_a_barrier(double* out) {
    if (threadIdx.x < 40) __syncthreads();
    out[threadIdx.x] = 1.0;
}
SK_KERNEL sk_two_barriers(double* out) {
    if (threadIdx.x < 40) {
        __syncthreads();
    } else {
        __syncthreads();  // the other one
    }
}
SK_KERNEL sk_barrier_and_shuffle(double* out) {
    if (threadIdx.x < 32) __syncthreads();
    else out[0] = __shfl_sync(0xffffffffu, 1.0, 0);
    __syncthreads();
}
SK_KERNEL sk_half_a_warp(double* out) {
    if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0, 1);
    else __syncthreads();
}
SK_KERNEL sk_other_masks(double* out) {
    out[threadIdx.x] = __shfl_sync(threadIdx.x % 32 < 16 ? 0xffffffffu : 0xfffffffeu, 1.0, 0);
}
SK_KERNEL sk_other_operations(double* out) {
    if (threadIdx.x % 2) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0, 0);
    else out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}
SK_KERNEL sk_other_sizes(double* out) {
    if (threadIdx.x % 2) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0, 0);
    else out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);
}
SK_KERNEL sk_not_in_mask(double* out) { __syncwarp(0xfffffff0u); }
SK_KERNEL sk_reads_outside_mask(double* out) {
    if (threadIdx.x < 4) out[threadIdx.x] = __shfl_sync(0xfu, 1.0, 4);
}
SK_KERNEL sk_exited_lanes(double* out) {
    if (threadIdx.x >= 16) return;
    __syncwarp();
}
SK_KERNEL sk_bounds(double* out, long long at) {
    __shared__ double buffer[8];
    buffer[at + threadIdx.x] = 1.0;
    out[threadIdx.x] = buffer[0];
}
SK_KERNEL sk_pool(double* out) {
    SK_DYNAMIC_SHARED(double, buffer);
    buffer[threadIdx.x] = out[threadIdx.x];
}
SK_KERNEL sk_wild(double* out) { out[threadIdx.x] = out[1ll << 45]; }
SK_KERNEL sk_deep(double* out, long long n) {
    volatile double much[20000];
    for (int i = 0; i < n; ++i) much[i] = i;
    out[threadIdx.x] = much[n / 2];
}
struct __align__(16) pair_of_doubles { double x, y; };
SK_KERNEL sk_misaligned(double* out) {
    *reinterpret_cast<pair_of_doubles*>(out + 1) = {1.0, 2.0};
}
SK_KERNEL sk_shift(double* out, long long by) { out[threadIdx.x] = 1u << by; }
SK_KERNEL sk_divide(double* out, long long by) { out[threadIdx.x] = (int)threadIdx.x / (int)by; }
SK_KERNEL sk_convert(double* out, double x) { out[threadIdx.x] = (int)x; }
"""

RACES = r"""
extern "C" __global__ void sk_reverse(const double* x, double* out) {
    __shared__ double buffer[64];
    buffer[threadIdx.x] = x[threadIdx.x];
    BARRIER;
    out[threadIdx.x] = buffer[63 - threadIdx.x];
}
extern "C" __global__ void sk_uninitialised(double* out, float* others, int* numbers, long long n) {
    __shared__ double buffer[40];
    __shared__ float more[40];
    SK_DYNAMIC_SHARED(int, pool);
    const int i = threadIdx.x;
    if (i < n) {
        buffer[i] = i;
        more[i] = i;
        pool[i] = i;
    }
    __syncthreads();
    out[i] = buffer[i];
    others[i] = more[i];
    numbers[i] = pool[i];
}
"""

TYPES = r"""
extern "C" __global__ void sk_types(
    long long n /* how many, really */, double scale,
    const float* __restrict__ x, int* counts, bool* flags,
    unsigned char* bytes, const signed char* signs, const unsigned long long* keys) {}
"""


@pytest.fixture
def build():
    """The module cuda_build."""
    return cuda_build()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("sk_half_a_barrier", (), "divergent __sync.*: threads 0-39 wait .* threads 40-63 have exited"),
        ("sk_two_barriers", (), r"divergent __sync.* 40-63 wait at .*\(line 13: .*the other one\)"),
        ("sk_barrier_and_shuffle", (), "divergent __syncthreads .* 0-31 wait .* 32-63 wait"),
        ("sk_half_a_warp", (), "divergent __sync.* 0-15, 32-47 wait at __shfl_xor_sync with mask 0xf"),
        ("sk_other_masks", (), "__shfl_sync with mask 0xfffffff[ef] .* __shfl_sync .*with mask 0xf"),
        ("sk_other_operations", (), "meets __.*, which is another operation"),
        ("sk_other_sizes", (), "meets __.*, which is another operation or size of value"),
        ("sk_not_in_mask", (), "lane [0-3] is not in its own mask 0xfffffff0"),
        ("sk_reads_outside_mask", (), "lane 0 reads lane 4, which the mask leaves out"),
        ("sk_exited_lanes", (), "deadlock of warp|names lanes that have exited"),
        ("sk_bounds", (4,), r"index ([89]|[1-6]\d) out of the bounds .*\(line 46: buffer"),
        ("sk_bounds", (-1,), r"index (-1|\d+) out of the bounds"),
        ("sk_pool", (), "write past the 128 bytes of dynamic shared memory"),
        ("sk_wild", (), "invalid memory access"),
        ("sk_deep", (20000,), "invalid memory access or stack overflow"),
        # clang checks no assignment of a whole struct: the machine itself does
        ("sk_misaligned", (), "misaligned address .* for .*pair_of_doubles|invalid memory access"),
        ("sk_shift", (32,), "shift by 32 bits"),
        ("sk_divide", (0,), "integer division by zero"),
        ("sk_convert", (1e10,), "without a value of the integer type"),
        ("sk_convert", (np.nan,), "without a value of the integer type"),
    ],
)
def test_planted_fault(build, seed, name, args, message):
    """Each is an error that names the kernel; the next launch of the same module works."""
    module = build.RawModule(code=FAULTS)
    build.seed(seed)
    buffer = np.ones(66)
    out = buffer[buffer.ctypes.data % 16 // 8 :][:64]  # aligned as a device's memory is
    with pytest.raises(RuntimeError, match=message) as caught:
        module.get_function(name)((2,), (64,), (Array(out), *args), shared_mem=128)
    assert name in str(caught.value)
    module.get_function("sk_good")((1,), (64,), (Array(out),))
    np.testing.assert_array_equal(out, np.arange(64))


def _reversed(build, barrier, seed):
    x, out = np.arange(64.0), np.empty(64)
    build.seed(seed)
    module = build.RawModule(code=RACES, options=(f"-DBARRIER={barrier}",))
    module.get_function("sk_reverse")((1,), (64,), (Array(x), Array(out)))
    return out


def test_missing_barrier_shows_in_the_order(build):
    """Without its barrier a kernel gives other results for other seeds, with it the same."""
    racing = [_reversed(build, "", seed) for seed in (0, 1, 2, 3)]
    for i in range(4):
        for j in range(i):
            assert not np.array_equal(racing[i], racing[j], equal_nan=True)
    for seed in (0, 1, 2, 3):
        np.testing.assert_array_equal(_reversed(build, "__syncthreads()", seed), np.arange(64.0)[::-1])
    # the same seed, the same order
    np.testing.assert_array_equal(_reversed(build, "", 3), racing[3])


def test_uninitialised_shared_memory(build):
    """Nothing is left from the block before: what no thread of a block wrote is NaN or -1."""
    kernel = build.RawModule(code=RACES, options=("-DBARRIER=",)).get_function("sk_uninitialised")
    out, others, numbers = np.zeros(40), np.zeros(40, np.float32), np.zeros(40, np.int32)
    for n in (40, 30):
        kernel((3,), (40,), (Array(out), Array(others), Array(numbers), n), shared_mem=160)
        np.testing.assert_array_equal(out, np.where(np.arange(40) < n, np.arange(40), np.nan))
        np.testing.assert_array_equal(others, np.where(np.arange(40) < n, np.arange(40), np.nan))
        np.testing.assert_array_equal(numbers, np.where(np.arange(40) < n, np.arange(40), -1))


def _arguments():
    def array(dtype):
        buffer = np.zeros(64, np.uint8)
        return Array(buffer[-buffer.ctypes.data % 16 :][:16].view(dtype))

    dtypes = (np.float32, np.int32, bool, np.uint8, np.int8, np.uint64)
    return [3, 0.5, *map(array, dtypes)]


def _read_only():
    array = np.zeros(4, np.int32)
    array.flags.writeable = False
    return Array(array)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, 3.0, r"argument 0 \(n\): got builtins.float; .* int or numpy.int64"),
        (0, None, "got None"),
        (1, 1, r"argument 1 \(scale\): got builtins.int; .* float or numpy.float64"),
        (2, np.zeros(4, np.float32), r"argument 2 \(x\): got a NumPy array"),
        (2, Array(np.zeros(4)), "got an array of float64; the kernel asks for a device array of float32"),
        (2, None, "got None"),
        (3, Array(np.zeros(4, np.int64)), r"argument 3 \(counts\): got an array of int64"),
        (3, _read_only(), "read-only"),
        (4, Array(np.zeros(4, np.uint8)), r"argument 4 \(flags\): got an array of uint8"),
        (7, Array(np.zeros(4, np.int64)), "got an array of int64"),
        (2, Array(np.zeros(9, np.uint8)[1:].view(np.float32)), "aligned to 4 bytes"),
    ],
)
def test_wrong_argument(build, position, value, message):
    kernel = build.RawModule(code=TYPES).get_function("sk_types")
    args = _arguments()
    kernel((1,), (1,), tuple(args))
    args[position] = value
    with pytest.raises(TypeError, match=f"kernel sk_types.*{message}"):
        kernel((1,), (1,), tuple(args))


@pytest.mark.parametrize(
    ("grid", "block", "shared", "error", "message"),
    [
        ((1,), (1025,), 0, RuntimeError, "block"),
        ((0,), (32,), 0, RuntimeError, "grid"),
        (1, (32,), 0, TypeError, "grid must be a tuple"),
        ((1.0,), (32,), 0, TypeError, "three int"),
        ((1,), (32,), 48 * 1024 + 1, RuntimeError, "max_dynamic_shared_size_bytes"),
        ((1,), (32,), 227 * 1024 + 1, RuntimeError, "shared memory"),
        ((1,), (32,), -1, RuntimeError, "shared memory"),
    ],
)
def test_launch_that_a_device_refuses(build, grid, block, shared, error, message):
    kernel = build.RawModule(code=FAULTS).get_function("sk_good")
    with pytest.raises(error, match=message):
        kernel(grid, block, (Array(np.zeros(2048)),), shared_mem=shared)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('extern "C" __global__ void sk_a(double* x) {\n\n  x[0] = unknown; }', "kernels.cu:3:.*unknown"),
        (
            'extern "C" __global__ void sk_a(int n) {}',
            r"sk_a, argument 0 \(n\): a parameter must be long long",
        ),
        ('extern "C" __global__ void sk_a(const void* p) {}', r"argument 0 \(p\): a parameter"),
        # signed on one machine and unsigned on another
        ('extern "C" __global__ void sk_a(const char* p) {}', r"argument 0 \(p\): a parameter"),
        ("__global__ void sk_a(double* x) {}", 'sk_a must be declared extern "C"'),
        ("static int nothing;", "has no kernel"),
        ('extern "C" __global__ void sk_a(double* x) { x[0] = __expf(1.0f); }', "__expf"),
        ('extern "C" __global__ void sk_a(long long* x) { atomicAdd(x, 1ll); }', "atomicAdd"),
        ("#error never", "never"),
    ],
)
def test_source_that_does_not_compile(build, code, message):
    with pytest.raises(RuntimeError, match=message):
        build.RawModule(code=code).get_function("sk_a")
