"""The stand-in for CuPy refuses what CuPy refuses, and shows what a device would hide."""

import copy
import pickle
import sys

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def emulation(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a GPU is there: the stand-in for CuPy is not used")
    cupy.emulation.reset()
    return cupy.emulation


@pytest.fixture
def x(cupy):
    return cupy.asarray(np.array([3.0, 1.0, 2.0]))


HOST = np.array([3.0, 1.0, 2.0])

# expressions of a device array x, the same array n on the host and a 0-d device integer k
REFUSED = {
    "np.asarray(x)": "Implicit conversion to a NumPy array is not allowed. Please use `.get",
    "np.array([x, x])": "Implicit conversion",
    "n.dot(x)": "Implicit conversion",
    "x + n": "Unsupported type <class 'numpy.ndarray'>",
    "n + x": "Unsupported type <class 'numpy.ndarray'>",
    "x < n": "Unsupported type <class 'numpy.ndarray'>",
    "np.maximum(n, x)": "Unsupported type <class 'numpy.ndarray'>",
    "np.add(x, x, out=n)": "Output arguments type must be cupy.ndarray",
    "n.__iadd__(x)": "Unsupported type",
    "np.ones(2, like=x)": "unexpected keyword argument 'device'",
    "np.full(2, 1.0, like=x)": "unexpected keyword argument 'device'",
    "np.ascontiguousarray(x)": "Implicit conversion",
    "x + [1.0, 2.0, 3.0]": "Unsupported type <class 'list'>",
    "x == None": "Unsupported type <class 'NoneType'>",
    "x == 'a'": "Unsupported type <class 'str'>",
    "cupy.exp(n)": "Unsupported type <class 'numpy.ndarray'>",
    "cupy.where(x > 0, x, n)": "Unsupported type <class 'numpy.ndarray'>",
    "np.where(x > 0, n, x)": "Unsupported type <class 'numpy.ndarray'>",
    "cupy.add(x, x, foo=1)": "Wrong arguments",
    "cupy.add(x)": "Wrong number of arguments",
    "x @ n": "incorrect type",
    "n @ x": "returned NotImplemented",
    "cupy.dot(x, 2.0)": "incorrect type",
    "np.concatenate([x, n])": "concatenated",
    "cupy.sum(n)": "incorrect type",
    "np.sum(x, where=x > 0)": "unexpected keyword argument 'where'",
    "np.max(x, initial=0.0)": "unexpected keyword argument 'initial'",
    "x.min(initial=0.0)": "unexpected keyword argument 'initial'",
    "np.argsort(x, stable=True)": "unexpected keyword argument 'stable'",
    "np.clip(x, 0.0)": "missing 1 required positional argument",
    # NumPy 2.0 has no such keyword itself
    "np.clip(x, min=0.0)": "unexpected keyword argument 'min'|missing 2 required positional arguments",
    "np.insert(x, 0, 1.0)": "no implementation found",
    "np.block([x, x])": "no implementation found",
    "np.linalg.outer(x, x)": "no implementation found",
    "np.vecdot(x, x)": "returned NotImplemented",
    "range(k)": "cannot be interpreted as an integer",
    "x[:k]": "int.. it first",
    "hash(x)": "unhashable",
    "len(k)": "unsized",
    "iter(k)": "iteration over a 0-d array",
    "x.item(0)": "positional argument",
    "x.astype('i4', casting='safe')": "casting is not supported",
    "cupy.add.at(x.astype('i1'), k, 1)": "supports no data of dtype int8",
    "np.matmul(x, x)": "returned NotImplemented",
    "cupy.RawModule('extern')": "positional argument",
    "cupy.RawModule(code='', options=['-DA'])": "must be a tuple of str, got list",
}
REFUSED_OTHERWISE = {
    "x.__setitem__(0, n[:1])": (ValueError, "non-scalar numpy.ndarray cannot be used for fill"),
    "x.__setitem__(slice(None), n)": (ValueError, "non-scalar numpy.ndarray cannot be used for fill"),
    "x.__setitem__(slice(None), [1.0, 2.0, 3.0])": (ValueError, "non-scalar"),
    "np.copyto(x, n)": (ValueError, "non-scalar numpy.ndarray cannot be used for copyto"),
    "x[5]": (IndexError, "out of bounds"),
    "x[0, 0]": (IndexError, "too many indices"),
    "x[x]": (IndexError, "integer or boolean type"),
    "x[cupy.asarray([7])]": (IndexError, "out of bounds"),
    "bool(x)": (ValueError, "ambiguous"),
    "float(x)": (ValueError, "size 1"),
    "np.searchsorted(x, n)": (NotImplementedError, "Only python scalars or ndarrays"),
    "np.maximum.accumulate(x)": (TypeError, "returned NotImplemented"),
    "np.maximum.reduce(x)": (TypeError, "returned NotImplemented"),
    "np.multiply.at(x, k, 1.0)": (NotImplementedError, "`cupy_multiply.at` is not supported yet"),
    "x.sort(kind='quicksort')": (ValueError, "kind can only be None or 'stable'"),
    "cupy.asarray(['a'])": (ValueError, "Unsupported dtype <U1"),
    "cupy.empty(2, dtype=object)": (ValueError, "Unsupported dtype object"),
    "x.partition(5)": (ValueError, "out of bounds"),
    "setattr(x, 'note', 1)": (AttributeError, "note"),
    "cupy.zeros(2, order='K')": (ValueError, "order not understood"),
    "x.flags.writeable": (AttributeError, "writeable"),
    "cupy.insert": (AttributeError, "insert"),
    "cupy.cuda.Device(1)": (RuntimeError, "invalid device ordinal"),
    "cupy.searchsorted(n, x)": (NotImplementedError, "Only int or ndarray"),
}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("expression", REFUSED)
def test_refused_with_a_type_error(cupy, x, expression):
    names = {"np": np, "cupy": cupy, "x": x, "n": HOST.copy(), "k": cupy.asarray(1)}
    with pytest.raises(TypeError, match=REFUSED[expression]):
        eval(expression, names)


@pytest.mark.parametrize("expression", REFUSED_OTHERWISE)
def test_refused_with_another_error(cupy, x, expression):
    names = {"np": np, "cupy": cupy, "x": x, "n": HOST.copy(), "k": cupy.asarray(1)}
    kind, message = REFUSED_OTHERWISE[expression]
    with pytest.raises(kind, match=message):
        eval(expression, names)


def test_assignments_refuse_undefined_order(cupy, x):
    twice = cupy.asarray([0, 0])
    with pytest.raises(AssertionError, match="more than once"):
        x[twice] = cupy.asarray([1.0, 2.0])
    x[twice] = cupy.asarray([4.0, 4.0])
    x[cupy.asarray([2, 1])] = cupy.asarray([7.0, np.nan])
    np.testing.assert_array_equal(x.get(), [4.0, np.nan, 7.0])


def test_results_of_reductions_stay_on_the_device(cupy, x, emulation):
    for value in (x.sum(), x[0], np.dot(x, x), np.array_equal(x, x), np.max(x), x.any(), np.linalg.norm(x)):
        assert isinstance(value, cupy.ndarray) and value.shape == ()
    assert emulation.counts["syncs"] == 0


def test_waiting_for_the_device_is_counted(cupy, x, emulation):
    waits = [
        lambda: float(x.sum()),
        lambda: int(x[1]),
        lambda: bool(x[0] > 0),
        lambda: x.get(),
        lambda: x[0].item(),
        lambda: x.tolist(),
        lambda: str(x),
        lambda: cupy.asnumpy(x),
        lambda: x[x > 1],
        lambda: np.flatnonzero(x),
        lambda: np.unique(x),
        lambda: cupy.cuda.runtime.deviceSynchronize(),
    ]
    for n, wait in enumerate(waits, 1):
        wait()
        assert emulation.counts["syncs"] == n
    emulation.reset()
    x[cupy.asarray([0, 1])] += x[1:] * 2 + np.float64(1)
    x[:2] = 0
    assert emulation.counts["syncs"] == 0 and emulation.counts["uploads"] == 1


def test_unwritten_memory_is_poisoned(cupy):
    for dtype in ("f2", "f4", "f8", "c8", "c16"):
        assert np.isnan(cupy.empty((3, 2), dtype).get()).all()
    for dtype in ("i4", "i8", "u4", "u8"):
        assert (cupy.empty(3, dtype).get() > 1 << 30).all()
    assert np.isnan(np.empty(2, like=cupy.zeros(1)).get()).all()
    assert np.isnan(cupy.empty_like(cupy.zeros(3, "f4")).get()).all()
    left = cupy.add(cupy.ones(2), 1, where=cupy.asarray([True, False])).get()
    assert left[0] == 2 and np.isnan(left[1])


def test_guard_zones_lie_around_every_array(cupy, x):
    memory = x._memory
    assert memory.damage() is None
    for offset, message in (
        (-1, "1 bytes before its start"),
        (-512, "512 bytes before"),
        (24, "1 bytes behind its end"),
        (24 + 511, "512 bytes behind"),
    ):
        at = memory.start + offset
        kept = memory.raw[at]
        memory.raw[at] ^= 0xFF
        assert message in memory.damage()
        memory.raw[at] = kept
    assert memory.damage() is None
    # what a kernel would read there
    assert np.isnan(memory.raw[memory.start - 8 : memory.start].view("f8"))
    assert np.isnan(memory.raw[memory.start - 4 : memory.start].view("f4"))


KERNEL = r"""
extern "C" __global__ void sk_spill(double* out, long long n, long long at)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0 * i;
    if (i == 0 && at != 0) out[at] = 1.0;
}
"""


def test_kernels_run_and_their_writes_outside_are_found(cupy, emulation):
    import cuda_build

    if cuda_build.unavailable():
        pytest.skip(cuda_build.unavailable())
    spill = cupy.RawModule(code=KERNEL, options=("--std=c++17",)).get_function("sk_spill")
    out = cupy.empty(40)
    spill((2,), (32,), (out, 40, 0))
    np.testing.assert_array_equal(out.get(), 2.0 * np.arange(40))
    assert emulation.counts["launches"] == 1
    for at, message in ((40, "1 bytes behind its end"), (-1, "bytes before its start")):
        target = cupy.empty(40)
        with pytest.raises(AssertionError, match=f"kernel sk_spill .* argument 0 .*{message}"):
            spill((2,), (32,), (target, 40, at))
    # a view's own memory is that of its base
    base = cupy.zeros(41)
    spill((2,), (32,), (base[:40], 40, 40))
    assert base.get()[40] == 1.0
    with pytest.raises(TypeError, match="float32"):
        spill((2,), (32,), (cupy.empty(40, "f4"), 40, 0))
    with pytest.raises(TypeError, match="NumPy array"):
        spill((2,), (32,), (np.empty(40), 40, 0))


def test_elementwise_kernels(cupy, x):
    half = "float64 x, T y", "float64 out, float64 both", "out = x + y; both += half(x)"
    kernel = cupy.ElementwiseKernel(
        *half, "sk_add", preamble="inline double half(double x) { return x / 2; }"
    )
    y, both = cupy.asarray(np.float32([[1], [2]])), cupy.ones((2, 3))
    out, same = kernel(x, y, cupy.empty((2, 3)), both)
    assert same is both
    np.testing.assert_array_equal(out.get(), HOST + np.array([[1], [2]]))
    np.testing.assert_array_equal(both.get(), np.tile(1 + HOST / 2, (2, 1)))
    assert kernel(x, y, cupy.empty((2, 3)), both)[0].dtype == np.float64
    assert kernel(1.0, y[:0], cupy.empty((0, 1)), both[:0, :1])[0].shape == (0, 1)
    for args, error in (
        ((y, y), "Type is mismatched. x float32 float64"),
        ((HOST, y), "Unsupported type <class 'numpy.ndarray'>"),
        ((x,), "Wrong number of arguments"),
    ):
        with pytest.raises(TypeError, match=error):
            kernel(*args)
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        kernel(x, y, x, x)


def test_reduction_kernels(cupy, x):
    kernel = cupy.ReductionKernel("T x, S y", "S out", "x * y", "a + b", "out = a", "0", reduce_type="double")
    a, y = cupy.asarray(np.arange(6, dtype=np.float32).reshape(2, 3)), cupy.asarray([[10.0], [1.0]])
    for axis in (0, 1, -1):
        found = kernel(a, y, axis=axis)
        np.testing.assert_array_equal(found.get(), (a.get() * y.get()).sum(axis=axis))
        assert found.dtype == np.float64
    out = cupy.empty(3)
    assert kernel(a[:0], y[:0], out, axis=0) is out and not out.get().any()
    with pytest.raises(TypeError, match="Type is mismatched"):
        kernel(a, y, cupy.empty(3, np.float32), axis=0)


def test_protocols(cupy, x):
    assert x.data.ptr % 256 == 0 and x.device == cupy.cuda.Device(0)
    for copied in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert copied.data.ptr != x.data.ptr
        np.testing.assert_array_equal(copied.get(), x.get())


def test_views_share_memory_and_copies_do_not(cupy):
    a = cupy.zeros((2, 3))
    for part in (a.T, a[1:], a.reshape(-1), a[:, 0], a.view(), a.diagonal(), a[...]):
        assert part._memory is a._memory and part.base is a and not part.flags.owndata
        part[...] = part + 1
    assert float(a.sum()) == 4 * 6 + 3 + 2 + 2
    rows = cupy.asarray([0])
    for part in (a + 0, a[rows], a.T.reshape(-1), a.astype("f8"), a.copy(), a.flatten(), a.sum(0)):
        assert part._memory is not a._memory
    assert cupy.asarray(a) is a and a.astype("f8", copy=False) is a and cupy.array(a) is not a
    assert a[0, 0].shape == () and a[0, 0]._memory is a._memory


def test_decompositions_never_raise(cupy):
    assert np.isnan(np.linalg.cholesky(-cupy.eye(2)).get()).all()


def test_scattered_sums(cupy):
    out = cupy.zeros(3)
    cupy.add.at(out, cupy.asarray([0, 0, 2]), cupy.asarray([1.0, 2.0, 3.0]))
    np.add.at(out, cupy.asarray([1]), 5.0)
    assert out.get().tolist() == [3.0, 5.0, 3.0]


def test_the_name_cupy_is_the_stand_in_while_the_tests_run(cupy):
    assert sys.modules["cupy"] is cupy and cupy.__version__.endswith("emulated")
    import cupyx.scipy.sparse

    assert sys.modules["cupyx"] is cupyx and cupyx.scipy.sparse.csr_matrix
