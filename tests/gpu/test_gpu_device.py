"""Where arrays live, what estimators accept on a GPU, and the way back to main memory."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import _arrays as _device
from sparsekit._estimator.device_checks import (
    DeviceEstimatorMixin,
    check_device_vector,
    check_device_X,
    encode_device_labels,
)


class Estimator(DeviceEstimatorMixin):
    """As little as the mixin needs."""

    def __init__(self, C=1.0):
        self.C = C


def test_arrays_of_host_and_device_are_distinguished(cupy):
    from cupyx.scipy import sparse

    on_device = [cupy.zeros(3), cupy.float64(1.0) + cupy.zeros(()), sparse.csr_matrix(cupy.eye(2))]
    assert all(map(_device.is_device, on_device))
    in_memory = [np.zeros(3), sp.eye_array(3).tocsr(), 1.0, np.float64(1.0), [1, 2], None, "cupy"]
    assert not any(map(_device.is_device, in_memory))


def test_the_namespace_is_that_of_the_arrays(cupy):
    assert _device.namespace(X=np.zeros(3), y=[1, 2], weight=None) is np
    assert _device.namespace(X=cupy.zeros(3), C=1.0, weight=None) is cupy
    assert _device.namespace(C=1.0) is np


@pytest.mark.parametrize("order", [("X", "y"), ("y", "X")])
def test_a_mixture_is_refused_with_the_remedy(cupy, order):
    arrays = {"X": cupy.zeros((3, 2)), "y": np.zeros(3)}
    with pytest.raises(TypeError, match=r"X is on the GPU and y in main memory.*cupy\.asarray\(y\)"):
        _device.namespace(**{name: arrays[name] for name in order})


def test_kernels_come_from_where_the_array_is(cupy):
    assert (
        _device.kernel_module("fenchel_young._sparsemax", np.zeros(1)).__name__
        == "sparsekit._cython.fenchel_young._sparsemax"
    )
    assert (
        _device.kernel_module("fenchel_young._sparsemax", cupy.zeros(1)).__name__
        == "sparsekit.gpu.fenchel_young._sparsemax"
    )


def test_data_of_another_gpu_is_refused_with_the_remedy(cupy, monkeypatch):
    X = cupy.ones((3, 2))
    device = X.device.id
    monkeypatch.setattr(cupy.cuda, "Device", lambda known=device + 1: SimpleNamespace(id=known))
    with pytest.raises(ValueError, match=rf"on GPU {device} and .*with cupy\.cuda\.Device\({device}\)"):
        check_device_X(Estimator(), X)


def test_to_host_copies_what_is_elsewhere_only(cupy):
    here = np.arange(3.0)
    assert _device.to_host(here) is here
    there = _device.to_host(cupy.arange(3.0))
    assert type(there) is np.ndarray
    assert there.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_dense_data_becomes_rows_of_floats(cupy, dtype):
    X = np.asfortranarray([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    estimator = Estimator()
    got = check_device_X(estimator, cupy.asarray(X))
    assert got.dtype == (np.float32 if dtype == "float32" else np.float64)
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got.get(), X)
    assert estimator.n_features_in_ == 2


def test_sparse_data_has_no_entry_twice(cupy):
    from cupyx.scipy import sparse

    parts = np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    X = sparse.csr_matrix(tuple(map(cupy.asarray, parts)), shape=(2, 2))
    got = check_device_X(Estimator(), X)
    np.testing.assert_array_equal(got.toarray().get(), [[3.0, 0.0], [0.0, 4.0]])
    assert got.nnz == 2
    assert X.nnz == 3  # the user's matrix is as it was
    with pytest.raises(TypeError, match="takes no sparse matrix"):
        check_device_X(Estimator(), X, dense=True)


@pytest.mark.parametrize(
    "values, error",
    [
        (np.zeros(3), "Expected 2D array"),
        (np.zeros((0, 3)), r"0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (np.array([[1.0, np.nan]]), "X of Estimator contains NaN or infinity"),
        (np.array([[1.0, np.inf]]), "X of Estimator contains NaN or infinity"),
        (np.zeros((2, 2), dtype=complex), "real numbers"),
    ],
)
def test_bad_data_is_refused(cupy, values, error):
    with pytest.raises(ValueError, match=error):
        check_device_X(Estimator(), cupy.asarray(values))


def test_another_number_of_features_is_refused(cupy):
    estimator = Estimator()
    check_device_X(estimator, cupy.zeros((2, 3)))
    with pytest.raises(ValueError, match="X has 2 features, but Estimator is expecting 3"):
        check_device_X(estimator, cupy.zeros((2, 2)), reset=False)


def test_vectors_are_checked(cupy):
    X = cupy.zeros((3, 2))
    got = check_device_vector(cupy.asarray([1, 2, 3]), 3, "y", X=X)
    assert got.dtype == np.float64
    for values, options, error in [
        (cupy.zeros(2), {}, r"y must have shape \(3,\)"),
        (cupy.asarray([1.0, np.nan, 0.0]), {}, "y contains NaN"),
        (cupy.asarray([1.0, -1.0, 0.0]), {"minimum": 0}, "y must be at least 0"),
        (cupy.zeros(3, dtype=complex), {}, "y must hold real numbers"),
    ]:
        with pytest.raises(ValueError, match=error):
            check_device_vector(values, 3, "y", X=X, **options)
    with pytest.raises(TypeError, match=r"cupy\.asarray\(y\)"):
        check_device_vector(np.zeros(3), 3, "y", X=X)


def test_labels_are_encoded_on_the_device(cupy):
    X = cupy.zeros((4, 2))
    classes, codes = encode_device_labels(cupy.asarray([5, -1, 5, 2]), 4, X=X)
    assert classes.get().tolist() == [-1, 2, 5]
    assert codes.get().tolist() == [2, 0, 2, 1]
    with pytest.raises(TypeError, match="LabelEncoder"):
        encode_device_labels(np.array(["a", "b", "a", "b"]), 4, X=X)
    with pytest.raises(TypeError, match=r"cupy\.asarray\(y\)"):
        encode_device_labels(np.array([0, 1, 0, 1]), 4, X=X)
    with pytest.raises(ValueError, match=r"y must have shape \(4,\)"):
        encode_device_labels(cupy.asarray([0, 1]), 4, X=X)


def test_an_estimator_predicts_where_it_was_fitted(cupy):
    estimator = Estimator()
    estimator.coef_ = cupy.zeros(2)
    assert estimator._check_device(cupy.zeros((1, 2)))
    with pytest.raises(TypeError, match=r"fitted on the GPU and X is in main memory.*to_cpu\(\)"):
        estimator._check_device(np.zeros((1, 2)))
    estimator.coef_ = np.zeros(2)
    assert not estimator._check_device(np.zeros((1, 2)))
    with pytest.raises(TypeError, match=r"fitted in main memory and X is on the GPU.*cupy\.asnumpy\(X\)"):
        estimator._check_device(cupy.zeros((1, 2)))


def test_to_cpu_brings_everything_and_leaves_the_original(cupy):
    estimator, inner = Estimator(C=3.0), Estimator()
    inner.coef_ = cupy.ones(1)
    estimator.coef_ = cupy.arange(2.0)
    estimator.history_ = {"x": [cupy.zeros(1), 2.0], "names": ("a", cupy.ones(1))}
    estimator.estimators_ = [inner]
    estimator.n_iter_ = 4
    copy = estimator.to_cpu()
    assert type(copy) is Estimator
    assert copy.C == 3.0
    assert copy.n_iter_ == 4
    found = [copy.coef_, copy.history_["x"][0], copy.history_["names"][1], copy.estimators_[0].coef_]
    assert [type(array) for array in found] == [np.ndarray] * 4
    assert copy.history_["names"][0] == "a"
    np.testing.assert_array_equal(copy.coef_, [0.0, 1.0])
    assert _device.is_device(estimator.coef_)
    assert _device.is_device(inner.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(copy)).coef_, copy.coef_)
    assert copy.to_cpu().coef_.tolist() == [0.0, 1.0]
