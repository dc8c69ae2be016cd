"""The stand-in for CuPy refuses what CuPy refuses, and shows what a device would hide."""

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

# expressions of a device array x, the same array n on the host, a 0-d device integer k and a CSR matrix m
REFUSED = {
    "np.asarray(x)": (TypeError, "Implicit conversion to a NumPy array is not allowed. Please use `.get"),
    "x + n": (TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    "np.maximum(n, x)": (TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    "np.add(x, x, out=n)": (TypeError, "Output arguments type must be cupy.ndarray"),
    "np.full(2, 1.0, like=x)": (TypeError, "unexpected keyword argument 'device'"),
    "np.ascontiguousarray(x)": (TypeError, "Implicit conversion"),
    "x + [1.0, 2.0, 3.0]": (TypeError, "Unsupported type <class 'list'>"),
    "x == None": (TypeError, "Unsupported type <class 'NoneType'>"),
    "np.where(x > 0, n, x)": (TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    "x @ n": (TypeError, "incorrect type"),
    "np.concatenate([x, n])": (TypeError, "concatenated"),
    "np.max(x, initial=0.0)": (TypeError, "unexpected keyword argument 'initial'"),
    "np.insert(x, 0, 1.0)": (TypeError, "no implementation found"),
    "range(k)": (TypeError, "cannot be interpreted as an integer"),
    "x[:k]": (TypeError, "int.. it first"),
    "cupy.RawModule(code='', options=['-DA'])": (TypeError, "must be a tuple of str, got list"),
    "x.__setitem__(slice(None), n)": (ValueError, "non-scalar numpy.ndarray cannot be used for fill"),
    "np.copyto(x, n)": (ValueError, "non-scalar numpy.ndarray cannot be used for copyto"),
    "x[5]": (IndexError, "out of bounds"),
    "x[cupy.asarray([7])]": (IndexError, "out of bounds"),
    "bool(x)": (ValueError, "ambiguous"),
    "np.searchsorted(x, n)": (NotImplementedError, "Only python scalars or ndarrays"),
    "cupy.asarray(['a'])": (ValueError, "Unsupported dtype <U1"),
    "cupy.insert": (AttributeError, "insert"),
    "m @ n": (TypeError, ""),
    "m @ x[:2]": (ValueError, "dimension mismatch"),
    "np.asarray(m)": (TypeError, "get"),
    "len(m)": (TypeError, "ambiguous"),
    "type(m)(cupy.ones((2, 2), 'i8'))": (ValueError, "Only bool, float32, float64"),
    "type(m)((n, n, n))": (ValueError, "must be 1-D cupy arrays"),
}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("expression", REFUSED)
def test_refused(cupy, x, expression):
    from cupyx.scipy.sparse import csr_matrix

    names = {"np": np, "cupy": cupy, "x": x, "n": HOST.copy(), "k": cupy.asarray(1)}
    names["m"] = csr_matrix(cupy.eye(3))
    kind, message = REFUSED[expression]
    with pytest.raises(kind, match=message):
        eval(expression, names)


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
