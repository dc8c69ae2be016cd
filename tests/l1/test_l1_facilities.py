"""Which public L1 thing has which facility: optima, certificates, weights, forms of the data, penalties.

`REFUSED` has the cells of the table that are left out on purpose. What only one of them has, or what needs
more than a small problem, is tested in other files.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import reference_oba as reference
import scipy.sparse as sp
from l1_things import (
    ALPHA,
    COUNTS,
    FOLDS,
    NAMES,
    NUMBERS,
    OFFSET,
    THINGS,
    THREE,
    TOL,
    TWO,
    UNEVEN,
    C,
    N,
    P,
    X,
    each_fit,
    each_thing,
    frame,
    is_selection,
    kind,
    least,
    objective,
    of_classes,
    outputs,
    same,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge

import sparsekit as sk

# cells that are empty on purpose: what is called, the message, and the reason
REFUSED = {
    "positive, classes": (
        lambda: sk.L1LogisticOBA(positive=True), TypeError, "positive",
        "a sign of each class's coefficients has no meaning where classes may be renamed: BoundedClassifier",
    ),
    "positive, L-BFGS": (
        lambda: sk.LassoOBA(positive=True, hessian="lbfgs").fit(X, NUMBERS), ValueError,
        "positive must be False where hessian is 'lbfgs'", "coefficients >= 0 are found without a model",
    ),
    "infinite penalty_weights": (
        lambda: sk.LassoOBA(penalty_weights=[np.inf] + [1.0] * (P - 1)).fit(X, NUMBERS), ValueError,
        "penalty_weights contains infinity", "leave the column out, as `coming_from` says for glmnet",
    ),
    "infinite penalty_weights by name": (
        lambda: sk.L1LogisticOBA(penalty_weights={"f0": np.inf}).fit(frame(), TWO), ValueError,
        r"penalty_weights\['f0'\] must be a finite number", "leave the column out",
    ),
    "callback, CV": (
        lambda: sk.LassoOBACV(callback=print), TypeError, "callback",
        "many fits in threads would be told apart by nothing: scikit-learn's callbacks say which fold it is",
    ),
    "several l1_ratio, one fit": (
        lambda: sk.LassoOBA(l1_ratio=[0.5, 1.0]).fit(X, NUMBERS), ValueError,
        "'l1_ratio' parameter of LassoOBA",
        "only a CV class can choose",
    ),
    "several l1_ratio, path": (
        lambda: sk.l1_logistic_path(X, TWO, l1_ratio=[0.5, 1.0]), ValueError,
        "'l1_ratio' parameter of l1_log",
        "a path has one penalty at a point",
    ),
    "ridge, stability": (
        lambda: sk.StabilitySelection(sk.LassoOBA(l1_ratio=0.0)).fit(X, NUMBERS), ValueError,
        "l1_ratio of LassoOBA must be above 0", "a ridge selects every feature",
    ),
    "one offset a row, 3 classes": (
        lambda: sk.L1LogisticOBA().fit(X, THREE, offset=OFFSET), ValueError, "a column a class",
        "the same for all classes would change no probability",
    ),
    "no offset to predict with": (
        lambda: sk.L1LogisticOBA().fit(X, TWO, offset=OFFSET).predict(X), ValueError,
        "was fitted with an offset",
        "zeros would silently be wrong",
    ),
    "alpha = 0 in a path": (
        lambda: sk.lasso_path(X, NUMBERS, alphas=[1.0, 0.0]), ValueError, "alphas must be > 0",
        "no path leads to zero in the logarithm; LassoOBA(0) is the fit",
    ),
    "penalty known of scikit-learn's own": (
        lambda: sk.StabilitySelection(Lasso()).fit(X, NUMBERS), ValueError, "where the path of Lasso begins",
        "give values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cell", REFUSED)
def test_what_is_refused_says_why(cell):
    call, error, message, _ = REFUSED[cell]
    with pytest.raises(error, match=message):
        call()


def test_no_public_thing_is_forgotten():
    import sparsekit

    public = {n for n in sparsekit.__all__ if n.startswith(("L1", "l1_", "Lasso", "lasso_", "Stability"))}
    assert public == {name.split(",")[0].split("(")[0] for name in THINGS}
    assert sk.LassoOBA.path is sk.lasso_path


# certificate


@pytest.mark.parametrize("weighted", [False, True])
@each_fit
def test_the_gap_is_a_true_bound(fit, weighted):
    s, v = (COUNTS, UNEVEN) if weighted else (None, 1.0)
    given = {"sample_weight": s, "penalty_weights": v} if weighted else {}
    best = least(kind(fit), weighted)
    for tol, close in ((TOL, 1e-8), (1e-3, 1e-2)):
        coef, intercept, value, gap = fit.fit(tol=tol, **given)
        reached = objective(fit, coef, intercept, s=s, v=v)
        assert_allclose(reached, value, rtol=1e-10)
        assert 0 <= gap <= close * value and value - gap <= best * (1 + 1e-12) and best <= value * (1 + 1e-9)
    # and far from the end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, _, value, gap = fit.fit(hessian="lbfgs", max_iter=2, **given)
    assert 1e-6 * best < value - best <= gap < value


@pytest.mark.parametrize("weak", [150.0, 1000.0])
def test_free_features_have_a_bound_where_rows_are_far_from_the_boundary(weak):
    # the correction that makes the dual point feasible moves what is 1e-20 past 0
    draws, shape = np.random.default_rng(1), (31, 43)
    columns = draws.standard_normal(shape) * (draws.random(shape) < 0.5) * 10 ** draws.uniform(-1, 1, 43)
    offset = draws.standard_normal(31)
    y = (offset + columns[:, 0] + draws.standard_normal(31) > 0).astype(int)
    weights = np.where(np.arange(43) < 6, 0.0, 1.0)
    model = sk.L1LogisticOBA(weak, penalty_weights=weights, tol=1e-7).fit(columns, y, offset=offset)
    assert 0 <= model.dual_gap_ <= 1e-6 * model.objective_
    smooth = reference.logistic(columns, 2.0 * y - 1, fit_intercept=True, offset=offset)
    l1 = np.append(weights, 0.0) / weak
    found = reference.objective(smooth, l1, reference.split_lbfgsb(smooth, l1, max_iter=2000))
    assert model.objective_ - model.dual_gap_ <= found * (1 + 1e-12)


# weights of rows and of features


@each_thing
def test_whole_weights_are_repeated_rows_and_zeros_are_absent_ones(thing):
    if is_selection(thing):  # halves of repeated rows are others; `test_stability_selection` draws them
        weight = np.where(np.arange(N) % 4 == 0, 0.0, 1.0)
        some = weight > 0
        same(thing.fit(sample_weight=weight), thing.fit(X[some], thing.y[some]), rtol=1e-9)
        return
    weight = np.arange(N) % 4.0
    rows = np.repeat(np.arange(N), weight.astype(int))
    given = {}
    if "CV" in type(getattr(thing, "model", None)).__name__:
        where = [np.flatnonzero(np.isin(rows, part)) for fold in FOLDS for part in fold]
        given = {"cv": list(zip(where[::2], where[1::2]))}
    found = thing.fit(sample_weight=weight)
    repeated = thing.fit(X[rows], thing.y[rows], **given)
    same(found, repeated)
    assert_allclose(found[2], repeated[2], rtol=1e-8)


@each_thing
def test_weights_of_features_by_array_and_by_name(thing):
    weights = np.ones(P)
    weights[[1, 4]] = 0.0, 3.0
    by_array = thing.fit(frame(), penalty_weights=weights)
    by_name = thing.fit(frame(), penalty_weights={"f1": 0.0, "f4": 3.0})
    by_number = thing.fit(frame(), penalty_weights={1: 0, 4: 3})
    by_series = thing.fit(frame(), penalty_weights=pd.Series(weights, NAMES).sort_values())
    for other in (by_name, by_number, by_series):
        for a, b in zip(by_array[:2], other[:2]):
            assert_array_equal(a, b)
    assert by_array[0][1].all() if is_selection(thing) else by_array[0][:, 1].any()


@each_thing
def test_a_weight_is_a_scaled_column(thing):
    weights = np.linspace(0.25, 4.0, P)
    found, scaled = thing.fit(penalty_weights=weights), thing.fit(X / weights)
    same(found, (scaled[0] if is_selection(thing) else scaled[0] / weights, scaled[1]))


# intercept


@each_fit
def test_only_the_free_intercept_moves_with_columns_and_targets(fit):
    coef, intercept, value, _ = fit.fit()
    shift = np.linspace(-2.0, 3.0, P)
    moved = fit.fit(X + shift)
    expected = intercept - coef @ shift
    same(moved, (coef, expected - expected.mean() if len(coef) > 1 else expected), rtol=1e-4)
    assert_allclose(moved[2], value, rtol=1e-8)
    without = fit.fit(fit_intercept=False)
    assert not without[1].any() and without[2] > value
    if not of_classes(fit):
        same(fit.fit(y=fit.y + 100.0), (coef, intercept + 100.0))


# types, layouts, threads


@each_fit
def test_single_precision_stays_and_is_near_double(fit):
    given = {"tol": 1e-5}
    found = fit.fit(X.astype(np.float32), **given)
    assert found[0].dtype == np.float32 and found[1].dtype in (np.float32, np.float64)
    same(found, fit.fit(X.astype(np.float32).astype(np.float64), **given), rtol=1e-3, atol=1e-3)


@each_thing
def test_formats_give_the_same(thing):
    dense = thing.fit()
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for other in (sp.csr_array(X), sp.csc_matrix(X), wide, sp.coo_array(X), np.asfortranarray(X), frame()):
        same(thing.fit(other), dense)


@each_thing
def test_threads_give_the_same_bits(thing):
    for a, b in zip(thing.fit(n_jobs=1)[:2], thing.fit(n_jobs=2)[:2]):
        if outputs(thing) > 1:  # whose products are those of BLAS
            assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        else:
            assert_array_equal(a, b)


# the elastic net


def peer_of(thing, l1_ratio):
    if not of_classes(thing):
        if l1_ratio == 0:
            return Ridge(ALPHA * N, tol=1e-12)
        return ElasticNet(alpha=ALPHA, l1_ratio=l1_ratio, tol=1e-13, max_iter=10**6)
    options = {"C": C, "tol": 1e-11, "max_iter": 10**5}
    if l1_ratio == 0:
        return LogisticRegression(**options)
    peer = LogisticRegression(l1_ratio=l1_ratio, solver="saga", **options)
    if peer.get_params().get("penalty") == "l2":  # before 1.8
        peer.set_params(penalty="elasticnet")
    return peer


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
@each_fit
def test_every_ratio_is_that_of_scikit_learn(fit, l1_ratio):
    peer = peer_of(fit, l1_ratio).fit(X, fit.y)
    best = objective(fit, np.atleast_2d(peer.coef_), np.ravel(peer.intercept_), l1_ratio=l1_ratio)
    coef, intercept, value, gap = fit.fit(l1_ratio=l1_ratio)
    assert_allclose(objective(fit, coef, intercept, l1_ratio=l1_ratio), value, rtol=1e-10)
    assert_allclose(value, best, rtol=1e-8)
    assert 0 <= gap <= 1e-8 * best and value - gap <= best * (1 + 1e-12)


@pytest.mark.parametrize("name", [n for n in THINGS if "asso" in n])
def test_coefficients_may_have_to_be_positive(name):
    thing = THINGS[name]
    plain, found = thing.fit(), thing.fit(positive=True)
    if is_selection(thing):
        assert plain[0][1].any() and not found[0][1].any() and found[0][0].any()
        return
    peer = ElasticNet(alpha=ALPHA, l1_ratio=1.0, positive=True, tol=1e-13, max_iter=10**6).fit(X, thing.y)
    assert (plain[0] < 0).any() and (found[0] >= 0).all()
    assert_allclose(found[2], objective(thing, peer.coef_[None], [peer.intercept_]), rtol=1e-8)
    assert 0 <= found[3] <= 1e-8 * found[2]
