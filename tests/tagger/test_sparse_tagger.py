"""The SparseMAP loss of SequenceTagger, against enumeration."""

import warnings

import numpy as np
import pytest
from reference_chains import labellings, score
from sklearn.base import clone

import sparsekit as sk
from sparsekit._tagger.solver.sparse_loss import SparseChains

LENGTHS = (3, 1, 0, 4, 3)
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)


def indicators(T, K):
    found = labellings(T, K)
    return found, np.eye(K)[found]


@pytest.mark.parametrize("size", [0.0, 1e-3, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("forbid", [False, True])
def test_marginals_are_optimal(size, forbid):
    """No labelling is better than the mixture, by the slope at the marginals (KKT)."""
    rng = np.random.default_rng(0)
    K = 3
    unary, trans = size * rng.normal(size=(STARTS[-1], K)), size * rng.normal(size=(K, K))
    if forbid:
        trans[0, 1] = trans[2, 2] = -np.inf
    mu = unary.copy()
    value, pairs, unsolved = SparseChains(STARTS, K).solve(mu, trans, np.ones(len(LENGTHS)), 1)
    assert unsolved == 0
    np.testing.assert_allclose(pairs.sum(), sum(max(T - 1, 0) for T in LENGTHS))
    if forbid:
        assert abs(pairs[0, 1]) < 1e-9 and abs(pairs[2, 2]) < 1e-9
    for i, T in enumerate(LENGTHS):
        rows = slice(STARTS[i], STARTS[i + 1])
        if T == 0:
            assert value[i] == 0.0
            continue
        np.testing.assert_allclose(mu[rows].sum(axis=1), 1.0)
        found, ones = indicators(T, K)
        scores = np.array([score(unary[rows], trans, y) for y in found])
        slopes = scores - (ones * mu[rows]).sum(axis=(1, 2))
        np.testing.assert_allclose(slopes.max(), value[i] - 0.5 * np.sum(mu[rows] ** 2), atol=1e-6)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 3)) for T in LENGTHS]
    return X, [rng.integers(0, 3, size=T).tolist() for T in LENGTHS]


def objective(model, X, y):
    parts = [part.ravel() for part in (model.coef_, model.transitions_, model.start_, model.stop_)]
    v, total = np.concatenate(parts), 0.0
    for x, labels in zip(X, y):
        if len(x):
            unary = x @ model.coef_.T
            unary[0] += model.start_
            unary[-1] += model.stop_
            value, _, _ = SparseChains(np.array([0, len(x)]), 3).solve(
                unary.copy(), model.transitions_, np.ones(1), 1
            )
            total += value[0] - score(unary, model.transitions_, labels) + 0.5 * len(x)
    return model.C * total + 0.5 * v @ v


def test_objective_is_the_documented_one_and_least(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sk.SequenceTagger(C=2.0, loss="sparsemap", tol=1e-6).fit(*data)
    assert np.isnan(model.dual_gap_)
    value = objective(model, *data)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-7)
    rng = np.random.default_rng(1)
    other = clone(model)
    for size in (1e-2, 1e-1):
        for _ in range(5):
            for name in ("coef_", "transitions_", "start_", "stop_"):
                part = getattr(model, name)
                setattr(other, name, part + size * rng.normal(size=part.shape) * (part != 0))
            assert objective(other, *data) > value


def test_marginals_are_sparse_and_labels_the_best(data):
    X, y = data
    model = sk.SequenceTagger(C=100.0, loss="sparsemap").fit(X, y)
    marginals = np.concatenate(model.predict_proba(X))
    assert np.count_nonzero(marginals) < 3 * STARTS[-1]
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-7)
    assert model.predict(X) == y  # more coefficients than labels
    three = sk.SequenceTagger(C=100.0, loss="sparsemap", n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(three.coef_, model.coef_)


def test_no_labelling_is_allowed():
    with pytest.raises(ValueError, match="no labelling"):
        sk.SequenceTagger(loss="sparsemap", constraints=[(None, 1), (0, None)]).fit(
            [np.eye(3)[:2]], [[0, 1]]
        ).predict_proba([np.eye(3)[:1]])
