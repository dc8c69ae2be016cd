"""Weak penalties on one-hot tables: each field sums to the constant, and the penalty alone fixes its median.

Along such combinations of columns the objective has no curvature, and a step is as long as the ridge lets it
be. It has to go through many zeros. Each model's active set has to be found by going straight on.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from sparsekit import L1LogisticOBA
from sparsekit.gpu.l1._model import crossing_step
from sparsekit.optimize import LogisticLoss, minimize_oba


def table(n, sizes, seed, n_classes=2):
    """A one-hot table with a field of each size, rare levels among them, and labels by a logistic draw."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes[:-1]])
    columns = []
    for start, size in zip(starts, sizes):
        rarity = np.cumsum(1.0 / np.arange(1, size + 1))
        columns.append(start + np.searchsorted(rarity / rarity[-1], rng.random(n)))
    indices = np.stack(columns, axis=1).ravel()
    X = sp.csr_array((np.ones(indices.size), indices, np.arange(n + 1) * len(sizes)), shape=(n, sum(sizes)))
    scores = X @ rng.standard_normal((X.shape[1], n_classes))
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("C", [10.0, 1e3, 1e4])
@pytest.mark.parametrize("sizes", [(2, 5, 9, 20, 40), (3, 30, 120, 350)], ids=["matrix", "columns"])
def test_a_proof_takes_few_iterations(sizes, C):
    X, y = table(3000, sizes, seed=1)
    loss = LogisticLoss(X, np.where(y > 0, 1.0, -1.0), fit_intercept=True)
    result = minimize_oba(loss, loss.l1_vector(1.0 / C))
    assert result.success and result.dual_gap <= 1e-4 * result.fun
    assert result.nit <= 60 and result.n_direct <= 40 * result.nit
    exact = minimize_oba(loss, loss.l1_vector(1.0 / C), result.x, tol=1e-10)
    assert exact.fun >= result.fun - result.dual_gap
    # the fields' medians: as many positive as negative coefficients, but for those at zero
    for start, size in zip(np.cumsum([0, *sizes[:-1]]), sizes):
        w = exact.x[start : start + size]
        assert abs(int((w > 0).sum()) - int((w < 0).sum())) <= max(int((w == 0).sum()), 1)


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_array, sp.csr_array.toarray])
def test_dual_points_on_the_active_face_end_fits_early(layout):
    X, y = table(6000, (40,) * 12, seed=0)
    model = L1LogisticOBA(C=1e4).fit(layout(X), y)
    assert model.n_iter_[0] <= 20  # 25 by scaling alone
    exact = L1LogisticOBA(C=1e4, tol=1e-10).fit(X, y)
    assert model.objective_ - exact.objective_ <= model.dual_gap_ <= 1e-4 * model.objective_


def test_the_gpus_straight_step_is_the_best_along_it():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        m = 9
        B = rng.standard_normal((m, m)) * np.exp(rng.uniform(-2, 2, m))
        H = B.T @ B + 1e-3 * np.eye(m)
        x, l1 = rng.standard_normal(m) * (rng.random(m) < 0.8), rng.uniform(0.1, 3.0, m)
        grad, d = 3.0 * rng.standard_normal(m), rng.standard_normal(m)
        steps = np.linspace(0.0, 1.0, 4001)[:, None] * d
        change = steps @ grad + 0.5 * np.einsum("ij,jk,ik->i", steps, H, steps)
        change += (np.abs(x + steps) - np.abs(x)) @ l1
        found = crossing_step(x, grad, l1, d, H @ d)
        if found is None:
            assert change[1] >= 0.0
            continue
        s = found - x
        q = s @ grad + 0.5 * s @ H @ s + (np.abs(found) - np.abs(x)) @ l1
        assert q <= change.min() + 1e-12 and q < 0.0


def test_the_gpus_straight_step_ends_at_zero_exactly():
    x, one = np.linspace(0.1, 1.0, 40), np.ones(1)
    ends = [crossing_step(x[[j]], one, 9 * one, -np.pi * one, -1e-3 * one)[0] for j in range(len(x))]
    assert ends == [0.0] * len(x)
