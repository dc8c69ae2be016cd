"""Fenchel-Young losses over blocks that do not fit into memory, against fits in memory."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import as_dask, in_blocks, labels, text
from sklearn.exceptions import ConvergenceWarning

from sparsekit import SoftmaxClassifier, SparsemaxClassifier

MODELS = [SoftmaxClassifier, SparsemaxClassifier]
X, SCORES = text(p=40)
Y = labels(SCORES, 3)
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch):
    monkeypatch.setenv("SPARSEKIT_MEMORY", "0")


def fits(make, y, weight=None, to_blocks=in_blocks):
    """A fit to blocks and one in memory."""
    return make().fit(to_blocks(X), y, weight), make().fit(X, y, weight)


def same(found, wanted):
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-7)
    assert_allclose(found.predict_proba(X), wanted.predict_proba(X), atol=2e-4)
    assert_array_equal(found.classes_, wanted.classes_)


OPTIONS = {
    "plain": {},
    "weights": {"weight": WEIGHT},
    "one weight": {"weight": 3.0},
    "balanced": {"class_weight": "balanced", "weight": WEIGHT},
    "class weights": {"class_weight": {"low": 3.0, "mid": 0.2}},
    "no intercept": {"fit_intercept": False},
    "free intercept": {"penalize_intercept": False},
}


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("name", OPTIONS)
def test_labels(make, name):
    options = dict(OPTIONS[name])
    weight = options.pop("weight", None)
    found, wanted = fits(lambda: make(alpha=1e-2, tol=1e-6, **options), Y, weight)
    same(found, wanted)
    if name != "free intercept":
        assert 0 <= found.dual_gap_ <= 1e-4 * found.objective_
        assert found.objective_ - found.dual_gap_ <= wanted.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.filterwarnings("ignore:.*have no label")
def test_indicators_some_of_whose_rows_are_empty(make, weight):
    rng = np.random.default_rng(0)
    indicator = np.column_stack([SCORES > 0.3, SCORES < 0.5, rng.random(500) < 0.3]).astype(float)
    indicator[100:180] = 0.0
    found, wanted = fits(lambda: make(alpha=1e-2, tol=1e-7), indicator, weight)
    same(found, wanted)
    assert found.multilabel_
    shares = rng.dirichlet(np.ones(3), 500)
    same(*fits(lambda: make(alpha=1e-2, tol=1e-7), shares, weight))


def test_blocks_of_dask_and_dense_ones():
    pytest.importorskip("dask.array")
    make = lambda: SoftmaxClassifier(alpha=1e-2, tol=1e-7)  # noqa: E731
    one = make().fit(in_blocks(X), Y)
    same(*fits(make, Y, to_blocks=as_dask))
    same(*fits(make, Y, to_blocks=lambda X: in_blocks(X.toarray())))
    again = make().fit(in_blocks(X), Y)
    assert_array_equal(again.coef_, one.coef_)


def test_limits_and_callbacks():
    with pytest.warns(ConvergenceWarning):
        rough = SoftmaxClassifier(alpha=1e-5, tol=1e-12, max_iter=1).fit(in_blocks(X), Y)
    assert rough.n_iter_ <= 50
    with pytest.warns(ConvergenceWarning, match="max_time"):
        SoftmaxClassifier(alpha=1e-5, tol=1e-12, max_time=1e-9).fit(in_blocks(X), Y)
    seen = []

    def stop(intermediate_result):
        seen.append(intermediate_result)
        return intermediate_result.nit == 3

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SoftmaxClassifier(alpha=1e-3, tol=1e-9, callback=stop, history=True).fit(in_blocks(X), Y)
    assert [one.nit for one in seen] == [1, 2, 3] and model.n_iter_ == 3
    assert len(model.history_["fun"]) == 4 and np.all(np.diff(model.history_["fun"]) < 0)
    assert model.objective_ == seen[-1].fun


def test_class_weights_of_a_matrix_need_memory():
    with pytest.raises(ValueError, match="class_weight with a matrix y needs X in memory"):
        SoftmaxClassifier(class_weight={0: 2.0}).fit(in_blocks(X), np.eye(3)[np.arange(500) % 3])
