"""Prediction with ExtremeSoftmaxSGD: blocks, several labels, small and hashed models."""

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import log_loss
from sklearn.preprocessing import normalize

from sparsekit import ExtremeSoftmaxSGD, SoftmaxClassifier


def test_prediction_agrees_with_itself(digits):
    X, y = digits
    names = np.array([f"digit {k}" for k in range(10)])
    model = ExtremeSoftmaxSGD(random_state=0).fit(X, names[y])
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), softmax(scores, axis=1), rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), rtol=1e-10)
    assert (model.predict(X) == names[scores.argmax(axis=1)]).all()
    assert model.score(X, names[y]) > 0.95
    assert model.log_loss(X, names[y]) == pytest.approx(log_loss(names[y], model.predict_proba(X)), rel=1e-9)
    weight = np.random.default_rng(0).random(len(y))
    assert model.log_loss(X, names[y], weight) == pytest.approx(
        log_loss(names[y], model.predict_proba(X), sample_weight=weight), rel=1e-9
    )
    for k in (1, 3, 10, 99):
        labels, top = model.predict_topk(X, k)
        assert labels.shape == top.shape == (len(X), min(k, 10))
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        assert (labels == names[order]).all()
        np.testing.assert_array_equal(top, np.take_along_axis(scores, order, 1))
    p = model.predict_topk(X, 2, proba=True)[1]
    np.testing.assert_allclose(p, -np.sort(-model.predict_proba(X), axis=1)[:, :2], rtol=1e-10)
    with pytest.raises(ValueError, match="k must be an integer >= 1, got 0"):
        model.predict_topk(X, 0)


def test_blocks_of_rows_and_classes(monkeypatch, many):
    """Small blocks give what one block gives: block borders, classes beyond one block."""
    from sparsekit._extreme.estimators import scores as module

    for data in (many[0], many[0].toarray(), many[0].astype(np.float32)):
        model = ExtremeSoftmaxSGD(learning_rate=10.0, max_iter=5, random_state=0).fit(data, many[1])
        data, y = data[:30], many[1][:30]

        def everything(model=model, data=data, y=y):
            return (
                *model.predict_topk(data, 4), model.log_loss(data, y), model.predict(data),
                model.predict_proba(data), *model.predict_topk(data, 61, proba=True),
            )  # fmt: skip

        whole = everything()
        for block in (300, 64, 1):
            with monkeypatch.context() as patch:
                patch.setattr(module, "MAX_SCORES", block)
                pieces = list(module.blocks(data, 60))
                assert len(pieces) > 1 or len(pieces[0][1]) > 1
                for one, other in zip(whole, everything()):
                    np.testing.assert_allclose(one, other, rtol=1e-5 if data.dtype == np.float32 else 1e-12)


def test_multilabel():
    X, Y = make_multilabel_classification(400, 15, n_classes=8, n_labels=2, random_state=0)
    X = normalize(X)
    labelled = Y.any(axis=1)
    first = Y.argmax(axis=1)
    kwargs = dict(learning_rate=10.0, random_state=0)
    by_first = ExtremeSoftmaxSGD(**kwargs).fit(X, sp.csr_array(Y))
    plain = ExtremeSoftmaxSGD(**kwargs).fit(X[labelled], first[labelled])
    np.testing.assert_array_equal(by_first.coef_, plain.coef_)
    np.testing.assert_array_equal(ExtremeSoftmaxSGD(**kwargs).fit(X, Y).coef_, plain.coef_)
    sampled = ExtremeSoftmaxSGD(
        label_choice="sample", alpha=0.01, learning_rate=0.1, max_iter=600, decay=0.99, random_state=0
    ).fit(X, Y)
    # its target is the uniform distribution over a row's labels
    exact = SoftmaxClassifier(alpha=0.01).fit(X[labelled], Y[labelled])
    np.testing.assert_allclose(sampled.predict_proba(X), exact.predict_proba(X), atol=0.03)
    p = sampled.predict_proba(X)
    predicted = sampled.predict(X)
    assert predicted.shape == Y.shape and set(predicted.data) == {1}
    expected = p > 0.5 / Y[labelled].sum(axis=1).mean()
    expected[np.arange(len(p)), p.argmax(axis=1)] = True
    np.testing.assert_array_equal(predicted.toarray(), expected)
    assert sampled.log_loss(X, Y) == pytest.approx(
        -np.log(p[np.flatnonzero(labelled), first[labelled]]).mean(), rel=1e-9
    )
    for _ in range(3):
        sampled.partial_fit(X, Y)
    with pytest.raises(ValueError, match="y has 7 columns, but the model knows 8 labels"):
        sampled.partial_fit(X, Y[:, :7])
    with pytest.raises(ValueError, match="y is one label a row, but the model was fitted to an indicator"):
        sampled.partial_fit(X, first)


def test_small_models(many, tmp_path):
    X, y = many
    model = ExtremeSoftmaxSGD(learning_rate=30.0, random_state=0).fit(X.astype(np.float32), y)
    scores = model.decision_function(X)
    half = pickle.loads(pickle.dumps(model)).quantize()
    assert half.coef_.dtype == np.float16
    np.testing.assert_allclose(half.decision_function(X), scores, atol=0.02 * np.abs(scores).max())
    assert half.score(X, y) == pytest.approx(model.score(X, y), abs=0.01)
    joblib.dump(half, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert isinstance(mapped.coef_, np.memmap)
    np.testing.assert_array_equal(mapped.predict_topk(X, 3)[0], half.predict_topk(X, 3)[0])
    np.testing.assert_array_equal(mapped.decision_function(X), half.decision_function(X))
    np.testing.assert_array_equal(mapped.predict_proba(X), half.predict_proba(X))
    assert len(pickle.dumps(half)) < 0.6 * len(pickle.dumps(model))
    mapped.partial_fit(X, y)
    assert mapped.score(X, y) > 0.95

    sparse = pickle.loads(pickle.dumps(model)).sparsify(0.1)
    assert sp.issparse(sparse.coef_)
    expected = np.where(np.abs(model.coef_) > 0.1, model.coef_, 0)
    assert 0 < sparse.coef_.nnz < model.coef_.size
    np.testing.assert_array_equal(sparse.coef_.toarray(), expected)
    np.testing.assert_allclose(
        sparse.decision_function(X), X @ expected.T + model.intercept_, rtol=1e-4, atol=1e-4
    )
    np.testing.assert_array_equal(sparse.predict_topk(X.toarray(), 2)[0], sparse.predict_topk(X, 2)[0])
    again = sparse.sparsify(1.0)
    np.testing.assert_array_equal(again.coef_.toarray(), np.where(np.abs(model.coef_) > 1.0, model.coef_, 0))
    sparse.partial_fit(X.astype(np.float32), y)
    assert sparse.densify().coef_.shape == (60, 200)
    with pytest.raises(ValueError, match="threshold must be >= 0"):
        model.sparsify(-1)
    with pytest.raises(ValueError, match="dtype must be float16, float32 or float64, got int8"):
        model.quantize(np.int8)
    model.coef_[0, 0] = 1e6
    with pytest.raises(ValueError, match=r"weight of 1e.06, beyond float16"):
        model.quantize()


def test_hashed_weights(many):
    X, y = many
    kwargs = dict(learning_rate=30.0, random_state=0)
    plain = ExtremeSoftmaxSGD(**kwargs).fit(X, y)
    scores = {}
    for bits in (20, 12, 8):
        model = ExtremeSoftmaxSGD(hash_bits=bits, **kwargs).fit(X, y)
        assert model.table_.shape == (2**bits,) and not hasattr(model, "coef_")
        scores[bits] = model.score(X, y)
        _labels, top = model.predict_topk(X, 2)
        np.testing.assert_allclose(top[:, 0], model.decision_function(X).max(axis=1))
    assert scores[20] == pytest.approx(plain.score(X, y), abs=0.01)
    assert scores[8] < scores[12] <= scores[20]
    model.partial_fit(X, np.where(y == 3, 1000, y))
    assert 1000 in model.classes_ and model.table_.shape == (256,)
    half = pickle.loads(pickle.dumps(model)).quantize()
    assert half.table_.dtype == np.float16
    np.testing.assert_allclose(half.decision_function(X), model.decision_function(X), atol=0.1)
    assert half.partial_fit(X, y).table_.dtype == np.float32
    np.testing.assert_array_equal(model.predict(X), model.predict(X.toarray()))
    with pytest.raises(ValueError, match="alpha > 0 does not go with hash_bits"):
        ExtremeSoftmaxSGD(hash_bits=10, alpha=0.1).fit(X, y)
