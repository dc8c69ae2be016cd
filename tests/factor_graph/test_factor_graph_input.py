"""Bad input of factor graphs, graphs of size 0."""

import copy

import numpy as np
import pytest

import sparsekit as sk
from sparsekit import FactorGraph, Xor


def fresh(scores=(3, 4)):
    graph = FactorGraph()
    return graph, graph.variable(scores)


def solvable(scores=(0.5, 0.2, -0.1)):
    """A graph whose variables are shared, so that every option matters."""
    graph, u = fresh(np.array(scores, dtype=float))
    graph.add(Xor(u))
    graph.add(sk.AtMostOne(u[:2]))
    return graph, u


# Scores


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([0.0, np.nan], ValueError, "scores must not be NaN"),
        ([np.inf, 0.0], ValueError, "scores must be finite, or -inf"),
        ("abc", TypeError, "scores must be numbers"),
        (["a", "b"], TypeError, "scores must be numbers"),
        ([None, 1.0], TypeError, "scores must be numbers"),
        ([1j, 2.0], TypeError, "scores must be numbers"),
        ([[1.0, 2.0], [3.0]], ValueError, "scores"),
        ((2, -1), ValueError, "sizes must be at least 0"),
    ],
    ids=repr,
)
def test_scores_of_variables(scores, error, message):
    graph = FactorGraph()
    with pytest.raises(error, match=message):
        graph.variable(scores)
    assert graph.n_variables == 0
    if not isinstance(scores, tuple):
        graph, u = solvable()
        with pytest.raises(error, match=message):
            graph.set_scores(u, scores)
        with pytest.raises(error, match=message):
            graph.solve_batch(scores)
        np.testing.assert_array_equal(graph.scores, [0.5, 0.2, -0.1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_additional_scores(bad):
    graph, u = fresh()
    with pytest.raises(ValueError, match="score must"):
        sk.Pair(u[0, :2], bad)
    with pytest.raises(ValueError, match="scores must"):
        sk.Dense([u[0], u[1]], np.full((4, 4), bad))
    with pytest.raises(ValueError, match="transitions must"):
        sk.Sequence(u, np.full((4, 4), bad))
    with pytest.raises(ValueError, match="additional_scores must"):
        sk.Factor(u, [bad])
    graph.add(sk.Pair(u[:, :2], 0.0))
    with pytest.raises(ValueError, match="additional_scores must"):
        graph.solve_batch(np.zeros((2, 12)), [0.0, bad, 0.0])
    with pytest.raises(ValueError, match="scores must"):
        graph.set_scores(graph.factors[0], [0.0, 0.0, bad])


def test_what_counts_as_scores_and_what_as_a_shape():
    graph = FactorGraph()
    assert graph.variable((2, 3)).shape == (2, 3) and graph.variable(()).shape == ()
    assert graph.variable([2, 3]).shape == (2,) and graph.variable((2.0, 3.0)).shape == (2,)
    assert graph.variable((True, False)).shape == (2,)
    assert graph.variable(np.array([1, 0])).shape == (2,) and graph.variable([]).shape == (0,)
    np.testing.assert_array_equal(graph.scores, [0] * 7 + [2, 3, 2, 3, 1, 0, 1, 0])
    given = np.ones(3)
    graph, _ = fresh(given)
    given[:] = 7
    graph.scores[:] = 7
    np.testing.assert_array_equal(graph.scores, 1)
    # single precision as long as everything is
    graph, _ = fresh(np.zeros(2, dtype=np.float32))
    assert graph.scores.dtype == np.float32
    graph.variable([1.0])
    assert graph.scores.dtype == np.float64


# Variables of factors

FACTORS = {
    "Xor": sk.Xor, "AtMostOne": sk.AtMostOne, "Or": sk.Or, "OrOut": sk.OrOut, "AndOut": sk.AndOut,
    "XorOut": sk.XorOut, "Imply": sk.Imply, "Budget": lambda x, **k: sk.Budget(x, 1, **k),
    "Knapsack": lambda x, **k: sk.Knapsack(x, 1.0, 1.0, **k), "Pair": sk.Pair,
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORS)
def test_variables_of_logic_factors(name):
    factor, (_, u) = FACTORS[name], fresh((5, 2))
    for twice in ([u[1, 0], u[1, 0]], [u[2], u[2, 1]] if name != "Pair" else [u[3, 1], u[3, 1]]):
        with pytest.raises(ValueError, match=rf"{name} holds variable \d twice"):
            factor(twice)
    with pytest.raises(ValueError, match="holds variable 4 twice"):
        factor(u[np.array([0, 1, 2, 2]), :][2:, 0])
    other = fresh((2,))[1]
    with pytest.raises(ValueError, match="one graph"):
        factor([u[0, 0], other[0]])
    for nothing in (u[:0, 0], []):
        with pytest.raises(ValueError, match=r"at least|shape"):
            factor(nothing)
    for stranger in (np.zeros(2), "ab", 3, None, [0, 1], sk.Or(u[0])):
        with pytest.raises(TypeError, match="variables must be a view"):
            factor(stranger)
    with pytest.raises(ValueError, match="dimension"):
        factor(u.reshape(1, 5, 2))
    with pytest.raises(IndexError, match="out of bounds"):
        factor(u[7])
    pair = u[0]
    with pytest.raises(TypeError, match="negated must be an array of bool"):
        factor(pair, negated=[0, 1])
    with pytest.raises(ValueError, match="negated must have the variables' shape"):
        factor(pair, negated=[True, False, True])
    with pytest.raises(TypeError, match="bool"):
        factor(pair, negated="no")
    assert factor(pair, negated=True).index.tolist() == [[0, 1]]


@pytest.mark.parametrize("name", ["OrOut", "AndOut", "XorOut", "Imply"])
def test_factors_with_an_output_need_an_input(name):
    with pytest.raises(ValueError, match=f"{name} needs at least 2 variables"):
        FACTORS[name](fresh((3,))[1][:1])


def test_budgets_and_costs():
    u = fresh((2, 3))[1]
    for bad in (-1, 4, [1, -1], [4, 0]):
        with pytest.raises(ValueError, match="budget must be between 0 and the number of variables, 3"):
            sk.Budget(u, bad)
    for bad in (1.0, 1.5, "1", None, True, [1.0, 2.0]):
        with pytest.raises(TypeError, match="budget must be a whole number"):
            sk.Budget(u, bad)
    with pytest.raises(ValueError, match="budget must be one number, or one for each of the 2 factors"):
        sk.Budget(u, [1, 1, 1])
    for bad in (-0.5, np.nan, np.inf, [1.0, -1.0]):
        with pytest.raises(ValueError, match="budget must be finite and at least 0; budget"):
            sk.Knapsack(u, 1.0, bad)
    for bad in (-1.0, [1.0, -1e-9, 0.0], [np.nan, 1, 1], [np.inf, 1, 1]):
        with pytest.raises(ValueError, match="costs must be finite and at least 0; costs"):
            sk.Knapsack(u, bad, 1.0)
    with pytest.raises(ValueError, match="costs must have the variables' shape"):
        sk.Knapsack(u, [1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="budget must be one number"):
        sk.Knapsack(u, 1.0, [1.0, 1.0, 1.0])
    for bad in ("a", None):
        with pytest.raises((TypeError, ValueError)):
            sk.Knapsack(u, 1.0, bad)
    with np.errstate(all="raise"):
        graph, v = fresh([0.4, 2.0, -1.0])
        graph.add(sk.Knapsack(v, [0.0, 0.0, 0.0], 5.0))
        np.testing.assert_array_equal(graph.solve()[v], [0.4, 1, 0])


def test_variables_of_structured_factors():
    graph, u = fresh((3, 4))
    with pytest.raises(ValueError, match=r"Pair takes variables of shape \(2,\) or \(n, 2\)"):
        sk.Pair(u)
    with pytest.raises(ValueError, match="score must have the shape"):
        sk.Pair(u[:, :2], [1.0, 2.0])
    for factor in (sk.Sequence, sk.DepTree, sk.Matching):
        with pytest.raises(ValueError, match=f"{factor.__name__} takes variables of two dimensions"):
            factor(u[0])
        with pytest.raises(TypeError, match="view"):
            factor(np.zeros((3, 3)))
        with pytest.raises(ValueError, match="twice"):
            factor(u[[0, 0, 1]][:, :3])
        with pytest.raises(ValueError, match="at least"):
            factor(u[:0, :0])
    with pytest.raises(ValueError, match="as many modifiers as heads"):
        sk.DepTree(u)
    for shape in ((4,), (3, 4, 4), (2, 3, 3), (2, 4)):
        with pytest.raises(ValueError, match="transitions must have the shape"):
            sk.Sequence(u, np.zeros(shape))
    with pytest.raises(ValueError, match=r"scores must have the shape \(4, 4\)"):
        sk.Dense([u[0], u[1]], np.zeros((4, 3)))
    for bad in ([u], [u[0], u[1, 0]], [u[0], u[1, :0]], []):
        with pytest.raises(ValueError, match=r"Dense|variables"):
            sk.Dense(bad)
    with pytest.raises(ValueError, match="Dense holds variable 0 twice"):
        sk.Dense([u[0], u[:, 0]])
    assert graph.n_additional == 0 and graph.factors == ()


def test_adding_and_setting():
    graph, u = fresh((3, 4))
    other, v = fresh((3, 4))
    xor, foreign = Xor(u), sk.Pair(v[:, :2], 1.0)
    graph.add(xor)
    other.add(foreign)
    with pytest.raises(ValueError, match="in the graph already"):
        graph.add(xor)
    with pytest.raises(ValueError, match="another graph"):
        graph.add(foreign)
    for stranger in (u, "Xor", None, [Xor(u)], sk.Xor):
        with pytest.raises(TypeError, match="factor must be a Factor"):
            graph.add(stranger)
    assert graph.factors == (xor,)
    for where in (v, foreign, "u", None, np.arange(3)):
        with pytest.raises((TypeError, ValueError), match=r"where|graph"):
            graph.set_scores(where, np.zeros(3))
    np.testing.assert_array_equal(other.additional_scores, 1)
    with pytest.raises(ValueError, match=r"scores must have the shape \(3, 4\)"):
        graph.set_scores(u, np.zeros(12))
    with pytest.raises(ValueError, match=r"scores must have the shape \(3,\)"):
        other.set_scores(foreign, np.zeros((3, 1)))
    for graph_or_list in (u, None, [graph, None], [u]):
        with pytest.raises(TypeError, match="graph"):
            sk.lp_sparsemap(graph_or_list)
    with pytest.raises(ValueError, match="scores"):
        sk.lp_sparsemap([graph], np.zeros((1, 12)))
    with pytest.raises(ValueError, match="additional_scores"):
        sk.lp_sparsemap(graph, additional_scores=np.zeros(0))


# Options, batches, directions


@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 0}, {"max_iter": -1}, {"max_iter": 1.5}, {"max_iter": None}, {"max_iter": "3"},
        {"inner_iter": 0}, {"inner_iter": 2.0},
        {"step_size": 0}, {"step_size": -1.0}, {"step_size": np.nan}, {"step_size": np.inf},
        {"step_size": "1"},
        {"relaxation": 0}, {"relaxation": 2}, {"relaxation": -0.5}, {"relaxation": np.nan},
        {"relaxation": None},
        {"tol_primal": -1e-9}, {"tol_primal": np.nan}, {"tol_dual": -1.0}, {"tol_dual": "small"},
        {"exact": "no"}, {"adaptive": None},
    ],
    ids=repr,
)  # fmt: skip
def test_options(options):
    graph, _ = solvable()
    (name,) = options
    for call in (
        graph.solve, graph.map, lambda **o: graph.solve_batch(np.zeros((1, 3)), **o),
        lambda **o: sk.lp_sparsemap(graph, **o), lambda **o: sk.lp_sparsemap([graph], **o),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=name):
            call(**options)
    assert graph.solve(max_iter=np.int64(50), step_size=1, relaxation=1).status == 0


def test_unknown_options():
    graph, _ = solvable()
    for name in ("tolerance", "quadratic", "verbose"):
        for call in (graph.solve, graph.map):
            with pytest.raises(TypeError, match=name):
                call(**{name: 1})
    with pytest.raises(ValueError, match="n_jobs"):
        graph.solve(n_jobs=0)


def test_batches():
    graph, _ = solvable()
    graph.add(sk.Pair(graph.factors[0].graph.variable((2,)), 0.5))
    for shape in ((5,), (2, 4), (2, 6), (2, 2, 2), ()):
        with pytest.raises(ValueError, match=r"scores must have the shape \(n_graphs, 5\)"):
            graph.solve_batch(np.zeros(shape))
    for shape in ((2,), (2, 2), (3, 1), ()):
        with pytest.raises(ValueError, match=r"additional_scores must have the shape \(2, 1\)"):
            graph.solve_batch(np.zeros((2, 5)), np.zeros(shape))


def test_directions():
    graph, u = solvable()
    with pytest.raises(ValueError, match="has not been solved"):
        graph.vjp(np.zeros(3))
    one, batch = graph.solve(), graph.solve_batch(np.zeros((2, 3)))
    other = fresh((3,))[1]
    for bad in (np.zeros(2), np.zeros((2, 3)), [0.0, np.nan, 0.0], [np.inf, 0, 0], {other: np.zeros(3)}):
        with pytest.raises(ValueError, match="direction"):
            one.vjp(bad)
    with pytest.raises(ValueError):
        one.vjp({u: np.zeros(2)})
    for bad in (np.zeros((3, 2)), np.zeros(5), np.full((2, 3), np.nan)):
        with pytest.raises(ValueError, match="direction"):
            batch.vjp(bad)
        with pytest.raises(ValueError, match="scores"):
            batch.jvp(bad)
    with pytest.raises(ValueError, match="scores"):
        one.jvp(np.zeros(2))
    with pytest.raises(ValueError, match="additional_scores"):
        one.jvp(np.zeros(3), np.zeros(2))
    for where in (other, "u", 0, Xor(u)):
        with pytest.raises(KeyError, match="graph"):
            one[where]
    with pytest.raises(KeyError, match="not in the graph"):
        one.local(Xor(u))
    # a graph that has grown leaves its solutions as they were
    expected = one.vjp([1.0, 2.0, 0.0]).scores
    graph.variable((2,))
    np.testing.assert_array_equal(one.vjp([1.0, 2.0, 0.0]).scores, expected)
    np.testing.assert_array_equal(one[u], one.x)


# Empty graphs


def test_graphs_of_size_0():
    graph = FactorGraph()
    for _ in range(2):
        for solution in (graph.solve(), graph.map(), graph.solve(exact=False), sk.lp_sparsemap([graph])[0]):
            assert solution.status == 0 and solution.success and solution.fun == 0
            assert solution.x.shape == solution.additional.shape == (0,)
        assert graph.solve().vjp([]).scores.shape == (0,) and graph.solve().jvp([]).shape == (0,)
        batch = graph.solve_batch(np.zeros((3, 0)))
        assert batch.x.shape == (3, 0) and batch.status.tolist() == [0, 0, 0]
        assert batch.vjp(np.zeros((3, 0))).scores.shape == (3, 0)
        u = graph.variable((0, 3))  # and the same with a view of nothing, and no factor on it
        assert graph.solve()[u].shape == (0, 3)
    graph.add(Xor(u))
    graph.add(sk.Pair(graph.variable((0, 2)), np.zeros(0)))
    assert graph.solve().status == 0 and graph.n_additional == 0
    v = graph.variable([0.75])
    assert graph.solve()[v] == 0.75


def test_empty_batches():
    graph, u = solvable()
    batch = graph.solve_batch(np.zeros((0, 3)))
    assert batch.x.shape == (0, 3) and batch[u].shape == (0, 3) and batch.status.shape == (0,)
    assert batch.vjp(np.zeros((0, 3))).scores.shape == (0, 3) and batch.jvp(np.zeros((0, 3))).shape == (0, 3)
    assert sk.lp_sparsemap([]) == []


def test_attributes_of_an_infeasible_solution():
    graph = sk.FactorGraph()
    u = graph.variable([-np.inf, -np.inf])
    graph.add(sk.Xor(u))
    assert repr(graph.solve()).startswith("Solution(Infeasible") and "nan" not in repr(graph.map())


def test_views_and_factors_that_have_no_values_here():
    graph = sk.FactorGraph()
    u = graph.variable((2,))
    graph.add(sk.Xor(u))
    solution = graph.solve()
    with pytest.raises(KeyError, match="copied together"):
        copy.deepcopy(graph).solve()[u]
    with pytest.raises(KeyError, match="not in the graph when"):
        solution[sk.Pair(u, 1.0)]
    with pytest.raises(KeyError, match="after"):
        solution[graph.variable([1.0])]
    theirs, view = copy.deepcopy((graph, u))
    np.testing.assert_array_equal(theirs.solve()[view], solution[u])
