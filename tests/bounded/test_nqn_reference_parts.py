"""The reference NQN's parts: the quadratic program (3.8), the matrix B, active sets and Algorithm 3."""

from itertools import combinations

import numpy as np
import reference_nqn as ref
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

seeds = st.integers(0, 2**32 - 1)


# The quadratic program (3.8).


def min_norm_by_nnls(points):
    """mu >= 0 least in ||mu'P||^2 + (sum mu - 1)^2 is a multiple of the weights: exact, by another solver."""
    points = np.asarray(points, dtype=np.float64)
    scale = np.abs(points).max() or 1.0
    system = np.vstack([points.T / scale, np.ones(len(points))])
    mu, _ = optimize.nnls(system, np.append(np.zeros(points.shape[1]), 1.0))
    return mu @ points / mu.sum()


def min_norm_by_enumeration(points):
    """The least of the affine hulls' points that lie in their hulls, over all subsets."""
    scale = np.abs(points).max()
    points, best = points / scale, np.inf
    for size in range(1, len(points) + 1):
        for chosen in combinations(range(len(points)), size):
            rows = points[list(chosen)]
            KKT = np.block([[rows @ rows.T, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            weights = np.linalg.lstsq(KKT, np.append(np.zeros(size), 1.0), rcond=None)[0][:size]
            if (weights >= -1e-12).all() and abs(weights.sum() - 1) < 1e-9:
                best = min(best, np.linalg.norm(weights @ rows))
    return best * scale


def random_points(seed, largest):
    """Around a shifted centre, some the same or nearly so, some on a line, as gradients of a run are."""
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, largest + 1), rng.integers(1, 30)
    points = rng.standard_normal((k, n)) + rng.uniform(0, 2) * rng.standard_normal(n)
    kind = rng.integers(4)
    if kind == 1:
        points[rng.integers(k, size=k // 2)] = points[0]
    elif kind == 2:
        points = points[0] + rng.uniform(0, 1, (k, 1)) * (points[-1] - points[0])
    elif kind == 3:
        points = points[0] + 1e-6 * points
    return points * 10.0 ** rng.integers(-5, 6)


@given(seeds)
def test_min_norm_point_is_the_projection(seed):
    points = random_points(seed, ref.N_GRADIENTS)
    x, weights = ref.min_norm_point(points)
    reach = np.linalg.norm(points, axis=1).max()
    assert (weights >= 0).all() and abs(weights.sum() - 1) < 1e-12
    assert_allclose(x, weights @ points, atol=1e-14 * reach)
    # the variational inequality that characterises the projection of 0 on the hull
    assert (points @ x).min() >= x @ x - 1e-12 * reach**2
    assert_allclose(x, min_norm_by_nnls(points), atol=2e-6 * reach)


@given(seeds)
@settings(max_examples=30)
def test_min_norm_point_against_all_subsets(seed):
    points = random_points(seed, 6)
    assert_allclose(
        np.linalg.norm(ref.min_norm_point(points)[0]),
        min_norm_by_enumeration(points),
        atol=1e-6 * np.linalg.norm(points, axis=1).max(),
    )


def test_min_norm_point_against_slsqp():
    points = np.random.default_rng(5).standard_normal((8, 5)) + 0.4
    found = optimize.minimize(
        lambda w: 0.5 * np.sum((w @ points) ** 2),
        np.full(8, 1 / 8),
        jac=lambda w: points @ (w @ points),
        bounds=[(0, 1)] * 8,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(8)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert_allclose(ref.min_norm_point(points)[0], found.x @ points, atol=1e-6)


def test_min_norm_point_where_it_is_known():
    assert_allclose(ref.min_norm_point([[3.0, 4.0]])[0], [3.0, 4.0])
    assert_allclose(ref.min_norm_point([[1.0, 0.0], [0.0, 1.0]])[0], [0.5, 0.5])
    assert_allclose(ref.min_norm_point([[1.0, 1.0], [2.0, -1.0], [-3.0, 0.5]])[0], [0.0, 0.0], atol=1e-12)
    assert_array_equal(ref.min_norm_point(np.zeros((3, 2)))[0], [0.0, 0.0])
    # the subgradient that the thesis gives for (3.6) at (-1/2, -1/2)
    smooth = -0.55 * np.array([1.0, 0.1])
    x, _ = ref.min_norm_point([smooth + [1.0, -1.0], smooth + [-1.0, 1.0]])
    assert_allclose(x, [-0.3025, -0.3025])


# Matrix, projections, active sets.


@given(seeds)
def test_bfgs_matrix_is_the_inverse_of_the_inverse_update(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 8)
    root = rng.standard_normal((n, n))
    hessian = root @ root.T + 0.1 * np.eye(n)
    pairs = [(s, hessian @ s) for s in rng.standard_normal((rng.integers(0, 5), n))]
    theta = rng.uniform(1, 10)
    B, H = ref.bfgs_matrix(pairs, theta, n), np.eye(n) / theta
    for s, y in pairs:
        rho = 1 / (s @ y)
        V = np.eye(n) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    assert_allclose(B @ H, np.eye(n), atol=1e-7)
    if pairs:
        s, y = pairs[-1]
        assert_allclose(B @ s, y, atol=1e-10 * np.abs(B).max() * np.abs(s).max())
    assert_array_equal(ref.bfgs_matrix([], 3.0, 2), 3.0 * np.eye(2))


def test_initial_scale():
    assert ref.initial_scale(np.array([0.1, -0.5])) == 1.0
    assert ref.initial_scale(np.array([3.0, -7.0])) == 7.0
    assert ref.initial_scale(np.array([1e12])) == 1e8


def test_projections_and_binding_set():
    lower, upper = np.array([0.0, 0.0, 0.0, 1.0, -np.inf]), np.array([2.0, 2.0, 2.0, 1.0, np.inf])
    x = np.array([0.0, 2.0, 1.0, 1.0, 5.0])
    for sign, feasible, binds in (
        (1.0, [1, 0, 1, 0, 1], [1, 0, 0, 1, 0]),
        (-1.0, [0, 1, 1, 0, 1], [0, 1, 0, 1, 0]),
    ):
        v = sign * np.ones(5)
        assert_array_equal(ref.feasible_part(x, v, lower, upper), sign * np.array(feasible))
        assert_array_equal(ref.binding(x, v, lower, upper), np.array(binds, dtype=bool))
    assert_array_equal(ref.binding(x, np.zeros(5), lower, upper), [True, True, False, True, False])
    assert_array_equal(ref.project(np.array([-1.0, 3, 1, 0, 9]), lower, upper), [0, 2, 1, 1, 9])


def test_the_example_of_the_thesis():
    """(3.6) at (-1/2, a): the gradient frees x_1, the subgradient and the correction with (3.13) do not."""
    a = -0.6
    x, lower, upper = np.array([-0.5, a]), np.full(2, -np.inf), np.array([-0.5, np.inf])
    smooth = (-0.5 + 0.1 * a) * np.array([1.0, 0.1])
    g, other = smooth + [1.0, -1.0], smooth - [1.0, -1.0]
    assert_allclose(g, [0.5 + 0.1 * a, -1.05 + 0.01 * a])
    assert not ref.predict_active_set(x, [other, g], lower, upper, "corrected").any()
    for variant in ("subgradient", "corrected-subgradient"):
        assert_array_equal(ref.predict_active_set(x, [other, g], lower, upper, variant), [True, False])
    B = np.eye(2) + 1e6 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    active, p, corrections = ref.correct_active_set(
        x, np.zeros(2, dtype=bool), lambda active: ref.subspace_step(B, g, active), lower, upper
    )
    assert_array_equal(active, [True, False])
    assert corrections == 1 and p[0] == 0 and p[1] > 0


@given(seeds)
def test_active_sets_give_directions_of_descent(seed):
    """Of all variants, with or without T: g.T(x, p) <= -p.Bp. Algorithm 3 ends with p = T(x, p)."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 9)
    lower, upper = -rng.uniform(0.1, 1, n), rng.uniform(0.1, 1, n)
    kind = rng.integers(0, 4, n)
    x = np.select([kind == 0, kind == 1], [lower, upper], 0.0)
    upper[kind == 3] = lower[kind == 3] = 0.0
    gradients = list(rng.standard_normal((rng.integers(1, 4), n)))
    g = gradients[-1]
    root = rng.standard_normal((n, n))
    B = root @ root.T + 0.1 * np.eye(n)
    tight = (x <= lower) | (x >= upper)
    for variant in ref.VARIANTS:
        initial = ref.predict_active_set(x, gradients, lower, upper, variant)
        assert tight[initial].all() and initial[kind == 3].all()
        active, p = initial, ref.subspace_step(B, g, initial)
        if variant.startswith("corrected"):
            active, p, t = ref.correct_active_set(
                x, initial, lambda a, B=B, g=g: ref.subspace_step(B, g, a), lower, upper
            )
            assert active[initial].all() and tight[active].all() and t <= active.sum() - initial.sum()
            assert_array_equal(p, ref.feasible_part(x, p, lower, upper))
        assert not p[active].any()
        assert_allclose((B @ p + g)[~active], 0, atol=1e-8)
        slope = g @ ref.feasible_part(x, p, lower, upper)
        assert slope <= -p @ B @ p + 1e-9
        if variant == "corrected" and not p.any():  # Lemma 3.2.1
            assert not ref.feasible_part(x, -g, lower, upper).any()
