"""The displays: what they draw is what the path or history says."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA, l1_logistic_path
from sparsekit.inspection import ConvergenceDisplay, RegularizationPathDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(autouse=True)
def close_figures():
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return (X - X.mean()) / X.std(), y


def test_path_display_draws_the_path(cancer):
    X, y = cancer
    path = l1_logistic_path(X, y, n_lambdas=10)
    display = RegularizationPathDisplay.from_path(path, n_named=5, chosen_C=0.1)
    ever = np.flatnonzero(np.abs(path.coefs).max(axis=1))
    assert sorted(display.drawn_) == list(ever) and len(display.lines_) == len(ever)
    for feature, line in zip(display.drawn_, display.lines_):
        np.testing.assert_allclose(line.get_xdata(), np.log10(path.Cs))
        np.testing.assert_array_equal(line.get_ydata(), path.coefs[feature])
    top = np.argsort(-np.abs(path.coefs).max(axis=1))[:5]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [X.columns[j] for j in top] + ["C = 0.1"]
    assert "log" in display.ax_.get_xlabel() and display.ax_.get_ylabel() == "coefficient"
    few = RegularizationPathDisplay.from_path(path, max_lines=3)
    assert len(few.lines_) == 3 and f"3 of {len(ever)} coefficients" in few.ax_.get_title()


def test_path_display_of_estimators(cancer, tmp_path):
    X, y = cancer
    for model in (L1LogisticOBA(C=0.3, fit_intercept=False), L1LogisticOBACV(Cs=5, cv=3)):
        model.fit(X, y)
        display = RegularizationPathDisplay.from_estimator(model, X, y, n_lambdas=6)
        assert len(display.path.lambdas) == 6
        C = getattr(model, "C_", model.C if hasattr(model, "C") else None)
        assert f"C = {C:.3g}" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert bool(np.any(display.path.intercepts)) == model.fit_intercept
        display.figure_.savefig(tmp_path / "path.png")
    ax = matplotlib.pyplot.figure().add_subplot()
    assert RegularizationPathDisplay.from_path(display.path, ax=ax).ax_ is ax


def test_path_display_of_classes_sparse_and_lasso():
    X, y = load_iris(return_X_y=True)
    dense = l1_logistic_path(scale(X), y, n_lambdas=6)
    sparse = l1_logistic_path(scale(X), y, n_lambdas=6, coefs="sparse")
    for target in range(3):
        first = RegularizationPathDisplay.from_path(dense, target=target)
        second = RegularizationPathDisplay.from_path(sparse, target=target)
        np.testing.assert_array_equal(first.drawn_, second.drawn_)
        for one, two, feature in zip(first.lines_, second.lines_, first.drawn_):
            np.testing.assert_array_equal(one.get_ydata(), two.get_ydata())
            np.testing.assert_array_equal(one.get_ydata(), dense.coefs[target, feature])
        assert f"class {target}" in first.ax_.get_title()
    with pytest.raises(ValueError, match="target"):
        RegularizationPathDisplay.from_path(dense, target=3)
    with pytest.raises(ValueError, match="feature_names"):
        RegularizationPathDisplay.from_path(dense, feature_names=["one"])
    path = LassoOBA.path(*load_diabetes(return_X_y=True), n_lambdas=5)
    display = RegularizationPathDisplay.from_path(path)
    assert "alpha" in display.ax_.get_xlabel()
    np.testing.assert_allclose(display.lines_[0].get_xdata(), -np.log10(path.alphas))


def test_convergence_display(cancer, tmp_path):
    X, y = cancer
    tight = L1LogisticOBA(history=True, tol=1e-8).fit(X, y)
    loose = L1LogisticOBA(history=True, tol=1e-2).fit(X, y)
    display = ConvergenceDisplay.from_estimator(tight, loose, names=["tight", "loose"])
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), tight.history_["optimality"])
    np.testing.assert_array_equal(display.lines_[1].get_xdata(), loose.history_["time"])
    assert display.ax_.get_yscale() == "log"
    display.figure_.savefig(tmp_path / "convergence.png")
    gap = ConvergenceDisplay.from_estimator(tight, y="gap", x="iteration")
    fun = tight.history_["fun"]
    values = gap.lines_[0].get_ydata()
    np.testing.assert_allclose(values[:-1], (fun[:-1] - fun.min()) / fun.min())
    assert np.isnan(values[-1])  # the best itself has no place on a log axis
    np.testing.assert_array_equal(gap.lines_[0].get_xdata(), np.arange(len(fun)))
    twice = ConvergenceDisplay.from_estimator(tight, loose)
    assert [line.get_label() for line in twice.lines_] == ["L1LogisticOBA 1", "L1LogisticOBA 2"]
    with pytest.raises(ValueError, match="history=True"):
        ConvergenceDisplay.from_estimator(L1LogisticOBA().fit(X, y))
    with pytest.raises(ValueError, match="y must be"):
        ConvergenceDisplay.from_estimator(tight, y="loss")
    with pytest.raises(ValueError, match="names must be"):
        ConvergenceDisplay.from_estimator(tight, names=["a", "b"])


def test_works_without_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
from sklearn.datasets import load_iris
from sparsekit import l1_logistic_path
from sparsekit.inspection import RegularizationPathDisplay
path = l1_logistic_path(*load_iris(return_X_y=True), n_lambdas=3)
try:
    RegularizationPathDisplay.from_path(path)
except ImportError as error:
    print("told:", error)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120)
    assert "told: matplotlib is needed" in done.stdout, done.stderr


def test_import_does_not_load_matplotlib():
    code = "import sys, sparsekit.inspection; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr
