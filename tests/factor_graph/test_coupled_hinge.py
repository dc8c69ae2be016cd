"""The hinge loss of label sets, mostly coupled ones, against its dual as a quadratic program."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import AtMostOne, Budget, FactorGraph, Knapsack, Or, OrOut, Xor
from sparsekit._factor_graph.labels import coupled_problem
from sparsekit._factor_graph.labels.coupled_hinge import minimize_coupled_hinge
from sparsekit._factor_graph.labels.coupled_problem import CoupledHinge, means_restored
from sparsekit._factor_graph.labels.label_curvature import MarginalCurvature
from sparsekit._factor_graph.labels.label_loss import LabelLoss, Labels
from sparsekit._factor_graph.solver.layout import GraphOptions
from sparsekit._solver import outcome

LOGIC = {
    "budget": lambda u: [Budget(u[:3], 2)],
    "xor": lambda u: [Xor(u[:3])],
    "or": lambda u: [Or(u[:3])],
    "knapsack": lambda u: [Knapsack(u[:3], [1.0, 2.0, 2.5], 3.5)],
    "orout": lambda u: [OrOut(u[:3])],
    "negated": lambda u: [OrOut(u[:3], negated=[True, False, True]), AtMostOne(u[1:])],
}


def problem(K=3, n=10, p=2, pairs="all", logic=None, seed=0, weighted=False, sparse=False, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < (0.6 if sparse else 1.0))
    graph = FactorGraph()
    u = graph.variable((K,))
    pairs = np.column_stack(np.triu_indices(K, 1)) if isinstance(pairs, str) else np.zeros((0, 2))
    labels = Labels(K, pairs, LOGIC[logic](u) if logic else [])
    sets = np.array(list(itertools.product([0.0, 1.0], repeat=K)))
    sets = sets[~labels.breaking(sets)]
    Y = sets[
        (X @ rng.normal(size=(p, K)) @ (sets.T - 0.5) + 0.5 * rng.gumbel(size=(n, len(sets)))).argmax(axis=1)
    ]
    w = rng.random(n) * (rng.random(n) < 0.8) if weighted else np.ones(n)
    options = {"alpha": 0.05, "pair_alpha": 0.08} | options
    return LabelLoss("hinge", labels, sp.csr_matrix(X) if sparse else X, Y, w / w.sum(), **options), X


def faces(labels):
    """Constraints a @ mu <= b of the relaxed factors, and whether they hold with equality."""
    p = labels.polytope
    return zip(p.rows.toarray(), p.right, np.arange(len(p.right)) >= p.n_upper)


def by_quadratic_program(loss, X):
    """The dual's maximum: of marginals, most and least of pairs, and what the pairs' sums are short of."""
    (n, K), pairs, P, w, Y = loss.Y.shape, loss.labels.pairs, loss.n_pairs, loss.weight, loss.Y
    m = n * K
    size = m + 2 * n * P + 2 * P
    rows, limits, equal = [], [], []

    def at_most(entries, limit, always=False):
        row = np.zeros(size)
        for where, value in entries:
            row[where] += value
        rows.append(row), limits.append(limit), equal.append(always)

    for i in range(n):
        for a, b, always in faces(loss.labels):
            at_most([(i * K + j, c) for j, c in enumerate(a)], b, always)
        for e, (j, k) in enumerate(pairs):
            most, least = m + i * P + e, m + n * P + i * P + e
            at_most([(most, 1.0), (i * K + j, -1.0)], 0.0)
            at_most([(most, 1.0), (i * K + k, -1.0)], 0.0)
            at_most([(i * K + j, 1.0), (i * K + k, 1.0), (least, -1.0)], 1.0)
    for e, (j, k) in enumerate(pairs):
        t = float(w @ (Y[:, j] * Y[:, k]))
        at_most([(m + i * P + e, -w[i]) for i in range(n)] + [(m + 2 * n * P + e, -1.0)], -t)
        at_most([(m + n * P + i * P + e, w[i]) for i in range(n)] + [(m + 2 * n * P + P + e, -1.0)], t)
    if loss.fit_intercept:
        for k in range(K):
            at_most([(i * K + k, w[i]) for i in range(n)], float(w @ Y[:, k]), True)
    for at in range(size):
        at_most([(at, -1.0)], 0.0)
    for at in range(m):
        at_most([(at, 1.0)], 1.0)
    A, b, equal = np.array(rows), np.array(limits), np.array(equal)
    Q = np.zeros((size, size))
    Q[:m, :m] = np.kron((w[:, None] * X) @ (w[:, None] * X).T / loss.alpha, np.eye(K))
    Q[m + 2 * n * P :, m + 2 * n * P :] = np.eye(2 * P) / loss.pair_alpha
    c = np.zeros(size)
    c[:m] = -(Q[:m, :m] @ Y.ravel()) - (w[:, None] * (1.0 - 2.0 * Y)).ravel()
    z = interior_point(Q, c, A[~equal], b[~equal], A[equal], b[equal])
    offset = 0.5 * Y.ravel() @ Q[:m, :m] @ Y.ravel() - float(w @ Y.sum(axis=1))
    return -(0.5 * z @ Q @ z + c @ z + offset)


def interior_point(Q, c, A, b, E, e):
    """The minimiser of z Q z / 2 + c z where A z <= b, E z = e: Newton's method with a falling barrier."""
    z, slack, dual, free = np.zeros(len(c)), np.ones(len(b)), np.ones(len(b)), np.zeros(len(e))
    for _ in range(60):
        mu = 0.1 * (slack @ dual) / len(b)
        short, grown = b - A @ z - slack, Q @ z + c + A.T @ dual + E.T @ free
        if max(mu, abs(short).max(), abs(grown).max()) < 1e-11:
            break
        ratio = dual / slack
        H = np.block([[Q + (A.T * ratio) @ A, E.T], [E, -1e-13 * np.eye(len(e))]])
        to = np.concatenate([-grown - A.T @ (mu / slack - dual - ratio * short), e - E @ z])
        step = np.linalg.solve(H, to)
        d_z, d_free = step[: len(c)], step[len(c) :]
        d_slack = short - A @ d_z
        d_dual = (mu - dual * d_slack) / slack - dual
        t = 1.0
        for now, change in ((slack, d_slack), (dual, d_dual)):
            t = min(t, 0.99 * (now / -np.minimum(change, -1e-300)).min())
        z, slack, dual, free = z + t * d_z, slack + t * d_slack, dual + t * d_dual, free + t * d_free
    assert max(abs(A @ z - b - (A @ z - b).clip(None, 0.0)).max(), mu) < 1e-8
    return z


CASES = [
    dict(weighted=True),
    dict(sparse=True, fit_intercept=False, seed=1),
    dict(logic="budget", weighted=True),
    dict(logic="xor", pairs=None),
    dict(logic="or", seed=3),
    dict(logic="knapsack", seed=2),
    dict(logic="orout", pairs=None, sparse=True),
    # LP-MAP of some rows ends short of the largest
    dict(logic="negated", K=4, n=30, p=3, seed=29, weighted=True, alpha=1e-2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_objective_is_that_of_the_quadratic_program(case):
    loss, X = problem(**case)
    best = by_quadratic_program(loss, X)
    for tol in (1e-4, 1e-6):
        found = minimize_coupled_hinge(loss, None, tol=tol, max_iter=1000)
        assert found.status == outcome.CONVERGED and found.optimality <= tol
        assert loss.value_and_gradient(found.x)[0] == pytest.approx(found.fun, rel=1e-12)
        assert -1e-8 * best <= found.fun - best <= found.dual_gap + 1e-8 * best
        assert found.dual_gap == pytest.approx(found.optimality * found.fun)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("logic", [None, *LOGIC])
def test_curvature_is_the_derivative(logic, seed):
    """Where constraints do not change: random scores are away from kinks."""
    loss, _ = problem(K=4, n=60, logic=logic, seed=seed)
    rng, (n, K), P = np.random.default_rng(seed), loss.Y.shape, loss.n_pairs
    loss.options = GraphOptions(tol_primal=1e-12, tol_dual=1e-12)
    loss.smoothing, loss.centre = 0.5, 0.6 * loss.Y + 0.2
    eta, on = rng.normal(size=(n, K)), rng.random(P) < 0.5
    plus, minus = 0.5 * rng.random(P) * on, 0.5 * rng.random(P) * ~on
    mu = loss.inner_marginals(eta, plus, minus)
    curved = MarginalCurvature(loss.labels, mu, plus, minus, np.concatenate([on, ~on]))
    G = curved.G
    np.testing.assert_allclose((G @ G.T).toarray(), np.eye(G.shape[0]), atol=1e-12)
    assert (G.tocoo().col // K == curved.row[G.tocoo().row]).all()
    d_eta, d_pairs, h = rng.normal(size=(n, K)), rng.normal(size=P), 1e-5
    wanted = G.T @ (G @ (d_eta.ravel() + curved.shares @ np.concatenate([d_pairs[on], d_pairs[~on]])))
    ends = [
        loss.inner_marginals(eta + t * d_eta, plus + t * d_pairs * on, minus + t * d_pairs * ~on)
        for t in (h, -h)
    ]
    found = (ends[0] - ends[1]) / (2 * h)
    wrong = (abs(found - wanted.reshape(n, K) / 0.5) > 1e-4).any(axis=1)
    assert G.shape[0] < curved.open.sum() and wrong.mean() <= 0.02


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_systems_by_a_factor_and_by_products_agree(sparse, intercept, monkeypatch):
    loss, _ = problem(K=4, n=80, p=6, sparse=sparse, fit_intercept=intercept, weighted=True)
    loss.smoothing, loss.centre = 0.5, loss.Y
    rng = np.random.default_rng(0)
    x = 0.3 * rng.normal(size=loss.n_variables)
    x[-2 * loss.n_pairs :] = x[-2 * loss.n_pairs :].clip(0.0)
    form = CoupledHinge(loss, x)
    form._put(x, *loss.value_and_gradient(x))
    monkeypatch.setattr(coupled_problem, "MIN_CURVATURE", 1e-9)  # which a factor has on the diagonal
    monkeypatch.setattr(coupled_problem, "MAX_PRODUCTS", 500)
    steps = []
    for is_small in (True, False):
        monkeypatch.setattr(form, "_is_small", lambda curved, answer=is_small: answer)
        steps.append(form._direction(1e-11))
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-5, atol=1e-7)
    assert not steps[0][~form.free].any() and (~form.free).any()


@pytest.mark.parametrize("logic", [None, *LOGIC])
def test_marginals_of_the_right_means_obey_factors(logic):
    loss, _ = problem(K=4, n=40, logic=logic, weighted=True)
    rng = np.random.default_rng(1)
    mu = loss.inner_marginals(0.5 * rng.normal(size=loss.Y.shape), np.zeros(6), np.zeros(6))
    near = means_restored(loss, mu)
    np.testing.assert_allclose(loss.weight @ near, loss.weight @ loss.Y, atol=1e-12)
    assert near.min() >= -1e-12 and near.max() <= 1.0 + 1e-12
    for a, b, always in faces(loss.labels):
        excess = near @ a - b
        assert excess.max() <= 1e-7 and (not always or abs(excess).max() <= 1e-7)
    loss.Y[:] = 0.0  # a corner: only the corner itself has these means
    if logic in ("budget", "orout"):
        assert means_restored(loss, mu) is None


def test_means_of_columns_do_not_matter():
    loss, X = problem(K=3, n=60, p=8, alpha=1e-2, pair_alpha=1e-2, seed=5)
    away = LabelLoss("hinge", loss.labels, X + 100.0, loss.Y, loss.weight, alpha=1e-2, pair_alpha=1e-2)
    near, far = (minimize_coupled_hinge(f, None, tol=1e-4, max_iter=1000) for f in (loss, away))
    assert far.status == outcome.CONVERGED and far.fun == pytest.approx(near.fun, rel=1e-4)


def test_no_penalty_is_the_limit_of_little():
    loss, X = problem(K=4, n=80, p=6, logic="budget", alpha=0.0, pair_alpha=0.0, seed=6)
    little = LabelLoss("hinge", loss.labels, X, loss.Y, loss.weight, alpha=1e-8, pair_alpha=1e-8)
    found, near = (minimize_coupled_hinge(f, None, tol=1e-4, max_iter=1000) for f in (loss, little))
    assert np.isnan(found.dual_gap) and found.status == near.status == outcome.CONVERGED
    assert found.fun == pytest.approx(near.fun, rel=2e-4)


def test_bounds_hold_wherever_a_fit_is_cut_short():
    loss, _ = problem(K=4, n=40, p=3, logic="budget", weighted=True, alpha=1e-2, pair_alpha=1e-2)
    best = minimize_coupled_hinge(loss, None, tol=1e-6, max_iter=2000)
    assert best.status == outcome.CONVERGED
    for n in range(0, best.nit, max(1, best.nit // 8)):
        found = minimize_coupled_hinge(loss, None, tol=1e-6, max_iter=n)
        is_certified = found.dual_gap <= 1e-6 * found.fun  # the bounds of the last step may suffice
        assert found.nit == n
        assert found.status == (outcome.CONVERGED if is_certified else outcome.MAX_ITER)
        assert best.fun - best.dual_gap <= found.fun <= best.fun + found.dual_gap
        assert loss.smoothing == 0.0
    again = minimize_coupled_hinge(loss, best.x, tol=1e-4, max_iter=1000)
    assert again.status == outcome.CONVERGED and again.fun <= best.fun
    assert minimize_coupled_hinge(loss, None, tol=1e-7, max_iter=9, max_time=1e-9).status == outcome.MAX_TIME


@pytest.mark.parametrize("logic", [None, "budget"])
def test_callback_sees_one_count_and_stops(logic):
    loss, _ = problem(K=4, n=50, logic=logic)
    full = minimize_coupled_hinge(loss, None, tol=1e-5, max_iter=1000, history=True)
    assert (full.history["optimality"] <= 1.0).all() and len(full.history["fun"]) == full.nit
    for n in (1, full.nit // 2, full.nit):
        seen = []

        def stop(result, n=n, seen=seen):
            seen.append(result.nit)
            assert result.x.shape == (loss.n_variables,)
            result.x[:] = np.nan
            return result.nit == n

        found = minimize_coupled_hinge(loss, None, tol=1e-5, max_iter=1000, callback=stop)
        assert seen == list(range(1, n + 1)) and found.status == outcome.STOPPED
        assert np.isfinite(found.x).all() and found.fun <= loss.Y.shape[1]
