"""Weights of rows in the estimators with cross-validation: folds without any, and scorers that take none."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold

import sparsekit as sk

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
real = X[:, 0] + 0.1 * rng.standard_normal(30)
MODELS = [
    sk.L1LogisticOBACV(Cs=2, cv=KFold(3)), sk.LassoOBACV(alphas=2, cv=KFold(3)),
    sk.SoftmaxClassifierCV(alphas=[1.0], cv=KFold(3)), sk.LPSparseMAPClassifierCV(alphas=[1.0], cv=KFold(3)),
]  # fmt: skip
every = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def target(model):
    return real if is_regressor(model) else (real > 0).astype(int)


@every
def test_folds_of_weight_zero_are_named(model):
    y, first, rest = target(model), np.arange(10), np.arange(10, 30)
    with pytest.raises(ValueError, match="All rows of the left-out part of fold 1 have sample_weight 0"):
        clone(model).fit(X, y, np.repeat([1.0, 0.0, 1.0], 10))
    with pytest.raises(ValueError, match="All rows of the training part of fold 0 have sample_weight 0"):
        clone(model).set_params(cv=[(rest, first)]).fit(X, y, np.repeat([1.0, 0.0, 0.0], 10))


@every
def test_a_scorer_that_refuses_weights(model):
    """As in scikit-learn: fits go on without them in their scores, a score of them is an error."""
    y, weight = target(model), np.repeat([1.0, 0.0, 2.0], 10)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("r2" if is_regressor(model) else "accuracy")
        model = clone(model).set_params(scoring=scorer.set_score_request(sample_weight=False))
        if is_regressor(model):  # which averages the folds by their weight
            model.fit(X, y)
        else:
            model.fit(X, y, sample_weight=weight)
        with pytest.raises(TypeError, match=r"score got sample_weight, which the scorer does not request"):
            model.score(X, y, sample_weight=weight)
        assert model.score(X, y) == scorer(model, X, y)
        model.scoring.set_score_request(sample_weight=True)
        assert model.score(X, y, sample_weight=weight) == scorer(model, X, y, sample_weight=weight)
