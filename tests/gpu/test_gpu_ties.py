"""Derivatives of factor graphs on a GPU where scores tie: those of main memory, of every kind of factor."""

import numpy as np
import pytest
import reference_lp_graphs as graphs
from reference_factor_graph import LOGICAL, build

from sparsekit.gpu.factor_graph import _factor_graph as on_gpu

KINDS = [*LOGICAL, "budget", "knapsack", "pair"]


def compare(cupy, graph, eta, add, atol=1e-8):
    """Both derivatives, twice each on the device: what the first leaves is a start for none."""
    rng = np.random.default_rng(0)
    here = graph.solve_batch(eta, add)
    there = graph.solve_batch(cupy.asarray(eta), cupy.asarray(add))
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
        np.testing.assert_allclose(to_add, wanted.additional_scores, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_derivatives_at_tied_scores_are_those_of_main_memory(cupy, kind, levels, monkeypatch):
    """All-zero scores, and scores of few values, alone and with other factors."""
    if levels == 2:  # derivatives work at the state itself
        monkeypatch.setattr(on_gpu, "shared_bytes", lambda: 0)
    rng = np.random.default_rng(levels)
    for kinds, n in (([kind], 2), ([kind, "pair"], 4)):
        _, factors = graphs.random_graph(rng, 6, n, kinds=kinds, feasible=True)
        graph, _, _ = build(np.zeros(6), factors)
        shape = (4, graph._plan().n_variables), (4, graph._plan().n_additional)
        eta, add = (rng.integers(0, levels, size) / 2.0 for size in shape)
        compare(cupy, graph, eta, add)
        compare(cupy, graph, eta, 0.0 * add)
