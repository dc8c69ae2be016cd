"""Objectives and certificates of finite problems, compared with values that others reach.

Whether a fit converged or not: its objective is that of its coefficients, and lies above the minimum by no
more than its duality gap. Where it claims to have converged, without a warning, it is as near as the claim
says.
"""

import warnings

import fuzz_references as ref
import numpy as np
import pytest
from fuzz_budget import fuzz
from fuzz_matrices import LAYOUTS, SEEDS, as_layout
from fuzz_outcomes import PACKAGE, check_finite, unconverged
from hypothesis import strategies as st

import sparsekit as sk

ITERATIONS = st.sampled_from([200, 1, 2, 4, 8])
# of the fits' float64 sums over rows, relative to the loss at zero
ROUNDING = 1e-9


def finite_matrix(draw):
    """(A, X): ordinary sizes, columns of different scales, zeros, ties, columns that depend on others."""
    n, p = draw(st.sampled_from([12, 5, 3, 30])), draw(st.sampled_from([2, 1, 4, 9]))
    rng = np.random.default_rng(draw(SEEDS))
    A = rng.standard_normal((n, p)) if draw(st.booleans()) else rng.integers(-2, 3, (n, p)).astype(float)
    A[rng.random((n, p)) > draw(st.sampled_from([1.0, 0.4]))] = 0.0
    if draw(st.integers(0, 3)) == 0:
        A *= 10.0 ** rng.integers(-2, 3, p)
    if p > 2 and draw(st.integers(0, 3)) == 0:
        A[:, 2] = A[:, 0] - A[:, 1]
    return A, as_layout(A, draw(st.sampled_from(sorted(LAYOUTS))))


def finite_weights(draw, n):
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(["none", "uniform", "some", "ratio"]))
    s = {"uniform": rng.uniform(0.1, 3.0, n), "some": rng.integers(0, 3, n).astype(float)}.get(
        kind, 10.0 ** rng.integers(-4, 5, n)
    )
    s[:2] = np.maximum(s[:2], 1e-4)
    return None if kind == "none" else s


def codes_of(draw, n, K):
    """Codes of K classes, of which the first rows, whose weights are not 0, have two."""
    y = np.random.default_rng(draw(SEEDS)).integers(0, K, n)
    y[: min(K, n)] = np.arange(min(K, n))
    return y, len(np.unique(y))


def offset_of(draw, shape):
    """None, or what is added to each row's score: a little of noise, or much."""
    size = draw(st.sampled_from([0.0, 1.0, 30.0]))
    return size * np.random.default_rng(draw(SEEDS)).standard_normal(shape) if size else None


def fitted(model, X, y, s, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=s, **given)
    odd = [w for w in caught if w.category is RuntimeWarning and w.filename.startswith(PACKAGE)]
    assert not odd, odd[0]
    check_finite(model)
    return model, unconverged(caught)


def certified(model, warned, f, best, zero, claim=1e-4):
    """``claim``: how far the objective may be too high where nothing warns, relative to it."""
    slack = ROUNDING * np.maximum(zero, np.abs(f)) + 1e-300
    assert (np.abs(model.objective_ - f) <= 1e3 * slack).all(), ("objective", model.objective_, f)
    gap = np.where(np.isnan(model.dual_gap_), np.inf, model.dual_gap_)
    assert (f - best <= gap + slack).all(), ("gap", f - best, gap, model)
    if not warned and claim is not None:
        allowed = np.maximum(1.1 * claim * np.abs(f), 1e-6 * zero) + slack
        assert (f - best <= allowed).all(), ("converged", f, best, gap, model)


@fuzz(share=30)
def test_l1_logistic(draw):
    A, X = finite_matrix(draw)
    y, K = codes_of(draw, len(A), draw(st.sampled_from([2, 3, 4])))
    model = sk.L1LogisticOBA(
        C=draw(st.sampled_from([1.0, 1e-3, 0.1, 30.0, 1e3])),
        fit_intercept=draw(st.booleans()),
        max_iter=draw(ITERATIONS),
        hessian=draw(st.sampled_from(["exact", "lbfgs"])),
        memory=draw(st.sampled_from([10, 2])),
    )
    s = finite_weights(draw, len(A))
    o = offset_of(draw, len(A) if K == 2 else (len(A), K))
    model, warned = fitted(model, X, y, s, offset=o)
    certified(model, warned, *ref.l1_logistic(model, A, y, K, s, 0.0 if o is None else o))


@fuzz(share=30)
def test_lasso(draw):
    A, X = finite_matrix(draw)
    y = np.random.default_rng(draw(SEEDS)).standard_normal(len(A)) * draw(st.sampled_from([1.0, 1e-3, 1e4]))
    y += draw(st.sampled_from([0.0, 100.0]))
    model = sk.LassoOBA(
        alpha=draw(st.sampled_from([1e-2, 0.3, 10.0, 1e-5])),
        fit_intercept=draw(st.booleans()),
        max_iter=draw(ITERATIONS),
        hessian=draw(st.sampled_from(["exact", "lbfgs"])),
    )
    s = finite_weights(draw, len(A))
    o = offset_of(draw, len(A))
    model, warned = fitted(model, X, y, s, offset=o)
    certified(model, warned, *ref.lasso(model, A, y if o is None else y - o, s))


BOXES = st.sampled_from([(None, None), (0, None), (-0.1, 0.1), (None, 0), (-5, 1), (0, 0)])


@fuzz(share=30)
def test_bounded_regressor(draw):
    A, X = finite_matrix(draw)
    y = np.random.default_rng(draw(SEEDS)).standard_normal(len(A))
    y = np.round(y) if draw(st.booleans()) else y
    bounds = draw(BOXES)
    model = sk.BoundedRegressor(
        loss=draw(st.sampled_from(["absolute", "quantile", "huber", "squared", "epsilon_insensitive"])),
        alpha=draw(st.sampled_from([1e-2, 0.0, 1.0])),
        l1_ratio=draw(st.sampled_from([0.0, 0.5, 1.0])),
        quantile=draw(st.sampled_from([0.5, 0.9])),
        epsilon=draw(st.sampled_from([0.1, 1.0])),
        bounds=bounds,
        fit_intercept=draw(st.booleans()),
        max_iter=draw(st.sampled_from([10_000, 1, 10, 50])),
    )
    s = finite_weights(draw, len(A))
    try:
        found = ref.bounded(fitted(model, X, y, s)[0], A, [y], s, bounds)
    except AssertionError as error:
        if "reference" not in _files(error):
            raise
        return  # the reference could not prove its own answer, of a problem without a bounded solution
    certified(model, model.dual_gap_ > 1e-6 * model.objective_, *found, claim=1e-6)


def _files(error):
    found, trace = "", error.__traceback__
    while trace:
        found, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return found


@fuzz(share=20)
def test_bounded_classifier(draw):
    A, X = finite_matrix(draw)
    y, K = codes_of(draw, len(A), draw(st.sampled_from([2, 3])))
    bounds = draw(BOXES)
    model = sk.BoundedClassifier(
        loss=draw(st.sampled_from(["log_loss", "hinge", "squared_hinge", "modified_huber"])),
        alpha=draw(st.sampled_from([1e-2, 1.0, 1e-4])),
        l1_ratio=draw(st.sampled_from([0.0, 0.5])),
        bounds=bounds,
        fit_intercept=draw(st.booleans()),
        max_iter=draw(st.sampled_from([10_000, 1, 10, 50])),
    )
    s = finite_weights(draw, len(A))
    signs = [np.where(y == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))]
    try:
        found = ref.bounded(fitted(model, X, y, s)[0], A, signs, s, bounds)
    except AssertionError as error:
        if "reference" not in _files(error):
            raise
        return
    certified(model, bool((model.dual_gap_ > 1e-6 * model.objective_).any()), *found, claim=1e-6)


def targets(draw, n):
    """y, and the distributions that are its targets."""
    K = draw(st.sampled_from([2, 3, 4]))
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(["labels", "indicator", "distribution"]))
    if kind == "labels":
        y, K = codes_of(draw, n, K)
        return y, np.eye(K)[y]
    Y = (rng.random((n, K)) < 0.4).astype(float)
    Y[np.arange(n), rng.integers(0, K, n)] = 1.0
    Q = Y / Y.sum(axis=1, keepdims=True)
    return (Y, Q) if kind == "indicator" else (Q, Q)


@pytest.mark.parametrize("name", ["Softmax", "Sparsemax"])
@fuzz(share=20)
def test_fenchel_young(draw, name):
    A, X = finite_matrix(draw)
    y, Q = targets(draw, len(A))
    kind, rows = (
        (sk.SoftmaxClassifier, ref.softmax_rows)
        if name == "Softmax"
        else (sk.SparsemaxClassifier, ref.sparsemax_rows)
    )
    model = kind(
        alpha=draw(st.sampled_from([1e-2, 1e-4, 10.0, 1e-6])),
        fit_intercept=draw(st.booleans()),
        penalize_intercept=draw(st.booleans()),
        max_iter=draw(ITERATIONS),
    )
    s = finite_weights(draw, len(A))
    model, warned = fitted(model, X, y, s)
    found = ref.table(model, A, Q, s, rows, model.penalize_intercept)
    certified(model, warned, *found)


@fuzz(share=20)
def test_label_sets(draw):
    """Without pairs and factors labels are apart, and simple."""
    A, X = finite_matrix(draw)
    K = draw(st.sampled_from([2, 3, 5]))
    Y = (np.random.default_rng(draw(SEEDS)).random((len(A), K)) < 0.5).astype(int)
    model = sk.LPSparseMAPClassifier(
        loss=draw(st.sampled_from(["sparsemap", "logistic"])),
        alpha=draw(st.sampled_from([1e-2, 1.0, 1e-4])),
        pairs=None,
        fit_intercept=draw(st.booleans()),
        max_iter=draw(ITERATIONS),
        tol=1e-6,
    )
    s = finite_weights(draw, len(A))
    model, warned = fitted(model, X, Y, s)
    rows = ref.box_rows if model.loss == "sparsemap" else ref.logistic_rows
    found = ref.table(model, A, Y.astype(float), s, rows, False)
    certified(model, warned, *found, claim=None)
