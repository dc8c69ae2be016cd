"""Multinomial models at weak penalties: what made them creep, and that the certificate is reached."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from sparsekit import L1LogisticOBA
from sparsekit._cython.l1._model import solve_model
from sparsekit._cython.shared._operators import GramOperator
from sparsekit._l1.losses.class_shift import anchored, centred
from sparsekit._l1.solver.minimise_model import Effort


def fit(X, y, C, l1_ratio=1.0):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return L1LogisticOBA(C=C, l1_ratio=l1_ratio).fit(X, y)


def scaled_columns():
    X, y = make_classification(n_samples=500, n_features=40, n_informative=10, n_classes=4, random_state=1)
    rng = np.random.default_rng(1)
    return X * 10 ** rng.uniform(-2, 2, 40) + 10 * rng.normal(size=40), y


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_the_certificate_is_reached_in_few_iterations(C):
    model = fit(*scaled_columns(), C)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    assert np.max(model.n_iter_) <= 100


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_no_class_shift_lowers_the_penalty_of_a_solution(l1_ratio):
    X, y = scaled_columns()
    W = fit(X, y, 10.0, l1_ratio).coef_.T

    def penalty(W):
        return l1_ratio * np.abs(W).sum(axis=1) + 0.5 * (1.0 - l1_ratio) * (W**2).sum(axis=1)

    for t in (-1e-3, -1e-5, 1e-5, 1e-3):
        shifted = penalty(W + t * np.abs(W).max(axis=1, keepdims=True))
        assert np.all(shifted >= penalty(W) * (1 - 1e-12))


@pytest.mark.parametrize("ridge", [0.0, 1e-8, 0.1, 10.0])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_a_feature_is_shifted_to_its_least_penalty(penalty, ridge):
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 4, 7):
        x = np.round(rng.standard_normal((20, n_classes)) * (rng.random((20, n_classes)) < 0.7), 1)
        l1 = penalty * rng.choice([1.0, 2.0], (20, n_classes))
        l2 = np.full((20, n_classes), ridge)
        table = [np.append(values, np.zeros(n_classes)) for values in (x, l1, l2)]
        shifted = centred(table[0], 20, n_classes, *table[1:])[:-n_classes].reshape(x.shape)
        for before, after, a, b in zip(x, shifted, l1, l2):
            assert np.ptp(after - before) <= 1e-12

            def value(t, w=before, a=a, b=b):
                return a @ np.abs(w + t) + 0.5 * b @ (w + t) ** 2

            best = minimize_scalar(value, bounds=(-9.0, 9.0), method="bounded", options={"xatol": 1e-10}).x
            found = value(np.median(after - before))
            assert found <= min(map(value, [best, *-before])) + 1e-9
            if penalty and not ridge and before.any():
                assert (after == 0.0).any()


def test_anchored_drops_the_zero_class_that_least_wants_to_leave():
    x = np.array([0.0, 0.0, 3.0, 7.0, 0.0, 1.0, 1.0, 2.0, 3.0])
    g = np.array([3.0, 2.0, -1.0, 5.0, 9.0, 0.0, 0.0, 0.0, 0.0])
    variables = np.array([0, 1, 2, 4, 5, 6, 7, 8])
    kept = anchored(variables, 3, x, g, np.ones(9))
    # of the first feature; the second lacks a class, the third has no zero
    np.testing.assert_array_equal(kept, [0, 2, 4, 5, 6, 7, 8])
    unpenalised = anchored(variables, 3, x, g, np.repeat([1.0, 0.0], [6, 3]))
    np.testing.assert_array_equal(unpenalised, [0, 2, 4, 5, 6, 7])


def test_a_straight_step_is_no_worse_than_any_point_along_it():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        m = 8
        B = rng.standard_normal((m, m)) * np.exp(rng.uniform(-2, 2, m))
        H = B.T @ B + 1e-3 * np.eye(m)
        x0, g0, l1 = rng.standard_normal(m), 3.0 * rng.standard_normal(m), rng.uniform(0.1, 3.0, m)
        operator = GramOperator(H.copy(), 0.0)
        x = np.empty(m)
        # one cycle, no sweeps, nothing fixed at zero: the whole Newton step of the orthant
        effort = Effort(1, 1e-12, cg_tol=1e-12, cg_max=100, largest_factor=m, sweeps=0, holds=0)
        decrease = solve_model(operator, x0, g0, l1, x, effort)[0]
        d = -np.linalg.solve(H, g0 + l1 * np.sign(x0))
        steps = np.linspace(0.0, 1.0, 2001)[:, None] * d
        change = steps @ g0 + 0.5 * np.einsum("ij,jk,ik->i", steps, H, steps)
        change += (np.abs(x0 + steps) - np.abs(x0)) @ l1
        assert -decrease <= change.min() + 1e-9 * np.abs(change).max()
        # it is counted where the projected step is worse
        s = np.where((x0 + d) * x0 < 0.0, 0.0, x0 + d) - x0
        projected = s @ g0 + 0.5 * s @ H @ s + (np.abs(x0 + s) - np.abs(x0)) @ l1
        cuts = bool(((x0 + d) * x0 < 0.0).any())
        assert operator.crossed == (cuts and change.min() < min(projected, 0.0))
