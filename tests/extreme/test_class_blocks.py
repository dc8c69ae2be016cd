"""Blocks of negatives: the plan, the draws, odd numbers of classes, threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_extreme_kernels import make_rows

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._cython.extreme import _class_blocks as kernels
from sparsekit._extreme.solver.blocks import plan_blocks
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.sgd import init_work, steps
from sparsekit._extreme.solver.state import SamplingOptions, finish, init_state, set_scale, settled

N, D, K = 10, 6, 70  # five blocks, of which the last holds six classes
SIZE = kernels.BLOCK


def problem(noise, n_negatives, seed=0, *, sparse=False, index=np.int32, dtype=np.float64, **kwargs):
    """Rows, options, noise, a model of random weights, its work space and generator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    y, weight = rng.integers(0, K, N), rng.uniform(0.5, 2.0, N)
    p = rng.uniform(0.1, 2.0, K)
    noise = Noise(p / p.sum()) if noise == "frequency" else None
    counts = np.bincount(y, minlength=K) + 1.0
    plan = plan_blocks(counts, n_negatives, noise, np.dtype(dtype).itemsize, rng)
    options = SamplingOptions(method="is", n_negatives=n_negatives, plan=plan, adaptive=True, **kwargs)
    rows = make_rows(X, y, sparse, index, dtype, weight=weight)
    state = init_state(K, D, dtype, options)
    state.W[:, plan.place], state.bias[plan.place] = rng.standard_normal((D, K)), rng.standard_normal(K)
    work = init_work(rows, K, options, rng, counts=counts, noise=noise)
    set_scale(state, rows)
    return X, rows, options, state, work


def table(state, options):
    """W in the order of the classes, intercepts as the last column."""
    W, bias = options.plan.to_classes(state.W, state.bias)
    return np.column_stack([W, bias]).astype(np.float64)


def draws_of(plan):
    """Arguments of `kernels.draw_blocks`, but for the generator's state."""
    noise = plan.noise
    return (plan.n_blocks, plan.n_drawn), () if noise is None else (noise.p, noise.keep, noise.alias)


def drawn_classes(options, rows, work, e):
    """Classes (label first) and weights of the next step."""
    plan = options.plan
    sizes, extra = draws_of(plan)
    blocks, w = kernels.draw_blocks(*sizes, work.states[:1].copy(), *extra)
    columns = (blocks[:, None] * SIZE + np.arange(SIZE)).ravel()
    inside = columns < K
    codes, r = plan.order[columns[inside]], np.repeat(w, SIZE)[inside]
    codes, r = codes[codes != rows.y[e]], r[codes != rows.y[e]]
    return np.concatenate([[rows.y[e]], codes]), r


@pytest.mark.parametrize("noise", ["uniform", "frequency"])
@pytest.mark.parametrize("m", [16, 48, 64, 80, 1000])
def test_weights_of_a_draw_sum_without_bias(noise, m):
    plan = problem(noise, m)[2].plan
    sizes, extra = draws_of(plan)
    state, total, rounds = np.array([7], dtype=np.uint64), np.zeros(plan.n_blocks), 20000
    for _ in range(rounds):
        b, w = kernels.draw_blocks(*sizes, state, *extra)
        assert len(np.unique(b)) == len(b)
        total[b] += w
    if m >= K:
        assert plan.noise is None and (w == 1.0).all() and len(w) == plan.n_blocks
        return
    np.testing.assert_allclose(total / rounds, 1.0, atol=4 * np.sqrt(1 / plan.noise.p.min() / rounds))
    if noise == "uniform":
        np.testing.assert_allclose(plan.noise.p, np.array([16, 16, 16, 16, 6]) / K)


def test_plan():
    counts = np.arange(K)[::-1] + 1.0
    counts[[3, 60]] = counts[[60, 3]]
    plan = plan_blocks(counts, 60, Noise(counts / counts.sum()), 4, np.random.default_rng(0))
    assert (np.diff(counts[plan.order]) <= 0).all()
    assert (plan.order[plan.place] == np.arange(K)).all()
    assert (plan.n_blocks, plan.n_drawn, plan.stride) == (5, 4, 80)
    np.testing.assert_allclose(plan.noise.p.sum(), 1.0)
    # rows of a table must not lie whole pages apart
    assert plan_blocks(np.ones(1024), 16, None, 4, np.random.default_rng(0)).stride == 1040


def test_order_comes_back_in_place():
    _, rows, options, state, work = problem("frequency", 32)
    steps(state, rows, options, work, 0.1, 0, N)
    coef, bias = (a.copy() for a in settled(state, options))
    finish(state, options)
    assert options.plan.is_identity()
    again, bias_again = settled(state, options)
    assert np.shares_memory(again, state.W)
    assert (again == coef).all() and (bias_again == bias).all()


@pytest.mark.parametrize("n_classes", [2, 15, 16, 17, 40])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_odd_numbers_of_classes(n_classes, alpha):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((max(50, n_classes), 3)), np.arange(max(50, n_classes)) % n_classes
    weight = rng.integers(0, 3, len(y)).astype(float)
    weight[:n_classes] = 1.0
    p = rng.random(n_classes) + 0.1
    for noise in (None, "uniform", "frequency", p / p.sum()):
        model = ExtremeSoftmaxSGD(
            alpha=alpha, max_iter=3, noise=noise, n_negatives=5, n_jobs=3, random_state=0
        ).fit(X, y, sample_weight=weight)
        assert np.isfinite(model.coef_).all()
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_blocks_after_hashing(digits):
    X, y = digits
    model = ExtremeSoftmaxSGD(hash_bits=6, learning_rate=0.1, max_iter=1).fit(X, y)
    assert hasattr(model, "table_") and X.shape[1] == 2**6
    model.set_params(hash_bits=None, random_state=0).fit(X, y)
    assert not hasattr(model, "table_")


@pytest.mark.parametrize("method", ["auto", "is"])
def test_no_epoch_before_the_time_is_up(digits, method):
    X, y = digits
    model = ExtremeSoftmaxSGD(method, learning_rate=0.1, max_time=1e-9, random_state=0).fit(X, y)
    assert np.abs(model.coef_).max() < 10.0


def test_threads_have_workspaces_of_their_own():
    """Rows that share no feature are independent, whichever thread works on them."""
    rng = np.random.default_rng(0)
    n, n_classes = 400, 200
    X, y = sp.diags_array(rng.uniform(0.5, 2.0, n), format="csr"), rng.integers(0, n_classes, n)

    def fitted(n_threads):
        plan = plan_blocks(np.ones(n_classes), 64, None, 8, np.random.default_rng(1))
        options = SamplingOptions(method="is", plan=plan, n_threads=n_threads, adaptive=True)
        rows = make_rows(X.toarray(), y, True, np.int32, np.float64)
        state = init_state(n_classes, n, np.float64, options, fit_intercept=False)
        work = init_work(rows, n_classes, options, np.random.default_rng(2), counts=np.ones(n_classes))
        set_scale(state, rows)
        assert steps(state, rows, options, work, 0.5, 0, n) == -1
        return state.W

    expected = fitted(1)
    for _ in range(20):
        # other draws, and sums of a quarter of the rows: only that no step overflows
        found = fitted(4)
        assert np.isfinite(found).all() and np.abs(found).max() < 2.0 * np.abs(expected).max()
