"""Steps with blocks of negatives, against plain NumPy and SciPy; the plan; the estimator's option."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from reference_extreme import explicit_batch, first_u, proximal_step
from test_extreme_kernels import FORMS, make_rows

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._cython.extreme import _class_blocks as kernels
from sparsekit._extreme.solver.blocks import plan_blocks
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.sgd import init_work, steps
from sparsekit._extreme.solver.state import METHODS, SamplingOptions, finish, init_state, set_scale, settled

N, D, K = 10, 6, 70  # five blocks, of which the last holds six classes
SIZE = kernels.BLOCK


def problem(method, noise, n_negatives, seed=0, *, sparse=False, index=np.int32, dtype=np.float64, **kwargs):
    """Rows, options, noise, a model of random weights, its work space and generator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    y, weight = rng.integers(0, K, N), rng.uniform(0.5, 2.0, N)
    p = rng.uniform(0.1, 2.0, K)
    noise = Noise(p / p.sum()) if noise == "frequency" else None
    counts = np.bincount(y, minlength=K) + 1.0
    plan = plan_blocks(counts, n_negatives, noise, np.dtype(dtype).itemsize, rng)
    options = SamplingOptions(method=method, n_negatives=n_negatives, plan=plan, **kwargs)
    rows = make_rows(X, y, sparse, index, dtype, weight=weight)
    state = init_state(K, D, dtype, options)
    plan.from_classes(rng.standard_normal((K, D)), rng.standard_normal(K), state.W, state.bias)
    work = init_work(rows, K, options, rng, counts=counts, noise=noise)
    return X, rows, options, state, work


def table(state, options):
    """W in the order of the classes, intercepts as the last column, lazy scales multiplied in."""
    scale = np.ones(state.W.shape[1]) if state.scale is None else state.scale
    W, bias = options.plan.to_classes(state.W * scale, state.bias * scale)
    return np.column_stack([W, bias]).astype(np.float64)


def drawn_classes(options, rows, work, e):
    """Classes (label first) and weights of the next step, and NCE's log of a class's noise."""
    plan, method = options.plan, options.method
    extra = (None,) * 3 if plan.noise is None else (plan.noise.p, plan.noise.keep, plan.noise.alias)
    blocks, w = kernels.draw_blocks(
        METHODS[method], plan.n_blocks, plan.n_drawn, work.states[:1].copy(), *extra
    )
    columns = (blocks[:, None] * SIZE + np.arange(SIZE)).ravel()
    inside = columns < K
    codes, r = plan.order[columns[inside]], np.repeat(w, SIZE)[inside]
    if method != "nce":
        codes, r = codes[codes != rows.y[e]], r[codes != rows.y[e]]
    log_noise = np.log(np.repeat(plan.expected(), SIZE)[:K][plan.place])
    return np.concatenate([[rows.y[e]], codes]), r, log_noise


CASES = [
    (method, noise, m)
    for method in ("umax", "sgd", "ove", "nce", "is")
    for noise in ("uniform", "frequency")
    for m in (5, 30, 48, 100)
]


@pytest.mark.parametrize("method, noise, m", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_explicit_steps(method, noise, m, form):
    kind, atol = FORMS[form]
    X, rows, options, state, work = problem(method, noise, m, **kind)
    for e in range(3):  # of new rows each, the first not seen yet
        if work.u is not None:
            work.u[e] = (np.nan, 2.5, 6.0)[e]
        before, old_u = table(state, options), 1.0 if work.u is None else work.u[e]
        codes, r, log_noise = drawn_classes(options, rows, work, e)
        # the reference subtracts log m; here the expected numbers have it in them
        expected, new_u = explicit_batch(
            method, before, [np.append(X[e], 1.0)], [codes], [r], [old_u], 0.1, rows.weight[e : e + 1],
            log_noise=log_noise - np.log(len(codes) - 1),
        )  # fmt: skip
        assert steps(state, rows, options, work, 0.1, e, e + 1) == -1
        np.testing.assert_allclose(table(state, options), expected, atol=atol)
        if work.u is not None:
            np.testing.assert_allclose(work.u[e], new_u[0], atol=atol)
        assert np.abs(expected - before).max() > 1e-3


@pytest.mark.parametrize("noise, m", [("uniform", 16), ("frequency", 40), ("uniform", 100)])
@pytest.mark.parametrize("alpha, eta", [(0.0, 0.5), (0.0, 50.0), (0.05, 2.0)])
@pytest.mark.parametrize("form", ["dense", "sparse, int64"])
@pytest.mark.thorough(keep=5)
def test_implicit_steps(noise, m, alpha, eta, form):
    X, rows, options, state, work = problem("implicit", noise, m, 2, alpha=alpha, **FORMS[form][0])
    for e in range(2):
        before = table(state, options)
        codes, r, _ = drawn_classes(options, rows, work, e)
        x, u = np.append(X[e], 1.0), np.log(K)
        if np.isnan(work.u[e]):
            u = first_u(before[codes] @ x, r)
        beta = None if work.beta is None else work.beta[options.plan.place]
        eta_e = eta * rows.weight[e]
        expected, u_new, accuracy = proximal_step(
            before, [x], codes, [0], np.concatenate([[0.0], r])[None, :], np.array([u]), eta_e, [1.0],
            alpha, beta,
        )  # fmt: skip
        assert accuracy < 1e-9
        assert steps(state, rows, options, work, eta, e, e + 1) == -1
        np.testing.assert_allclose(table(state, options), expected, atol=5e-6)
        np.testing.assert_allclose(work.u[e], u_new[0], atol=5e-6)


def test_ridge_shrinks_each_class_of_a_step_once():
    X, rows, options, state, work = problem("is", "uniform", 32, alpha=0.3)
    X[0] = 0.0  # nothing moves but the intercepts: what is left is the ridge
    rows.data[:D] = 0.0
    before = table(state, options)
    codes, _, _ = drawn_classes(options, rows, work, 0)
    assert steps(state, rows, options, work, 0.1, 0, 1) == -1
    ratio = np.ones(K)
    eta = 0.1 * rows.weight[0]
    ratio[codes] = 1.0 / (1.0 + eta * 0.3 * work.beta[options.plan.place[codes]])
    np.testing.assert_allclose(table(state, options)[:, :D], before[:, :D] * ratio[:, None], rtol=1e-12)
    assert (ratio < 1).sum() == len(codes)


@pytest.mark.parametrize("m", [16, 100])
def test_nothing_is_read_behind_beta(m):
    results = []
    for poison in (1.0, np.nan, -10.0):
        _, rows, options, state, work = problem("implicit", "uniform", m, alpha=0.1)
        buffer = np.full(K + 64, poison)
        buffer[:K] = work.beta
        work.beta = buffer[:K]
        assert steps(state, rows, options, work, 1.0, 0, N) == -1
        results.append(table(state, options))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_ridge_of_nce_counts_repeated_blocks():
    """Over many draws the mean shrinkage of every class is that of its share."""
    _, rows, options, state, work = problem("nce", "frequency", 48, alpha=1.0)
    rows.data[:] = 0.0
    state.bias[:] = -30.0  # nothing moves
    log_scale, rounds, eta = np.zeros(K), 400, 1e-6
    for _ in range(rounds):
        state.scale[:] = 1.0
        assert steps(state, rows, options, work, eta, 0, N) == -1
        log_scale += np.log(state.scale[:K])
    shares = np.bincount(options.plan.place[rows.y], weights=rows.weight, minlength=K) / rows.weight.sum()
    counts = np.repeat(options.plan.expected(), SIZE)[:K]
    expected = -rounds * eta * rows.weight.sum() * work.beta * (shares + (1 - shares) * counts)
    np.testing.assert_allclose(log_scale, expected, rtol=0.12)


def test_small_scales_are_multiplied_in():
    _, rows, options, state, work = problem("is", "uniform", 100, alpha=1.0)
    for round in range(60):
        assert steps(state, rows, options, work, 5.0, 0, N) == -1
        assert state.scale[:K].min() > 1e-12, round
    assert np.isfinite(table(state, options)).all()
    assert np.abs(table(state, options)).max() < 1.0


@pytest.mark.parametrize("noise", ["uniform", "frequency"])
@pytest.mark.parametrize("m", [16, 48, 64, 80, 1000])
def test_weights_of_a_draw_sum_without_bias(noise, m):
    _, _, options, _, _ = problem("is", noise, m)
    plan = options.plan
    extra = () if plan.noise is None else (plan.noise.p, plan.noise.keep, plan.noise.alias)
    state, total, seen, rounds = np.array([7], dtype=np.uint64), np.zeros(plan.n_blocks), 0.0, 20000
    for _ in range(rounds):
        b, w = kernels.draw_blocks(METHODS["is"], plan.n_blocks, plan.n_drawn, state, *extra)
        assert len(np.unique(b)) == len(b)
        total[b] += w
        seen += np.bincount(b, minlength=plan.n_blocks)
    spread = np.sqrt(w.max() / rounds) if plan.noise is None else np.sqrt(1 / plan.noise.p[-1] / rounds)
    np.testing.assert_allclose(total / rounds, 1.0, atol=4 * spread)
    if plan.noise is None:
        np.testing.assert_allclose(seen / rounds, plan.expected(), atol=0.02)
    if m >= K:
        assert (w == 1.0).all() and len(w) == plan.n_blocks


def test_plan():
    counts = np.arange(K)[::-1] + 1.0
    counts[[3, 60]] = counts[[60, 3]]
    plan = plan_blocks(counts, 60, Noise(counts / counts.sum()), 4, np.random.default_rng(0))
    assert (np.diff(counts[plan.order]) <= 0).all()
    assert (plan.order[plan.place] == np.arange(K)).all()
    assert (plan.n_blocks, plan.n_drawn, plan.stride) == (5, 4, 80)
    np.testing.assert_allclose(plan.noise.p.sum(), 1.0)
    assert np.isinf(plan.log_noise[K:]).all() and np.isfinite(plan.log_noise[:K]).all()
    # beta is one over the probability of a step to meet the class
    label = counts / counts.sum()
    missed = (1.0 - np.repeat(plan.noise.p, SIZE)[:K][plan.place]) ** 4
    met = label + (1 - label) * (1 - missed)
    np.testing.assert_allclose(plan.inverse_probability(counts, "is")[plan.place], 1 / met)
    often = 4 * np.repeat(plan.noise.p, SIZE)[:K][plan.place]
    beta = plan.inverse_probability(counts, "nce")[plan.place]
    np.testing.assert_allclose(beta, 1 / (label + (1 - label) * often))
    # rows of a table must not lie whole pages apart
    assert plan_blocks(np.ones(1024), 16, None, 4, np.random.default_rng(0)).stride == 1040


def test_order_comes_back_in_place():
    _, rows, options, state, work = problem("is", "frequency", 32)
    steps(state, rows, options, work, 0.1, 0, N)
    coef, bias = (a.copy() for a in settled(state, options))
    finish(state, options)
    assert options.plan.is_identity()
    again, bias_again = settled(state, options)
    assert np.shares_memory(again, state.W)
    assert (again == coef).all() and (bias_again == bias).all()


@pytest.mark.parametrize("method", ["implicit", "is", "nce", "ove", "umax", "sgd"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_estimator_learns(method, n_jobs, many):
    X, y = many
    rate = {"implicit": 100.0, "is": 10.0, "nce": 30.0, "ove": 1.0, "umax": 0.1, "sgd": 0.03}[method]
    model = ExtremeSoftmaxSGD(
        method, sampling="blocks", n_negatives=32, learning_rate=rate, max_iter=20, n_jobs=n_jobs,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.coef_.shape == (len(model.classes_), X.shape[1])
    assert model.log_loss(X, y) < 0.8 * np.log(len(model.classes_))
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-4)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_proba(X[:5]), model.predict_proba(X[:5]), atol=1e-5)


def test_independent_steps_go_on_from_blocks(many):
    X, y = many
    model = ExtremeSoftmaxSGD("is", sampling="blocks", learning_rate=3.0, max_iter=5, random_state=0)
    first = model.fit(X, y).log_loss(X, y)
    model.set_params(sampling="independent", learning_rate=0.1).partial_fit(X, y)
    assert model.log_loss(X, y) < first


@pytest.mark.parametrize("n_classes", [2, 15, 16, 17, 40])
@pytest.mark.parametrize("method", ["implicit", "is", "nce", "ove"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_odd_numbers_of_classes(n_classes, method, alpha):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((max(50, n_classes), 3)), np.arange(max(50, n_classes)) % n_classes
    weight = rng.integers(0, 3, len(y)).astype(float)
    weight[:n_classes] = 1.0
    p = rng.random(n_classes) + 0.1
    for noise in (None, "uniform", p / p.sum()):
        model = ExtremeSoftmaxSGD(
            method, sampling="blocks", alpha=alpha, learning_rate=0.1, max_iter=3, noise=noise, n_jobs=3,
            random_state=0,
        ).fit(X, y, sample_weight=weight)  # fmt: skip
        assert np.isfinite(model.coef_).all()
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_blocks_after_hashing(digits):
    X, y = digits
    model = ExtremeSoftmaxSGD("is", hash_bits=6, learning_rate=0.1, max_iter=1).fit(X, y)
    assert hasattr(model, "table_") and X.shape[1] == 2**6
    model.set_params(hash_bits=None, sampling="blocks", learning_rate=0.3, random_state=0).fit(X, y)
    assert not hasattr(model, "table_")


@pytest.mark.parametrize("sampling", ["independent", "blocks"])
def test_no_epoch_before_the_time_is_up(digits, sampling):
    X, y = digits
    model = ExtremeSoftmaxSGD("is", sampling=sampling, learning_rate=0.1, max_time=1e-9, random_state=0).fit(
        X, y
    )
    assert np.abs(model.coef_).max() < 10.0


def test_uniform_blocks_are_distinct():
    state = np.array([5], dtype=np.uint64)
    for _ in range(20):
        b, w = kernels.draw_blocks(METHODS["is"], 5, 4, state)
        assert len(np.unique(b)) == 4 and ((b >= 0) & (b < 5)).all()
        np.testing.assert_array_equal(w, 1.25)


def test_auto_rate_and_indicator(many):
    X, y = many
    Y = sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), y.max() + 1))
    model = ExtremeSoftmaxSGD("is", sampling="blocks", max_iter=5, label_choice="sample", random_state=0)
    model.fit(X, Y)
    assert model.learning_rate_ in model.learning_rate_losses_
    assert model.log_loss(X, Y) < np.log(Y.shape[1])


@pytest.mark.parametrize(
    "params, words",
    [
        (dict(method="is", batch_size=4), "batch_size=4"),
        (dict(hash_bits=10), "hash_bits=10"),
    ],
)
def test_what_blocks_do_not_go_with(params, words, digits):
    model = ExtremeSoftmaxSGD(sampling="blocks", **params)
    with pytest.raises(ValueError, match=words):
        model.fit(*digits)


@pytest.mark.parametrize("adaptive", [False, True])
def test_threads_have_workspaces_of_their_own(adaptive):
    """Rows that share no feature are independent, whichever thread works on them."""
    rng = np.random.default_rng(0)
    n, n_classes = 400, 200
    X, y = sp.diags_array(rng.uniform(0.5, 2.0, n), format="csr"), rng.integers(0, n_classes, n)

    def fitted(n_threads):
        plan = plan_blocks(
            np.ones(n_classes), 64 if adaptive else n_classes, None, 8, np.random.default_rng(1)
        )
        options = SamplingOptions(method="is", plan=plan, n_threads=n_threads, adaptive=adaptive)
        rows = make_rows(X.toarray(), y, True, np.int32, np.float64)
        state = init_state(n_classes, n, np.float64, options, fit_intercept=False)
        work = init_work(rows, n_classes, options, np.random.default_rng(2), counts=np.ones(n_classes))
        set_scale(state, rows)
        assert steps(state, rows, options, work, 0.5, 0, n) == -1
        return state.W

    expected = fitted(1)
    for _ in range(20):
        found = fitted(4)
        if adaptive:  # other draws, and sums of a quarter of the rows: only that no step overflows
            assert np.isfinite(found).all() and np.abs(found).max() < 2.0 * np.abs(expected).max()
        else:
            np.testing.assert_array_equal(found, expected)


def test_no_blocks_in_partial_fit(digits):
    assert not hasattr(ExtremeSoftmaxSGD("is", sampling="blocks"), "partial_fit")
    with pytest.raises(AttributeError) as error:
        ExtremeSoftmaxSGD("is", sampling="blocks").partial_fit(*digits)
    assert "sampling='independent'" in str(error.value.__cause__)
