"""Displays of supports and attention: what is drawn is the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from drawings import overlap
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import sparsekit as sk
from sparsekit.inspection import AttentionDisplay, SupportDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


# supports


@pytest.fixture(scope="module")
def iris_model():
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    return sk.SparsemaxClassifier(alpha=1e-3).fit(X, names), X, names


def test_support_rows(iris_model, tmp_path):
    model, X, y = iris_model
    display = SupportDisplay.from_estimator(model, X[::5], y=y[::5], max_rows=20)
    P = model.predict_proba(X[::5])
    shown = display.image_.get_array()
    assert (P[:20] == 0).any() and shown.shape == (20, 3)
    np.testing.assert_array_equal(shown.mask, P[:20] == 0)
    np.testing.assert_array_equal(shown.filled(0.0), P[:20])
    np.testing.assert_array_equal(display.sizes_, (P > 0).sum(axis=1))
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == list(model.classes_)
    # a frame around the true class of each row
    centres = [frame.get_xy() + np.array([0.45, 0.45]) for frame in display.frames_]
    expected = [(list(model.classes_).index(label), row) for row, label in enumerate(y[::5][:20])]
    np.testing.assert_allclose(centres, expected)
    assert display.ax_.get_title() == "20 of 30 rows"
    assert "blank" in display.colorbar_.ax.get_ylabel()
    display.figure_.savefig(tmp_path / "rows.png", dpi=50)
    # a zero is white, the least weight is not
    colors = display.image_.cmap
    assert colors.get_bad().tolist() == [1, 1, 1, 1] and min(colors(0.0)[:3]) < 0.9


def test_support_sizes(iris_model):
    model, X, _ = iris_model
    display = SupportDisplay.from_estimator(model, X, kind="sizes", color="k")
    sizes = (model.predict_proba(X) > 0).sum(axis=1)
    drawn = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in display.bars_}
    assert drawn == {k: np.mean(sizes == k) for k in np.unique(sizes)} and len(drawn) > 1
    dense = sk.SoftmaxClassifier().fit(X, load_iris().target)
    (bar,) = SupportDisplay.from_estimator(dense, X, kind="sizes").bars_
    assert bar.get_height() == 1.0 and bar.get_x() + bar.get_width() / 2 == 3


def test_support_of_many_classes_keeps_the_likely_ones():
    rng = np.random.default_rng(0)
    P = sk.sparsemax(2 * rng.normal(size=(40, 90)))
    display = SupportDisplay.from_probabilities(P, max_rows=8, max_classes=12)
    kept = display.shown_classes_
    mass = P[:8].sum(axis=0)
    assert len(kept) == 12 and mass[kept].min() >= np.delete(mass, kept).max()
    np.testing.assert_array_equal(display.image_.get_array().filled(0.0), P[:8][:, kept])
    assert display.ax_.get_title() == "8 of 40 rows, 12 of 90 classes"
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == [str(k) for k in kept]
    unknown = SupportDisplay.from_probabilities(P[:2], y=[3, 1000])  # no column is of the second one's class
    assert len(unknown.frames_) == 1
    many = SupportDisplay.from_probabilities(sp.csr_array(P), classes=[f"class {k}" for k in range(90)])
    assert not overlap(many.ax_.get_xticklabels(), many.figure_)
    assert not overlap(many.ax_.get_yticklabels(), many.figure_)


def test_support_of_other_classifiers():
    X, Y = make_multilabel_classification(n_samples=30, n_classes=4, random_state=0)
    labels = sk.LPSparseMAPClassifier(pairs="all").fit(X, Y)
    display = SupportDisplay.from_estimator(labels, X)
    np.testing.assert_array_equal(display.image_.get_array().filled(0.0), labels.predict_proba(X)[:25])
    theirs = LogisticRegression().fit(X, Y[:, 0])
    assert (SupportDisplay.from_estimator(theirs, X).sizes_ == 2).all()
    with pytest.raises(TypeError, match="LinearSVC has none"):
        SupportDisplay.from_estimator(LinearSVC().fit(X, Y[:, 0]), X)
    with pytest.raises(TypeError, match="predicts 4, one an output"):
        SupportDisplay.from_estimator(RandomForestClassifier(5).fit(X, Y), X)


@pytest.mark.parametrize(
    "P, options, message",
    [
        ([[0.5, np.nan]], {}, "P must be finite"),
        ([[0.5, -0.1]], {}, r"P must be finite and at least 0; P\[0, 1\] is -0.1"),
        ([0.5, 0.5], {}, r"P must have the shape \(n_samples, n_classes\)"),
        ([[0.5, 0.5]], {"classes": [1, 2, 3]}, "classes must be 2 labels"),
        ([[0.5, 0.5]], {"y": [0, 1]}, r"y must have the shape \(1,\)"),
        ([[0.5, 0.5]], {"kind": "bars"}, "kind must be"),
        ([[0.5, 0.5]], {"max_rows": 0}, "max_rows must be >= 1"),
    ],
)
def test_support_errors(P, options, message):
    with pytest.raises(ValueError, match=message):
        SupportDisplay.from_probabilities(P, **options)


def test_support_refuses_unknown_options():
    with pytest.raises(TypeError, match="kind='rows' has no option 'width'"):
        SupportDisplay.from_probabilities([[1.0]], width=0.5)
    with pytest.raises(TypeError, match="must hold numbers"):
        SupportDisplay.from_probabilities([["a"]])


# attention


def test_attention_draws_the_weights(tmp_path):
    weights = sk.sparsemax(2 * np.random.default_rng(0).normal(size=(3, 5)))
    keys = ["the", "cat", "on", "the", "mat"]  # words may repeat
    display = AttentionDisplay.from_weights(weights, "abc", keys, frames=[4, -1, 0], title="sparsemax")
    shown = display.image_.get_array()
    assert (weights == 0).any()
    np.testing.assert_array_equal(shown.mask, weights == 0)
    np.testing.assert_array_equal(shown.filled(0.0), weights)
    assert display.image_.get_clim() == (0.0, 1.0)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == keys
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == list("abc")
    assert [tuple(np.round(f.get_xy() + np.array([0.45, 0.45]), 9)) for f in display.frames_] == [
        (4, 0),
        (0, 2),
    ]
    assert display.ax_.get_title() == "sparsemax" and "blank" in display.colorbar_.ax.get_ylabel()
    display.figure_.savefig(tmp_path / "attention.png", dpi=50)


def test_attention_side_by_side_and_without_labels():
    _, axes = matplotlib.pyplot.subplots(1, 2)
    weights = np.full((4, 30), 2.0)
    for ax in axes:
        display = AttentionDisplay.from_weights(weights, ax=ax, colorbar=False)
        assert display.ax_ is ax and display.colorbar_ is None
    assert display.image_.get_clim() == (0.0, 2.0)
    assert AttentionDisplay.from_weights(weights, vmax=5.0).image_.get_clim() == (0.0, 5.0)
    words = AttentionDisplay.from_weights(weights, keys=["elephant"] * 30)
    assert [t.get_text() for t in words.ax_.get_yticklabels()] == ["0", "1", "2", "3"]
    assert not overlap(words.ax_.get_xticklabels(), words.figure_)


@pytest.mark.parametrize(
    "weights, options, message",
    [
        ([0.5, 0.5], {}, r"weights must have the shape \(n_queries, n_keys\)"),
        ([[0.5, np.inf]], {}, "weights must be finite"),
        ([[0.5, 0.5]], {"queries": "ab"}, "queries must be 1 labels; got 2"),
        ([[0.5, 0.5]], {"keys": "a"}, "keys must be 2 labels; got 1"),
        ([[0.5, 0.5]], {"frames": [2]}, "frames must be a number of a key, below 2"),
        ([[0.5, 0.5]], {"frames": [0, 1]}, "for each of the 1 queries"),
        ([[0.5, 0.5]], {"frames": [0.5]}, "frames must be"),
    ],
)
def test_attention_errors(weights, options, message):
    with pytest.raises(ValueError, match=message):
        AttentionDisplay.from_weights(weights, **options)
