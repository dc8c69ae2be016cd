"""Which classes a step draws: uniform, from a distribution, and the alias table."""

import numpy as np
import pytest

from sparsekit._cython.extreme import _extreme as kernels
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.state import METHODS

K = 9


def draws(method, k, y, m, n, noise=None, seed=1):
    state = np.array([seed], dtype=np.uint64)
    extra = (None, None, None) if noise is None else (noise.p, noise.keep, noise.alias)
    return [kernels.draw(METHODS[method], k, y, m, state, *extra) for _ in range(n)]


def test_uniform_draws():
    counts = np.zeros(K)
    for codes, r in draws("implicit", K, 4, 3, 20000):
        assert len(set(codes)) == 3 and 4 not in codes
        assert (r == (K - 1) / 3).all()
        counts[codes] += 1
    expected = 20000 * 3 / (K - 1)
    assert counts[4] == 0
    assert np.abs(np.delete(counts, 4) - expected).max() < 5 * np.sqrt(expected)
    codes, r = draws("umax", K, 4, K + 3, 1)[0]
    assert list(codes) == [0, 1, 2, 3, 5, 6, 7, 8] and (r == 1).all()
    assert len(draws("implicit", 1, 0, 2, 1)[0][0]) == 0


@pytest.mark.parametrize("method", ["implicit", "is", "ove"])
def test_draws_from_a_distribution_are_unbiased(method):
    rng = np.random.default_rng(0)
    p = rng.random(K) ** 2 + 0.01
    noise = Noise(p / p.sum())
    total, values, n = np.zeros(K), rng.standard_normal(K), 40000
    sums = np.zeros(n)
    for i, (codes, r) in enumerate(draws(method, K, 2, 4, n, noise)):
        assert len(set(codes)) == len(codes) and 2 not in codes
        total[codes] += r
        sums[i] = r @ values[codes]
    assert abs(sums.mean() - np.delete(values, 2).sum()) < 5 * sums.std() / np.sqrt(n)
    np.testing.assert_allclose(np.delete(total, 2) / n, 1.0, atol=0.15)


def test_noise_contrastive_draws_and_alias_table():
    p = np.array([0.5, 0.25, 0.0, 0.125, 0.125])
    noise = Noise(p)
    mass = noise.keep / 5
    np.testing.assert_allclose(
        mass + np.bincount(noise.alias, (1 - noise.keep) / 5, minlength=5), p, atol=1e-15
    )
    seen = np.concatenate([codes for codes, _ in draws("nce", 5, 0, 6, 5000, noise)])
    assert len(seen) == 30000
    np.testing.assert_allclose(np.bincount(seen, minlength=5) / 30000, p, atol=0.015)
