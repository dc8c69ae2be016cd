"""Public functions: maps of scores, paths, optimisers, graphs of factors."""

import contextlib

import numpy as np
import pytest
import reference_lp_sparsemap as lp_reference
from fuzz_budget import fuzz
from fuzz_matrices import SEEDS, values
from fuzz_models import BOOL, ITERATIONS
from fuzz_outcomes import Refused, clear
from fuzz_targets import weights
from hypothesis import strategies as st
from reference_factor_graph import build, random_graph

import sparsekit as sk
from sparsekit.metrics import jensen_shannon_divergence, kkt_violation, precision_at_k


def scores(draw):
    Z = values(draw, (draw(st.integers(0, 4)), draw(st.sampled_from([3, 1, 2, 17, 70, 200]))))
    special = draw(st.sampled_from([None, -np.inf, np.inf, np.nan, 1e300]))
    if Z.size and special is not None:
        Z[np.random.default_rng(draw(SEEDS)).random(Z.shape) < draw(st.sampled_from([0.1, 0.5, 1.0]))] = (
            special
        )
    with np.errstate(over="ignore"):
        return Z.astype(draw(st.sampled_from([np.float64, np.float32, np.float16])))


@fuzz(share=20)
def test_minimize_nqn(draw):
    """max_i |a_i . x - b_i| or a sum of them, plus a square: in the bounds, no higher than the start."""
    n, m = draw(st.sampled_from([2, 1, 5, 0])), 4
    A, b = values(draw, (m, n), ("normal", "ties", "constant", "columns", "huge")), np.arange(m) - 1.5
    square, largest = draw(st.sampled_from([0.1, 0.0, 1e6])), draw(BOOL)

    def fun(x):
        with np.errstate(all="ignore"):
            r = A @ x - b
            i = np.abs(r).argmax()
            slope = np.sign(r[i]) * A[i] if largest else np.sign(r) @ A
            value = np.abs(r)[i] if largest else np.abs(r).sum()
            return value + square * x @ x / 2, slope + square * x

    start = values(draw, (1, n), ("normal", "zero", "mixed"))[0]
    lower = np.array(
        draw(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 1e300]), min_size=n, max_size=n)), float
    )
    upper = lower + np.array(
        draw(st.lists(st.sampled_from([np.inf, 0.0, 1.0]), min_size=n, max_size=n)), float
    )
    bounds = [
        (None if np.isinf(l) else l, None if np.isinf(u) or np.isnan(u) else u) for l, u in zip(lower, upper)
    ]
    with contextlib.suppress(Refused), clear():
        found = sk.minimize_nqn(
            fun,
            start,
            jac=True,
            bounds=bounds,
            max_iter=draw(ITERATIONS),
            memory=draw(st.sampled_from([20, 0, 1])),
            active_set=draw(
                st.sampled_from(["corrected", "gradient", "subgradient", "corrected-subgradient"])
            ),
        )
        low, high = (
            np.array([d if v is None else v for v in side])
            for side, d in zip(zip(*bounds) if n else ([], []), (-np.inf, np.inf))
        )
        assert (found.x >= low).all() and (found.x <= high).all() and np.isfinite(found.x).all()
        first, last = fun(np.clip(start, low, high))[0], fun(found.x)[0]
        assert found.fun == pytest.approx(last, rel=1e-12) and last <= first


@fuzz(share=30)
def test_factor_graphs(draw):
    """Marginals and their gradient, against enumerated structures and an exact quadratic program."""
    eta, factors = random_graph(draw(SEEDS), most=draw(st.sampled_from([2, 4, 6])))
    graph, u, _ = build(eta, factors)
    mu, _ = lp_reference.solve_exact(eta, factors)
    solution = graph.solve(max_iter=draw(st.sampled_from([2000, 3])), exact=draw(BOOL))
    assert ((solution.x >= 0) & (solution.x <= 1)).all()
    if solution.status == 0:
        np.testing.assert_allclose(solution[u], mu, rtol=0, atol=1e-5)
    gradient = solution.vjp(np.ones(len(eta))) if solution.status == 0 else None
    assert gradient is None or np.isfinite(gradient.scores).all()


@fuzz(share=10)
def test_factor_graphs_of_any_scores(draw):
    eta, factors = random_graph(draw(SEEDS), most=3)
    kind = draw(st.sampled_from(["huge", "tiny", "mixed", "largest", "subnormal", "zero", "ties"]))
    given = values(draw, eta.shape, (kind,))
    if draw(st.integers(0, 4)) == 0:
        given[0] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    graph, _, _ = build(eta, factors)
    with contextlib.suppress(Refused), clear():
        found = sk.lp_sparsemap(graph, given[None], max_iter=draw(st.sampled_from([50, 1])))
        assert ((found.x >= 0) & (found.x <= 1)).all() or found.status[0] != 0, (found.x, found.status)


@fuzz(share=10)
def test_metrics(draw):
    shape = draw(st.sampled_from([(3, 4), (0, 3), (1, 1), (5, 2)]))
    with np.errstate(over="ignore", invalid="ignore"):
        check_metrics(draw, shape)


def check_metrics(draw, shape):
    P, Q = np.abs(values(draw, shape)), np.abs(values(draw, shape))
    with contextlib.suppress(Refused), clear():
        sums = P.sum(axis=1, keepdims=True), Q.sum(axis=1, keepdims=True)
        P, Q = (A / np.where((total > 0) & np.isfinite(total), total, 1.0) for A, total in zip((P, Q), sums))
        found = jensen_shannon_divergence(P, Q, sample_weight=draw(weights(len(P))))
        assert 0 <= found <= np.log(2) + 1e-9
    with contextlib.suppress(Refused), clear():
        top = np.argsort(-Q, axis=1)
        k, s = draw(st.sampled_from([1, 2, 9, 0])), draw(weights(len(P)))
        assert 0 <= precision_at_k(P > 0.5, top, k=k, sample_weight=s) <= 1
    with contextlib.suppress(Refused), clear():
        assert kkt_violation(P, Q, draw(st.sampled_from([1.0, 0.0, 1e300]))) >= 0
