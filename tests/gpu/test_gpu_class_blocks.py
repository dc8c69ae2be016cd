"""Steps with blocks of negatives on a GPU: those of the CPU, and rounds of rows that step at once."""

import numpy as np
import pytest
from test_class_blocks import D, K, N
from test_class_blocks import problem as host_problem
from test_gpu_extreme import assert_same, device_rows, numpy_of

from sparsekit._cython.extreme import _class_blocks as host
from sparsekit._extreme.solver.sgd import init_work, steps
from sparsekit._extreme.solver.state import METHODS, finish, init_state, settle, settled
from sparsekit.gpu.extreme import _class_blocks as gpu
from sparsekit.gpu.extreme import _extreme


def problem(cupy, method, noise, n_negatives, **kwargs):
    """`test_class_blocks.problem` on the GPU, or without cupy as it is."""
    _, rows, options, state, work = host_problem(method, noise, n_negatives, **kwargs)
    if cupy is None:
        return rows, options, state, work
    rows = device_rows(rows, cupy)
    there = init_state(K, D, state.W.dtype, options, like=rows.data)
    there.W[...], there.bias[...] = cupy.asarray(state.W), cupy.asarray(state.bias)
    counts = np.bincount(rows.y.get(), minlength=K) + 1.0
    made = init_work(rows, K, options, np.random.default_rng(0), counts=counts)
    made.examples[...] = cupy.arange(N)
    made.states[...] = cupy.asarray(work.states)
    if work.u is not None:
        made.u[...] = cupy.asarray(work.u)
    return rows, options, there, made


def run(cupy, method, noise, n_negatives, *, eta=0.05, calls=2, **kwargs):
    rows, options, state, work = problem(cupy, method, noise, n_negatives, **kwargs)
    if work.u is not None:
        work.u[::3] = 0.5
    bad = [steps(state, rows, options, work, eta, 0, N, value=True) for _ in range(calls)]
    return state, work, bad, options


def test_one_row_at_a_time_is_the_cpus_step(cupy):
    for method in METHODS:
        for noise, m, kwargs in (
            ("uniform", 20, {}),
            ("frequency", 33, dict(sparse=True)),
            ("uniform", 100, dict(sparse=True, alpha=0.1)),
            ("frequency", 64, dict(alpha=0.1)),
        ):
            eta = 0.002 if method == "sgd" else 0.05
            expected, found = (run(c, method, noise, m, eta=eta, **kwargs) for c in (None, cupy))
            assert expected[2] == [-1, -1]
            assert_same(found[:3], expected[:3])
            assert expected[1].loss[0, 1] == 4
    expected, found = (
        run(c, "umax", "frequency", 33, sparse=True, index=np.int64, dtype=np.float32) for c in (None, cupy)
    )
    assert_same(found[:3], expected[:3], rtol=1e-4, atol=1e-4)


def test_lazy_scales_are_multiplied_in(cupy):
    for calls in (1, 4):
        expected, found = (
            run(c, "ove", "frequency", 33, alpha=50.0, eta=100.0, calls=calls) for c in (None, cupy)
        )
        np.testing.assert_allclose(found[0].scale.get(), expected[0].scale, rtol=1e-9)
        for state, _, _, options in (expected, found):
            settle(state, options)
        np.testing.assert_allclose(found[0].W.get(), expected[0].W, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_a_round_adds_up_what_its_rows_do_alone(cupy, alpha):
    parts, eta, method = 3, 0.05, "implicit"
    kwargs = dict(alpha=alpha, n_threads=parts)
    rows, options, state, work = problem(None, method, "frequency", 33, **kwargs)
    V, scales = state.W.copy(), np.ones(len(state.bias))
    bias, states = state.bias.copy(), work.states
    options.n_threads = 1
    bounds = [N * p // parts for p in range(parts + 1)]
    for at in range(max(np.diff(bounds))):
        start, start_bias, new, new_bias = V.copy(), bias.copy(), V.copy(), bias.copy()
        for p in range(parts):
            if bounds[p] + at >= bounds[p + 1]:
                continue
            state.W[...], state.bias[...] = start, start_bias
            if alpha:
                state.scale[...] = 1.0
            work.states = states[p : p + 1]
            assert steps(state, rows, options, work, eta, bounds[p] + at, bounds[p] + at + 1) == -1
            shrink = state.scale if alpha else scales
            new = shrink * (new + state.W - start)
            new_bias = shrink * (new_bias + state.bias - start_bias)
        V, bias = new, new_bias
    rows, options, there, made = problem(cupy, method, "frequency", 33, **kwargs)
    assert steps(there, rows, options, made, eta, 0, N) == -1
    settle(there, options)
    np.testing.assert_allclose(there.W.get(), V, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(there.bias.get(), bias, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(made.u.get(), work.u, rtol=1e-8, atol=1e-9)


def test_equal_calls_give_equal_bits_and_draws_may_be_cut(cupy, monkeypatch):
    results = []
    for seed, places in ((0, _extreme.PLACES), (1, _extreme.PLACES), (5, 20)):
        if hasattr(cupy, "emulation"):
            cupy.emulation.seed(seed)
        monkeypatch.setattr(_extreme, "PLACES", places)
        state, work, _, _ = run(cupy, "implicit", "frequency", 33, n_threads=4, alpha=0.1)
        results.append([state.W.get(), state.scale.get(), state.bias.get(), work.u.get(), work.loss.get()])
    for other in results[1:]:
        for a, b in zip(results[0][:4], other[:4], strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(other[4], results[0][4], rtol=1e-12)


def test_a_call_waits_once(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the emulated device counts its launches")
    rows, options, state, work = problem(cupy, "is", "uniform", 16, n_threads=5)
    cupy.emulation.reset()
    assert steps(state, rows, options, work, 0.1, 0, N) == -1
    assert (cupy.emulation.counts["launches"], cupy.emulation.counts["syncs"]) == (1 + 2 * 2, 1)


def test_nothing_moves_after_a_step_that_is_not_finite(cupy):
    rows, options, state, work = problem(cupy, "sgd", "uniform", 100, n_threads=2)
    rows.y[...] = cupy.arange(N)
    work.columns[...] = cupy.arange(N)
    state.W[...] = 0.0
    state.bias[...] = 0.0
    state.bias[6], work.u[...] = -1e4, 0.0
    assert steps(state, rows, options, work, 0.1, 0, N) == 6
    bias = state.bias.get()
    assert np.isfinite(bias).all() and np.isfinite(state.W.get()).all()
    # rows 0 and 5 made the only round before
    assert bias[6] == -1e4 and bias[0] > 0 and bias[5] > 0 and bias[1] < 0


def test_columns_are_put_in_order(cupy, monkeypatch):
    monkeypatch.setattr(gpu, "COPIED", 150)
    W, order = np.random.default_rng(0).standard_normal((7, 80)), np.random.default_rng(1).permutation(K)
    expected, mine = W.copy(), cupy.asarray(W)
    host.permute_columns(expected, order, 1)
    gpu.permute_columns(mine, cupy.asarray(order))
    np.testing.assert_array_equal(mine.get(), expected)
    out = []
    for c in (None, cupy):
        state, _, _, options = run(c, "implicit", "frequency", 33)
        before = [numpy_of(a) for a in settled(state, options)]
        finish(state, options)
        out.append([numpy_of(a) for a in settled(state, options)])
        for a, b in zip(before, out[-1], strict=True):
            np.testing.assert_allclose(a, b)
    np.testing.assert_allclose(out[0][0], out[1][0], rtol=1e-9, atol=1e-9)
