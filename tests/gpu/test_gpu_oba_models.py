"""The quadratic model of the L1 solver on a GPU against the Cython kernels: its sets, its cycles, L-BFGS."""

import numpy as np
import pytest

from sparsekit._cython.l1 import _model
from sparsekit._cython.shared import _operators
from sparsekit._l1.solver.minimise_model import Effort

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng


def _model_problem(m=60, seed=0):
    rng = RNG(seed)
    A = rng.standard_normal((2 * m, m)) * np.exp(rng.standard_normal(m))
    x = np.where(rng.random(m) < 0.4, rng.standard_normal(m), 0.0)
    g, l1 = 3 * rng.standard_normal(m), rng.random(m)
    l1[0] = 0.0
    return A.T @ A / m, x, g, l1


def _solve(module, operator, x0, g0, l1, out, cycles=60, holds=20, direct=False):
    m = len(x0)
    # without a factor the CPU keeps to conjugate gradients
    effort = Effort(
        cycles, 1e-9, cg_tol=1e-10, cg_max=4 * m, largest_factor=m if direct else 0, sweeps=0, holds=holds
    )  # fmt: skip
    decrease, *counts = module.solve_model(operator, x0, g0, l1, out, effort)
    return decrease, np.array(counts)


def _many_blocks(monkeypatch):
    from sparsekit.gpu.shared import _reduce

    monkeypatch.setattr(_reduce, "block_of", lambda n: 32)


@pytest.mark.parametrize("how, holds", [("direct", 20), ("one block", 0), ("many blocks", 20)])
def test_cycles_are_those_of_the_cpu(cupy, how, holds, monkeypatch):
    from sparsekit.gpu.l1 import _model as gpu
    from sparsekit.gpu.shared._operators import GramOperator

    direct, rounds = how == "direct", 0
    if how == "many blocks":
        _many_blocks(monkeypatch)
    for seed in range(3):
        G, x, g, l1 = _model_problem(40, seed)
        for cycles in (1, 2):
            expected, out = np.empty(40), cupy.empty(40)
            operator = _operators.GramOperator(G, 1e-3)
            best, steps = _solve(_model, operator, x, g, l1, expected, cycles, holds, direct)
            operator = GramOperator(cupy.asarray(G), 1e-3)
            operator.direct = direct
            there = (cupy.asarray(a) for a in (x, g, l1))
            decrease, counts = _solve(gpu, operator, *there, out, cycles, holds)
            assert decrease == pytest.approx(best, rel=1e-7)
            np.testing.assert_allclose(out.get(), expected, rtol=1e-6, atol=1e-8)
            np.testing.assert_array_equal(counts[[0, 1, 3]], steps[[0, 1, 3]])
            assert abs(counts[2] - steps[2]) <= 0.1 * steps[2]
            rounds += counts[1]
    assert rounds > 4


@pytest.mark.parametrize("diagonal", [[1.0, -1.0, 2.0], [-1.0, 0.0, -2.0]])
@pytest.mark.parametrize("blocks", ["one block", "many blocks"])
def test_a_matrix_that_is_not_definite_is_left_to_conjugate_gradients(cupy, diagonal, blocks, monkeypatch):
    from sparsekit.gpu.l1 import _model as gpu
    from sparsekit.gpu.shared._operators import GramOperator

    if blocks == "many blocks":
        _many_blocks(monkeypatch)
    G, x, g, l1 = np.diag(diagonal), np.zeros(3), np.array([3.0, 0.1, -4.0]), np.zeros(3)
    out, expected = cupy.empty(3), np.empty(3)
    best, _ = _solve(_model, _operators.GramOperator(G, 0.0), x, g, l1, expected, cycles=1)
    there = (cupy.asarray(a) for a in (x, g, l1))
    decrease, counts = _solve(gpu, GramOperator(cupy.asarray(G), 0.0), *there, out, cycles=1)
    assert counts[2] > 0
    assert counts[3] == 0
    assert decrease == pytest.approx(best)
    assert best > 0
    np.testing.assert_allclose(out.get(), expected)


@pytest.mark.parametrize("direct", [True, False])
def test_models_are_minimised_on_one_side(cupy, direct):
    from scipy.optimize import nnls

    from sparsekit.gpu.l1 import _model as gpu
    from sparsekit.gpu.shared._operators import GramOperator

    rng = RNG(1)
    x, g, l1 = (
        np.where(rng.random(30) < 0.5, rng.random(30), 0.0),
        2 * rng.standard_normal(30),
        rng.random(30),
    )
    A = rng.standard_normal((60, 30))
    G, out = A.T @ A, cupy.empty(30)
    operator = GramOperator(cupy.asarray(G), 0.0)
    operator.direct = direct
    effort = Effort(60, 1e-12, cg_tol=1e-12, cg_max=200, sweeps=0)
    gpu.solve_model(operator, *map(cupy.asarray, (x, g, l1)), out, effort, one_sided=True)
    # nonnegative least squares with the same gradient
    best = nnls(A, np.linalg.lstsq(A.T, G @ x - g - l1, rcond=None)[0])[0]
    np.testing.assert_allclose(out.get(), best, atol=1e-8)


def test_lbfgs_operator(cupy):
    from sparsekit._linalg.lbfgs import add_pair, new_pairs, operator

    rng, n = RNG(8), 40
    A, zero = rng.standard_normal((n, n)), np.zeros(n)
    here, there = new_pairs(n, 4, np.empty(0)), new_pairs(n, 4, cupy.empty(0))
    for count in range(6):
        rows = np.sort(rng.permutation(n)[:25])
        v = rng.standard_normal(25)
        theta = {} if count else {"theta": 2.0}
        mine = operator(here, rows, ridge=0.1, **theta)
        on_gpu = operator(there, cupy.asarray(rows), ridge=0.1, **theta)
        np.testing.assert_allclose(on_gpu.matvec(cupy.asarray(v)).get(), mine.matvec(v), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(on_gpu.diag.get(), mine.diag)
        np.testing.assert_allclose(on_gpu.solve(cupy.asarray(v)).get(), mine.solve(v), rtol=1e-8)
        free = np.flatnonzero(rng.random(25) < 0.5)
        expected = np.zeros(25)
        expected[free] = mine.solve(v[free], free)
        kind = np.zeros(25, dtype=np.int8)
        kind[free] = rng.integers(1, 3, len(free))
        side = np.where(kind > 0, v, 0.0)
        kind[np.setdiff1d(np.arange(25), free)[:3]] = 3  # fixed at zero: not on the face
        found = on_gpu.solve_face(cupy.asarray(kind), cupy.asarray(side)).get()
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        s = rng.standard_normal(n)
        pair = zero, s, zero, A.T @ (A @ s)
        assert add_pair(here, *pair) == add_pair(there, *map(cupy.asarray, pair))
    tiny = cupy.full(n, 1e-200)
    there.put(cupy.zeros(n), tiny, cupy.zeros(n), tiny)  # whose products vanish
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        operator(there, theta=1.0)
