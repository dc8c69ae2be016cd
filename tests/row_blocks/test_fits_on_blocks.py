"""Fits on blocks against those of main memory: partitions, rounds, single precision, limits, reports."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from numpy.testing import assert_allclose, assert_array_equal
from row_data import CUTS, cut, in_blocks, labels, strength, text
from sklearn.exceptions import ConvergenceWarning

from sparsekit import L1LogisticOBA, LassoOBA


@pytest.fixture(scope="module")
def data():
    X, scores = text()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(scores))
    weight[::7] = 0.0
    return X, scores, weight


@pytest.fixture(params=["here", "there"])
def columns(request, monkeypatch):
    """Where the columns of a working set are: gathered in this process, or left where the blocks are."""
    if request.param == "there":
        monkeypatch.setenv("SPARSEKIT_MEMORY", "0")
    return request.param


def logistic(X, y, share=0.02, **parameters):
    return L1LogisticOBA(strength(X, y, share), **{"tol": 1e-7, **parameters})


@pytest.mark.parametrize("kind", ["sparse", "dense", "lasso", "multinomial"])
@pytest.mark.thorough(keep=2)
def test_other_partitions_move_a_fit_by_rounding(kind, data, columns):
    X, scores, weight = data
    y = labels(scores, 3 if kind == "multinomial" else 2)
    X = X.toarray() if kind == "dense" else X
    make = (lambda: LassoOBA(2e-4, tol=1e-8)) if kind == "lasso" else (lambda: logistic(X, y))
    target = scores if kind == "lasso" else y
    one = make().fit(in_blocks(X, (0, 500)), target, weight)
    for cuts in (CUTS, (0, 250, 500), tuple(range(0, 501, 4))):
        other = make().fit(in_blocks(X, cuts), target, weight)
        # Newton's steps from Hessians that differ by rounding differ by what tol leaves open
        close = 1e-10 if columns == "here" else 1e-5
        assert_allclose(other.coef_, one.coef_, rtol=0, atol=close * np.abs(one.coef_).max())
        assert_allclose(other.intercept_, one.intercept_, rtol=0, atol=close * np.abs(one.intercept_).max())
        assert_allclose(other.objective_, one.objective_, rtol=close**2 + 1e-12)
        assert other.n_rounds_ == one.n_rounds_ or columns == "there"


def test_few_rounds_to_a_tight_certificate():
    """At most 15, at a hundredth of the largest penalty."""
    for seed in range(3):
        X, scores = text(2000, 3000, seed, density=0.01)
        for n_classes in (2, 3):
            y = labels(scores, n_classes)
            model = logistic(X, y, share=0.01, tol=2e-7).fit(in_blocks(X, range(0, 2001, 250)), y)
            assert model.dual_gap_ <= 2e-6 * model.objective_
            assert model.n_rounds_ <= 15, (seed, n_classes)
        model = LassoOBA(0.01 * np.abs(X.T @ (scores - scores.mean())).max() / 2000, tol=1e-7)
        model.fit(in_blocks(X, range(0, 2001, 250)), scores)
        assert model.dual_gap_ <= 1e-6 * model.objective_ and model.n_rounds_ <= 15, seed


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("tol", [1e-5, 1e-7])
def test_float32(dense, tol, data, columns):
    X, scores, _ = data
    X = X.astype(np.float32)
    X = X.toarray() if dense else X
    for make, y in (
        (lambda: LassoOBA(2e-4, tol=tol), scores),
        (lambda: logistic(X, labels(scores), tol=tol), labels(scores)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if tol < 1e-6 else "error", ConvergenceWarning)
            found, wanted = make().fit(in_blocks(X), y), make().fit(X, y)
        assert found.coef_.dtype == np.float32
        assert_allclose(found.objective_, wanted.objective_, rtol=max(10 * tol, 1e-6))
        # where rounding forbids more, it ends
        assert found.n_rounds_ <= (20 if columns == "here" else 80) and found.n_iter_ < 60


def test_rounding_ends_a_fit_with_a_warning():
    """Columns of very different size, to a tolerance that cannot be reached."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 30)) * 10.0 ** rng.uniform(-3, 3, 30)).astype(np.float32)
    y = X @ rng.normal(size=30).astype(np.float32) + 100 * rng.normal(size=300)
    model = LassoOBA(0.5, tol=1e-17)
    with pytest.warns(ConvergenceWarning, match="rounding errors allow no further progress"):
        model.fit(in_blocks(X, (0, 100, 300)), y)
    assert model.n_rounds_ <= 20 and model.n_iter_ < 200


def test_columns_without_values_and_rows_without_weight(columns):
    X, scores = text(200, 40)
    X = X.tolil()
    X[:, 7] = 0.0
    X[50:90] = 0.0
    X, y = sp.csr_array(X), labels(scores)
    weight = np.r_[np.zeros(60), np.ones(140)]
    cuts = (0, 60, 80, 200)
    model = logistic(X, y).fit(in_blocks(X, cuts), y, weight)
    wanted = logistic(X, y).fit(X[60:], y[60:])
    assert_allclose(model.objective_, wanted.objective_, rtol=1e-8)
    # no feature at all, with and without an intercept
    nothing = sp.csr_array((200, 5))
    for intercept in (True, False):
        model = L1LogisticOBA(fit_intercept=intercept).fit(in_blocks(nothing, cuts), y)
        wanted = L1LogisticOBA(fit_intercept=intercept).fit(nothing, y)
        assert_allclose(model.objective_, wanted.objective_)
        assert not model.coef_.any()


def test_the_empty_model_takes_few_rounds(data):
    X, scores, _ = data
    y = labels(scores)
    model = logistic(X, y, share=1.01).fit(in_blocks(X), y)
    assert not model.coef_.any() and model.n_rounds_ <= 4
    assert model.dual_gap_ <= 1e-6 * model.objective_


def test_warm_start(data):
    X, scores, _ = data
    y = labels(scores)
    model = logistic(X, y, warm_start=True).fit(in_blocks(X), y)
    first, n_iter = model.objective_, model.n_iter_
    model.fit(in_blocks(X), y)
    assert model.n_iter_ < n_iter and model.n_rounds_ <= 5
    assert_allclose(model.objective_, first, rtol=1e-10)
    model.set_params(C=model.C * 1.5).fit(in_blocks(X), y)
    wanted = logistic(X, y, share=0.02 / 1.5).fit(X, y)
    assert_allclose(model.objective_, wanted.objective_, rtol=1e-8)
    # from main memory to blocks and back, and to another number of features
    model.fit(X, y)
    assert not hasattr(model, "n_rounds_")
    assert_allclose(model.fit(in_blocks(X), y).objective_, wanted.objective_, rtol=1e-8)
    model.fit(in_blocks(X[:, :100]), y)
    assert model.coef_.shape == (1, 100)
    lasso = LassoOBA(2e-4, tol=1e-8, warm_start=True).fit(in_blocks(X), scores + 7)
    assert lasso.fit(in_blocks(X), scores + 7).n_iter_ <= 2


@pytest.mark.parametrize("limit", [dict(max_iter=3), dict(max_time=1e-4)])
def test_limits_keep_the_best_iterate(limit, data):
    X, scores, _ = data
    y = labels(scores)
    name = next(iter(limit))
    model = logistic(X, y, share=0.003, **limit)
    with pytest.warns(ConvergenceWarning, match=f"reached {name}={limit[name]}"):
        model.fit(in_blocks(X), y)
    assert model.n_iter_ <= 3 or name == "max_time"
    value = objective(model, X, y)
    assert_allclose(model.objective_, value, rtol=1e-10)
    assert value <= len(y) * np.log(2) + 1e-9
    # what it says of the distance holds here too
    best = logistic(X, y, share=0.003).fit(X, y)
    assert model.dual_gap_ >= value - best.objective_ > 0
    if name == "max_iter":
        longer = logistic(X, y, share=0.003, max_iter=6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            longer.fit(in_blocks(X), y)
        assert longer.objective_ < value


def objective(model, X, y):
    margins = np.where(y == model.classes_[1], 1, -1) * (X @ model.coef_[0] + model.intercept_)
    return np.logaddexp(0, -margins).sum() + np.abs(model.coef_).sum() / model.C


def test_history_and_callback(data, columns):
    X, scores, _ = data
    y = labels(scores, 3)
    seen = []

    def record(intermediate_result):
        seen.append(intermediate_result)

    model = logistic(X, y, share=0.01, history=True, callback=record).fit(in_blocks(X), y)
    history = model.history_
    assert len({len(values) for values in history.values()}) == 1
    assert len(history["time"]) >= model.n_iter_
    assert np.all(np.diff(history["time"]) >= 0)
    assert np.all(np.diff(history["fun"]) <= 1e-9 * model.objective_)
    assert_allclose(history["fun"][-1], model.objective_, rtol=1e-10)
    assert [one.nit for one in seen] == sorted(one.nit for one in seen) and seen[-1].nit == model.n_iter_
    assert all(one.x.shape == (3 * 301,) for one in seen)
    assert_array_equal(seen[-1].x[: 3 * 300].reshape(300, 3).T, model.coef_)


def test_a_block_is_read_once_a_round_and_one_ahead(data):
    X, scores, _ = data
    source, y = Watched(cut(X)), labels(scores)
    model = logistic(X, y).fit(source, y)
    assert source.read == list(range(5)) * model.n_rounds_


class Watched(ListOfBlocks):
    """Notes which blocks are read."""

    def __init__(self, matrices):
        super().__init__(matrices)
        self.read = []

    def block(self, i):
        self.read.append(i)
        return super().block(i)
