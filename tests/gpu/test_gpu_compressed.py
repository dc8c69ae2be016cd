"""Matrices on the GPU whose arrays describe none: the kernels against the CPU's, and every door."""

import numpy as np
import pytest
import scipy.sparse as sp

import sparsekit as sk
from sparsekit._linalg.structure import check_sparse

pytestmark = pytest.mark.thorough

N, P = 40, 12
FAULTS = {
    "index too large": ("indices", -1, 10**6),
    "index negative": ("indices", 0, -5),
    "first pointer": ("indptr", 0, 2),
    "pointer falls": ("indptr", 3, 0),
    "last pointer": ("indptr", -1, 10**6),
}
A = np.where(np.random.default_rng(0).random((N, P)) < 0.4, 1.0, 0.0)
A[0, 0] = A[-1, -1] = 1.0
LABELS = np.arange(N) % 3
GRAPHIC = {  # what fits on a GPU
    "L1LogisticOBA": sk.L1LogisticOBA(),
    "LassoOBA": sk.LassoOBA(),
    "BoundedClassifier": sk.BoundedClassifier(),
    "SparsemaxClassifier": sk.SparsemaxClassifier(),
    "LPSparseMAPClassifier": sk.LPSparseMAPClassifier(),
    "ExtremeSoftmaxSGD": sk.ExtremeSoftmaxSGD(max_iter=1, learning_rate=0.1),
}


def matrices(cupy, A):
    from cupyx.scipy.sparse import csc_matrix, csr_matrix

    for name, (array, entry, value) in FAULTS.items():
        for kind in (csr_matrix, csc_matrix):
            X = kind(getattr(sp, kind.__name__)(A))
            getattr(X, array)[entry] = value
            yield name, X


def test_what_is_said(cupy):
    from cupyx.scipy.sparse import coo_matrix, csr_matrix

    X = csr_matrix(sp.csr_matrix(np.eye(3)))
    assert check_sparse(X) is X
    X.indices[1] = 7
    with pytest.raises(ValueError, match=r"X is no valid CSR .*row 1 has the column index 7 .* 0 \.\. 2"):
        check_sparse(X)
    X = coo_matrix(sp.coo_matrix(np.eye(3)))
    assert check_sparse(X) is X
    X.col[2] = -1
    with pytest.raises(ValueError, match=r"col\[2\] is -1"):
        check_sparse(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GRAPHIC)
def test_doors(cupy, name):
    model = GRAPHIC[name]
    y = cupy.asarray(LABELS.astype(float) if name == "LassoOBA" else LABELS)
    model.fit(cupy.asarray(A), y)
    methods = ["predict", "decision_function", "predict_proba", "predict_topk"]
    calls = [getattr(model, method) for method in methods if hasattr(model, method)]
    calls += [lambda X: model.fit(X, y), lambda X: model.score(X, y)]
    if name == "ExtremeSoftmaxSGD":
        calls += [lambda X: model.partial_fit(X, y), lambda X: model.log_loss(X, y)]
    for said, X in matrices(cupy, A):
        for call in calls:
            with pytest.raises(ValueError, match=r"X is no valid CS[RC] matrix: "):
                call(X)
                pytest.fail(said)
