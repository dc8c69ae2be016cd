"""LPSparseMAPClassifier given CuPy arrays, against the same fits in main memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device
from sklearn.datasets import make_multilabel_classification

from sparsekit import Budget, LPSparseMAPClassifier, OrOut
from sparsekit._factor_graph.labels.label_loss import LabelLoss, Labels

pytestmark = pytest.mark.thorough

X, Y = make_multilabel_classification(40, 6, n_classes=5, random_state=0)
X = X / 10.0
WEIGHT = np.linspace(0.5, 2.0, len(X))
FACTORS = [(Budget, [0, 1, 2, 3, 4], 5), (OrOut, [0, 1, 2])]


def obeying():
    """Labels that obey OrOut."""
    y = Y.copy()
    y[:, 2] = y[:, 0] | y[:, 1]
    return y


@pytest.mark.parametrize("loss, sparse", [("sparsemap", False), ("hinge", True)])
def test_loss_and_gradient(cupy, loss, sparse):
    labels = Labels(5, np.column_stack(np.triu_indices(5, 1)))
    rng = np.random.default_rng(0)
    weight = WEIGHT / WEIGHT.sum()
    options = dict(alpha=0.1, pair_alpha=0.2)
    given = sp.csr_matrix(X) if sparse else X, Y, weight
    cpu = LabelLoss(loss, labels, *given, **options)
    gpu = LabelLoss(loss, labels, *(to_device(cupy, part) for part in given), **options)
    for smoothing in (0.0, 0.1)[: 1 + (loss == "hinge")]:
        cpu.smoothing = gpu.smoothing = smoothing
        x = rng.normal(size=cpu.n_variables)
        x[cpu.n_variables - 2 * cpu.n_pairs :] = np.abs(x[cpu.n_variables - 2 * cpu.n_pairs :])
        value, gradient = cpu.value_and_gradient(x)
        there = gpu.value_and_gradient(cupy.asarray(x))
        assert isinstance(there[1], cupy.ndarray)
        assert isinstance(there[0], float) and there[0] == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(there[1].get(), gradient, rtol=0, atol=1e-8)


FITS = {
    "auto": ({}, Y),
    "pairs": (dict(alpha=0.01, pairs="all"), Y),
    "factors": (dict(alpha=0.01, factors=FACTORS, pairs=4), obeying()),
    "hinge": (dict(alpha=0.05, loss="hinge", pairs=[[1, 0], [2, 3]]), Y),
    "hinge apart": (dict(alpha=0.05, loss="hinge"), Y),
    "logistic classes": (dict(alpha=0.01, loss="logistic", fit_intercept=False), Y[:, 0] + 2 * Y[:, 1]),
    "hinge classes": (dict(alpha=0.05, loss="hinge"), Y[:, 0]),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_fits(cupy, name):
    options, y = FITS[name]
    cpu = LPSparseMAPClassifier(**options).fit(X, y, sample_weight=WEIGHT)
    XD = cupy.asarray(X)
    gpu = LPSparseMAPClassifier(**options).fit(XD, cupy.asarray(y), sample_weight=cupy.asarray(WEIGHT))
    assert gpu.objective_ == pytest.approx(cpu.objective_, rel=2e-4 if "hinge" in name else 1e-6)
    for attribute in ("coef_", "intercept_", "pairs_", "pair_coef_", "classes_"):
        assert isinstance(getattr(gpu, attribute), cupy.ndarray), attribute
        assert getattr(gpu, attribute).shape == getattr(cpu, attribute).shape, attribute
    # what a model of one side says of the data, on both sides: fits themselves may end elsewhere
    back = gpu.to_cpu()
    assert isinstance(back.coef_, np.ndarray) and isinstance(back.pairs_, np.ndarray)
    found, wanted = gpu.predict_marginals(XD), back.predict_marginals(X)
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(found.get(), wanted, rtol=0, atol=1e-7)
    np.testing.assert_allclose(gpu.decision_function(XD).get(), back.decision_function(X), atol=1e-12)
    labels = gpu.predict(XD)
    assert isinstance(labels, cupy.ndarray)
    assert np.mean(labels.get() != back.predict(X)) < 0.02
    if name == "factors":
        assert (labels.get()[:, 2] == (labels.get()[:, 0] | labels.get()[:, 1])).all()
    if name == "pairs":
        np.testing.assert_allclose(gpu.coef_.get(), cpu.coef_, rtol=0, atol=1e-2)


@pytest.mark.parametrize("loss", ["sparsemap", "logistic"])
def test_penalty_from_data_and_newton_on_sparse_rows(cupy, loss):
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(40, 70)) * (rng.random((40, 70)) < 0.3)
    Y = (wide @ rng.normal(size=(70, 5)) > 0.5).astype(int)
    cpu = LPSparseMAPClassifier(loss=loss).fit(sp.csr_matrix(wide), Y)
    rows = to_device(cupy, sp.csr_matrix(wide))
    gpu = LPSparseMAPClassifier(loss=loss).fit(rows, cupy.asarray(Y))
    assert gpu.alpha_ == pytest.approx(cpu.alpha_, rel=1e-6) and gpu.never_empty_ == cpu.never_empty_
    assert gpu.objective_ == pytest.approx(cpu.objective_, rel=1e-6)
    np.testing.assert_allclose(gpu.predict_marginals(rows).get(), cpu.predict_marginals(wide), atol=1e-3)
    assert np.mean(gpu.predict(rows).get() != cpu.predict(wide)) < 0.02
