"""Where arrays live, what estimators accept on a GPU, and the way back to main memory."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from sparsekit import _arrays as _device
from sparsekit._estimator.device_checks import DeviceEstimatorMixin, check_device_X


class Estimator(DeviceEstimatorMixin):
    """As little as the mixin needs."""

    def __init__(self, C=1.0):
        self.C = C


def test_data_of_another_gpu_is_refused_with_the_remedy(cupy, monkeypatch):
    X = cupy.ones((3, 2))
    device = X.device.id
    monkeypatch.setattr(cupy.cuda, "Device", lambda known=device + 1: SimpleNamespace(id=known))
    with pytest.raises(ValueError, match=rf"on GPU {device} and .*with cupy\.cuda\.Device\({device}\)"):
        check_device_X(Estimator(), X)


def test_sparse_data_has_no_entry_twice(cupy):
    from cupyx.scipy import sparse

    parts = np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    X = sparse.csr_matrix(tuple(map(cupy.asarray, parts)), shape=(2, 2))
    got = check_device_X(Estimator(), X)
    np.testing.assert_array_equal(got.toarray().get(), [[3.0, 0.0], [0.0, 4.0]])
    assert got.nnz == 2
    assert X.nnz == 3  # the user's matrix is as it was


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
