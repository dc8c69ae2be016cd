"""CUDA kernels of NQN and of the bounded losses against the Cython kernels, which they mirror, and NumPy."""

import numpy as np
import pytest
import reference_nqn

from sparsekit._cython.shared import _pairs

INF = np.inf


class _Both:
    """The pairs in main memory and on the device, told the same."""

    def __init__(self, cupy, n, memory):
        from sparsekit.gpu.shared._pairs import Pairs

        self.cupy, self.here, self.there = cupy, _pairs.Pairs(n, memory), Pairs(n, memory)
        self.p = np.empty(n), cupy.empty(n)

    def _up(self, arrays):
        return [self.cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays]

    def put(self, *arrays):
        self.here.put(*arrays)
        self.there.put(*self._up(arrays))
        assert len(self.here) == len(self.there)
        assert self.there.smallest_curvature() == pytest.approx(self.here.smallest_curvature(), rel=1e-10)

    def set_free(self, free):
        self.here.set_free(free)
        self.there.set_free(self.cupy.asarray(free))

    def correct(self, x, lower, upper):
        count = self.here.correct(x, self.p[0], lower, upper)
        x, p, lower, upper = self._up((x, self.p[0], lower, upper))
        assert self.there.correct(x, p, lower, upper) == count
        return count

    def direction(self, g, theta):
        assert self.here.direction(g, theta, self.p[0]) is True
        assert self.there.direction(self.cupy.asarray(g), theta, self.p[1]) is True
        np.testing.assert_array_equal(self.there.free_set().get(), self.here.free_set())
        scale = np.abs(self.p[0]).max()
        np.testing.assert_allclose(self.p[1].get(), self.p[0], rtol=1e-7, atol=1e-9 * scale)
        return self.p[1].get()


@pytest.mark.parametrize("n, memory", [(40, 0), (7, 3), (300, 5), (700, 20), (90, 70)])
def test_directions_follow_the_free_set(cupy, n, memory):
    """Pairs come and go, variables enter and leave by few and by many; steps are the dense matrix's."""
    rng = np.random.default_rng(n)
    both, kept = _Both(cupy, n, memory), []
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    A = A @ A.T + 0.5 * np.eye(n)
    x, free = rng.standard_normal(n), np.ones(n, dtype=np.uint8)
    both.set_free(free)
    for _ in range(2 * memory // max(1, memory // 6) + 2 if memory > 20 else memory + 4):
        for _ in range(max(1, memory // 6)):
            s = rng.standard_normal(n)
            both.put(x, x + s, A @ x, A @ (x + s))
            kept = [*kept, (s, A @ s)][-memory:] if memory else []
            x = x + s
        few = rng.random(n) < rng.choice([0.02, 0.3, 0.9])
        free = np.where(few, 1 - free, free).astype(np.uint8)
        both.set_free(free)
        g, theta = rng.standard_normal(n), float(rng.uniform(0.5, 2.0))
        p = both.direction(g, theta)
        if n <= 40 and free.any():
            B = reference_nqn.bfgs_matrix(kept, theta, n)
            np.testing.assert_allclose(p, reference_nqn.subspace_step(B, g, free == 0), rtol=1e-6, atol=1e-8)
        tight = np.where(rng.random(n) < 0.3, x, -INF)
        while both.correct(x, tight, np.full(n, INF)):
            both.direction(g, theta)
        free = both.here.free_set()
    both.here.clear()
    both.there.clear()
    both.direction(g, 1.5)
    both.put(x, x + s, A @ x, A @ (x + s))
    both.direction(g, 1.5)


def test_steps_in_a_box(cupy):
    from sparsekit._cython.shared import _box as here
    from sparsekit.gpu.shared import _box as there

    rng = np.random.default_rng(0)
    x, p, g = rng.standard_normal((3, 50))
    given = x, np.where(np.arange(50) % 7 > 0, p, 0.0), x - rng.random(50), x + 1e-3 * rng.random(50)
    assert there.longest_step(*map(cupy.asarray, given)) == pytest.approx(here.longest_step(*given))
    given = x, g, np.where(p > 0, x, -INF), np.where(p < -1, x, INF)
    assert there.optimality(*map(cupy.asarray, given)) == pytest.approx(here.optimality(*given))
