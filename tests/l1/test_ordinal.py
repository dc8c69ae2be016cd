"""OrdinalOBA against plain formulas, SciPy and its optimality conditions."""

import numpy as np
import pandas as pd
import pytest
import reference_ordinal as plain
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV

from sparsekit import OrdinalOBA, load, save
from sparsekit._l1.losses.ordinal import OrdinalLoss

N, P = 150, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)) + 0.5
CODES = np.digitize(1.5 * X[:, 0] - X[:, 1] + RNG.logistic(size=N), [-1.0, 0.5, 2.0])
WEIGHT = np.where(np.arange(N) % 7 == 0, 0.0, RNG.uniform(0.5, 2.0, N))
PENALTIES = np.array([1.0, 0.5, 2.0, 1.0, 0.0, 1.0])
OFFSET = np.linspace(-2.0, 2.5, N) ** 2 - 1.0


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("weight, penalties", [(None, None), (WEIGHT, PENALTIES)])
@pytest.mark.parametrize("offset", [None, OFFSET], ids=["", "offset"])
def test_against_scipy(K, l1_ratio, weight, penalties, offset):
    codes, alpha = np.minimum(CODES, K - 1), 0.05
    model = OrdinalOBA(alpha, l1_ratio=l1_ratio, penalty_weights=penalties, tol=1e-9)
    model.fit(X, codes, weight, offset)
    v, shift = 1.0 if penalties is None else penalties, 0.0 if offset is None else offset
    coef, thresholds, least = plain.solve(X, codes, weight, alpha, l1_ratio, v, shift)
    own = plain.objective(model.coef_, model.thresholds_, X, codes, weight, alpha, l1_ratio, v, shift)
    assert model.objective_ == pytest.approx(own, rel=1e-12)
    assert -1e-13 <= least - own <= 1e-7
    assert_allclose(model.coef_, coef, atol=2e-3)
    assert_allclose(model.thresholds_, thresholds, atol=2e-3)
    assert model.dual_gap_ <= 1e-8 * own
    z = X @ model.coef_ + shift
    assert_allclose(model.predict_linear(X, offset), z, atol=1e-13)
    expected = plain.probabilities(z, model.thresholds_)
    assert_allclose(model.predict_proba(X, offset), expected, atol=1e-13)
    assert_allclose(np.exp(model.predict_log_proba(X, offset)), expected, atol=1e-13)
    found = expected.argmax(axis=1) == codes
    assert model.score(X, codes, weight, offset) == pytest.approx(np.average(found, weights=weight))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array], ids=["dense", "csr", "csc"])
def test_derivatives_of_the_loss(make):
    loss = OrdinalLoss(make(X), CODES, WEIGHT)
    assert_allclose(loss.gradient(np.zeros(loss.n_variables))[P:], 0.0, atol=1e-12)
    x = np.concatenate([RNG.standard_normal(P), [-0.3, 0.2, 0.4]])
    value = plain.objective(x[:P], x[P:] + loss.null, X, CODES, WEIGHT, 0.0) * WEIGHT.sum()
    assert loss.value(x) == pytest.approx(value, rel=1e-12)
    g = loss.gradient(x)
    assert_allclose(g, approx_fprime(x, loss.value, 1e-7), rtol=1e-4, atol=1e-4)
    v = RNG.standard_normal(len(x))
    change = (loss.gradient(x + 1e-6 * v) - loss.gradient(x - 1e-6 * v)) / 2e-6
    assert_allclose(loss.hessian_product(x, np.arange(len(x)), v), change, rtol=1e-5)
    assert loss.value(np.concatenate([np.zeros(P), [0.0, -99.0, 0.0]])) == np.inf  # thresholds out of order


def test_the_dual_value_is_that_of_fenchel_and_young():
    loss = OrdinalLoss(X, CODES, WEIGHT)
    x = np.concatenate([np.random.default_rng(7).standard_normal(P), [-0.3, 0.2, 0.4]])
    value, theta, _ = loss.derivatives(loss.predictor(x))
    assert loss.dual_value(theta) == pytest.approx(
        value - theta @ (loss.predictor(x) - loss.offset), rel=1e-10
    )
    assert loss.dual_value(theta + 1e3 * np.eye(len(theta))[-1]) == -np.inf  # a step of negative weight


def test_the_gap_bounds_the_error_and_is_tight():
    least = OrdinalOBA(0.05, tol=1e-11).fit(X, CODES).objective_
    for tol in (1e-2, 1e-3, 1e-5):
        model = OrdinalOBA(0.05, tol=tol).fit(X, CODES)
        error = model.objective_ - least
        assert error <= model.dual_gap_ + 1e-14 and model.dual_gap_ <= 10.0 * tol * model.objective_
    # far from the optimum as well
    with pytest.warns(ConvergenceWarning):
        model = OrdinalOBA(0.05, max_iter=1).fit(X, CODES)
    assert model.objective_ - least <= model.dual_gap_ <= 100.0 * (model.objective_ - least)


def test_the_order_of_the_labels():
    words = np.array(["low", "mid", "high", "top"])[CODES]
    model = OrdinalOBA(0.05, categories=["low", "mid", "high", "never", "top"]).fit(X, words)
    numbers = OrdinalOBA(0.05).fit(X, 10 * CODES - 5)
    # scikit-learn's scorers take the columns of probabilities for those of sorted labels
    assert model.classes_.tolist() == ["high", "low", "mid", "top"] and model.ranks_.tolist() == [2, 0, 1, 3]
    assert_allclose(model.predict_proba(X)[:, [1, 2, 0, 3]], numbers.predict_proba(X), rtol=1e-12)
    for name in ("neg_log_loss", "roc_auc_ovr", "accuracy"):
        score = get_scorer(name)
        assert score(model, X, words) == pytest.approx(score(numbers, X, 10 * CODES - 5), rel=1e-12)
    two = np.where(CODES > 1, "a lot", "little")
    falling = OrdinalOBA(0.05, categories=["little", "a lot"]).fit(X, two)
    assert_allclose(falling.coef_, OrdinalOBA(0.05).fit(X, CODES > 1).coef_, rtol=1e-12)
    assert np.array_equal(falling.decision_function(X) > 0.0, falling.predict(X) == "little")
    assert get_scorer("roc_auc")(falling, X, two) > 0.7
    assert numbers.classes_.tolist() == [-5, 5, 15, 25]
    assert_allclose(model.coef_, numbers.coef_, rtol=1e-12)
    order = np.array(["low", "mid", "high", "top"])
    assert np.array_equal(model.predict(X), order[(numbers.predict(X) + 5) // 10])
    ordered = pd.Series(pd.Categorical(words, ["low", "mid", "high", "top"], ordered=True))
    assert np.array_equal(OrdinalOBA(0.05).fit(X, ordered).predict(X), model.predict(X))
    with pytest.warns(DataConversionWarning):
        assert OrdinalOBA(0.05).fit(X, ordered.to_frame()).ranks_.tolist() == [2, 0, 1, 3]
    assert OrdinalOBA(0.05).fit(X, words).ranks_.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"must hold each label of y once; got .* which lacks 'top'"):
        OrdinalOBA(categories=["low", "mid", "high"]).fit(X, words)
    with pytest.raises(ValueError, match="which repeats one"):
        OrdinalOBA(categories=["low", "mid", "high", "top", "low"]).fit(X, words)


def test_predictions_of_large_scores_and_close_thresholds():
    model = OrdinalOBA(0.01).fit(X, CODES)
    far = np.array([[1e4] + [0.0] * (P - 1), [-1e4] + [0.0] * (P - 1)])
    logs = model.predict_log_proba(far)
    assert np.isfinite(logs).all() and model.predict(far).tolist() == [3, 0]
    model.thresholds_ = np.array([0.0, 1e-12, 50.0])
    p = model.predict_proba(np.zeros((1, P)))[0]
    assert_allclose(p[1], 2.5e-13, rtol=1e-9)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert_allclose(model.predict_linear(X), X @ model.coef_)


def test_warm_starts_searches_and_scores():
    model = OrdinalOBA(0.05, warm_start=True, tol=1e-7).fit(X, CODES)
    first = model.n_iter_
    assert model.set_params(alpha=0.049).fit(X, CODES).n_iter_ <= first
    assert model.sparsify().fit(X, CODES).n_iter_ <= 1
    assert model.score(X, CODES) == np.mean(model.predict(X) == CODES)
    search = GridSearchCV(OrdinalOBA(), {"alpha": [0.5, 0.05]}, cv=3, scoring="neg_log_loss").fit(X, CODES)
    assert search.best_params_ == {"alpha": 0.05}


def test_many_classes_and_more_features_than_rows():
    wide = np.random.default_rng(2).standard_normal((80, 300))
    codes = np.argsort(np.argsort(wide[:, 0] + 0.1 * wide[:, 1])) // 4
    model = OrdinalOBA(0.02).fit(wide, codes)
    assert len(model.thresholds_) == 19 and (np.diff(model.thresholds_) > 0.0).all()
    assert 0.0 <= model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_strong_penalties_give_the_model_of_the_offset_alone(scale):
    model = OrdinalOBA(1e3).fit(X, CODES, WEIGHT, scale * OFFSET)
    assert not model.coef_.any() and model.dual_gap_ <= 1e-10 * model.objective_

    def smooth(thresholds):
        return plain.objective(np.zeros(P), thresholds, X, CODES, WEIGHT, 0.0, offset=scale * OFFSET)

    if scale == 1.0:  # plain differences of probabilities lose theirs at large scores
        assert_allclose(approx_fprime(model.thresholds_, smooth, 1e-7), 0.0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e3, 1e6])
@pytest.mark.parametrize("K", [2, 3, 4])
def test_rows_on_the_straight_part_of_the_loss_are_fitted(K, scale):
    offset, codes = scale * np.random.default_rng(4).standard_normal(N), np.minimum(CODES, K - 1)
    model = OrdinalOBA(0.05, max_iter=2000, tol=1e-4).fit(X, codes, offset=offset)
    assert model.dual_gap_ <= 1e-3 * model.objective_ and (np.diff(model.thresholds_) > 0.0).all()
    assert np.isfinite(model.predict_log_proba(X, offset)).all()


def test_predictions_ask_for_the_offset_of_their_rows():
    model = OrdinalOBA(0.05).fit(X, CODES, offset=OFFSET)
    for predict in (model.predict, model.predict_proba, model.predict_linear, model.decision_function):
        with pytest.raises(ValueError, match=r"fitted with an offset .* offset=0\."):
            predict(X)
    with pytest.raises(ValueError, match=r"offset\.shape == \(3,\)"):
        model.predict(X, np.zeros(3))
    with pytest.raises(ValueError, match=r"offset\.shape == \(3,\)"):
        OrdinalOBA().fit(X, CODES, offset=np.zeros(3))
    with pytest.raises(ValueError, match="thresholds are equal after rounding: the offset is too large"):
        OrdinalOBA().fit(X, CODES, offset=1e100 * OFFSET)
    with pytest.raises(ValueError, match=r"the weights of classes, from [0-9.e-]+ to [0-9.]+, differ"):
        OrdinalOBA().fit(X, CODES, np.where(CODES == 1, 1e-30, 1.0))
    assert not OrdinalOBA(0.05).fit(X, CODES).needs_offset_


def test_an_offset_in_other_forms(tmp_path):
    """Sparse X, blocks of rows, warm starts, metadata routing, and a saved model."""
    codes = np.digitize(X[:, 0] + OFFSET + RNG.logistic(size=N), [0.0, 2.0])
    model = OrdinalOBA(0.05, tol=1e-9, warm_start=True).fit(X, codes, offset=OFFSET)
    assert model.score(X, codes, offset=OFFSET) > model.score(X, codes, offset=0.0) + 0.1
    sparse = clone(model).fit(sp.csr_array(X), codes, offset=OFFSET)
    assert_allclose(sparse.coef_, model.coef_, atol=1e-8)
    assert clone(model).fit(X, codes, offset=OFFSET).n_iter_ > model.fit(X, codes, offset=OFFSET).n_iter_
    save(model, tmp_path / "ordinal.skops")
    again = load(tmp_path / "ordinal.skops")
    assert again.needs_offset_ and np.array_equal(again.predict(X, OFFSET), model.predict(X, OFFSET))
    with config_context(enable_metadata_routing=True):
        one = OrdinalOBA().set_fit_request(offset=True).set_score_request(offset=True)
        search = GridSearchCV(one, {"alpha": [10.0, 0.02]}, cv=3).fit(X, codes, offset=OFFSET)
    assert search.best_params_ == {"alpha": 0.02}
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    rows = (60, 50, 40)
    blocks, own = da.from_array(X, chunks=(rows, P)), da.from_array(OFFSET, chunks=(rows,))
    lazy = clone(model).fit(blocks, da.from_array(codes, chunks=(rows,)), offset=own)
    assert_allclose(lazy.coef_, model.coef_, atol=1e-8)
    assert_allclose(
        lazy.predict_proba(blocks, offset=own).compute(), model.predict_proba(X, OFFSET), atol=1e-8
    )
    assert lazy.score(blocks, codes, offset=own) == model.score(X, codes, offset=OFFSET)


def test_what_is_refused():
    with pytest.raises(ValueError, match="only one class"):
        OrdinalOBA().fit(X, np.zeros(N))
