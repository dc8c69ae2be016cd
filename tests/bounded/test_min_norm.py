"""The kernel for the point of least norm in a convex hull, against NumPy, its conditions and known points."""

import numpy as np
import pytest
import reference_min_norm as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsekit._bounded.solver.min_norm_point import min_norm_weights
from sparsekit._solver.tolerances import ROUNDING

# points (k, n) of all kinds from a generator
KINDS = {
    "around 0": lambda rng, k, n: rng.standard_normal((k, n)),
    "away from 0": lambda rng, k, n: rng.standard_normal((k, n)) + 1.0,
    "on a grid": lambda rng, k, n: rng.integers(-2, 3, (k, n)).astype(float),
    "on a grid without 0": lambda rng, k, n: rng.integers(0, 3, (k, n)) + 0.5,
    "in a plane": lambda rng, k, n: rng.standard_normal((k, 2)) @ rng.standard_normal((2, n)) + 0.5,
    "thrice each": lambda rng, k, n: np.repeat(rng.standard_normal((k, n)), 3, axis=0)[:k],
    "close": lambda rng, k, n: rng.standard_normal(n) + 1e-6 * rng.standard_normal((k, n)),
    "of all sizes": lambda rng, k, n: rng.standard_normal((k, n)) * 10.0 ** rng.uniform(-8, 8, (k, 1)),
    "with zeros": lambda rng, k, n: rng.standard_normal((k, n)) * rng.integers(0, 2, (k, 1)),
}


def gap(points, weights):
    """||x||^2 - min_j p_j.x, relative to the longest point; 0 only at the least point."""
    x = weights @ points
    return (x @ x - np.min(points @ x)) / max(np.max((points**2).sum(axis=1)), 1e-300)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(1, 60), st.integers(1, 80), st.integers(0, 10**6))
def test_as_the_reference(kind, k, n, seed):
    points = KINDS[kind](np.random.default_rng(seed), k, n)
    gram = points @ points.T
    weights, expected = min_norm_weights(gram), reference.min_norm_weights(gram)
    assert (weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-14 * (k + 10)
    # the products themselves are known to some units of rounding of the longest only
    assert gap(points, weights) <= ROUNDING + 1e-13
    longest = np.max(np.diag(gram))
    square, theirs = np.sum((weights @ points) ** 2), np.sum((expected @ points) ** 2)
    assert abs(square - theirs) <= 2e-12 * longest


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1.0, 1e20, 1e150])
def test_scale_does_not_matter(scale):
    points = np.random.default_rng(0).standard_normal((7, 4)) + 0.7
    expected = min_norm_weights(points @ points.T)
    np.testing.assert_allclose(min_norm_weights((points * scale) @ (points * scale).T), expected, atol=1e-12)


def test_degenerate_matrices():
    np.testing.assert_array_equal(min_norm_weights(np.zeros((3, 3))), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(min_norm_weights(np.diag([1.0, 0.0, 2.0])), [0.0, 1.0, 0.0])
    # products that overflowed: the shortest point, not NaN
    with np.errstate(all="ignore"):
        points = np.array([[1e200, 1.0], [2.0, 1.0], [-1e200, 1e200]])
        gram = points @ points.T
    np.testing.assert_array_equal(min_norm_weights(gram), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(min_norm_weights(np.full((2, 2), np.nan)), [1.0, 0.0])
