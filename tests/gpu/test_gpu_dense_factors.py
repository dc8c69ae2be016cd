"""`Dense` factors on the GPU, like those of the CPU."""

import numpy as np
import pytest
from both_sides import Both

import sparsekit as sk
from sparsekit._solver.outcome import INFEASIBLE

pytestmark = pytest.mark.thorough


def dense_graph(cupy=None):
    """A Dense factor that shares variables with others; some of its joint assignments are forbidden."""
    graph = sk.FactorGraph()
    scores = np.linspace(-0.5, 0.6, 7)
    u = graph.variable(scores if cupy is None else cupy.asarray(scores))
    table = np.random.default_rng(0).normal(size=(2, 3, 2))
    table[0, 1] = -np.inf
    dense = sk.Dense([u[:2], u[2:5], u[5:]], table)
    graph.add(dense)
    graph.add(sk.Budget(u[::2], 2))
    return graph, u, dense


def test_structures_of_a_dense_factor(cupy):
    (cpu, v, theirs), (gpu, u, ours) = dense_graph(), dense_graph(cupy)
    a, b = gpu.solve(), cpu.solve()
    assert a.status == b.status == 0
    np.testing.assert_allclose(a[u].get(), b[v], atol=1e-10)
    np.testing.assert_allclose(a[ours].get(), b[theirs], atol=1e-10)
    here, there = b.local(theirs), a.local(ours)
    there = {name: part.get() for name, part in there.items()}
    order, other = (np.argsort(part["additional"] @ np.arange(12)) for part in (here, there))
    for name in ("weights", "structures", "additional"):
        np.testing.assert_allclose(there[name][other], here[name][order], atol=1e-9)
    d = np.arange(7.0)
    np.testing.assert_allclose(gpu.vjp(cupy.asarray(d))[ours].get(), cpu.vjp(d)[theirs], atol=1e-9)


def test_dense_factors_that_share_nothing(cupy):
    """Solved at once, or call by call of the oracle; and where they contradict others."""
    graph = sk.FactorGraph()
    u = graph.variable((5,))
    graph.add(sk.Dense([u[:2], u[2:]], np.linspace(-1, 2, 6).reshape(2, 3) ** 2))
    both = Both(cupy, graph, 3).draw(2)
    both.solve().compare()
    both.compare_derivatives(2)
    Both(cupy, graph, 3).draw(2).solve(exact=False, inner_iter=1, max_iter=1).compare()
    graph.add(sk.Budget(u, 1))
    both = Both(cupy, graph, 2).draw(2).solve()
    assert (both.cpu.report()["status"] == INFEASIBLE).all() and (
        both.gpu.report()["status"].get() == INFEASIBLE
    ).all()


def test_dense_factors_of_many_assignments_are_refused(cupy):
    graph = sk.FactorGraph()
    u = graph.variable((28,))
    graph.add(sk.Dense([u[i : i + 4] for i in range(0, 28, 4)]))
    with pytest.raises(TypeError, match="up to 4096"):
        graph.solve_batch(cupy.zeros((1, 28)))


def test_forbidden_assignments_in_conflict_with_others(cupy):
    """The kernels' own verdict, which knows what -inf forbids from what merely costs a lot."""
    graph = sk.FactorGraph()
    u = graph.variable((4,))
    graph.add(sk.Dense([u[:2], u[2:]], np.zeros((2, 2))))
    graph.add(sk.Budget(u[[1, 3]], 2, exactly=True))
    both = Both(cupy, graph, 2)
    eta, add = np.zeros((2, 4)), np.zeros((2, 4))
    add[0, 3] = -1e5  # the only assignment that the budget allows
    off_add = add < 0
    both.set_scores(eta, add, None, off_add)
    both.solve(step_size=0.5)
    assert list(both.cpu.report()["status"]) == list(both.gpu.report()["status"].get()) == [INFEASIBLE, 0]
    np.testing.assert_allclose(both.gpu.report()["n_iter"].get(), both.cpu.report()["n_iter"], rtol=0, atol=5)
