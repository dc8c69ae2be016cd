"""Pictures of factor graphs: where nodes are, what lines join, and what is written."""

import numpy as np
import pytest
from drawings import overlap

import sparsekit as sk
from sparsekit.inspection import FactorGraphDisplay

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def ends_of(display):
    """(variable, factor) of each line that is drawn, by the nodes at its ends."""
    n = display.graph.n_variables
    found = set()
    for start, end in display.lines_.get_segments():
        distance = np.linalg.norm(display.positions_ - start[:2], axis=1)
        other = np.linalg.norm(display.positions_ - end[:2], axis=1)
        assert distance.min() < 1e-9 and other.min() < 1e-9
        found.add((int(distance.argmin()), int(other.argmin()) - n))
    return found


def nearest(display):
    """Least distance of two nodes."""
    i, j = np.triu_indices(len(display.positions_), 1)
    return np.linalg.norm(display.positions_[i] - display.positions_[j], axis=1).min()


def matching(m, n):
    graph = sk.FactorGraph()
    u = graph.variable(np.random.default_rng(0).normal(size=(m, n)))
    graph.add(sk.Xor(u))
    graph.add(sk.AtMostOne(u.T))
    return graph


def test_graph_of_a_matrix_is_drawn_as_one(tmp_path):
    graph = matching(3, 4)
    solution = graph.solve()
    display = FactorGraphDisplay.from_graph(graph, solution)
    rows, columns = np.divmod(np.arange(12), 4)
    np.testing.assert_array_equal(display.positions_[:12], np.column_stack([columns, -rows]))
    assert display.factor_names_ == ["Xor"] * 3 + ["AtMostOne"] * 4
    assert ends_of(display) == {(v, r) for v, r in enumerate(rows)} | {
        (v, 3 + c) for v, c in enumerate(columns)
    }
    assert {tuple(edge) for edge in display.edges_} == ends_of(display)
    # factors of rows at the left of their rows, of columns above
    np.testing.assert_array_equal(display.positions_[12:15], [(-1, 0), (-1, -1), (-1, -2)])
    np.testing.assert_array_equal(display.positions_[15:], [(c, 1) for c in range(4)])
    marginals = display.variables_.get_array()
    assert (solution.x == 0).any()
    np.testing.assert_array_equal(marginals.mask, solution.x == 0)
    np.testing.assert_allclose(marginals.filled(0.0), solution.x)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == [f"{r},{c}" for r, c in zip(rows, columns)] + display.factor_names_
    assert not overlap(display.ax_.texts, display.figure_)
    display.figure_.savefig(tmp_path / "graph.png", dpi=50)


class AllOrNone(sk.Factor):
    def maximize(self, scores, additional_scores):
        return np.full(scores.shape, float(scores.sum() > 0))


def test_graph_of_pairs_logic_and_a_factor_of_ones_own():
    graph = sk.FactorGraph()
    u = graph.variable([0.5, -0.2, 0.3, 0.1, 0.4])
    v, w = graph.variable(0.2), graph.variable([[0.1, 0.2]])
    graph.add(sk.Pair(u[[[0, 1], [1, 2], [2, 3], [3, 0]]], 0.2))
    graph.add(sk.Imply([u[0], v]))
    graph.add(AllOrNone([w[0], u[4]]))
    display = FactorGraphDisplay.from_graph(graph)
    assert display.factor_names_ == ["Pair"] * 4 + ["Imply", "AllOrNone"]
    pairs = {(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (0, 3)}
    assert ends_of(display) == pairs | {(0, 4), (5, 4), (6, 5), (7, 5), (4, 5)}
    assert [t.get_text() for t in display.ax_.texts[:8]] == [
        "a0",
        "a1",
        "a2",
        "a3",
        "a4",
        "b",
        "c0,0",
        "c0,1",
    ]
    assert display.colorbar_ is None and display.variables_.get_array() is None
    assert nearest(display) > 0.6
    again = FactorGraphDisplay.from_graph(graph)
    np.testing.assert_array_equal(display.positions_, again.positions_)


@pytest.mark.parametrize("kind", ["all pairs", "chain", "tree and budget", "alone", "twice the same row"])
def test_nodes_do_not_cover_each_other(kind):
    graph = sk.FactorGraph()
    if kind == "all pairs":
        u = graph.variable((8,))
        graph.add(sk.Pair(u[np.array(np.triu_indices(8, 1)).T]))
    elif kind == "chain":
        u = graph.variable((30,))
        graph.add(sk.Pair(u[np.column_stack([np.arange(29), np.arange(1, 30)])]))
    elif kind == "tree and budget":
        u = graph.variable((6, 6))
        graph.add(sk.DepTree(u))
        graph.add(sk.Budget(u[0], 2))
    elif kind == "alone":
        graph.variable((60,))
    else:
        u = graph.variable((3, 3))
        for _ in range(3):
            graph.add(sk.Xor(u[0]))
    display = FactorGraphDisplay.from_graph(graph)
    # radius 0.27 and half a side 0.16, with its corner
    assert nearest(display) > 0.27 + 0.16 * 2**0.5
    names = [text for text in display.ax_.texts if text.get_text() not in display.factor_names_]
    assert len(names) == graph.n_variables and not overlap(names, display.figure_)
    written = {text.get_text() for text in display.ax_.texts[len(names) :]}
    legend = display.ax_.get_legend()
    assert legend is None or legend.get_texts()
    written |= {text.get_text() for text in legend.get_texts()} if legend else set()
    assert written == set(display.factor_names_)  # every class is named, at its squares or once


def test_graph_names_axes_and_marginals():
    graph = matching(2, 2)
    ax = matplotlib.pyplot.figure().add_subplot()
    display = FactorGraphDisplay.from_graph(
        graph, [1.0, 0.0, 0.25, 0.75], names="wxyz", ax=ax, colorbar=False
    )
    assert display.ax_ is ax and display.colorbar_ is None
    assert [t.get_text() for t in ax.texts[:4]] == list("wxyz")
    assert [t.get_color() for t in ax.texts[:4]] == ["w", "k", "k", "w"]  # on dark circles white
    np.testing.assert_array_equal(display.variables_.get_array().filled(0.0), [1.0, 0.0, 0.25, 0.75])
    long = FactorGraphDisplay.from_graph(graph, names=[f"a rather long name {k}" for k in range(4)])
    assert all(text.get_fontsize() >= 5 for text in long.ax_.texts)


def test_graph_errors():
    graph, other = matching(2, 2), matching(2, 2)
    for options, message in (
        (dict(solution=other.solve()), "solution is of another graph"),
        (dict(solution=[0.5]), "solution must have 4 marginals"),
        (dict(solution=[0.5, 0.5, 0.5, 1.5]), r"marginals in \[0, 1\]"),
        (dict(names="abc"), "names must be 4 names, one a variable; got 3"),
        (dict(max_nodes=7), r"8 nodes \(4 variables, 4 factors\), more than max_nodes=7"),
    ):
        with pytest.raises(ValueError, match=message):
            FactorGraphDisplay.from_graph(graph, **options)
    with pytest.raises(ValueError, match=r"70 nodes.*max_nodes=60"):
        FactorGraphDisplay.from_graph(_large())
    assert len(FactorGraphDisplay.from_graph(_large(), max_nodes=70).positions_) == 70
    with pytest.raises(ValueError, match="graph has no variables"):
        FactorGraphDisplay.from_graph(sk.FactorGraph())
    with pytest.raises(TypeError, match="graph must be a FactorGraph; got Xor"):
        FactorGraphDisplay.from_graph(graph.factors[0])
    impossible = sk.FactorGraph()
    u = impossible.variable((2,))
    impossible.add(sk.Budget(u, 0))
    impossible.add(sk.Xor(u))
    with pytest.raises(ValueError, match="infeasible"):
        FactorGraphDisplay.from_graph(impossible, impossible.solve())


def _large():
    graph = sk.FactorGraph()
    graph.variable((70,))
    return graph
