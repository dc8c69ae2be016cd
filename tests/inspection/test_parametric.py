"""Parametric plots: what is drawn is the function on the curve."""

import numpy as np
import pytest

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


def test_scores_and_names():
    ax = matplotlib.pyplot.figure().add_subplot()
    parts = dict(test_loss=[2.0, 3.0, 2.5], score=[0.9, 0.5, 1.0], test_score=[0.8, 0.4, 0.7])
    display = ParametricPlotDisplay([0, 0.5, 1], [1.0, 2.0, 0.5], **parts)
    display.plot(ax, names=("small C", "large C"))
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert set(display.lines_) == {"loss", "test_loss", "score", "test_score"}
    for name, values in parts.items():
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), values)
    assert [text.get_text() for text in ax.texts] == ["small C", "large C"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["training loss", "test loss", "training accuracy", "test accuracy"]
    assert display.score_ax_.get_ylabel() == "accuracy"
    redrawn = display.plot(log=False, lw=4)
    assert redrawn.ax_.get_yscale() == "linear" and redrawn.lines_["score"].get_linewidth() == 4


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
    make = ParametricPlotDisplay.from_function
    with pytest.raises(ValueError, match="curve must be 'line' or 'arc'"):
        make(fun, np.zeros(2), np.ones(2), curve="circle")
    with pytest.raises(ValueError, match="alphas must be finite"):
        make(fun, np.zeros(2), np.ones(2), alphas=[np.nan])
    with pytest.raises(ValueError, match="names must be those of the two solutions"):
        make(fun, np.zeros(2), np.ones(2), names=("a", "b", "c"))
    with pytest.raises(ValueError, match=r"one shape \(n,\); theirs are \(2,\) and \(3,\)"):
        make(fun, np.zeros(2), np.zeros(3))
