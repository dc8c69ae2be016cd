"""What all displays have in common: names of line options, errors that leave nothing behind, odd labels."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from sparsekit import FactorGraph, L1LogisticOBACV, Xor, inspection, l1_logistic_path

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")

HISTORIES = {"_mine": {"fun": [3.0, 2.0, 1.5], "time": [0.0, 0.1, 0.2]}}


@pytest.fixture(scope="module")
def path():
    X, y = load_breast_cancer(return_X_y=True)
    return l1_logistic_path(scale(X), y, n_lambdas=5)


@pytest.fixture(scope="module")
def searched():
    X, y = load_iris(return_X_y=True)
    return L1LogisticOBACV(Cs=3, cv=3).fit(scale(X), y)


@pytest.fixture
def displays(path, searched):
    graph = FactorGraph()
    graph.add(Xor(graph.variable((3,))))
    solution = graph.solve()
    return {
        "path": lambda **o: inspection.RegularizationPathDisplay.from_path(path, **o),
        "convergence": lambda **o: inspection.ConvergenceDisplay.from_history(HISTORIES, **o),
        "scores": lambda **o: inspection.CVScoreDisplay.from_estimator(searched, **o),
        "profile": lambda **o: inspection.PerformanceProfileDisplay.from_table([[1.0, 2.0], [2.0, 1.0]], **o),
        "parametric": lambda **o: inspection.ParametricPlotDisplay.from_function(
            lambda x: 1 + x @ x, [0.0], [1.0], **o
        ),
        "coefficients": lambda **o: inspection.CoefficientDisplay.from_coefficients([1.0, -2.0], **o),
        "attention": lambda **o: inspection.AttentionDisplay.from_weights(np.eye(2), **o),
        "support": lambda **o: inspection.SupportDisplay.from_probabilities(np.eye(2), **o),
        "graph": lambda **o: inspection.FactorGraphDisplay.from_graph(graph, solution, **o),
    }


@pytest.mark.parametrize("name", ["path", "convergence", "scores", "profile", "parametric"])
def test_line_options_by_either_name(displays, name):
    for options in ({"linewidth": 5, "linestyle": ":"}, {"lw": 5, "ls": ":"}):
        display = displays[name](**options, c="red")
        lines = getattr(display, "lines_", None) or [display.line_]
        for line in lines.values() if isinstance(lines, dict) else lines:
            assert line.get_linewidth() == 5 and line.get_linestyle() == ":" and line.get_color() == "red"


@pytest.mark.parametrize(
    "name, options",
    [
        ("path", {"target": 9}),
        ("path", {"no_such_option": 1}),
        ("convergence", {"no_such_option": 1}),
        ("scores", {"no_such_option": 1}),
        ("profile", {"no_such_option": 1}),
        ("parametric", {"no_such_option": 1}),
        ("coefficients", {"no_such_option": 1}),
        ("attention", {"cmap": "no such map"}),
        ("support", {"cmap": "no such map"}),
        ("graph", {"cmap": "no such map"}),
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


@pytest.mark.parametrize("name", ["path", "scores", "profile", "parametric", "attention", "support", "graph"])
def test_displays_pickle(displays, name):
    copy = pickle.loads(pickle.dumps(displays[name]()))
    copy.figure_.canvas.draw()


def test_columns_of_a_frame_name_the_classes():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    display = inspection.SupportDisplay.from_probabilities(
        pandas.DataFrame(np.eye(2), columns=["cat", "dog"])
    )
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["cat", "dog"]


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


def test_scores_that_are_not_finite():
    with pytest.raises(ValueError, match="scores of C = 2 are not finite"):
        inspection.CVScoreDisplay([1.0, 2.0], [[0.5, np.nan], [0.5, 0.6]], [0.1, 0.1], "C", "accuracy").plot()
    with pytest.raises(ValueError, match="penalty_name must be 'C' or 'alpha'; got 'c'"):
        inspection.CVScoreDisplay([1.0, 2.0], [[0.5, 0.5]], [0.1, 0.1], "c", "accuracy").plot()
