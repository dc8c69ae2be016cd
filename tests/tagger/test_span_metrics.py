"""Span scores against a slow reference, and averages by hand."""

import numpy as np
import pytest
import reference_chains

from sparsekit.metrics import _spans, span_f1_score, span_precision_recall_f1

LABELS = {
    "BIO": ["O", "B-A", "I-A", "B-B", "I-B"],
    "BIOES": ["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"],
    "BILOU": ["O", "B-A", "I-A", "L-A", "U-A", "B-B", "I-B", "L-B", "U-B"],
}


def draw(scheme, seed, n=30):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, size=n)
    return [[[str(label) for label in rng.choice(LABELS[scheme], size=T)] for T in lengths] for _ in range(2)]


@pytest.mark.parametrize("scheme", LABELS)
@pytest.mark.parametrize("seed", range(5))
def test_reference(scheme, seed):
    true, predicted = draw(scheme, seed)
    counts = np.zeros(3)
    for one, other in zip(true, predicted):
        a, b = (reference_chains.spans(labels, scheme) for labels in (one, other))
        assert set(_spans(one, scheme)) == a
        counts += len(a & b), len(b), len(a)
    right, found, there = counts
    result = span_precision_recall_f1(true, predicted, scheme=scheme)
    np.testing.assert_allclose(result, (right / found, right / there, 2 * right / (found + there)))
    assert span_f1_score(true, predicted, scheme=scheme) == result[2]


@pytest.mark.parametrize(
    "true, predicted, expected",
    [
        ([], [], (0.0, 0.0, 0.0)),
        ([[]], [[]], (0.0, 0.0, 0.0)),
        ([["O"]], [["O"]], (0.0, 0.0, 0.0)),
        ([["B-A"]], [["O"]], (0.0, 0.0, 0.0)),
        ([["I-A", "I-A"]], [["B-A", "I-A"]], (1.0, 1.0, 1.0)),
        ([["B", "I"]], [["B", "I"]], (1.0, 1.0, 1.0)),
        ([["B-A", "B-A"]], [["B-A", "I-A"]], (0.0, 0.0, 0.0)),
        ([["B-A-x"]], [["B-A-y"]], (0.0, 0.0, 0.0)),
    ],
)
def test_small(true, predicted, expected):
    assert span_precision_recall_f1(true, predicted) == expected


def test_no_spans_score_what_is_asked_for():
    assert span_f1_score([["O"]], [["O"]], zero_division=1.0) == 1.0


@pytest.mark.parametrize(
    "arguments, options, match",
    [
        (([["O"]], []), {}, "y_true has 1 sequences, y_pred 0"),
        (([["O"]], [["O", "O"]]), {}, r"y_true\[0\] has 1 labels"),
        (([["O"]], [["O"]]), {"scheme": "IO"}, "scheme must be one of"),
        (([["O"]], [["O"]]), {"average": "samples"}, "average must be"),
    ],
)
def test_what_is_wrong_is_named(arguments, options, match):
    with pytest.raises(ValueError, match=match):
        span_f1_score(*arguments, **options)


def test_averages_have_seqevals_values_by_hand():
    """Kinds by name: LOC is never right, ORG is predicted alone, PER has 1 of 1 predicted and 2 true."""
    true = [["B-PER", "O", "B-PER", "B-LOC", "O"]]
    predicted = [["B-PER", "O", "O", "B-ORG", "B-LOC"]]
    each = span_precision_recall_f1(true, predicted, average=None)
    np.testing.assert_allclose(each, [[0, 0, 1], [0, 0, 0.5], [0, 0, 2 / 3]])
    np.testing.assert_array_equal(span_f1_score(true, predicted, average=None), each[2])
    weighted = span_precision_recall_f1(true, predicted, average="weighted")
    np.testing.assert_allclose(weighted, [2 / 3, 1 / 3, 4 / 9])
    # without a true span there are no weights
    assert span_precision_recall_f1([["O"]], [["B-PER"]], average="weighted", zero_division=1.0) == (
        0.0,
        1.0,
        0.0,
    )
    assert span_f1_score([["O"]], [["O"]], average=None).shape == (0,)
