"""Any matrix, target, weight and parameter: finite models and predictions, or an error that says why."""

import contextlib

import numpy as np
import pytest
from fuzz_budget import fuzz
from fuzz_matrices import SEEDS, tables, values
from fuzz_models import LABELS, MODELS, NUMBERS, SETS, models
from fuzz_outcomes import Refused, check_finite, check_probabilities, clear
from fuzz_targets import label_sets, labels, numbers, weights
from hypothesis import strategies as st

TARGETS = {LABELS: labels, SETS: label_sets, NUMBERS: numbers}
ALL = pytest.mark.parametrize("name", list(MODELS))
# documented: steps of a rate that is too large
DOCUMENTED = {"ExtremeSoftmaxSGD": (FloatingPointError,)}


def fit(draw, name, X, n, s=None):
    model = draw(models(name))
    y = draw(TARGETS[draw(st.sampled_from(MODELS[name][1]))](n))
    with clear(*DOCUMENTED.get(name, ())):
        return model.fit(X, y, sample_weight=s), y


def predict(model, name, X):
    with clear():
        check_finite_of(model.predict(X))
    for method in ("decision_function", "predict_log_proba", "predict_proba"):
        with contextlib.suppress(AttributeError):
            function = getattr(model, method)
            with clear():
                found = function(X)
            if method == "predict_proba":
                one_of = not name.startswith("LPSparseMAPClassifier") or not model.multilabel_
                check_probabilities(model, found, one_of)
            else:
                assert not np.isnan(found).any(), method


def check_finite_of(found):
    if np.asarray(found).dtype.kind == "f":
        assert np.isfinite(found).all(), found


@ALL
@fuzz(share=25)
def test_fits(draw, name):
    X = draw(tables())
    n = len(X) if isinstance(X, list) else X.shape[0]
    with contextlib.suppress(Refused):
        model, _ = fit(draw, name, X, n, draw(weights(n)))
        check_finite(model)
        predict(model, name, X)


@fuzz(share=8)
def test_partial_fits(draw):
    """Calls of other rows, classes that come later, wrong widths."""
    model = draw(models("ExtremeSoftmaxSGD"))
    p = draw(st.sampled_from([3, 1, 6]))
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.sampled_from([4, 1, 9, 0]))
        X = values(draw, (n, p + (draw(st.integers(0, 9)) == 0)))
        classes = draw(st.sampled_from([None, None, [0, 1, 2], [0, 1, 2, 3, 4, 5]]))
        y = np.random.default_rng(draw(SEEDS)).integers(0, draw(st.integers(1, 5)), n)
        s = draw(weights(n))
        with contextlib.suppress(Refused, AttributeError):
            with clear(FloatingPointError):
                model.partial_fit(X, y, classes=classes, sample_weight=s)
            check_finite(model)
            predict(model, "ExtremeSoftmaxSGD", X)
