"""Performance profiles: what is drawn is their definition."""

import numpy as np
import pytest
from drawings import overlap

from sparsekit.inspection import PerformanceProfileDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")

COSTS = np.array([[10, 20, 40], [30, 15, np.nan], [5, np.inf, 5], [8, 8, 9], [np.inf, np.nan, np.inf]])


def share_within(costs, solver, tau):
    """rho_s(tau) from its definition."""
    solved = 0
    for row in costs:
        known = [c for c in row if np.isfinite(c)]
        solved += bool(known) and np.isfinite(row[solver]) and row[solver] <= tau * min(known)
    return solved / len(costs)


def drawn_at(line, tau):
    """Value of a step function, whose steps come at their left ends."""
    x, y = line.get_data()
    return y[np.flatnonzero(x <= tau)[-1]]


def test_profiles_are_the_shares_of_the_definition():
    rng = np.random.default_rng(0)
    costs = rng.integers(1, 9, size=(30, 4)).astype(float)
    costs[rng.random(costs.shape) < 0.3] = np.inf
    costs[:2] = np.nan
    costs[:, 3] = np.inf  # a solver that solves nothing
    display = PerformanceProfileDisplay.from_table(costs)
    right = display.ax_.get_xlim()[1]
    for solver, (line, (ratios, shares)) in enumerate(zip(display.lines_, display.profiles_.values())):
        assert line.get_drawstyle() == "steps-post" and line.get_xdata()[-1] >= right
        for tau in (*ratios, 1.0, 1.3, 2.7, right):
            assert drawn_at(line, tau) == share_within(costs, solver, tau)
        np.testing.assert_allclose(shares, [share_within(costs, solver, tau) for tau in ratios])
    assert not display.lines_[3].get_ydata().any()
    assert display.ax_.get_xscale() == "log" and display.ax_.xaxis.get_transform().base == 2


def test_profile_table_and_style(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    display = PerformanceProfileDisplay.from_table(pandas.DataFrame(COSTS, columns=["a", "b", "c"]))
    assert list(display.profiles_) == ["a", "b", "c"]
    np.testing.assert_array_equal(
        display.ratios_,
        [[1, 2, 4], [2, 1, np.inf], [1, np.inf, 1], [1, 1, 1.125], [np.inf] * 3],
    )
    # the problem that none solved counts
    assert [shares[-1] for _, shares in display.profiles_.values()] == [0.8, 0.6, 0.6]
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["a", "b", "c"]
    # told apart without colours
    assert len({line.get_linestyle() for line in display.lines_}) == 3
    display.figure_.savefig(tmp_path / "profile.png", dpi=50)
    ticks = [t for t in display.ax_.get_xticklabels() if t.get_text()]
    assert not overlap(ticks, display.figure_)
    ax = matplotlib.pyplot.figure().add_subplot()
    same = PerformanceProfileDisplay.from_table(COSTS, names="xyz", ax=ax, base=10, max_ratio=100, color="k")
    assert same.ax_ is ax and same.figure_ is ax.figure and ax.get_xlim()[1] == 100
    assert {line.get_color() for line in same.lines_} == {"k"}
    assert same.plot(legend=False).ax_.get_legend() is None and same.ax_ is not ax


def test_ticks_are_named_by_powers_of_the_base():
    """2 to the 14th is not 16384 rounded to one digit."""
    display = PerformanceProfileDisplay.from_table([[1.0, 2.0**14], [1.0, 1.0]])
    display.figure_.canvas.draw()
    texts = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert any("2^{12}" in text or "2^{14}" in text for text in texts) and not any(
        "e+" in text for text in texts
    )
    assert "2^{14}" in display.ax_.xaxis.get_major_formatter()(2.0**14)


def test_profile_of_one_solver_and_of_ties():
    one = PerformanceProfileDisplay.from_table([[3.0], [np.inf]])
    assert set(one.lines_[0].get_ydata()) == {0.5} and list(one.profiles_) == ["solver 1"]
    ties = PerformanceProfileDisplay.from_table([[2, 2], [7, 7]])
    for line in ties.lines_:
        assert set(line.get_ydata()) == {1.0}
    assert len({line.get_linestyle() for line in ties.lines_}) == 2  # both are seen


@pytest.mark.parametrize(
    "costs, options, message",
    [
        ([[1.0, 0.0]], {}, r"costs must be > 0.*costs\[0, 1\] is 0"),
        ([[1.0, 2.0], [-np.inf, 2.0]], {}, r"costs must be > 0.*costs\[1, 0\] is -inf"),
        ([1.0, 2.0], {}, r"costs must have the shape \(n_problems, n_solvers\)"),
        (np.empty((0, 2)), {}, "costs must have the shape"),
        ([[1.0, 2.0]], {"names": ["a"]}, "names must be 2 different labels"),
        ([[1.0, 2.0]], {"names": ["a", "a"]}, "names must be 2 different labels"),
        ([[1.0, 2.0]], {"base": 1}, "base must be >= 2"),
        ([[1.0, 2.0]], {"max_ratio": 1.0}, "max_ratio must be a finite number > 1"),
    ],
)
def test_profile_errors(costs, options, message):
    with pytest.raises(ValueError, match=message):
        PerformanceProfileDisplay.from_table(costs, **options)
