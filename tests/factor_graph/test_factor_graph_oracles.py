"""Users' factors that fail, and what else their oracles may do."""

import numpy as np
import pytest

import sparsekit as sk


class Fails(sk.Factor):
    """All or none of its variables; from its second call on it may do something else."""

    then, calls = None, 0

    def maximize(self, scores, additional_scores):
        self.calls += 1
        if self.then is not None and self.calls > 1:
            return self.then(scores)
        return np.full(scores.shape, float(scores.sum() > 0))


def users(then=None, share=True):
    graph = sk.FactorGraph()
    u = graph.variable([[0.4, -0.2], [0.3, 0.1]])
    factor = Fails(u)
    factor.then = then
    graph.add(factor)
    if share:
        graph.add(sk.AtMostOne(u[:, 0]))
    return graph, factor


def boom(scores):
    raise RuntimeError("the oracle's own words")


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize(
    ("then", "error", "message"),
    [
        (boom, RuntimeError, "own words"),
        (lambda s: np.zeros(3), ValueError, "4"),
        (lambda s: np.zeros((2, 3)), ValueError, "4"),
        (lambda s: (np.zeros(4), np.zeros(1)), ValueError, "4"),
        (lambda s: (s, s, s), ValueError, "must return m, or m and n"),
        (lambda s: np.full(4, np.nan), ValueError, "not finite"),
        (lambda s: np.full(4, np.inf), ValueError, "not finite"),
        (lambda s: np.array([1, -2, 0, 0]), ValueError, r"returned -2 for its variable 1; .* 0 or 1"),
        (lambda s: np.array([1, 0, 1.5, 0]), ValueError, r"Fails\.maximize returned 1\.5 for its variable 2"),
        (lambda s: np.array([1, 1j, 0, 0]), ValueError, "must hold real numbers"),
        (lambda s: np.array(["1", "a", "0", "0"]), ValueError, "must hold numbers"),
        (lambda s: "best", (ValueError, TypeError), "."),
        (lambda s: None, ValueError, "must return 4"),
        (lambda s: {}[0], KeyError, "0"),
    ],
)
def test_what_an_oracle_does_wrong_reaches_the_caller(then, error, message, share):
    graph, factor = users(then, share)
    for call in (
        graph.solve, graph.map, lambda: graph.solve(exact=False), lambda: sk.lp_sparsemap([graph]),
        lambda: graph.solve_batch(np.ones((6, 4)), n_jobs=2), lambda: graph.solve(warm_start=True),
    ):  # fmt: skip
        factor.calls = int(call == graph.map)  # which may need one call only
        with pytest.raises(error, match=message):
            call()
    factor.then = None  # mended: nothing of it is left
    valid, _ = users(None, share)
    np.testing.assert_array_equal(graph.solve().x, valid.solve().x)


def test_oracle_without_a_method_and_with_threads():
    graph = sk.FactorGraph()
    u = graph.variable([0.4, 0.2])
    graph.add(sk.Factor(u))
    with pytest.raises(NotImplementedError, match="maximize"):
        graph.solve()
    graph, _ = users()
    scores = np.random.default_rng(0).normal(size=(40, 4))
    np.testing.assert_array_equal(graph.solve_batch(scores, n_jobs=2).x, graph.solve_batch(scores).x)


def test_oracle_may_write_into_what_it_gets():
    class Writes(Fails):
        def maximize(self, scores, additional_scores):
            best = super().maximize(scores, additional_scores)
            scores[:] = additional_scores[:] = np.nan
            return best

    graph, _ = users()
    other = sk.FactorGraph()
    u = other.variable(graph.scores.reshape(2, 2))
    other.add(Writes(u))
    other.add(sk.AtMostOne(u[:, 0]))
    np.testing.assert_array_equal(other.solve().x, graph.solve().x)


def test_a_factor_without_its_base():
    class Own(sk.Factor):
        def __init__(self, variables):
            self.variables = variables

    graph = sk.FactorGraph()
    with pytest.raises(TypeError, match=r"Own\.__init__ must call super"):
        graph.add(Own(graph.variable((3,))))
