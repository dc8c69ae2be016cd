"""Derivatives of factor graphs on a GPU where scores tie: those of main memory, of every kind of factor."""

from dataclasses import replace

import numpy as np
import pytest
import reference_lp_graphs as graphs
import reference_lp_sparsemap as ref
from reference_factor_graph import LOGICAL, build
from reference_ties import jacobian_at_ties

import sparsekit as sk
from sparsekit.gpu.factor_graph import _factor_graph as on_gpu

KINDS = [*LOGICAL, "budget", "knapsack", "pair", "dense"]


def compare(cupy, graph, eta, add, kink=False, atol=1e-8, **options):
    """Both derivatives, twice each on the device: what the first leaves is a start for none.

    At a ``kink`` in the additional scores either side may be right in them.
    """
    rng = np.random.default_rng(0)
    here = graph.solve_batch(eta, add, **options)
    there = graph.solve_batch(cupy.asarray(eta), cupy.asarray(add), **options)
    np.testing.assert_allclose(there.x.get(), here.x, atol=1e-9)
    d, e = rng.normal(size=eta.shape), rng.normal(size=add.shape)
    wanted = here.vjp(d)
    for _ in range(2):
        got = there.vjp(cupy.asarray(d))
        np.testing.assert_allclose(got.scores.get(), wanted.scores, atol=atol)
        moved = there.jvp(cupy.asarray(d), cupy.asarray(0.0 * e)).get()
        np.testing.assert_allclose(moved, here.jvp(d, 0.0 * e), atol=atol)
        moved = there.jvp(cupy.asarray(0.0 * d), cupy.asarray(e)).get()
        to_add = got.additional_scores.get()
        assert (moved * d).sum() == pytest.approx((to_add * e).sum(), abs=1e-7)
        if not kink:
            np.testing.assert_allclose(to_add, wanted.additional_scores, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_derivatives_at_tied_scores_are_those_of_main_memory(cupy, kind, levels, monkeypatch):
    """All-zero scores, and scores of few values, alone and with other factors."""
    if levels == 2:  # derivatives work at the state itself
        monkeypatch.setattr(on_gpu, "shared_bytes", lambda: 0)
    rng = np.random.default_rng(levels)
    for kinds, n in (([kind], 2), ([kind, "pair"], 4), ([kind, "or", "dense"], 4)):
        _, factors = graphs.random_graph(rng, 6, n, kinds=kinds, feasible=True)
        graph, _, _ = build(np.zeros(6), factors)
        shape = (4, graph._plan().n_variables), (4, graph._plan().n_additional)
        eta, add = (rng.integers(0, levels, size) / 2.0 for size in shape)
        compare(cupy, graph, eta, add, kink="dense" in kinds)
        compare(cupy, graph, eta, 0.0 * add, kink="dense" in kinds)


@pytest.mark.parametrize("shared", [True, False])
def test_zeros_of_a_dense_factor_by_enumeration(cupy, shared, monkeypatch):
    if not shared:
        monkeypatch.setattr(on_gpu, "shared_bytes", lambda: 0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        eta, factors = graphs.random_graph(rng, 6, 2, kinds=["dense"], feasible=True)
        eta = rng.integers(0, 2, len(eta)) / 2.0 * (seed > 0)
        factors = [replace(f, scores=rng.integers(0, 2, len(f.scores)) / 4.0 * (seed > 1)) for f in factors]
        graph, _, _ = build(eta, factors)
        mu, J = jacobian_at_ties(eta, factors)
        many = cupy.asarray(np.tile(eta, (len(mu), 1)))
        add = cupy.asarray(np.tile(np.concatenate([f.scores for f in factors]), (len(mu), 1)))
        solution = graph.solve_batch(many, add)
        np.testing.assert_allclose(solution.x.get()[0], mu, atol=1e-8)
        found = solution.vjp(cupy.asarray(np.eye(len(mu)))).scores.get()
        np.testing.assert_allclose(found, J, atol=1e-6)


def test_a_start_from_a_completed_face_and_its_local_solution(cupy, monkeypatch):
    """Structures that a derivative adds are no part of a mixture, and in no later solve's way."""
    monkeypatch.setattr(on_gpu, "shared_bytes", lambda: 0)  # where derivatives work at the state itself
    graph = sk.FactorGraph()
    u = graph.variable(cupy.zeros(6))
    factor = sk.Dense([u[:3], u[3:]], np.zeros((3, 3)))
    graph.add(factor)
    solution = graph.solve()
    before = solution.local(factor)
    first = solution.vjp(cupy.ones(6) * cupy.arange(6.0)).scores
    after = solution.local(factor)
    for name in before:
        np.testing.assert_allclose(after[name].get(), before[name].get(), atol=1e-14)
    graph.set_scores(u, cupy.asarray(np.arange(6.0)))
    again = graph.solve(warm_start=True)
    assert float(again.local(factor)["weights"].sum()) == pytest.approx(1.0)
    np.testing.assert_allclose(again.x.get(), [0, 0, 1, 0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(first.get(), [-1, 0, 1, -1, 0, 1], atol=1e-9)


def test_where_a_solve_ends_before_newtons_method(cupy):
    """There the local scores are those of the last step of Algorithm 1, and so are the additional ones."""
    graph = sk.FactorGraph()
    u = graph.variable(np.zeros(7))
    graph.add(sk.Dense([u[:3], u[3:5]], np.zeros((3, 2))))
    graph.add(sk.Dense([u[1:3], u[5:]], np.zeros((2, 2))))
    # two scores that nearly make up for each other, and do not once one of them is scaled
    eta, add = np.zeros((1, 7)), np.zeros((1, 10))
    eta[0, 0], add[0, :2] = -3.0, 2.0
    compare(cupy, graph, eta, add, kink=True, exact=False, step_size=1.0, adaptive=False)


@pytest.mark.parametrize("seed", [1402, 1454])
def test_faces_that_are_found_in_several_rounds(cupy, seed):
    """Some structures that are tied have no weight in any best mixture, and not all of them show at once."""
    rng = np.random.default_rng(seed)
    factors = [ref.make_factor("dense", list(rng.permutation(8)), sizes=[2, 2, 2, 2], scores=np.zeros(16))]
    if seed % 3 == 0:
        factors.append(
            ref.make_factor("dense", list(rng.permutation(8))[:4], sizes=[2, 2], scores=np.zeros(4))
        )
    graph, _, _ = build(np.zeros(8), factors)
    eta = rng.integers(0, 3, (1, 8)) * rng.choice([0, 0.5, 0.25])
    add = rng.integers(0, 3, (1, graph._plan().n_additional)) * rng.choice([0, 0.5, 0.25])
    compare(cupy, graph, eta, add, kink=True)
