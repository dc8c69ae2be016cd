"""Public functions: maps of scores, paths, optimisers, graphs of factors."""

import contextlib

import numpy as np
import pytest
import reference_lp_sparsemap as lp_reference
import reference_sparsemax
from fuzz_budget import fuzz
from fuzz_matrices import SEEDS, tables, values
from fuzz_models import BOOL, CLASS_WEIGHT, ITERATIONS, TOL
from fuzz_outcomes import Refused, clear
from fuzz_targets import labels, numbers, weights
from hypothesis import strategies as st
from reference_factor_graph import build, random_graph

import sparsekit as sk
from sparsekit.metrics import jensen_shannon_divergence, kkt_violation, precision_at_k
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, ProbitLoss


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
def test_sparsemax(draw):
    Z, jobs = scores(draw), draw(st.sampled_from([None, 2]))
    P, tau = sk.sparsemax(Z, n_jobs=jobs), sk.sparsemax_threshold(Z, n_jobs=jobs)
    size = sk.sparsemax_support_size(Z, n_jobs=jobs)
    eps = np.finfo(P.dtype).eps
    for z, p, t, k in zip(Z.astype(np.float64), P, tau, size):
        if np.isnan(z).any():
            assert np.isnan(p).all()
        elif np.isposinf(z).any():
            np.testing.assert_allclose(p, np.isposinf(z) / np.isposinf(z).sum(), rtol=4 * eps)
        elif np.isneginf(z).all():
            assert not p.any()
        else:
            z = z - z.max()
            exact = reference_sparsemax.sparsemax(np.where(np.isneginf(z), -10.0, z))[0]
            np.testing.assert_allclose(p, exact, rtol=0, atol=8 * eps * len(z))
            assert 1 <= k <= len(z) and not np.isnan(t)
            np.testing.assert_allclose(p.sum(), 1.0, rtol=0, atol=8 * eps * len(z))
    q = np.zeros_like(P)
    if q.size:
        q[:, 0] = 1.0
    with contextlib.suppress(Refused), clear():
        loss, gradient = sk.sparsemax_loss_and_gradient(Z, q)
        finite = np.isfinite(Z).all(axis=1)
        assert (loss[finite] >= 0).all() and not np.isnan(gradient[finite]).any()
    with contextlib.suppress(Refused), clear():
        J = sk.sparsemax_jvp(P, np.ones_like(P))
        assert not np.isnan(J[np.isfinite(P).all(axis=1)]).any()


@fuzz(share=20)
def test_paths(draw):
    X = draw(tables())
    n = len(X) if isinstance(X, list) else X.shape[0]
    lambdas = st.sampled_from([None, [1.0, 0.1], [1e-6], [1e300, 1e-300], [0.0], []])
    options = {"tol": draw(TOL), "max_iter": draw(ITERATIONS), "sample_weight": draw(weights(n))}
    which = draw(st.sampled_from(["logistic", "lasso", "sparsemax", "softmax"]))
    with contextlib.suppress(Refused), clear():
        if which == "logistic":
            path = sk.l1_logistic_path(
                X,
                draw(labels(n)),
                lambdas=draw(lambdas),
                class_weight=draw(CLASS_WEIGHT),
                n_lambdas=3,
                fit_intercept=draw(BOOL),
                **options,
            )
        elif which == "lasso":
            path = sk.LassoOBA.path(
                X, draw(numbers(n)), alphas=draw(lambdas), n_lambdas=3, fit_intercept=draw(BOOL), **options
            )
        else:
            path = sk.fenchel_young_path(
                X, draw(labels(n)), transform=which, alphas=draw(lambdas), fit_intercept=draw(BOOL), **options
            )
        assert all(
            np.isfinite(getattr(path, name)).all() for name in ("coefs", "intercepts", "objectives")
        ), path
        gaps = path.dual_gaps[~np.isnan(path.dual_gaps)]
        assert (gaps >= -1e-9 * np.max(path.objectives)).all()


@fuzz(share=20)
def test_minimize_oba(draw):
    X = draw(tables())
    n = len(X) if isinstance(X, list) else X.shape[0]
    kind = draw(st.sampled_from([LogisticLoss, LeastSquaresLoss, ProbitLoss]))
    y = np.where(np.random.default_rng(draw(SEEDS)).random(n) < 0.5, 1.0, -1.0)
    l1 = draw(st.sampled_from([0.1, 0.0, 1e-300, 1e300, [1.0, 0.0, 0.5], -1.0]))
    with contextlib.suppress(Refused), clear():
        loss = kind(X, y, draw(weights(n)), fit_intercept=draw(BOOL))
        start = draw(st.sampled_from([None, np.zeros(loss.n_variables), np.full(loss.n_variables, 1e3)]))
        found = sk.minimize_oba(
            loss,
            l1,
            start,
            tol=draw(TOL),
            max_iter=draw(ITERATIONS),
            hessian=draw(st.sampled_from(["exact", "lbfgs"])),
        )
        assert np.isfinite(found.x).all()
        assert np.isfinite(found.fun) or not found.success
        assert not found.dual_gap < -1e-9 * abs(found.fun)


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
