"""Newton steps of multi-class models by factorised systems: of variables and of rows, against dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_fenchel_young import plain_hessian, random_problem

from sparsekit._fenchel_young.losses import newton_system as _class_newton
from sparsekit._fenchel_young.losses.loss import FenchelYoungLoss

MAPS = ("sparsemax", "softmax")
ALPHA = 1e-2


def system(transform, make, intercept, n=60):
    X, Q, _, w, rng = random_problem(n=n)
    w[3] = 0.0
    # a row without curvature, and one that is nothing
    X[5] *= 1e3
    X[7] = 0.0
    loss = FenchelYoungLoss(transform, make(X), Q, 4, w, fit_intercept=intercept)
    T, G = 0.7 * rng.standard_normal(loss.shape), rng.standard_normal(loss.shape)
    return loss, loss.scores(T), G, plain_hessian(transform, X, w, T, intercept)


@pytest.mark.parametrize("transform", MAPS)
@pytest.mark.parametrize("intercept, free", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("side", ["rows", "variables", "scattered"])
def test_steps_solve_the_system(transform, intercept, free, make, side, monkeypatch):
    loss, Z, G, H = system(transform, make, intercept)
    if free:
        G[-1] -= G[-1].mean()  # as every gradient's
    # what holds free intercepts
    hold = _class_newton.INTERCEPT_RIDGE * np.abs(G[-1]).max()
    H[np.arange(len(H)), np.arange(len(H))] += np.repeat(
        np.where(np.arange(len(G)) < len(G) - free, ALPHA, hold), 4
    )
    if side == "scattered":
        loss._system().room = 0.0
    costs = {"rows": (0.0, np.inf)}.get(side, (np.inf, 0.0))
    monkeypatch.setattr(_class_newton.NewtonSystem, "_costs", lambda self, rows, P: costs)
    D = loss.newton_step(Z, G, ALPHA, free, np.inf)
    expected = -np.linalg.lstsq(H, G.ravel(), rcond=1e-13)[0].reshape(G.shape)
    if free:
        # what is added to all intercepts changes nothing
        D, expected = D - D[-1].mean() * (np.arange(len(D)) == len(D) - 1)[:, None], expected
        expected[-1] -= expected[-1].mean()
    # softmax leaves out what is small relative to alpha
    np.testing.assert_allclose(D, expected, atol=1e-7 * np.abs(expected).max())


def test_no_penalty_and_overflow():
    loss, Z, G, H = system("softmax", np.asarray, False)
    G -= G.mean(axis=1, keepdims=True)  # within the range of H
    D = loss.newton_step(Z, G, 0.0, False, np.inf)
    np.testing.assert_allclose(H @ D.ravel(), -G.ravel(), atol=1e-6)
    huge = FenchelYoungLoss("softmax", 1e200 * loss.design.X, loss.q, 4)
    assert huge.newton_step(np.zeros((60, 4)), np.ones(huge.shape), 1.0, False, np.inf) is None
