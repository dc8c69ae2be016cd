"""Sparsemax and softmax regression where little curvature or no digits are left: free intercepts, scales."""

import numpy as np
import pytest

from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss
from sparsekit._fenchel_young.solver.minimize_model import minimize_fenchel_young

MAPS = ("sparsemax", "softmax")


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("alpha", [10.0, 0.1, 1e-4])
@pytest.mark.parametrize("seed", range(4))
def test_free_intercepts_of_more_classes_than_rows(transform, alpha, seed):
    """With a strong penalty what curvature the intercepts have is little, but they have nothing else."""
    rng = np.random.default_rng(seed)
    n, K = 3, 9
    X, Q = rng.standard_normal((n, 60)), rng.random((n, K)) < 0.3
    Q[np.arange(n), rng.integers(K, size=n)] = True
    loss = FenchelYoungLoss(transform, X, Q / Q.sum(axis=1, keepdims=True), K, rng.random(n) + 0.1)
    res = minimize_fenchel_young(loss, alpha, penalize_intercept=False)
    assert res.status == 0 and res.nit <= 25
    tight = minimize_fenchel_young(loss, alpha, penalize_intercept=False, tol=1e-8)
    assert res.fun - tight.fun <= 1e-4 * tight.fun + 1e-15


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("alpha", [10.0, 1e-2])
def test_gaps_where_a_free_intercept_has_no_end(transform, alpha):
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((4, 6)), np.zeros((4, 5))
    Q[:, :3] = rng.dirichlet(np.ones(3), 4)  # the intercepts of the last two labels fall for ever
    loss = FenchelYoungLoss(transform, X, Q, 5)
    res = minimize_fenchel_young(loss, alpha, penalize_intercept=False)
    without = FenchelYoungLoss(transform, X, Q[:, :3], 3)
    best = minimize_fenchel_young(without, alpha, penalize_intercept=False, tol=1e-12)
    assert res.status == 0 and res.fun - best.fun <= res.dual_gap * (1 + 1e-9) + 2e-15


@pytest.mark.parametrize("transform", MAPS)
def test_a_loss_that_falls_to_zero_is_an_end(transform):
    """Free intercepts make the loss of one label as small as they like: no part of it is relatively small."""
    X = np.random.default_rng(0).standard_normal((20, 4))
    loss = FenchelYoungLoss(transform, X, np.ones(20, dtype=int), 3)
    res = minimize_fenchel_young(loss, 0.1, penalize_intercept=False)
    assert res.status == 0 and res.nit <= 40 and res.fun <= 1e-12
