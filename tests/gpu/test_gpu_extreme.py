"""Steps of softmax with very many classes on a GPU: the CPU's, and rounds of rows that step at once."""

from dataclasses import fields

import numpy as np
import pytest
from test_extreme_kernels import D, K, N, make_rows, problem, table

from sparsekit._arrays import thread_arguments
from sparsekit._cython.extreme import _extreme as host
from sparsekit._extreme.plan import MAX_ROWS, rows_at_once
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.sgd import DataRows, init_work, steps
from sparsekit._extreme.solver.state import SamplingOptions as Settings
from sparsekit._extreme.solver.state import init_state, settle, settled
from sparsekit.gpu.extreme import _extreme as gpu

STATE = ("W", "bias", "scale")


def device_rows(rows, cupy):
    arrays = {field.name: getattr(rows, field.name) for field in fields(rows)}
    return DataRows(
        **{name: cupy.asarray(a) if isinstance(a, np.ndarray) else a for name, a in arrays.items()}
    )


def run(cupy, options, *, seed=3, n=N, noise=False, sparse=True, dtype=np.float64, index=np.int32, bits=0,
        eta=0.3, calls=2, X=None, y=None, prepared=None):  # fmt: skip
    """State, work and bad indices after calls of `steps` on a GPU (on the CPU without cupy)."""
    X_, y_, rng = problem(seed, n)
    X, y = X_ if X is None else X, y_ if y is None else y
    p = rng.uniform(0.5, 2.0, K)
    noise = Noise(p / p.sum()) if noise else None
    rows = make_rows(X, y, sparse, index, dtype, weight=rng.uniform(0.5, 2.0, n))
    W, bias = 0.3 * rng.standard_normal((K, D)), 0.3 * rng.standard_normal(K)
    if cupy is not None:
        rows = device_rows(rows, cupy)
    state = init_state(K, D, dtype, options, table_bits=bits, like=None if cupy is None else rows.data)
    if not bits:
        state.W[...] = np.asarray(W, like=state.W)
        state.bias[...] = np.asarray(bias, like=state.bias)
    work = init_work(rows, K, options, rng, counts=np.bincount(y, minlength=K) + 1.0, noise=noise)
    work.examples[...] = np.arange(n, like=work.examples)
    if work.u is not None:
        work.u[::3] = np.nan
    if prepared is not None:
        prepared(state, work)
    bad = [steps(state, rows, options, work, eta, 0, n) for _ in range(calls)]
    return state, work, bad


def numpy_of(x):
    return x if x is None or isinstance(x, np.ndarray) else x.get()


def assert_same(one, two, rtol=1e-9, atol=1e-9):
    """States, u and generators of two runs."""
    assert one[2] == two[2]
    for names, a, b in ((STATE, one[0], two[0]), (("u", "states"), one[1], two[1])):
        for name in names:
            x, y = numpy_of(getattr(a, name)), numpy_of(getattr(b, name))
            assert (x is None) == (y is None), name
            if x is not None:
                np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=name)


def test_one_row_at_a_time_is_the_cpus_step(cupy):
    cases = [
        (Settings(method="implicit", n_negatives=1), dict(sparse=False)),
        (Settings(method="implicit", n_negatives=3, alpha=0.1), {}),
        # roots far from where a search for them starts
        (Settings(method="implicit", n_negatives=1), dict(eta=1e4)),
        (Settings(method="implicit", n_negatives=20), dict(eta=1e-3, noise=True)),
        (Settings(method="umax", n_negatives=3, alpha=0.1), {}),
        (Settings(method="ove", n_negatives=3, alpha=0.2), dict(noise=True)),
        (Settings(method="nce", n_negatives=20, alpha=0.1), dict(noise=True)),
        (Settings(method="nce", n_negatives=2), dict(sparse=False)),
        (Settings(method="is", n_negatives=4), dict(noise=True)),
        (Settings(method="sgd", n_negatives=2), dict(eta=0.02)),
    ]
    for options, kwargs in cases:
        expected = run(None, options, **kwargs)
        found = run(cupy, options, **kwargs)
        assert expected[2] == [-1, -1]
        assert_same(found, expected)


def test_batches_are_the_cpus(cupy):
    for options, kwargs in [
        (Settings(method="ove", n_negatives=20, batch_size=4, alpha=0.1), dict(sparse=False)),
        (Settings(method="nce", n_negatives=4, batch_size=5, alpha=0.1), dict(noise=True)),
    ]:
        assert_same(run(cupy, options, **kwargs), run(None, options, **kwargs))


def test_a_hashed_table_is_the_cpus(cupy):
    """Classes share no entry here; where they do, the CPU's windows of rows differ in order."""
    options = Settings(method="ove", n_negatives=3)
    expected, found = (run(c, options, bits=20) for c in (None, cupy))
    assert_same(found, expected)
    rows, W = make_rows(*problem(3)[:2], True), expected[0].W.reshape(-1)
    out, scores = cupy.empty((N - 1, K)), np.empty((N - 1, K))
    there = device_rows(rows, cupy)
    for module, r, table_, to in ((host, rows, W, scores), (gpu, there, cupy.asarray(W), out)):
        module.hashed_scores(
            r.data, r.indices, r.indptr, D, 1, N, table_, 44, np.arange(K, like=table_), to,
            *thread_arguments(to, 1),
        )  # fmt: skip
    np.testing.assert_allclose(out.get(), scores, atol=1e-14)
    assert np.abs(scores).max() > 0.1


def test_lazy_scales_are_multiplied_in(cupy):
    """Strong ridges: scales fall below what is kept lazy, and in `settle`."""
    options = Settings(method="ove", n_negatives=2, alpha=5.0)
    expected, found = (run(c, options, calls=3, n=60, eta=100.0) for c in (None, cupy))
    assert expected[0].scale.min() < 1.0
    assert_same(found, expected, rtol=1e-7)
    for state, _, _ in (expected, found):
        settle(state)
    assert_same(found, expected, rtol=1e-7)
    for a, b in zip(settled(found[0], options), settled(expected[0], options), strict=True):
        np.testing.assert_allclose(a.get(), b, rtol=1e-7, atol=1e-9)


def reference_round(options, noise):
    """Every part's next batch by the CPU, alone, from the weights at the round's start; all changes."""
    alone = Settings(**{**vars(options), "n_threads": 1})
    state, work, _ = run(None, options, calls=0, noise=noise)
    X, y, rng = problem(3, N)
    rng.uniform(0.5, 2.0, K)
    rows = make_rows(X, y, True, weight=rng.uniform(0.5, 2.0, N))
    parts, batches = options.n_threads, -(-N // options.batch_size)
    bounds = [min(N, options.batch_size * (batches * p // parts)) for p in range(parts + 1)]
    V, states = table(state), work.states
    for at in range(0, max(np.diff(bounds)), options.batch_size):
        start, new = V.copy(), V.copy()
        for p in range(parts):
            end = min(bounds[p + 1], bounds[p] + at + options.batch_size)
            if bounds[p] + at >= end:
                continue
            state.W[...], state.bias[...] = start[:, :-1], start[:, -1]
            if state.scale is not None:
                state.scale[...] = 1.0
            work.states = states[p : p + 1]
            assert steps(state, rows, alone, work, 0.3, bounds[p] + at, end) == -1
            shrink = 1.0 if state.scale is None else state.scale[:, None]
            new = shrink * new + (table(state) - shrink * start)
        V = new
    return V, work.u


@pytest.mark.parametrize(
    "options, noise",
    [
        (Settings(method="implicit", n_negatives=3, n_threads=3), False),
        (Settings(method="implicit", n_negatives=2, n_threads=5, alpha=0.1), False),
        (Settings(method="ove", n_negatives=2, n_threads=2, batch_size=3, alpha=0.1), True),
    ],
)
def test_a_round_adds_up_what_its_parts_do_alone(cupy, options, noise):
    V, u = reference_round(options, noise)
    state, work, bad = run(cupy, options, calls=1, noise=noise)
    assert bad == [-1]
    settle(state)
    found = np.column_stack([state.W.get(), state.bias.get()])
    np.testing.assert_allclose(found, V, rtol=1e-7, atol=1e-8)
    if u is not None:
        np.testing.assert_allclose(work.u.get(), u, rtol=1e-7, atol=1e-8)
    # and it is something else than one after the other
    one = Settings(**{**vars(options), "n_threads": 1})
    assert np.abs(table(run(None, one, calls=1, noise=noise)[0]) - V).max() > 1e-4


def test_equal_calls_give_equal_bits_whatever_runs_first(cupy, monkeypatch):
    results = []
    for seed in (0, 1, 7):
        if hasattr(cupy, "emulation"):
            cupy.emulation.seed(seed)
        options = Settings(method="implicit", n_negatives=3, n_threads=6, alpha=0.1)
        state, work, _ = run(cupy, options, n=30)
        results.append([numpy_of(getattr(state, name)) for name in STATE if getattr(state, name) is not None])
        results[-1].append(work.u.get())
        monkeypatch.setattr(gpu, "PLACES", 25)  # draws for some rounds at a time
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_call_waits_once_and_takes_few_launches(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the emulated device counts its launches")
    for parts, launches in ((1, 1 + 2 * N), (4, 1 + 2 * 3)):
        counts = {}

        def forget(state, work):
            cupy.emulation.reset()

        run(
            cupy,
            Settings(method="is", n_negatives=2, n_threads=parts),
            noise=True,
            calls=1,
            prepared=forget,
        )
        counts = dict(cupy.emulation.counts)
        assert (counts["launches"], counts["syncs"]) == (launches, 1)


def test_nothing_moves_after_a_step_that_is_not_finite(cupy):
    X, y, _ = problem(3)
    y[y == K - 1] = 0
    y[[7, 11]] = K - 1  # whose score is out of reach; in one round where there are three parts
    for parts, batch in ((1, 1), (3, 1), (2, 2)):
        options = Settings(method="sgd", n_negatives=2, n_threads=parts, batch_size=batch)

        def diverging(state, work):
            work.classes = None
            state.bias[K - 1] = -1e4

        state, _, bad = run(cupy, options, X=X, y=y, eta=0.1, calls=1, prepared=diverging)
        assert bad == [7]
        assert np.isfinite(state.W.get()).all() and np.isfinite(state.bias.get()).all()
        # in none of a round's rows
        parts_begin = [-(-N // batch) * p // parts * batch for p in range(parts)]
        rounds = min((7 - b) // batch for b in parts_begin if b <= 7)
        before = [e for b in parts_begin for e in range(b, b + rounds * batch)]
        moved = set(
            np.flatnonzero(np.abs(state.bias.get() - run(None, options, y=y, calls=0)[0].bias) > 1e-9)
        )
        assert set(y[before]) - {K - 1} <= moved
        assert (state.bias[K - 1] == -1e4) == (K - 1 not in y[before])


def test_arrays_of_another_type_are_refused(cupy):
    def shorten(state, work):
        work.examples = work.examples.astype(np.int32)

    with pytest.raises(TypeError, match="a kernel reads int64 and got an array of int32"):
        run(cupy, Settings(method="implicit", n_negatives=1), prepared=shorten)


def test_as_many_rows_at_once_as_classes_bear():
    even = np.ones(1000)
    many = rows_at_once(even, 5, None, 1)
    assert 20 < many < 1000 and rows_at_once(even, 50, None, 1) < many / 5
    assert rows_at_once(even, 5, None, 4) == many
    skewed = even.copy()
    skewed[3] = 1000
    assert rows_at_once(skewed, 5, None, 1) < many / 10
    p = np.full(1000, 0.5 / 999)
    p[0] = 0.5
    assert rows_at_once(even, 5, Noise(p), 1) < many / 50
    assert (
        rows_at_once(np.ones(10**6), 5, None, 1) == MAX_ROWS
        and rows_at_once(np.ones(10**6), 5, None, 16) == MAX_ROWS // 16
    )
    assert rows_at_once(np.ones(2), 5, None, 1) >= 1
    # all classes in every row, but each by its probability only
    assert rows_at_once(even, 999, None, 1) > 100 * rows_at_once(even, 900, None, 1)
