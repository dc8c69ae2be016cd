"""CUDA kernels of NQN and of the bounded losses against the Cython kernels, which they mirror, and NumPy."""

import numpy as np
import pytest
import reference_nqn

from sparsekit._cython.bounded import _row_losses
from sparsekit._cython.shared import _box as on_cpu
from sparsekit._cython.shared import _pairs

INF = np.inf


def _box(n, seed=0):
    """A point in a box, with entries at either bound, fixed and free ones; a direction and a gradient."""
    rng = np.random.default_rng(seed)
    x, p, g = rng.standard_normal((3, n))
    kind = rng.integers(0, 6, n)
    lower = np.where(kind <= 1, x, np.where(kind == 2, -INF, x - 0.5))
    upper = np.where((kind == 1) | (kind == 3), x, np.where(kind == 4, INF, x + 0.3))
    p[rng.random(n) < 0.1] = 0.0
    g[rng.random(n) < 0.1] = 0.0
    return x, p, g, lower, upper


def _kinds(like):
    """The modules of kernels in main memory and on the device, and how to bring an array to each."""
    from sparsekit.gpu.shared import _box as gpu_box
    from sparsekit.gpu.shared import _pairs as gpu

    return (_pairs, on_cpu, np.asarray), (gpu, gpu_box, like.asarray)


@pytest.mark.parametrize("n", [1, 33, 9000])  # the last one is more than the stand-in's threads
def test_passes_over_the_box(cupy, n):
    x, p, g, lower, upper = _box(n)
    found = []
    for module, box, put in _kinds(cupy):
        X, P, G, L, U = map(put, (x, p, g, lower, upper))
        free, part, trial = put(np.full(n, 7, np.uint8)), put(np.empty(n)), put(np.empty(n))
        count = int(box.free_variables(X, G, L, U, free))
        slope = box.feasible_part(X, P, G, L, U, part)
        box.trial_point(X, P, 0.7, L, U, trial)
        numbers = (
            slope,
            box.feasible_slope(X, P, G, L, U),
            box.optimality(X, G, L, U),
            box.longest_step(X, part, L, U),
            box.longest_step(X, part, put(np.maximum(lower, x - 2.0)), put(np.minimum(upper, x + 2.0))),
            *module.pair_norms(X, P, G, X),
        )
        assert all(isinstance(number, float) for number in numbers)
        found.append((count, numbers, *(a if module is _pairs else a.get() for a in (free, part, trial))))
    (count, numbers, free, part, trial), (count_there, numbers_there, *there) = found
    assert count == count_there
    for here, on_device in zip((free, part), there):
        np.testing.assert_array_equal(on_device, here)
    np.testing.assert_allclose(
        there[2], trial, rtol=1e-14, atol=1e-15
    )  # one rounding less where both are fused
    assert np.array_equal(there[2] == lower, trial == lower)
    assert np.array_equal(there[2] == upper, trial == upper)
    np.testing.assert_allclose(numbers_there, numbers, rtol=1e-12, atol=1e-14)
    # and both are what the thesis says
    np.testing.assert_array_equal(part, reference_nqn.feasible_part(x, p, lower, upper))
    np.testing.assert_array_equal(free == 0, reference_nqn.binding(x, g, lower, upper))


def test_values_that_are_not_finite(cupy):
    from sparsekit.gpu.shared import _box as gpu

    x, _, g, lower, upper = _box(40)
    g[3], lower[3], upper[3] = np.nan, -INF, INF
    args = [cupy.asarray(a) for a in (x, g, lower, upper)]
    assert gpu.optimality(*args) == on_cpu.optimality(x, g, lower, upper)
    assert np.isnan(gpu.feasible_slope(args[0], cupy.ones(40), *args[1:]))
    free = np.full(40, INF)
    step = gpu.longest_step(args[0], cupy.ones(40), cupy.asarray(-free), cupy.asarray(free))
    assert step == INF


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


def test_pairs_wait_for_the_device_as_said(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the stand-in counts what the host waits for")
    from sparsekit.gpu.shared._pairs import Pairs

    n, counts = 500, cupy.emulation.counts
    pairs, p, x = Pairs(n, 4), cupy.empty(n), cupy.asarray(_box(n)[0])
    far = cupy.full(n, INF)

    def waits(call, *args):
        before = counts["syncs"]
        call(*args)
        return counts["syncs"] - before

    assert waits(pairs.put, x, 2 * x, x, 3 * x) == 1
    free = np.arange(n) % 5 > 0
    pairs.set_free(cupy.ones(n, dtype=np.uint8))
    assert waits(pairs.direction, x, 1.0, p) == 1
    assert waits(pairs.set_free, cupy.asarray(free.astype(np.uint8))) == 0
    assert pairs.changes.get().tolist() == [n / 5, n - n / 5]  # fewer change than are left
    assert waits(pairs.smallest_curvature) == 0
    assert waits(pairs.direction, x, 1.0, p) == 1
    assert waits(pairs.correct, x, p, -far, far) == 1
    assert waits(pairs.direction, x, 1.0, p) == 1
    assert waits(pairs.direction, x, 1.0, p) == 1


SHAPES = [  # lo, hi, eps, delta
    (-1.0, 1.0, 0.0, 0.0),
    (-0.3, 0.7, 0.0, 0.2),
    (-INF, INF, 0.0, 1.0),
    (-1.0, 1.0, 0.4, 0.0),
    (-1.0, 1.0, 0.4, 0.05),
    (-INF, 0.0, 0.0, 0.5),
]


def _rows(n=900, seed=1):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n)
    t, dz = rng.standard_normal((2, n))
    t[:4] = z[:4]  # at the kink
    return z, dz, t, rng.choice([-1.0, 1.0], n), rng.random(n) / n, rng.uniform(-0.3, 0.7, n)


@pytest.mark.parametrize(
    "shape, signs, centred",
    [(shape, k % 2 > 0, k % 3 > 0) for k, shape in enumerate(SHAPES)],
)
def test_piecewise_losses(cupy, shape, signs, centred):
    from sparsekit.gpu.bounded import _row_losses as gpu

    z, dz, t, c, s, prev = _rows()
    given = z, t, c if signs else None, s, prev if centred else None
    up = [None if a is None else cupy.asarray(a) for a in given]
    out, there = np.empty((3, len(z))), [cupy.empty(len(z)) for _ in range(3)]
    value = _row_losses.piecewise_all(*given, *shape, *out)
    assert gpu.piecewise_all(*up, *shape, *there) == pytest.approx(value, rel=1e-12)
    for here, on_device in zip(out, there):
        np.testing.assert_allclose(on_device.get(), here, rtol=1e-13, atol=1e-300)
    for step in (0.0, 0.3, -50.0):
        slope = _row_losses.piecewise_along(z, dz, step, *given[1:], *shape)
        found = gpu.piecewise_along(up[0], cupy.asarray(dz), step, *up[1:], *shape)
        assert found == pytest.approx(slope, rel=1e-11)


def test_log_losses(cupy):
    from sparsekit.gpu.bounded import _row_losses as gpu

    z, dz, t, c, s, _ = _rows()
    z[:3] = 0.0, 800.0, -800.0
    up = [cupy.asarray(a) for a in (z, t, c, s)]
    out, there = np.empty((3, len(z))), [cupy.empty(len(z)) for _ in range(3)]
    value = _row_losses.log_loss_all(z, t, c, s, *out)
    assert gpu.log_loss_all(*up, *there) == pytest.approx(value, rel=1e-13)
    for here, on_device in zip(out, there):
        np.testing.assert_allclose(on_device.get(), here, rtol=1e-12, atol=1e-300)
    for step in (0.0, -2.0):
        slope = _row_losses.log_loss_along(z, dz, step, t, c, s)
        assert gpu.log_loss_along(up[0], cupy.asarray(dz), step, *up[1:]) == pytest.approx(slope, rel=1e-11)
