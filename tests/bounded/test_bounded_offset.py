"""`offset` of the bounded models: a column whose coefficient is bound to one, for every loss."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference_bounded import CLASSIFICATION, REGRESSION
from row_data import in_blocks
from sklearn.base import clone

from sparsekit import BoundedClassifier, BoundedRegressor, load, save


def data(n=80, p=4):
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((n, p)), 3.0 * rng.standard_normal(n) + 10.0
    return X, X @ [1.0, -2.0, 0.5, 0.0] + offset + 0.3 * rng.standard_normal(n), offset


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", REGRESSION + CLASSIFICATION)
def test_it_is_a_column_bound_to_one(loss, fit_intercept):
    X, y, offset = data()
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    options = dict(bounds={1: (-1.0, 1.0)}, alpha=0.01, fit_intercept=fit_intercept)
    if loss in REGRESSION:
        model = BoundedRegressor(loss, quantile=0.8, **options)
    else:
        model, y, offset = (
            BoundedClassifier(loss, **options),
            np.where(y > 10.0, "yes", "no"),
            0.2 * offset - 1.0,
        )
    pinned = clone(model).set_params(bounds={1: (-1.0, 1.0), 4: (1.0, 1.0)})
    pinned.fit(np.column_stack([X, offset]), y, weight)
    predict = "predict" if loss in REGRESSION else "decision_function"
    for form in (sp.csr_array, np.asarray):
        model.fit(form(X), y, weight, offset)
        # the column pays for its coefficient
        assert_allclose(model.objective_, pinned.objective_ - 0.005, rtol=1e-5)
        assert np.all(model.dual_gap_ >= 0) and np.all(model.dual_gap_ <= 1.001e-6 * model.objective_)
        scores = X @ np.ravel(model.coef_) + model.intercept_ + offset
        assert_allclose(getattr(model, predict)(form(X), offset), scores, atol=1e-10)
    if loss in REGRESSION:
        assert model.coef_[1] == -1.0
        assert_allclose(model.coef_, pinned.coef_[:4], atol=2e-3)
        assert_array_equal(clone(model).fit(X, y - offset, weight).coef_, model.coef_)
    elif fit_intercept:
        assert_allclose(clone(model).fit(X, y, weight, offset + 1e4).objective_, model.objective_, rtol=1e-5)


def test_predictions_ask_for_it(tmp_path):
    X, y, offset = data()
    model = BoundedRegressor(alpha=0.01).fit(X, y, offset=offset)
    for call in (model.predict, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match="offset"):
            call(X)
    assert model.score(X, y, offset=offset) > 0.9
    save(model, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").predict(X, offset), model.predict(X, offset))
    assert not model.fit(X, y).needs_offset_
    assert_array_equal(model.predict(X, offset=0), model.predict(X))
    for bad in (offset[:-1], offset * np.nan):
        with pytest.raises(ValueError, match="offset"):
            model.fit(X, y, offset=bad)
    gathered = clone(model).fit(in_blocks(X, (0, 40, 80)), y, offset=offset)
    assert_allclose(gathered.predict(X, offset), model.fit(X, y, offset=offset).predict(X, offset), rtol=1e-3)


def test_on_a_gpu(cupy):
    X, y, offset = data()
    here = BoundedRegressor("huber", alpha=0.01).fit(X, y, offset=offset)
    there = clone(here).fit(cupy.asarray(X), cupy.asarray(y), offset=cupy.asarray(offset))
    assert_allclose(there.objective_, here.objective_, rtol=1e-5)
    found = there.predict(cupy.asarray(X), offset=cupy.asarray(offset))
    assert_allclose(found.get(), here.predict(X, offset), atol=1e-2)


def test_classifiers_ask_for_it(cupy):
    X, scores, offset = data()
    y = np.digitize(scores, np.quantile(scores, [0.3, 0.6]))
    offset = 0.1 * np.column_stack([offset, -offset, 0.0 * offset])
    model = BoundedClassifier(alpha=0.01).fit(X, y, offset=offset)
    assert model.needs_offset_ and model.coef_.shape == (3, 4)
    for k in range(3):
        one = BoundedClassifier(alpha=0.01).fit(X, y == k, offset=offset[:, k])
        assert_allclose(one.coef_[0], model.coef_[k], atol=1e-6)
    for call in (model.predict, model.predict_proba, model.predict_log_proba, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match="offset"):
            call(X)
    assert_allclose(model.predict_proba(X, offset).sum(axis=1), 1.0)
    assert model.score(X, y, offset=offset) == np.mean(model.predict(X, offset) == y)
    with pytest.raises(ValueError, match=r"offset.shape == \(80,\), expected \(80, 3\)"):
        model.fit(X, y, offset=offset[:, 0])
    again = model.set_params(warm_start=True).fit(X, y, offset=offset)
    assert again.n_iter_.max() <= 1
    there = BoundedClassifier(alpha=0.01).fit(*map(cupy.asarray, (X, y)), offset=cupy.asarray(offset))
    assert_allclose(np.asarray(there.objective_, dtype=float), again.objective_, rtol=1e-5)
