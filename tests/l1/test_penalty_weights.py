"""`penalty_weights` by the features' names or numbers, wherever there are any."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA, l1_logistic_path

NAMES = ["age", "weight", "height", "pulse"]
MODELS = [L1LogisticOBA(C=0.3), L1LogisticOBACV(Cs=[0.3], cv=2), LassoOBA(0.05)]
every = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 4)), columns=NAMES)
    return X, (X["age"] - X["pulse"] + 0.3 * rng.standard_normal(80) > 0).astype(int).to_numpy()


def refused(fit, match):
    with pytest.raises(ValueError, match=match) as caught:
        fit()
    assert "np." not in str(caught.value)


@every
def test_what_is_wrong_is_named(frame, model):
    X, y = frame
    for given, match in (
        (
            {"wieght": 1.0},
            r"penalty_weights has the key 'wieght', which is no feature: 0 \.\. 3 or a column's",
        ),
        ({4: 1.0}, "penalty_weights has the key 4, which is no feature"),
        ({-1: 1.0}, "penalty_weights has the key -1, which is no feature"),
        ({True: 1.0}, "penalty_weights has the key True, which is no feature"),
        ({np.float64(1.5): 1.0}, r"penalty_weights has the key 1\.5, which"),
        ({"age": -1.0}, r"penalty_weights\['age'\] must be a finite number >= 0 .*; got -1\.0"),
        ({"age": np.float64(np.inf)}, r"penalty_weights\['age'\] must be a finite number"),
        ({"age": np.nan}, r"penalty_weights\['age'\] must be a finite number"),
        ({"age": "1"}, r"penalty_weights\['age'\] must be a finite number .*; got '1'"),
        ({"age": [1.0, 2.0]}, r"penalty_weights\['age'\] must be a finite number"),
        ({"age": 1.0, 0: 2.0}, "penalty_weights has feature 0 twice, by name and by number"),
    ):
        refused(lambda given=given: clone(model).set_params(penalty_weights=given).fit(X, y), match)
    numbers = X.to_numpy()
    refused(
        lambda: clone(model).set_params(penalty_weights={"age": 1.0}).fit(numbers, y), "X has no column names"
    )
    # names of an earlier fit are not those of this one
    again = clone(model).set_params(penalty_weights={"age": 2.0}).fit(X, y)
    refused(lambda: again.fit(numbers, y), "X has no column names")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("model", [LassoOBA(0.05, l1_ratio=0.5), L1LogisticOBA(0.8, l1_ratio=0.5)])
def test_single_precision_has_a_certificate_as_well(model, order):
    """Features without a penalty ask the dual point for an exact zero, which rounded products never are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 12)) + 0.5
    y = X[:, 0] - X[:, 3] + rng.standard_normal(120)
    y = y if isinstance(model, LassoOBA) else (y > 0).astype(int)
    X = np.asarray(X, dtype=np.float32, order=order)
    for weights in ({0: 0.0}, {0: 0.0, 5: 3.0}, {0: 0.0, 1: 0.0, 7: 0.0}):
        found = clone(model).set_params(penalty_weights=weights, fit_intercept=order == "C").fit(X, y)
        assert found.coef_[..., 0].all()
        assert 0 <= found.dual_gap_ <= 1e-4 * found.objective_


def test_unpenalised_features_of_several_classes_sum_to_zero(frame):
    """A constant added to a feature of all classes changes nothing else, so that one of them is chosen."""
    X, _ = frame
    y = np.digitize(X["age"] - X["pulse"] + np.sin(9.0 * X["height"]), [-0.7, 0.7])
    free = {"pulse": 0.0, "height": 0.0}
    once = L1LogisticOBA(C=0.3, penalty_weights=free, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(once.coef_[:, 2:].sum(axis=0), 0.0, atol=1e-12)
    assert np.abs(once.coef_[:, 0].sum()) > 1e-3  # a penalty has its own choice
    path = l1_logistic_path(X, y, Cs=[0.3, 0.1], penalty_weights=free, tol=1e-10)
    cv = L1LogisticOBACV([0.3], cv=2, penalty_weights=free, tol=1e-10).fit(X, y)
    average = L1LogisticOBACV([0.3], cv=2, penalty_weights=free, refit=False).fit(X, y)
    np.testing.assert_allclose(path.coef(1), once.coef_, atol=1e-6)
    np.testing.assert_allclose(cv.coef_, once.coef_, atol=1e-6)
    np.testing.assert_allclose(average.coef_[:, 2:].sum(axis=0), 0.0, atol=1e-12)
    all_free = L1LogisticOBA(C=np.inf).fit(X, y)
    np.testing.assert_allclose(all_free.coef_.sum(axis=0), 0.0, atol=1e-12)
