"""Kernels of softmax with very many classes, each against plain NumPy, SciPy or mpmath."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference_extreme import explicit_batch, first_u, proximal_step

from sparsekit._cython.extreme import _extreme as kernels
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.sgd import DataRows, init_work, inverse_probability, steps
from sparsekit._extreme.solver.state import METHODS, init_state, settle, settled
from sparsekit._extreme.solver.state import SamplingOptions as Settings

N, D, K = 12, 7, 9
EMPTY = np.empty(0, dtype=np.int32)


def make_rows(X, y, sparse=False, index=np.int32, dtype=np.float64, **kwargs):
    X = X.astype(dtype)
    if sparse:
        A = sp.csr_array(X)
        return DataRows(A.data, A.indices.astype(index), A.indptr.astype(index), X.shape[1], y, **kwargs)
    return DataRows(X.reshape(-1), EMPTY, EMPTY, X.shape[1], y, **kwargs)


def problem(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.6)
    return X, rng.integers(0, K, n), rng


def model(options, rng, dtype=np.float64, size=0.3, intercept=True):
    state = init_state(K, D, dtype, options, fit_intercept=intercept)
    state.W[...] = size * rng.standard_normal((K, D))
    if intercept:
        state.bias[...] = size * rng.standard_normal(K)
    return state


def table(state):
    """W with the intercepts as the last column, lazy scales multiplied in."""
    scale = 1.0 if state.scale is None else state.scale[:, None]
    bias = np.zeros(len(state.W)) if state.bias is None else state.bias
    return np.column_stack([state.W, bias]).astype(np.float64) * scale


def replay(options, rows, noise, work, size):
    """The classes and weights that the next steps will draw: [(codes with the label first, r)]."""
    state = work.states[:1].copy()
    out = []
    extra = (None, None, None) if noise is None else (noise.p, noise.keep, noise.alias)
    for e in work.examples[:size]:
        codes, r = kernels.draw(METHODS[options.method], K, rows.y[e], options.n_negatives, state, *extra)
        out.append((np.concatenate([[rows.y[e]], codes]), r))
    return out


CASES = [
    (method, noise, m, batch)
    for method in ("umax", "sgd", "ove", "nce", "is")
    for noise in ("uniform", "frequency")
    for m, batch in ((1, 1), (3, 1), (2, 4), (20, 3))
]


# forms of the rows, and how near steps of their dtype come
FORMS = {
    "dense": (dict(), 1e-7),
    "dense, float32": (dict(dtype=np.float32), 2e-5),
    "sparse": (dict(sparse=True), 1e-7),
    "sparse, int64": (dict(sparse=True, index=np.int64), 1e-7),
    "sparse, float32": (dict(sparse=True, dtype=np.float32), 2e-5),
    "sparse, int64, float32": (dict(sparse=True, index=np.int64, dtype=np.float32), 2e-5),
}


@pytest.mark.parametrize("method, noise, m, batch", CASES)
@pytest.mark.parametrize("form", FORMS)
def test_explicit_steps(method, noise, m, batch, form):
    kind, atol = FORMS[form]
    X, y, rng = problem()
    weight = rng.uniform(0.5, 2.0, N)
    p = rng.uniform(0.5, 2.0, K)
    noise = Noise(p / p.sum()) if noise == "frequency" else None
    options = Settings(method=method, n_negatives=m, batch_size=batch)
    rows = make_rows(X, y, weight=weight, **kind)
    state = model(options, rng, rows.data.dtype)
    work = init_work(rows, K, options, rng, noise=noise)
    log_noise = noise.log if noise is not None else np.full(K, -np.log(K))
    us = [0.05, np.nan, 3.0, 1.0][:batch]
    if work.u is not None:
        work.u[:batch] = us
    drawn = replay(options, rows, noise, work, batch)
    xs = [np.append(X[e], 1.0) for e in range(batch)]
    expected, new_us = explicit_batch(
        method, table(state), xs, [k for k, _ in drawn], [r for _, r in drawn], us, 0.1, weight,
        log_noise=log_noise,
    )  # fmt: skip
    assert steps(state, rows, options, work, 0.1, 0, batch) == -1
    np.testing.assert_allclose(table(state), expected, atol=atol)
    assert state.W.dtype == rows.data.dtype
    if work.u is not None:
        np.testing.assert_allclose(work.u[:batch], new_us, atol=atol)
    assert np.abs(expected - table(model(options, problem()[2]))).max() > 1e-3


@pytest.mark.parametrize("m", [1, 3, 20])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("eta", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("form", ["dense", "sparse", "sparse, int64"])
def test_implicit_steps_of_one_row(m, alpha, eta, form):
    X, y, rng = problem(2)
    options = Settings(method="implicit", n_negatives=m, alpha=alpha)
    rows = make_rows(X, y, **FORMS[form][0])
    state = model(options, rng)
    counts = np.bincount(y, minlength=K) + 1
    work = init_work(rows, K, options, rng, counts=counts)
    for e in range(3):
        W = table(state)
        x = np.append(X[e], 1.0)
        # the generator of the kernel is at its e-th draw
        drawn = kernels.draw(METHODS["implicit"], K, y[e], m, work.states[:1].copy())
        codes, r = np.concatenate([[y[e]], drawn[0]]), np.concatenate([[0.0], drawn[1]])
        u = np.log(K)
        if e == 2:  # a row that was not seen: what its own classes show
            work.u[e] = np.nan
            u = first_u(W[codes] @ x, r[1:])
        assert e == 2 or work.u[e] == u
        expected, u_new, accuracy = proximal_step(
            W, [x], codes, [0], r[None, :], np.array([u]), eta, [1.0], alpha, work.beta
        )
        assert accuracy < 1e-9
        assert steps(state, rows, options, work, eta, e, e + 1) == -1
        np.testing.assert_allclose(table(state), expected, atol=2e-6)
        np.testing.assert_allclose(work.u[e], u_new[0], atol=2e-6)


@pytest.mark.parametrize("method", ["implicit", "umax", "nce"])
def test_row_numbers_and_order(method):
    X, y, _ = problem(5, 30)
    of = np.arange(29, -1, -1)

    def run(rows, examples):
        rng = np.random.default_rng(0)
        options = Settings(method=method)
        state = model(options, rng)
        work = init_work(rows, K, options, rng)
        work.examples[:] = examples
        steps(state, rows, options, work, 0.5, 0, 30)
        return table(state)

    plain = run(make_rows(X, y), of)
    mapped = run(make_rows(X, y[::-1].copy(), row_of=of), np.arange(30))
    np.testing.assert_array_equal(plain, mapped)


# ---------------------------------------------------------------------------------- lazy parts


def test_rescaled_rows():
    X, y, rng = problem(7, 40)
    rows = make_rows(X, y)
    options = Settings(method="ove", alpha=5.0)
    work = init_work(rows, K, options, rng, counts=np.bincount(y, minlength=K) + 1.0)
    state, eager = (init_state(K, D, np.float64, options) for _ in range(2))
    eager_work = init_work(
        rows, K, options, np.random.default_rng(0), counts=np.bincount(y, minlength=K) + 1.0
    )
    eager_work.states[:] = work.states
    smallest = 1.0
    for _ in range(40):
        for at in range(40):
            steps(state, rows, options, work, 1.0, at, at + 1)
            steps(eager, rows, options, eager_work, 1.0, at, at + 1)
            settle(eager)
            smallest = min(smallest, state.scale.min())
    assert smallest < 1e-11 and state.scale.min() > 1e-13
    np.testing.assert_allclose(table(state), table(eager), rtol=1e-9, atol=1e-300)


def test_inverse_probability_of_being_sampled():
    """beta against a count."""
    rng = np.random.default_rng(0)
    y = rng.choice(K, 200, p=np.arange(1, K + 1) / 45)
    n = 40000
    drawn = np.zeros((n, K), dtype=bool)
    drawn[np.arange(n), rng.choice(y, n)] = True
    # two of the other classes, all alike: those with the smallest of random numbers
    others = np.argsort(np.where(drawn, 2.0, rng.random((n, K))), axis=1)[:, :2]
    np.put_along_axis(drawn, others, True, axis=1)
    expected = inverse_probability(np.bincount(y, minlength=K), Settings(n_negatives=2))
    np.testing.assert_allclose(n / drawn.sum(axis=0), expected, rtol=0.02)


def test_hashed_table():
    """A large table is the plain model up to collisions, of which it has none here."""
    X, y, _ = problem(9, 60)
    for sparse in (False, True):
        rows = make_rows(X, y, sparse)
        out = []
        for bits in (0, 22):
            rng = np.random.default_rng(0)
            options = Settings(method="implicit", n_negatives=2)
            state = init_state(K, D, np.float64, options, table_bits=bits)
            work = init_work(rows, K, options, rng)
            for _ in range(3):
                steps(state, rows, options, work, 0.5, 0, 60)
            W, bias = settled(state, options)
            if bits:
                assert np.count_nonzero(W) <= K * D
                scores = np.empty((60, K))
                kernels.hashed_scores(
                    rows.data, rows.indices, rows.indptr, D, 0, 60, W.reshape(-1), state.shift,
                    np.arange(K), scores, 2,
                )  # fmt: skip
                out.append(scores + bias)
            else:
                out.append(X @ W.T + bias)
        np.testing.assert_allclose(out[0], out[1], atol=1e-12)


def test_divergence_is_reported_and_implicit_never_diverges():
    X, y, _ = problem(11, 60)
    X *= 30
    for eta in (1e-3, 1.0, 1e3, 1e9):
        for method in ("sgd", "implicit"):
            for batch in (1, 4) if method == "sgd" else (1,):
                rng = np.random.default_rng(0)
                options = Settings(method=method, batch_size=batch)
                state = init_state(K, D, np.float64, options)
                rows = make_rows(X, y)
                work = init_work(rows, K, options, rng)
                bad = max(steps(state, rows, options, work, eta, 0, 60) for _ in range(20))
                assert method == "sgd" or (bad == -1 and np.isfinite(state.W).all())
                assert method == "implicit" or bad >= 0 or eta < 1


def test_rows_of_zeros():
    X, y, rng = problem(12)
    X[:] = 0.0
    for method in METHODS:
        for batch in (1, 5) if method != "implicit" else (1,):
            for sparse in (False, True):
                options = Settings(method=method, batch_size=batch)
                state = model(options, rng, intercept=False)
                before = table(state)
                rows = make_rows(X, y, sparse)
                work = init_work(rows, K, options, rng)
                for _ in range(5):
                    assert steps(state, rows, options, work, 1.0, 0, N) == -1
                np.testing.assert_allclose(table(state), before, atol=1e-250)
                if work.u is not None:
                    assert np.isfinite(work.u).all()


@pytest.mark.parametrize("method", ["implicit", "ove", "is", "umax"])
@pytest.mark.parametrize("m", [1, 3])
def test_rows_that_share_classes_step_one_after_the_other(method, m):
    """Steps are worked four at a time where they share no class; here nearly all share one."""
    results = []
    for calls in (1, N):
        X, y, rng = problem(5)
        options = Settings(method=method, n_negatives=m)
        state = model(options, rng)
        work = init_work(make_rows(X, y, True), K, options, rng)
        for begin in range(0, N, N // calls):
            rows = make_rows(X, y, True)
            assert steps(state, rows, options, work, 0.5, begin, begin + N // calls) == -1
        results.append(table(state))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9, atol=1e-11)
