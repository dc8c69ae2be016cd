"""Parametric plots: what is drawn is the function on the curve."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from sparsekit import L1LogisticOBA, LassoOBA, SparsemaxClassifier
from sparsekit.inspection import ParametricPlotDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def fun(x):
    return float(np.sum((x - 1) ** 2 * (x + 2) ** 2) + 0.1)


def test_line_and_arc_of_a_function():
    first, second = np.array([1.0, -2.0]), np.array([-2.0, 1.0])
    line = ParametricPlotDisplay.from_function(fun, first, second)
    assert len(line.alphas) == 25 and line.alphas[0] == -1 and line.alphas[-1] == 2
    expected = [fun(a * second + (1 - a) * first) for a in line.alphas]
    np.testing.assert_allclose(line.loss, expected)
    np.testing.assert_allclose(line.lines_["loss"].get_xdata(), line.alphas)
    np.testing.assert_allclose(line.lines_["loss"].get_ydata(), expected)
    assert line.ax_.get_yscale() == "log" and line.score_ax_ is None
    assert set(line.lines_) == {"loss"}

    alphas = [0.0, 0.3, 1.0]
    arc = ParametricPlotDisplay.from_function(
        lambda x: (fun(x), None), first, second, test_fun=lambda x: fun(x) - 1.0, curve="arc", alphas=alphas
    )
    angle = np.pi / 2 * np.array(alphas)
    expected = [fun(np.sin(t) * second + np.cos(t) * first) for t in angle]
    np.testing.assert_allclose(arc.loss, expected)
    np.testing.assert_allclose(arc.test_loss, np.array(expected) - 1.0)
    assert arc.ax_.get_yscale() == "linear"  # a loss below zero has no logarithm
    assert "arc" in arc.ax_.get_xlabel()


def test_estimators():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    train, test = np.arange(400), np.arange(400, len(y))
    first, second = (L1LogisticOBA(C=C).fit(X[train], y[train]) for C in (0.1, 1.0))
    ax = matplotlib.pyplot.figure().add_subplot()
    display = ParametricPlotDisplay.from_estimator(
        first, second, X[train], y[train], X_test=X[test], y_test=y[test], alphas=[0, 0.5, 1],
        names=("small C", "large C"), ax=ax,
    )  # fmt: skip
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.loss[0] == pytest.approx(first.objective_ / len(train))
    for position, model in ((0, first), (2, second)):
        assert display.score[position] == model.score(X[train], y[train])
        assert display.test_score[position] == model.score(X[test], y[test])
    between = L1LogisticOBA().fit(X[train], y[train])
    between.coef_ = (first.coef_ + second.coef_) / 2
    between.intercept_ = (first.intercept_ + second.intercept_) / 2
    assert display.test_score[1] == between.score(X[test], y[test])
    p = between.predict_proba(X[test])[np.arange(len(test)), y[test]]
    penalty = np.abs(between.coef_).sum() / (0.1 * len(test))
    assert display.test_loss[1] == pytest.approx(-np.log(p).mean() + penalty)
    assert set(display.lines_) == {"loss", "test_loss", "score", "test_score"}
    np.testing.assert_array_equal(display.lines_["test_score"].get_ydata(), display.test_score)
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["small C", "large C"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["training loss", "test loss", "training accuracy", "test accuracy"]
    assert display.score_ax_.get_ylabel() == "accuracy"


def test_regression_has_r2_and_one_set_of_data_is_enough():
    X, y = load_diabetes(return_X_y=True)
    first, second = (LassoOBA(alpha=alpha).fit(X, y) for alpha in (0.1, 1.0))
    display = ParametricPlotDisplay.from_estimator(first, second, X, y, alphas=[0, 1])
    np.testing.assert_allclose(display.score, [first.score(X, y), second.score(X, y)])
    assert display.test_loss is None and display.score_ax_.get_ylabel() == "R²"
    redrawn = display.plot(log=False, lw=4)
    assert redrawn.ax_.get_yscale() == "linear" and redrawn.lines_["score"].get_linewidth() == 4


def test_the_second_end_is_the_second_model():
    X, y = load_breast_cancer(return_X_y=True)
    parts = (X, y), (3 * X[:200], y[:200])
    models = [make_pipeline(StandardScaler(), L1LogisticOBA(C=0.1)).fit(*part) for part in parts]
    with pytest.raises(ValueError, match="differ in more than parameters"):
        ParametricPlotDisplay.from_estimator(*models, X, y)
    same = [make_pipeline(StandardScaler(), L1LogisticOBA(C=C)).fit(X, y) for C in (0.1, 1.0)]
    display = ParametricPlotDisplay.from_estimator(*same, X, y, alphas=[0, 1])
    np.testing.assert_allclose(display.score, [model.score(X, y) for model in same])
    other = make_pipeline(StandardScaler(), SparsemaxClassifier()).fit(X, y)
    with pytest.raises(TypeError, match="one class; got L1LogisticOBA and SparsemaxClassifier"):
        ParametricPlotDisplay.from_estimator(same[0], other, X, y)


def test_functions_get_copies_and_return_numbers():
    def spoils(x):
        value = float(x @ x)
        x[:] = 0.0
        return [value, None]

    display = ParametricPlotDisplay.from_function(
        spoils, [1.0, 0.0], [0.0, 2.0], test_fun=spoils, alphas=[0, 1]
    )
    np.testing.assert_allclose(display.loss, [1.0, 4.0])
    np.testing.assert_allclose(display.test_loss, [1.0, 4.0])
    with pytest.raises(ValueError, match=r"one number; got the shape \(2,\)"):
        ParametricPlotDisplay.from_function(lambda x: x, [1.0, 0.0], [0.0, 2.0])


def test_bad_input():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = L1LogisticOBA().fit(X, y)
    smaller = L1LogisticOBA().fit(X[:, :3], y)
    make = ParametricPlotDisplay.from_estimator
    with pytest.raises(TypeError, match="one class; got L1LogisticOBA and SparsemaxClassifier"):
        make(model, SparsemaxClassifier().fit(X, y), X, y)
    with pytest.raises(ValueError, match="3 features"):
        make(model, smaller, X, y)
    with pytest.raises(ValueError, match="go together"):
        make(model, model, X, y, X_test=X)
    with pytest.raises(ValueError, match="curve must be 'line' or 'arc'"):
        make(model, model, X, y, curve="circle")
    with pytest.raises(ValueError, match="alphas must be finite"):
        make(model, model, X, y, alphas=[np.nan])
    with pytest.raises(ValueError, match="names must be those of the two solutions"):
        ParametricPlotDisplay.from_function(fun, np.zeros(2), np.ones(2), names=("a", "b", "c"))
    with pytest.raises(ValueError, match=r"one shape \(n,\); theirs are \(2,\) and \(3,\)"):
        ParametricPlotDisplay.from_function(fun, np.zeros(2), np.zeros(3))
