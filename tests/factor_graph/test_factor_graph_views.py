"""Views of a factor graph's variables, lists of views, and copies of graphs."""

import copy
import pickle

import numpy as np
import pytest

import sparsekit as sk
from sparsekit import FactorGraph, Xor


class AllOrNone(sk.Factor):
    def maximize(self, scores, additional_scores):
        return np.full(scores.shape, float(scores.sum() > 0))


def test_views():
    graph = FactorGraph()
    first, u = graph.variable((5,)), graph.variable(np.arange(24.0).reshape(2, 3, 4))
    numbers = np.arange(5, 29).reshape(2, 3, 4)
    same = np.testing.assert_array_equal
    for key in (0, -1, (1, 2), (slice(None), 1), (Ellipsis, slice(None, None, -2)), ([1, 0], [2, 2]), None,
                numbers % 2 == 0, (0, 0, 0)):  # fmt: skip
        same(u[key].index, numbers[key])
        assert u[key].shape == numbers[key].shape and u[key].graph is graph
    same(u.T.index, numbers.T)
    same(u.reshape(6, 4).index, numbers.reshape(6, 4))
    same(u.reshape((4, -1)).index, numbers.reshape(4, -1))
    same(u.ravel().index, numbers.ravel())
    assert (len(u), u.ndim, u.size, len(first)) == (2, 3, 24, 5)
    same([row.index for block in u for row in block], numbers.reshape(6, 4))
    assert "(2, 3, 4)" in repr(u)
    solution = graph.solve()
    values = np.clip(np.arange(24.0).reshape(2, 3, 4), 0, 1)
    same(solution[u.T], values.T)
    same(solution[u[1, :, ::2]], values[1, :, ::2])
    same(solution[first], np.zeros(5))
    assert solution[u[0, 0, 1]] == 1.0
    for bad in (2, (0, 0, 4), (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            u[bad]
    with pytest.raises(ValueError):
        u.reshape(5, 5)
    with pytest.raises(TypeError):
        len(u[0, 0, 0])
    with pytest.raises(TypeError):
        iter(u[0, 0, 0]).__next__()
    graph.set_scores(u[0].T, np.full((4, 3), -2.0))
    same(graph.scores[5:17], -2)
    same(graph.scores[17:], np.arange(12.0, 24.0))


def test_graphs_that_come_with_a_factor_or_a_view():
    """Pickled by way of what belongs to it, a graph is whole, and knows its factors."""
    graph = FactorGraph()
    u = graph.variable([0.5, 0.3])
    graph.add(sk.Pair(u, 0.1))
    graph.add(Xor(u))
    for load in (lambda thing: pickle.loads(pickle.dumps(thing)), copy.deepcopy):
        copied = load(graph.factors[1]).graph
        assert (copied.n_variables, copied.n_additional) == (2, 1)
        np.testing.assert_array_equal(copied.solve().x, graph.solve().x)
        assert load(u).graph.factors[1].index.tolist() == [[0, 1]]
        with pytest.raises(ValueError, match="in the graph already"):
            copied.add(copied.factors[1])
        copied.set_scores(copied.factors[0], 0.7)
        with pytest.raises(TypeError, match="one of its factors"):
            copied.set_scores(graph.factors[0], 0.7)
        copied.add(copy.copy(copied.factors[1]))  # another factor that says the same
        assert len(copied.factors) == 3


def test_lists_of_views():
    u = FactorGraph().variable([[0.9, 0.1], [0.5, -0.4]])
    for variables in ([u[0, 0], u[0, 1], u[1]], (u[0], u[1, 0], u[1, 1]), list(u), u.ravel(), iter(u)):
        assert Xor(variables).index.tolist() == [[0, 1, 2, 3]]
    assert Xor([u[1, 1], u[0]]).index.tolist() == [[3, 0, 1]]
    assert Xor(u).index.tolist() == [[0, 1], [2, 3]] and Xor(u.T).index.tolist() == [[0, 2], [1, 3]]
    with pytest.raises(ValueError, match="list of variables each must be"):
        Xor([u, u[0]])


def test_copies():
    graph = FactorGraph()
    u = graph.variable([[0.4, -0.2], [0.3, 0.1]])
    factor = AllOrNone(u)
    graph.add(factor)
    graph.add(sk.AtMostOne(u[:, 0]))
    transitions = sk.Sequence(graph.variable(np.ones((2, 2))), np.eye(2))
    graph.add(transitions)
    expected = graph.solve().x
    for copied in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        np.testing.assert_array_equal(copied.solve().x, expected)
        assert all(h.graph is copied for h in copied.factors) and copied.factors[0] is not factor
        copied.set_scores(copied.factors[2], -np.eye(2))
        copied.add(sk.Or(copied.variable((2,))))
    np.testing.assert_array_equal(graph.solve().x, expected)
    np.testing.assert_array_equal(graph.additional_scores, np.eye(2).ravel())
    assert graph.n_variables == 8 and len(graph.factors) == 3


def test_graphs_factors_and_solutions_say_what_they_are():
    graph = FactorGraph()
    u = graph.variable(np.ones((3, 2)))
    assert repr(graph) == "FactorGraph(6 variables: no factors)"
    graph.add(Xor(u))
    graph.add(sk.Sequence(u))
    assert repr(graph) == "FactorGraph(6 variables: Xor(3 x 2 variables), Sequence(6 variables))"
    solution = graph.solve()
    assert repr(solution) == (
        f"Solution(6 of 6 variables not 0, fun={solution.fun:.6g}, nit={solution.nit}: {solution.message})"
    )
    assert repr(graph.solve_batch(np.ones((4, 6)))) == "BatchSolution(4 graphs of 6 variables: 4 converged)"
    for _ in range(9):
        graph.add(Xor(graph.variable((2,))))
    assert repr(graph).endswith("Xor(2 variables), 5 more)")
