"""Hard negatives of ExtremeSoftmaxSGD: how they are found, drawn, and what they cost; the default ridge."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from test_class_blocks import SIZE, K, N, drawn_classes, problem, table
from test_extreme_adaptive import reference_step, sparse_text, sums_of
from test_extreme_kernels import make_rows

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._cython.extreme import _class_blocks as kernels
from sparsekit._extreme.solver import hard
from sparsekit._extreme.solver import sgd as solver
from sparsekit._extreme.solver.blocks import plan_blocks
from sparsekit._extreme.solver.hard import is_due, update_hard_blocks, with_hard_blocks
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.sgd import init_work, steps
from sparsekit._extreme.solver.state import METHODS, SamplingOptions, init_state, set_scale
from sparsekit._solver.outcome import Limits


def hardest(scores, labels, n_head, m):
    """Blocks from n_head on by falling highest score other than the label's, -1 behind the last."""
    out = np.full((len(scores), m), -1)
    for i, (row, label) in enumerate(zip(scores, labels)):
        row = row.copy()
        row[label] = -np.inf
        peaks = [row[b : b + SIZE].max() for b in range(n_head * SIZE, len(row), SIZE)]
        # a block of the label alone has nothing to be mistaken for
        best = [b for b in np.argsort(-np.array(peaks), kind="stable") if peaks[b] > -np.inf][:m]
        out[i, : len(best)] = np.array(best) + n_head
    return out


def random_model(n_classes, n_head, m, *, n=60, d=9, sparse=True, index=np.int32, dtype=np.float64, seed=0):
    """Rows, some of them twice, state, options and work of a model of random weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    y, row_of = rng.integers(0, n_classes, n + 5), np.append(np.arange(n), rng.integers(0, n, 5))
    plan = plan_blocks(np.ones(n_classes), 16, Noise(np.full(n_classes, 1.0 / n_classes)), 8, rng)
    plan = replace(plan, n_head=n_head, n_hard=m)
    options = SamplingOptions(method="is", plan=plan, adaptive=True)
    rows = make_rows(X, y, sparse, index, dtype)
    rows.row_of = row_of
    state = init_state(n_classes, d, dtype, options)
    plan.from_classes(
        rng.standard_normal((n_classes, d)), rng.standard_normal(n_classes), state.W, state.bias
    )
    work = init_work(rows, n_classes, options, rng, counts=np.ones(n_classes))
    return X[row_of], rows, state, options, work


@pytest.mark.parametrize(
    ("n_classes", "n_head", "m"), [(70, 0, 2), (70, 1, 9), (64, 0, 1), (81, 2, 3), (400, 3, 8)]
)
@pytest.mark.parametrize(
    ("sparse", "index", "dtype"),
    [(True, np.int32, np.float64), (True, np.int64, np.float32), (False, np.int32, np.float32)],
)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_hardest_blocks_are_found(n_classes, n_head, m, sparse, index, dtype, n_threads):
    X, rows, state, options, work = random_model(
        n_classes, n_head, m, sparse=sparse, index=index, dtype=dtype
    )
    options.n_threads = n_threads
    update_hard_blocks(state, rows, options, work, Limits())
    scores = X @ state.W[:, :n_classes].astype(np.float64) + state.bias[:n_classes]
    np.testing.assert_array_equal(work.hard, hardest(scores, work.columns, n_head, m))
    # a second search replaces the first one
    state.W[:] *= -1.0
    update_hard_blocks(state, rows, options, work, Limits())
    scores = 2 * state.bias[:n_classes] - scores
    np.testing.assert_array_equal(work.hard, hardest(scores, work.columns, n_head, m))


def test_a_search_ends_with_the_time():
    _, rows, state, options, work = random_model(400, 1, 4)
    update_hard_blocks(state, rows, options, work, Limits(max_time=0.0))
    assert (work.hard == -1).all()


@pytest.mark.parametrize("noise", [None, "frequency"])
def test_draws_with_hard_blocks_are_unbiased(noise):
    """Every block counts once in the mean; hard ones do in each draw."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 2.0, 200)
    plan = plan_blocks(np.ones(200), 64, None if noise is None else Noise(p / p.sum()), 8, rng)
    extra = (None,) * 3 if noise is None else (plan.noise.p, plan.noise.keep, plan.noise.alias)
    state, chosen = np.array([7], dtype=np.uint64), np.array([[11, 4, -1, 5]], dtype=np.int32)
    total, rounds = np.zeros(plan.n_blocks), 20000
    for _ in range(rounds):
        b, w = kernels.draw_blocks(
            METHODS["is"], plan.n_blocks, plan.n_head, plan.n_drawn, state, *extra, chosen
        )
        assert len(set(b)) == len(b) and {4, 11} <= set(b)
        assert (w[np.isin(b, [4, 11])] == 1.0).all()
        total[b] += w
    np.testing.assert_allclose(total / rounds, 1.0, atol=0.1)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("noise", [None, "frequency"])
def test_steps_with_hard_blocks_are_those_written_down(noise, alpha):
    """The ridge shrinks by the weights of the draw, and the label once: without bias."""
    X, rows, options, state, _ = problem("is", noise, 16, sparse=True, adaptive=True, alpha=alpha)
    plan = options.plan = replace(options.plan, n_hard=2)
    work = init_work(rows, K, options, np.random.default_rng(1), counts=np.ones(K))
    set_scale(state, rows)
    update_hard_blocks(state, rows, options, work, Limits())
    T, sums = table(state, options), sums_of(state)
    expected_sums = [sums[0], sums[1], sums[2][:K][plan.place], sums[3]]
    sizes = set()
    for e in range(N):
        classes, r, _ = drawn_classes(options, rows, work, e)
        sizes.add(len(classes))
        shrink = np.zeros(K)
        shrink[classes[1:]] = r
        shrink[classes[0]] = 1.0
        reference_step(T, expected_sums, X[e], classes, r, rows.weight[e], 0.4, alpha, shrink)
        assert steps(state, rows, options, work, 0.4, e, e + 1) == -1
    assert max(sizes) > 2 * SIZE
    np.testing.assert_allclose(table(state, options), T, rtol=1e-9, atol=1e-9)


def test_searches_take_no_longer_than_the_epochs():
    def plan(n_classes, n=50000, width=10.0, max_iter=50, n_features=10000):
        blocks = plan_blocks(np.ones(n_classes), 128, None, 4, np.random.default_rng(0))
        rows = SimpleNamespace(width=width, y=np.empty(n), n_features=n_features)
        return with_hard_blocks(blocks, rows, max_iter)

    assert plan(128).n_hard == 0 and plan(128).searches == ()  # of all classes none is hard
    assert plan(300).n_hard == 8 and plan(300).searches == (1, 2, 4, 8, 16, 32)
    assert plan(300, max_iter=5).searches == (1, 2, 4)
    counts = [len(plan(k).searches) for k in (10**3, 10**4, 3 * 10**4, 10**5, 2 * 10**5, 10**6)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 6 and counts[-2:] == [1, 0]
    assert plan(10**6).n_hard == 0
    # rows of other features each: a search packs as much as it scores
    assert len(plan(10**4, n=1000, n_features=10**6).searches) < len(plan(10**4).searches)


def test_searches_come_after_the_planned_epochs(monkeypatch):
    epochs = []
    monkeypatch.setattr(
        solver, "update_hard_blocks",
        lambda state, rows, options, work, limits: epochs.append(state.rows_seen // 800)
        or hard.update_hard_blocks(state, rows, options, work, limits),
    )  # fmt: skip
    X, y = sparse_text(800, 300, 600, 3)
    model = ExtremeSoftmaxSGD(max_iter=4, tol=None, random_state=0).fit(X, y)
    assert len(model.classes_) > 256 and epochs == [1, 2]
    # all classes, and methods by name, have none
    ExtremeSoftmaxSGD(max_iter=4, n_negatives=1000, tol=None).fit(X, y)
    ExtremeSoftmaxSGD("is", sampling="blocks", n_negatives=64, max_iter=4, learning_rate=1.0, tol=None).fit(
        X, y
    )
    assert len(epochs) == 2
    assert not is_due(SimpleNamespace(plan=None), 0)


def test_the_default_ridge():
    X, y = sparse_text(500, 200, 30, 1)
    model = ExtremeSoftmaxSGD(max_iter=3, tol=0.0, random_state=0).fit(X, y)
    assert model.alpha_ == 0.1 / 500
    same = ExtremeSoftmaxSGD(alpha=0.1 / 500, max_iter=3, tol=0.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    # one label a row counts
    indicator = sp.csr_array((np.ones(500), (np.arange(500), y)), shape=(500, 30)).toarray()
    indicator[:, 3] = 1.0
    assert ExtremeSoftmaxSGD(max_iter=1, tol=None).fit(X, indicator).alpha_ == 0.1 / 500
    both = ExtremeSoftmaxSGD(max_iter=1, tol=None, label_choice="sample").fit(X, indicator)
    assert both.alpha_ == pytest.approx(0.1 / 500)
    for options in (dict(method="implicit", learning_rate=1.0), dict(hash_bits=10, learning_rate=1.0)):
        assert ExtremeSoftmaxSGD(max_iter=1, **options).fit(X, y).alpha_ == 0.0
    assert ExtremeSoftmaxSGD(alpha=0.5, max_iter=1).fit(X, y).alpha_ == 0.5


def test_a_stream_has_the_ridge_of_the_rows_so_far():
    X, y = sparse_text(600, 200, 30, 2)
    model = ExtremeSoftmaxSGD(random_state=0)
    for end in (200, 400, 600):
        model.partial_fit(X[end - 200 : end], y[end - 200 : end], classes=np.arange(30))
        assert model.alpha_ == pytest.approx(0.1 / end)


@pytest.mark.thorough
def test_epochs_end_when_the_rate_is_spent():
    X, y = sparse_text(800, 300, 600, 7)

    def epochs(*args, X=X, y=y, **options):
        return ExtremeSoftmaxSGD(*args, **{"tol": None, "random_state": 0} | options).fit(X, y).n_iter_

    assert len(np.unique(y)) > 256
    assert epochs() == 29 == epochs(n_negatives=600)  # 0.85 ** 29 < 0.01
    assert epochs(prior="centroids") == 7 == epochs(decay=0.5)  # 0.5 ** 7 < 0.01
    assert epochs(prior="centroids", alpha=0.01) == 29
    assert epochs(decay=0.8) == 21
    assert epochs(decay=0.9) == 44 and epochs(decay=0.9, max_iter=7) == 7
    assert epochs(alpha=0.0) == 50 == epochs(decay=0.95)
    assert epochs("implicit", learning_rate=1.0, decay=0.5) == 50
    assert epochs(X=X.toarray(), max_iter=5) == 5
    X, y = sparse_text(4000, 1000, 600, 7)  # too large to end with Newton's method
    with pytest.warns(ConvergenceWarning, match="when 3 epochs were over. Raise decay, with which"):
        epochs(X=X, y=y, decay=0.2, tol=1e-9)
    with warnings.catch_warnings():  # what is left is not worth another fit
        warnings.simplefilter("error")
        assert epochs(X=X, y=y, tol=1e-4) <= 29
    with pytest.warns(ConvergenceWarning, match="when 3 epochs were over. Raise max_iter"):
        epochs(X=X, y=y, max_iter=3, tol=1e-9)


def test_a_stream_steps_at_one_rate():
    X, y = sparse_text(600, 200, 30, 2)
    model = ExtremeSoftmaxSGD(random_state=0).partial_fit(X, y, classes=np.arange(30))
    assert model.learning_rate_ == 0.3 == model.partial_fit(X, y).learning_rate_
    assert ExtremeSoftmaxSGD(max_iter=1, random_state=0).fit(X, y).learning_rate_ == 0.6
    assert ExtremeSoftmaxSGD(alpha=0.0, max_iter=1, random_state=0).fit(X, y).learning_rate_ == 0.3
