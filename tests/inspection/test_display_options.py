"""What all displays have in common: names of line options, errors that leave nothing behind, odd labels."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from sparsekit import inspection, l1_logistic_path

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")

HISTORIES = {"_mine": {"fun": [3.0, 2.0, 1.5], "time": [0.0, 0.1, 0.2]}}


@pytest.fixture(scope="module")
def path():
    X, y = load_breast_cancer(return_X_y=True)
    return l1_logistic_path(scale(X), y, n_lambdas=5)


@pytest.fixture
def displays(path):
    return {
        "path": lambda **o: inspection.RegularizationPathDisplay.from_path(path, **o),
        "convergence": lambda **o: inspection.ConvergenceDisplay.from_history(HISTORIES, **o),
        "parametric": lambda **o: inspection.ParametricPlotDisplay.from_function(
            lambda x: 1 + x @ x, [0.0], [1.0], **o
        ),
        "attention": lambda **o: inspection.AttentionDisplay.from_weights(np.eye(2), **o),
    }


@pytest.mark.parametrize("name", ["path", "convergence", "parametric"])
def test_line_options_by_either_name(displays, name):
    for options in ({"linewidth": 5, "linestyle": ":"}, {"lw": 5, "ls": ":"}):
        display = displays[name](**options, c="red")
        lines = display.lines_
        for line in lines.values() if isinstance(lines, dict) else lines:
            assert line.get_linewidth() == 5 and line.get_linestyle() == ":" and line.get_color() == "red"


@pytest.mark.parametrize(
    "name, options",
    [
        ("path", {"target": 9}),
        ("path", {"no_such_option": 1}),
        ("convergence", {"no_such_option": 1}),
        ("parametric", {"no_such_option": 1}),
        ("attention", {"cmap": "no such map"}),
    ],
)
def test_an_error_leaves_no_figure_open(displays, name, options):
    mine = pyplot.figure()
    with pytest.raises((AttributeError, KeyError, ValueError, TypeError)):
        displays[name](**options)
    assert pyplot.get_fignums() == [mine.number]
    with pytest.raises((AttributeError, KeyError, ValueError, TypeError)):
        displays[name](ax=mine.add_subplot(), **options)
    assert pyplot.get_fignums() == [mine.number]  # the user's own stays


def test_names_that_begin_with_an_underscore_are_in_the_legend(displays):
    texts = displays["convergence"]().ax_.get_legend().get_texts()
    assert [text.get_text().strip() for text in texts] == ["_mine"]


def test_tokens_with_dollars_are_drawn_as_they_are():
    display = inspection.AttentionDisplay.from_weights(np.eye(2), queries=["$x_$", "$^$"], keys=["a", "US$"])
    display.figure_.canvas.draw()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["$x_$", "$^$"]


@pytest.mark.parametrize("name", ["path", "parametric", "attention"])
def test_displays_pickle(displays, name):
    copy = pickle.loads(pickle.dumps(displays[name]()))
    copy.figure_.canvas.draw()


def test_a_run_that_broke_down_hides_no_other():
    runs = {"broken": {"fun": [3.0, np.nan, 2.0]}, "whole": {"fun": [3.0, 2.0, 1.0]}}
    display = inspection.ConvergenceDisplay.from_history(runs, y="gap")
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [2.0, np.nan, 1.0])
    np.testing.assert_allclose(display.lines_[1].get_ydata(), [2.0, 1.0, np.nan])


@pytest.mark.parametrize("history", [{}, {"fun": []}, {"fun": [1.0], "time": [0.0, 1.0]}])
def test_histories_without_a_form(history):
    with pytest.raises(ValueError, match="history 'a' must hold arrays of one length, at least 1"):
        inspection.ConvergenceDisplay.from_history({"a": history})


def test_a_history_without_an_objective():
    with pytest.raises(ValueError, match="'a' recorded time"):
        inspection.ConvergenceDisplay.from_history({"a": {"time": [0.0, 1.0]}})
