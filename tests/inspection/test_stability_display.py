"""The display of stability paths: what it draws is what the selection found."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsekit import LassoOBA, StabilitySelection
from sparsekit.inspection import StabilityPathDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(scope="module")
def selection():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return StabilitySelection(LassoOBA(), max_false=None, n_pairs=5, penalties=9, random_state=0).fit(X, y)


def test_lines_are_the_paths(selection, tmp_path):
    selection.set_params(threshold=1.0)
    display = StabilityPathDisplay.from_estimator(selection)
    support, paths = selection.get_support(), selection.stability_paths_
    count = int(support.sum())
    assert 2 < count < 9 and set(display.drawn_[:count]) == set(np.flatnonzero(support))
    assert set(display.drawn_) == set(np.flatnonzero(paths.any(axis=1)))
    for line, feature in zip(display.lines_, display.drawn_, strict=True):
        np.testing.assert_allclose(line.get_xdata(), -np.log10(selection.penalties_))
        np.testing.assert_array_equal(line.get_ydata(), paths[feature])
    shown = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert shown == list(selection.feature_names_in_[display.drawn_[:count]])
    assert display.threshold_line_.get_ydata()[0] == 1.0
    assert display.ax_.get_title() == (
        f"{count} of 10 features selected, at most {selection.expected_false_:.2g} false to be expected"
    )
    display.figure_.savefig(tmp_path / "stability.png", dpi=50)
    few = StabilityPathDisplay.from_estimator(selection, n_named=2, max_lines=1, lw=5)
    assert len(few.lines_) == count and len(few.ax_.get_legend().get_texts()) == 2  # selected ones all are
    assert few.lines_[-1].get_linewidth() == 5 and few.lines_[-1].get_color() == "0.35"
    again = few.plot(ax=matplotlib.pyplot.figure().add_subplot(), n_named=0)
    assert again.ax_.get_legend() is None


def test_classes_pipelines_and_one_penalty():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    logistic = StabilitySelection(n_pairs=3, penalties=[0.01], max_false=None, random_state=0)
    pipeline = make_pipeline(StandardScaler(), logistic).fit(X, y > 140)
    display = StabilityPathDisplay.from_estimator(pipeline)
    assert display.ax_.get_xlabel() == r"$\log_{10} C$" and "bmi" in display.feature_names
    np.testing.assert_allclose(display.lines_[0].get_xdata(), [-2.0])
    assert display.lines_[0].get_marker() == "o"


def test_nothing_selected():
    rng = np.random.default_rng(0)
    noise = StabilitySelection(LassoOBA(), max_false=0.05, n_pairs=5, threshold=1.0, random_state=0)
    noise.fit(rng.standard_normal((60, 100)), rng.standard_normal(60))
    display = StabilityPathDisplay.from_estimator(noise)
    assert display.ax_.get_title().startswith("0 of 100 features") and display.ax_.get_legend() is None


def test_what_is_refused(selection):
    with pytest.raises(TypeError, match="must be a StabilitySelection; got LassoOBA"):
        StabilityPathDisplay.from_estimator(LassoOBA())
    with pytest.raises(NotFittedError):
        StabilityPathDisplay.from_estimator(StabilitySelection())
    with pytest.raises(ValueError, match="feature_names must be 10 names; got 1"):
        StabilityPathDisplay.from_estimator(selection, feature_names=["a"])
    with pytest.raises(ValueError, match="max_lines must be >= 1, got 0"):
        StabilityPathDisplay.from_estimator(selection, max_lines=0)
