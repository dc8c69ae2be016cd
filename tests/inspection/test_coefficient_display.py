"""The display of coefficients: what it draws is what the model has, the largest first."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler, scale
from sklearn.tree import DecisionTreeRegressor

from sparsekit import L1LogisticOBA, LassoOBA
from sparsekit.inspection import CoefficientDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def names(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_bars_of_two_classes(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = np.array(["malignant", "benign"])[y]
    model = L1LogisticOBA(C=0.5).fit((X - X.mean()) / X.std(), y)
    display = CoefficientDisplay.from_estimator(model)
    coef = model.coef_[0]
    order = [j for j in np.argsort(-np.abs(coef), kind="stable") if coef[j] != 0]
    assert 3 < len(order) < 20
    np.testing.assert_array_equal(display.drawn_, order)
    assert names(display) == list(X.columns[order])
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], coef[order])
    one, other = (bar.get_facecolor() for bar in (display.bars_[0], display.bars_[-1]))
    assert (one == other) == (coef[order[0]] * coef[order[-1]] > 0)
    assert display.ax_.get_title() == f"{len(order)} of 30 features"
    assert display.ax_.get_xlabel() == "coefficient (positive: class malignant)"
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the largest above
    display.figure_.savefig(tmp_path / "coefficients.png", dpi=50)
    few = CoefficientDisplay.from_estimator(model, max_features=2, color="k")
    assert names(few) == names(display)[:2] and few.bars_[0].get_facecolor()[:3] == (0, 0, 0)
    assert few.ax_.get_title() == f"{len(order)} of 30 features, the largest 2"
    again = few.plot(ax=matplotlib.pyplot.figure().add_subplot())
    assert len(again.drawn_) == len(order)
    sparse = CoefficientDisplay.from_estimator(model.sparsify())
    assert names(sparse) == names(display)


def test_dots_of_several_classes():
    X, y = load_wine(return_X_y=True)
    model = L1LogisticOBA(C=0.3).fit(scale(X), y)
    for fitted in (model, model.sparsify()):
        display = CoefficientDisplay.from_estimator(fitted)
        coef = model.densify().coef_
        assert len(display.dots_) == 3 and names(display) == [f"x{j}" for j in display.drawn_]
        for dots, row in zip(display.dots_, coef):
            rows = np.flatnonzero(row[display.drawn_])
            expected = np.column_stack([row[display.drawn_][rows], rows])
            np.testing.assert_allclose(dots.get_offsets(), expected)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1", "2"]
    one = CoefficientDisplay.from_estimator(model, target=2)
    assert len(one.drawn_) == np.count_nonzero(coef[2])
    assert one.ax_.get_xlabel() == "coefficient (positive: class 2)"
    many = CoefficientDisplay(np.eye(9), [f"x{j}" for j in range(9)])
    with pytest.raises(ValueError, match="9 classes, of which 8 can be told apart"):
        many.plot()
    assert list(many.plot(target=4).drawn_) == [4]
    for target in (-1, 9):
        with pytest.raises(ValueError, match=f"target must be from 0 to 8, got {target}"):
            many.plot(target=target)


def test_pipelines_and_other_packages():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    steps = PolynomialFeatures(include_bias=False), StandardScaler(), LassoOBA(5.0)
    pipeline = make_pipeline(*steps).fit(X, y)
    display = CoefficientDisplay.from_estimator(pipeline)
    found = pipeline[:-1].get_feature_names_out()[np.argsort(-np.abs(pipeline[-1].coef_))]
    assert names(display) == list(found[: len(display.drawn_)]) and "bmi bp" in names(display)
    assert display.ax_.get_xlabel() == "coefficient"
    other = CoefficientDisplay.from_estimator(Lasso(0.5).fit(X, y))
    assert names(other)[0] == "bmi"
    named = CoefficientDisplay.from_estimator(LassoOBA(0.5).fit(X, y), feature_names=list("abcdefghij"))
    assert names(named)[0] == "c"


def test_coefficients_alone():
    display = CoefficientDisplay.from_coefficients([0.0, -2.0, 1.0])
    assert names(display) == ["x1", "x2"]
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], [-2.0, 1.0])
    sparse = CoefficientDisplay.from_coefficients(sp.csc_matrix([[0.0, -2.0, 1.0]]), output_names=["spam"])
    assert names(sparse) == names(display)
    assert sparse.ax_.get_xlabel() == "coefficient (positive: class spam)"
    nothing = CoefficientDisplay.from_coefficients(np.zeros(3))
    assert nothing.ax_.get_title() == "0 of 3 features" and not names(nothing)


def test_what_is_refused():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(NotFittedError):
        CoefficientDisplay.from_estimator(LassoOBA())
    with pytest.raises(TypeError, match="must have coef_; this DecisionTreeRegressor has none"):
        CoefficientDisplay.from_estimator(DecisionTreeRegressor(max_depth=1).fit(X, y))
    model = LassoOBA().fit(X, y)
    with pytest.raises(ValueError, match="feature_names must be 10 names; got 1"):
        CoefficientDisplay.from_estimator(model, feature_names=["a"])
    with pytest.raises(ValueError, match="output_names must be 1 names; got 2"):
        CoefficientDisplay.from_coefficients(model.coef_, output_names=["a", "b"])
    with pytest.raises(ValueError, match="one or two dimensions"):
        CoefficientDisplay.from_coefficients(np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match="max_features must be >= 1, got 0"):
        CoefficientDisplay.from_estimator(model, max_features=0)
