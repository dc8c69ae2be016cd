"""minimize_nqn on a GPU: iterates and answers as in main memory, waits for the device, what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import Bounds

from sparsekit import minimize_nqn
from sparsekit._bounded.solver.nqn import ACTIVE_SETS
from sparsekit._solver import outcome

INF = np.inf


def _deviations(n, seed=0, smooth=False, like=None):
    """sum_i |a_i x - b_i| / rows + |x|^2 / 200, or with squares for values, and where x0 is at a bound."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((3 * n, n)), rng.standard_normal(3 * n)
    x0, pairs = rng.uniform(-0.2, 0.2, n), np.column_stack([np.full(n, -0.1), np.full(n, INF)])
    pairs[: n // 3] = -INF, 0.05
    pairs[-2:] = 0.02
    if like is not None:
        A, b, x0, pairs = map(like.asarray, (A, b, x0, pairs))

    def fun(x):
        r = A @ x - b
        value = 0.5 * np.sum(r * r) if smooth else np.sum(np.abs(r))
        slope = r if smooth else np.sign(r)
        return value / len(b) + 0.005 * np.sum(x * x), slope @ A / len(b) + 0.01 * x

    return fun, x0, pairs


@pytest.mark.parametrize("active_set", ACTIVE_SETS)
@pytest.mark.parametrize("smooth", [False, True])
def test_iterates_are_those_of_main_memory(cupy, active_set, smooth):
    n, options = 40, dict(jac=True, active_set=active_set, history=True, memory=6)
    options |= {} if smooth else dict(ftol=3e-3)
    fun, x0, pairs = _deviations(n, smooth=smooth)
    here = minimize_nqn(fun, x0, bounds=[(low, high) for low, high in pairs], **options)
    fun, x0, pairs = _deviations(n, smooth=smooth, like=cupy)
    there = minimize_nqn(fun, x0, bounds=pairs, **options)
    assert isinstance(there.fun, float)
    assert isinstance(there.optimality, float)
    assert isinstance(there.x, cupy.ndarray)
    assert isinstance(there.jac, cupy.ndarray)
    assert there.warning == here.warning is not None
    # kinks magnify rounding: the paths part in the end
    first = min(len(here.history), len(there.history), 1000 if smooth else 12)
    assert first > 8
    for line, other in zip(here.history[:first], there.history[:first]):
        assert other["f"] == pytest.approx(line["f"], rel=1e-7)
        assert other["alpha"] == pytest.approx(line["alpha"], rel=1e-4)
        for name in ("n_active", "n_predicted", "n_held", "nfev"):
            assert other[name] == line[name], name
    assert there.success
    assert there.fun == pytest.approx(here.fun, rel=1e-9 if smooth else 1e-2)
    x, (low, high) = there.x.get(), pairs.get().T
    assert ((low <= x) & (x <= high)).all()
    if smooth:
        assert there.status == here.status
        np.testing.assert_allclose(x, here.x, atol=1e-5)


def test_what_is_refused(cupy):
    x0, host = cupy.ones(3), np.ones(3)
    for match, start, gradient, bounds in (
        (r"cupy\.asarray\(the gradient\)", x0, host, None),
        ("the gradient is on the GPU", host, x0, None),
        (r"cupy\.asarray\(bounds\)", x0, x0, np.zeros((3, 2))),
        ("bounds is on the GPU", host, host, cupy.zeros((3, 2))),
    ):
        with pytest.raises(TypeError, match=match):
            minimize_nqn(lambda x, g=gradient: (1.0, g), start, jac=True, bounds=bounds)


def test_waits_of_an_iteration(cupy):
    """Six times an iteration and three times a trial point, of which f itself is one."""
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the stand-in counts what the host waits for")
    fun, x0, pairs = _deviations(60, smooth=True, like=cupy)
    counts, marks = cupy.emulation.counts, []

    def callback(intermediate_result):
        marks.append((counts["syncs"], counts["uploads"], intermediate_result.nfev))

    minimize_nqn(fun, x0, jac=True, bounds=pairs, callback=callback, active_set="gradient", gtol=1e-4)
    assert len(marks) > 10
    for (syncs, uploads, nfev), (later, more, nfev_later) in pairwise(marks[3:]):
        trials = nfev_later - nfev
        # optimality, direction, T(x, p), longest step, s.y, the pair; f, its gradient's finiteness, the slope
        assert later - syncs <= 6 + 3 * trials
        assert more - uploads <= 1  # the weights of the pairs


def test_kinds_of_bounds_and_callbacks(cupy):
    def fun(x):
        return np.sum((x - 1.0) ** 2), 2.0 * (x - 1.0)

    x0, seen = cupy.asarray([0.0, 0.5, 3.0]), []
    for bounds, best in [
        (None, [1.0, 1.0, 1.0]),
        (Bounds(-1.0, 0.75), [0.75, 0.75, 0.75]),
        ([(None, 0.5), (2, None), (0, 0)], [0.5, 2.0, 0.0]),
        (cupy.asarray([[-INF, 0.5], [2.0, INF], [0.0, 0.0]]), [0.5, 2.0, 0.0]),
    ]:
        result = minimize_nqn(lambda x: fun(x)[0], x0, jac=lambda x: fun(x)[1], bounds=bounds)
        np.testing.assert_allclose(result.x.get(), best, atol=1e-6)

    def stop(x):
        seen.append(x)
        return True

    result = minimize_nqn(fun, x0, jac=True, callback=stop)
    assert result.status == outcome.STOPPED
    assert isinstance(seen[0], cupy.ndarray)
    empty = minimize_nqn(lambda x: (2.0, x), cupy.empty(0), jac=True)
    assert empty.success
    assert isinstance(empty.jac, cupy.ndarray)
