"""Factors that answer wrongly or ask for themselves, solves that a key ends, solutions unpickled."""

import pickle
import signal
import textwrap
import threading

import numpy as np
import pytest
from children import Talk

from sparsekit import Budget, Factor, FactorGraph, Xor


class Own(Factor):
    """A factor whose answer is a function of the scores."""

    def __init__(self, variables, answer, **options):
        super().__init__(variables, **options)
        self.answer = answer

    def maximize(self, scores, additional_scores):
        return self.answer(scores)


def graph_of(answer, n=3):
    graph = FactorGraph()
    u = graph.variable(np.linspace(0.2, 0.9, n))
    graph.add(Own(u, answer))
    return graph, u


def test_a_structure_may_share_a_variable():
    graph, u = graph_of(lambda s: np.full(3, 0.5))
    np.testing.assert_allclose(graph.solve()[u], 0.5)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("what", ["solve", "map", "solve_batch", "warm", "vjp", "over another graph"])
def test_a_factor_that_solves_its_own_graph(what, n_jobs):
    """Each waited for the other; in a thread, so that a failure of this test ends."""
    graph, u = graph_of(lambda s: (s > 0).astype(float))
    solution = graph.solve()
    other, _ = graph_of(lambda s: graph.solve() and (s > 0).astype(float))
    calls = {
        "solve": graph.solve,
        "map": graph.map,
        "solve_batch": lambda: graph.solve_batch(np.ones((2, 3))),
        "warm": lambda: graph.solve(warm_start=True),
        "vjp": lambda: solution.vjp(np.ones(3)),
        "over another graph": other.solve,
    }

    def answer(scores):
        calls[what]()
        return np.ones(3)

    graph._factors[0].answer = answer
    found = []

    def run():
        try:
            graph.solve_batch(np.ones((4, 3)), n_jobs=n_jobs)
        except RuntimeError as error:
            found.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive(), "it waits for itself"
    assert found and "the graph that it is part of" in found[0]
    graph._factors[0].answer = lambda s: (s > 0).astype(float)
    np.testing.assert_allclose(graph.solve()[u], solution[u])


def test_a_factor_may_solve_a_graph_of_its_own():
    inner = FactorGraph()
    v = inner.variable(np.zeros(3))
    inner.add(Xor(v))

    def answer(scores):
        return inner.solve_batch(10.0 * scores[None]).x[0].round()

    graph, u = graph_of(answer)
    assert graph.solve(exact=False)[u].sum() == pytest.approx(1.0)


def test_one_error_ends_the_other_graphs():
    asked = []

    def answer(scores):
        asked.append(scores)
        raise ArithmeticError("no such structure")

    graph, _ = graph_of(answer)
    with pytest.raises(ArithmeticError, match="no such structure"):
        graph.solve_batch(np.ones((500, 3)))
    assert len(asked) == 1


def test_a_copy_says_what_it_lacks():
    graph = FactorGraph()
    u = graph.variable(np.ones(4))
    factor = Budget(u, 2)
    graph.add(factor)
    whole = graph.solve()
    solution, view = pickle.loads(pickle.dumps((whole, u)))
    np.testing.assert_array_equal(solution[view], whole[u])
    for call in (
        lambda: solution.local(factor),
        lambda: solution.vjp(np.ones(4)),
        lambda: solution.jvp(np.ones(4)),
    ):
        with pytest.raises(ValueError, match="a copy of a solution has its marginals only"):
            call()


SOLVES = {
    "the label classifier": """
        from sparsekit import LPSparseMAPClassifier
        X = rng.standard_normal((60000, 20))
        Y = (rng.random((60000, 20)) < 0.3).astype(int)
        graph = FactorGraph()
        graph.add(Budget(graph.variable(np.ones(3)), 2))
        run = lambda: LPSparseMAPClassifier(1e-9, pairs="all", tol=1e-14, max_iter=10**6,
                                            n_jobs=n_jobs).fit(X, Y)
    """,
    "one large graph": """
        graph = FactorGraph()
        u = graph.variable(rng.standard_normal((60, 60)))
        for i in range(60):
            graph.add(Budget(u[i], 7)); graph.add(Budget(u[:, i], 7))
        for i in range(59):
            graph.add(Pair(u[i : i + 2, i], 0.3))
        run = lambda: graph.solve(exact=False, max_iter=10**9, tol_primal=1e-300, tol_dual=1e-300)
    """,
    "one local problem": """
        graph = FactorGraph()
        graph.add(Matching(graph.variable(0.01 * rng.standard_normal((200, 200)))))
        u = graph.variable(0.01 * rng.standard_normal((70, 70)))
        graph.add(DepTree(u, projective=True))
        run = lambda: graph.solve(max_iter=10**6)
    """,
    "a derivative at ties": """
        graph = FactorGraph()
        graph.add(DepTree(graph.variable(0.1 * np.eye(55)), projective=True))
        solution = graph.solve()
        run = lambda: solution.vjp(np.ones(55 * 55))
    """,
    "many graphs": """
        graph = FactorGraph()
        u = graph.variable(np.zeros(40))
        graph.add(Budget(u[:30], 3)); graph.add(Budget(u[10:], 4))
        scores = rng.standard_normal((20000, 40))
        run = lambda: graph.solve_batch(
            scores, exact=False, max_iter=10**6, tol_primal=1e-300, tol_dual=1e-300, n_jobs=n_jobs
        )
    """,
    "the user's oracle": """
        class Slow(Factor):
            def maximize(self, scores, additional_scores):
                time.sleep(0.01)
                return rng.integers(0, 2, scores.shape)
        graph = FactorGraph()
        u = graph.variable(rng.standard_normal(40))
        graph.add(Slow(u)); graph.add(Budget(u, 3))
        run = lambda: graph.solve(exact=False, max_iter=10**9, tol_primal=1e-300, tol_dual=1e-300)
    """,
}
# a thread presses the key and notes when, by a clock of this process alone: others may keep the machine busy
WAITS = """
import _thread, os, signal, threading, time
import numpy as np
from sparsekit import Budget, DepTree, Factor, FactorGraph, Matching, Pair
rng, n_jobs = np.random.default_rng(0), {n_jobs}
{make}
pressed = []
def press():
    time.sleep(0.5)
    pressed.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    run()
    print("done", flush=True)
except KeyboardInterrupt:
    print(time.process_time() - pressed[0], flush=True)
graph.solve(max_iter=3)
print("goes on", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="a signal of POSIX is sent")
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.thorough(keep=3)
def test_a_key_ends_every_solve(name, n_jobs):
    """The solves would take hours, the classifier more than a second."""
    with Talk(WAITS.format(make=textwrap.dedent(SOLVES[name]), n_jobs=n_jobs)) as child:
        assert float(child.line(100)) < 1.0 * n_jobs
        assert child.line(60) == "goes on"
