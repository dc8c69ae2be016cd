"""Steps with blocks of negatives on a GPU: those of the CPU, and rounds of rows that step at once."""

import numpy as np
from test_class_blocks import D, K, N
from test_class_blocks import problem as host_problem
from test_gpu_extreme import assert_same, device_rows, numpy_of

from sparsekit._cython.extreme import _class_blocks as host
from sparsekit._extreme.solver.sgd import init_work, steps
from sparsekit._extreme.solver.state import METHODS, finish, init_state, settle, settled
from sparsekit.gpu.extreme import _class_blocks as gpu


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
    bad = [steps(state, rows, options, work, eta, 0, N) for _ in range(calls)]
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
