"""Any matrix, target, weight and parameter: finite models and predictions, or an error that says why."""

import contextlib

import numpy as np
import pytest
from fuzz_budget import fuzz
from fuzz_matrices import FINITE, SEEDS, as_layout, tables, values
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


@ALL
@fuzz(share=6)
def test_input_is_not_changed_and_layouts_agree(draw, name):
    """The same numbers in two layouts are refused together, and otherwise give the same predictions."""
    n, p = draw(st.sampled_from([6, 12, 3])), draw(st.sampled_from([3, 1, 5]))
    A = values(draw, (n, p), ("normal", "ties", "bits"))
    layout = draw(
        st.sampled_from(
            [
                "non-canonical CSR",
                "non-canonical CSC",
                "strided",
                "spare entries",
                "coo",
                "F",
                "memory-mapped",
                "read-only",
                "int64 indices",
                "bsr",
                "dia",
            ]
        )
    )
    X = as_layout(A, layout)
    before = [
        np.array(getattr(X, part), copy=True) for part in ("data", "indices", "indptr") if hasattr(X, part)
    ]
    kind, target_kinds, _ = MODELS[name]
    # of huge numbers that are fitted exactly rounding is all that is left
    y = draw(numbers(n, FINITE) if target_kinds == (NUMBERS,) else TARGETS[target_kinds[0]](n))
    options = {"random_state": 0, "learning_rate": 0.1, "max_iter": 2} if name == "ExtremeSoftmaxSGD" else {}
    # one value: which of several is best may depend on rounding
    options = (
        {"cv": 2, "Cs" if name.startswith("L1") else "alphas": [0.3]} if name.endswith("CV") else options
    )
    found = []
    for one in (A, X):
        try:
            with clear():
                found.append(kind(**options).fit(one, y))
        except Refused as refused:
            found.append(str(refused.__cause__))
    after = [np.array(getattr(X, part)) for part in ("data", "indices", "indptr") if hasattr(X, part)]
    assert all(map(np.array_equal, before, after))
    if isinstance(found[0], str) or isinstance(found[1], str):
        assert found[0] == found[1]
        return
    if hasattr(found[0], "objective_"):
        # both are within the certificates' reach of one optimum, and of the tolerance where there is none
        f, g = (np.sum(model.objective_) for model in found)
        np.testing.assert_allclose(f, g, rtol=2e-3, atol=1e-9)


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
