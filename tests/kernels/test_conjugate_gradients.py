"""Conjugate gradients against a direct solver."""

import numpy as np

from sparsekit._linalg.conjugate_gradients import conjugate_gradients


def test_systems_are_solved_together_as_each_alone():
    rng, left = np.random.default_rng(0), np.arange(4)
    X, r = rng.normal(size=(30, 12)), rng.normal(size=(12, 4)) * [0.0, 1.0, 0.0, 1.0]
    A = X.T @ X + np.eye(12) * 10.0 ** left[:, None, None]
    rest = lambda r: (r.T / np.arange(1, 13)).T, r, lambda r, *_: (r**2).sum(axis=0) > 1e-16, 99

    def select(remain):
        nonlocal left
        left = left[remain]

    x, n_products = conjugate_gradients(lambda p: np.einsum("kij,jk->ik", A[left], p), *rest, select)
    np.testing.assert_allclose(x.T, np.linalg.solve(A, r.T[:, :, None])[:, :, 0], rtol=1e-7, atol=1e-8)
    counts = [conjugate_gradients(B.dot, rest[0], r[:, k], *rest[2:])[1] for k, B in enumerate(A)]
    assert counts[::2] == [0, 0] and abs(n_products - max(counts)) <= 1 and set(left) <= {1, 3}
    assert conjugate_gradients(np.negative, *rest)[1] == 1  # there is no curvature
    # one system has none
    assert conjugate_gradients(lambda p: p * [1.0, -1.0, 1.0, 1.0], *rest)[1] < 99
