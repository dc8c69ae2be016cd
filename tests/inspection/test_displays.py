"""Displays of profiles, supports, attention and factor graphs: what is drawn is the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sparsekit import (
    AtMostOne,
    Budget,
    DepTree,
    Factor,
    FactorGraph,
    Imply,
    LPSparseMAPClassifier,
    Pair,
    SoftmaxClassifier,
    SparsemaxClassifier,
    Xor,
    sparsemax,
)
from sparsekit.inspection import (
    AttentionDisplay,
    FactorGraphDisplay,
    PerformanceProfileDisplay,
    SupportDisplay,
)

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")

COSTS = np.array([[10, 20, 40], [30, 15, np.nan], [5, np.inf, 5], [8, 8, 9], [np.inf, np.nan, np.inf]])


pytestmark = pytest.mark.usefixtures("close_figures")


def overlap(texts, figure):
    """Pairs of texts whose boxes share more than a hair."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in texts if text.get_text()]
    return [(a, b) for k, (a, one) in enumerate(boxes) for b, two in boxes[k + 1 :] if one.overlaps(two)]


# performance profiles


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


def test_profile_table_and_looks(tmp_path):
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


# supports


@pytest.fixture(scope="module")
def iris_model():
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    return SparsemaxClassifier(alpha=1e-3).fit(X, names), X, names


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
    dense = SoftmaxClassifier().fit(X, load_iris().target)
    (bar,) = SupportDisplay.from_estimator(dense, X, kind="sizes").bars_
    assert bar.get_height() == 1.0 and bar.get_x() + bar.get_width() / 2 == 3


def test_support_of_many_classes_keeps_the_likely_ones():
    rng = np.random.default_rng(0)
    P = sparsemax(2 * rng.normal(size=(40, 90)))
    display = SupportDisplay.from_probabilities(P, max_rows=8, max_classes=12)
    kept = display.shown_classes_
    mass = P[:8].sum(axis=0)
    assert len(kept) == 12 and mass[kept].min() >= np.delete(mass, kept).max()
    np.testing.assert_array_equal(display.image_.get_array().filled(0.0), P[:8][:, kept])
    assert display.ax_.get_title() == "8 of 40 rows, 12 of 90 classes"
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == [str(k) for k in kept]
    unknown = SupportDisplay.from_probabilities(P[:2], y=[3, 1000])  # no column is of the second one's class
    assert len(unknown.frames_) == 1
    many = SupportDisplay.from_probabilities(sp.csr_array(P), class_names=[f"class {k}" for k in range(90)])
    assert not overlap(many.ax_.get_xticklabels(), many.figure_)
    assert not overlap(many.ax_.get_yticklabels(), many.figure_)


def test_support_of_other_classifiers():
    X, Y = make_multilabel_classification(n_samples=30, n_classes=4, random_state=0)
    labels = LPSparseMAPClassifier(pairs="all").fit(X, Y)
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
        ([[0.5, 0.5]], {"class_names": ["a"]}, "class_names must be 2 labels"),
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
    weights = sparsemax(2 * np.random.default_rng(0).normal(size=(3, 5)))
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


# factor graphs


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
    graph = FactorGraph()
    u = graph.variable(np.random.default_rng(0).normal(size=(m, n)))
    graph.add(Xor(u))
    graph.add(AtMostOne(u.T))
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


class AllOrNone(Factor):
    def maximize(self, scores, additional_scores):
        return np.full(scores.shape, float(scores.sum() > 0))


def test_graph_of_pairs_logic_and_a_factor_of_ones_own():
    graph = FactorGraph()
    u = graph.variable([0.5, -0.2, 0.3, 0.1, 0.4])
    v, w = graph.variable(0.2), graph.variable([[0.1, 0.2]])
    graph.add(Pair(u[[[0, 1], [1, 2], [2, 3], [3, 0]]], 0.2))
    graph.add(Imply([u[0], v]))
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
    graph = FactorGraph()
    if kind == "all pairs":
        u = graph.variable((8,))
        graph.add(Pair(u[np.array(np.triu_indices(8, 1)).T]))
    elif kind == "chain":
        u = graph.variable((30,))
        graph.add(Pair(u[np.column_stack([np.arange(29), np.arange(1, 30)])]))
    elif kind == "tree and budget":
        u = graph.variable((6, 6))
        graph.add(DepTree(u))
        graph.add(Budget(u[0], 2))
    elif kind == "alone":
        graph.variable((60,))
    else:
        u = graph.variable((3, 3))
        for _ in range(3):
            graph.add(Xor(u[0]))
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
        (dict(names="abc"), "names must be 4, one a variable; got 3"),
        (dict(max_nodes=7), r"8 nodes \(4 variables, 4 factors\), more than max_nodes=7"),
    ):
        with pytest.raises(ValueError, match=message):
            FactorGraphDisplay.from_graph(graph, **options)
    with pytest.raises(ValueError, match=r"70 nodes.*max_nodes=60"):
        FactorGraphDisplay.from_graph(_large())
    assert len(FactorGraphDisplay.from_graph(_large(), max_nodes=70).positions_) == 70
    with pytest.raises(ValueError, match="graph has no variables"):
        FactorGraphDisplay.from_graph(FactorGraph())
    with pytest.raises(TypeError, match="graph must be a FactorGraph; got Xor"):
        FactorGraphDisplay.from_graph(graph.factors[0])
    impossible = FactorGraph()
    u = impossible.variable((2,))
    impossible.add(Budget(u, 0))
    impossible.add(Xor(u))
    with pytest.raises(ValueError, match="infeasible"):
        FactorGraphDisplay.from_graph(impossible, impossible.solve())


def _large():
    graph = FactorGraph()
    graph.variable((70,))
    return graph
