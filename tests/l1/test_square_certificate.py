"""The certificate of least squares: the gap bounds the distance to the least objective at any point."""

import numpy as np
import pytest

from sparsekit._cython.l1._squares import certify


def solution(A, y, l1, l2, positive):
    """The minimiser, by 20,000 proximal gradient steps."""
    step = 1.0 / (np.linalg.norm(A, 2) ** 2 + l2.max())
    w = np.zeros(A.shape[1])
    for _ in range(20000):
        w = w - step * (A.T @ (A @ w - y) + l2 * w)
        w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0)
        w = np.maximum(w, 0.0) if positive else w
    return w


def certificate(A, y, w, l1, l2, positive):
    r = y - A @ w
    return certify(w, A.T @ r, l1, l2, positive, 0.5 * float(r @ r), float(r @ y), 1e-9)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1, l2", [(4.0, 0.0), (4.0, 3.0), (0.0, 3.0), ("some", "some")])
def test_gap_bounds_the_distance_to_the_optimum(l1, l2, positive):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 6))
    y = A[:, :2] @ [2.0, -1.0] + 0.5 * rng.standard_normal(20)
    if l1 == "some":
        l1, l2 = np.array([4.0, 0.0, 1.0, 8.0, 2.0, 0.5]), np.array([0.0, 1.0, 0.0, 2.0, 0.0, 1.0])
    l1, l2 = np.broadcast_to(l1, 6).astype(float), np.broadcast_to(l2, 6).astype(float)
    best = solution(A, y, l1, l2, positive)
    least, gap, violation = certificate(A, y, best, l1, l2, positive)
    assert 0.0 <= gap <= 1e-10 * least and violation <= 1e-10
    # 3 times the solution: its residuals point away from y
    points = [np.zeros(6), 0.9 * best, 3.0 * best, *rng.standard_normal((20, 6))]
    for w in np.abs(points) if positive else points:
        w = np.ascontiguousarray(w)
        fun, gap, violation = certificate(A, y, w, l1, l2, positive)
        r = y - A @ w
        assert fun == pytest.approx(0.5 * r @ r + l1 @ np.abs(w) + 0.5 * l2 @ w**2, rel=1e-12)
        assert fun - least <= gap * (1 + 1e-9) and gap <= fun
        g = l2 * w - A.T @ r
        low = np.full(6, -np.inf) if positive else g - l1
        expected = np.max(np.abs(np.median([low, w, g + l1], axis=0)))
        assert violation == pytest.approx(expected, rel=1e-9)


def test_an_unpenalised_derivative_leaves_no_dual_point():
    A, y, w, zeros = np.eye(2), np.array([1.0, 2.0]), np.zeros(2), np.zeros(2)
    fun, gap, _ = certificate(A, y, w, np.array([3.0, 0.0]), zeros, False)
    assert gap == fun == 2.5
    _, gap, _ = certificate(A, y, np.array([0.0, 2.0]), np.array([3.0, 0.0]), zeros, False)
    assert gap == 0.0


def test_derivatives_that_are_no_numbers_are_no_solution():
    ones = np.ones(3)
    _, _, violation = certify(np.zeros(3), np.array([0.0, np.nan, 0.0]), ones, 0 * ones, False, 1.0, 2.0, 0.0)
    assert np.isnan(violation)
