"""What users hand to estimators on a GPU, with their mistakes: the answers of main memory, or a remedy."""

import numpy as np
import pytest
import scipy.sparse as sp

import sparsekit as sk
from sparsekit.inspection import AttentionDisplay, sharpness
from sparsekit.metrics import jensen_shannon_divergence, kkt_violation, precision_at_k

pytestmark = pytest.mark.thorough


def _data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5))
    z = X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(40)
    return X, (z > 0).astype(np.int64), rng.random(40)


def test_arrays_that_belong_in_main_memory(cupy):
    X, y, w = _data()
    dX, dw = cupy.asarray(X), cupy.asarray(w)
    five = cupy.ones(5)
    divergence = sk.SparsemaxClassifierCV(alphas=[0.1], cv=2).fit(X, y)
    for name, call in [
        ("sample_weight", lambda: sk.SoftmaxClassifierCV(cv=2).fit(X, y, dw)),
        ("penalty_weights", lambda: sk.L1LogisticOBA(penalty_weights=five).fit(X, y)),
        ("Cs", lambda: sk.l1_logistic_path(X, y, Cs=five)),
        ("alphas", lambda: sk.fenchel_young_path(X, y, alphas=five)),
        ("X", lambda: divergence.score(dX, cupy.asarray(y))),
        ("p", lambda: jensen_shannon_divergence(np.ones((1, 5)) / 5, five[None] / 5)),
        ("y_top", lambda: precision_at_k(y, cupy.asarray(y)[:, None])),
        ("coef", lambda: kkt_violation(five, five, 1.0)),
        ("weights", lambda: AttentionDisplay.from_weights(sk.sparsemax(dX))),
        ("x", lambda: sharpness(lambda x: float(x @ x), five)),
    ]:
        with pytest.raises(TypeError, match=rf"{name} is (on the GPU|one).*cupy\.asnumpy\({name}\)"):
            call()
    with pytest.raises(TypeError, match=r"sample_weight is on the GPU and X, y in main.*cupy\.asnumpy"):
        sk.l1_logistic_path(X, y, sample_weight=dw)


def test_scores_of_very_many_classes_or_labels(cupy):
    X, y, w = _data()
    dX, dw = cupy.asarray(X), cupy.asarray(w)
    Y = (X[:, :3] > 0).astype(float)
    sparse = pytest.importorskip("cupyx.scipy.sparse").csr_matrix(sp.csr_matrix(Y))
    for target, there in [(y, cupy.asarray(y)), (sp.csr_array(Y), sparse), (Y, cupy.asarray(Y))]:
        model = sk.ExtremeSoftmaxSGD(max_iter=3, random_state=0, learning_rate=0.1).fit(dX, there)
        here = model.to_cpu()
        assert 0 < model.score(dX, there) == here.score(X, target)
        assert model.score(dX, there, dw) == pytest.approx(here.score(X, target, w))
        with pytest.raises(TypeError, match="y is on the GPU and X in main memory"):
            here.score(X, there)
    with pytest.raises(TypeError, match="sample_weight is on the GPU and X, y in main"):
        here.log_loss(X, Y, dw)
    with pytest.raises(TypeError, match=r"noise is on the GPU.*cupy\.asnumpy"):
        sk.ExtremeSoftmaxSGD(noise=cupy.ones(2) / 2).fit(dX, cupy.asarray(y))
    labels = sk.LPSparseMAPClassifier(max_iter=20, tol=0.1).fit(dX[:, :2], cupy.asarray(Y[:, :2]))
    expected = labels.to_cpu().score(X[:, :2], Y[:, :2])
    assert labels.score(dX[:, :2], cupy.asarray(Y[:, :2])) == expected > 0
