"""SequenceTagger: messages about wrong input, parameters and predictions."""

import numpy as np
import pytest
import scipy.sparse as sp

import sparsekit as sk

EYE = np.eye(2)


@pytest.mark.parametrize(
    "X, y, error, match",
    [
        (EYE[0], [["a"]], ValueError, r"X\[0\] must be"),
        (sp.csr_matrix(EYE), [["a"]], TypeError, "X must be a list of sequences"),
        ({"a": 1}, [["a"]], TypeError, "X must be a list of sequences"),
        ("abc", [["a"]], TypeError, "X must be a list of sequences"),
        ([EYE], [["a"]], ValueError, r"y\[0\] has 1 labels, X\[0\] 2 positions"),
        ([EYE], [["a", "b"], []], ValueError, "y has 2 sequences, X 1"),
        ([{"a": 1.0}], [["a"]], TypeError, r"If X is one sequence, pass \[X\]"),
        ([EYE], ["ab"], TypeError, r"y\[0\] must be a sequence of labels; got 'ab'"),
        ([EYE], [["a", 1]], ValueError, "labels of one kind.*some are strings and 1 is not"),
        ([EYE], [["a", None]], ValueError, "some are strings and None is not"),
        ([EYE], [[0.5, 1.5]], ValueError, "strings or whole numbers; got 0.5"),
        ([EYE * np.nan], [["a", "b"]], ValueError, "NaN or infinity"),
        ([[{"a": 1.0}], [{"a": np.inf}]], [["a"], ["a"]], ValueError, r"NaN or infinity: in X\[1\]"),
        ([[{"a": None}]], [["a"]], TypeError, "the feature 'a' must be"),
        ([[{1: 1.0}]], [["a"]], TypeError, "names of features must be strings"),
        ([[3]], [["a"]], TypeError, r"X\[0\] must be"),
        ([EYE, np.eye(3)], [["a", "b"]] * 2, ValueError, r"X\[1\] has 3 features"),
        ([EYE, [{"a": 1}]], [["a", "b"], ["a"]], ValueError, "in all sequences or in none"),
        ([np.ones(3)], [["a"] * 3], ValueError, r"X\[0\] must be"),
        ([EYE.astype(complex)], [["a", "b"]], ValueError, "real numbers"),
        ([[]], [[]], ValueError, "no labels"),
        ([], [], ValueError, "no labels"),
        ([np.zeros((1, 0))], [["a"]], ValueError, "no features"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(X, y, error, match):
    with pytest.raises(error, match=match):
        sk.SequenceTagger().fit(X, y)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"C": 0.0}, "C"),
        ({"l1_ratio": 1.5}, "l1_ratio"),
        ({"constraints": "IO"}, "constraints"),
        ({"constraints": "BIO"}, r"y\[0\] begins with 'I-A'"),
        ({"constraints": [("O", "I-A")]}, r"y\[1\] has 'O' before 'I-A' at position 0"),
        ({"constraints": [("O", None)]}, r"y\[0\] ends with 'O'"),
        ({"constraints": [("O", "X")]}, "'X' is none of y's"),
        ({"constraints": [(None, None)]}, "pairs"),
        ({"constraints": "BILOU"}, "'I-A' before 'O'"),
        ({"class_weight": {"X": 1.0}}, "class_weight"),
        ({"loss": "svm"}, "loss"),
        ({"loss": "hinge", "l1_ratio": 0.5}, "l1_ratio must be 0"),
        ({"loss": "sparsemap", "l1_ratio": 0.5}, "l1_ratio must be 0"),
    ],
)
def test_parameters_that_are_wrong(options, match):
    with pytest.raises(ValueError, match=match):
        sk.SequenceTagger(**options).fit([EYE, EYE], [["I-A", "O"], ["O", "I-A"]])


def test_predictions_name_what_is_wrong(spans, arrays):
    model = sk.SequenceTagger().fit(*spans)
    with pytest.raises(ValueError, match="dicts of features, as in fit"):
        model.predict(arrays[0])
    other = sk.SequenceTagger().fit(*arrays)
    with pytest.raises(ValueError, match="arrays of numbers, as in fit; got dicts"):
        other.predict(spans[0])
    with pytest.raises(ValueError, match=r"X\[0\] has 4 features; expected 3"):
        other.predict([np.zeros((1, 4))])
    turns = sk.SequenceTagger(constraints=[(None, "b"), ("a", None)]).fit([EYE], [["a", "b"]])
    for predict in (turns.predict, turns.predict_proba):
        with pytest.raises(ValueError, match=r"no labelling of the length of X\[1\]"):
            predict([EYE, EYE[:1]])
