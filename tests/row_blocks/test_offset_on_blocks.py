"""Offsets of the rows with X in blocks: fits, paths, folds and predictions are those of memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import as_dask, in_blocks, labels, text
from sklearn.base import clone

from sparsekit import (
    BoundedRegressor,
    L1LogisticOBA,
    L1LogisticOBACV,
    LassoOBA,
    LassoOBACV,
    l1_logistic_path,
    lasso_path,
)

X, SCORES = text(p=40, density=0.2)
RNG = np.random.default_rng(3)
WEIGHT = RNG.uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0
OFFSETS = {1: RNG.standard_normal(500), 2: RNG.standard_normal(500), 3: RNG.standard_normal((500, 3))}


def problem(n_classes):
    """Targets and offset; one class is a regression."""
    return (SCORES if n_classes == 1 else labels(SCORES, n_classes)), OFFSETS[n_classes]


def make(n_classes, **options):
    return LassoOBA(0.002, **options) if n_classes == 1 else L1LogisticOBA(2.0, **options)


def frame(values):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pd.Series(values) if values.ndim == 1 else pd.DataFrame(values)
    return dd.from_pandas(table, npartitions=3)


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_fits_are_those_of_memory(n_classes, where, monkeypatch):
    if where == "there":
        monkeypatch.setenv("SPARSEKIT_MEMORY", "0")
    y, offset = problem(n_classes)
    for options in (dict(penalty_weights={3: 0.0, 0: 2.5}), dict(l1_ratio=0.4), dict(fit_intercept=False)):
        wanted = make(n_classes, tol=1e-8, **options).fit(X, y, WEIGHT, offset)
        found = clone(wanted).fit(in_blocks(X), y, WEIGHT, offset)
        assert_allclose(found.objective_, wanted.objective_, rtol=1e-8)
        assert_allclose(found.coef_, wanted.coef_, atol=1e-3)
        assert_allclose(found.intercept_, wanted.intercept_, atol=1e-3)
        assert -1e-12 <= found.dual_gap_ <= 1e-7 * found.objective_ and found.needs_offset_
        far = abs(wanted.objective_ - clone(wanted).fit(X, y, WEIGHT).objective_)
        assert far > 0.01 * wanted.objective_
    # a fit that is cut short is no nearer than its certificate says
    early = clone(found).set_params(tol=1e-2).fit(in_blocks(X), y, WEIGHT, offset)
    assert early.objective_ - wanted.objective_ <= early.dual_gap_ + 1e-9


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_zeros_and_constants(n_classes):
    y, offset = problem(n_classes)
    plain = make(n_classes).fit(in_blocks(X), y)
    zeros = clone(plain).fit(in_blocks(X), y, offset=np.zeros_like(offset))
    assert_array_equal(zeros.coef_, plain.coef_)
    assert zeros.needs_offset_ and not plain.needs_offset_
    shifted = clone(plain).fit(in_blocks(X), y, offset=5.0)
    assert_allclose(shifted.coef_, plain.coef_, atol=1e-3)
    assert_allclose(shifted.predict(in_blocks(X), offset=5.0) == plain.predict(X), 1, atol=n_classes == 1)
    if n_classes < 3:
        assert_allclose(shifted.intercept_, plain.intercept_ - 5.0, atol=1e-3)
    # the tolerance has the same unit, wherever a constant moves the intercept
    ends = [clone(plain).set_params(tol=1e-2).fit(in_blocks(X), y, offset=offset + c) for c in (0.0, 30.0)]
    if n_classes < 3:
        assert_allclose(ends[0].optimality_, ends[1].optimality_, rtol=1e-5)


def test_coefficients_that_must_not_be_negative_and_bounded_ones():
    y, offset = problem(1)
    for model in (LassoOBA(0.001, positive=True, tol=1e-8), BoundedRegressor("squared", alpha=0.01)):
        wanted = clone(model).fit(X, y, offset=offset)
        found = clone(model).fit(in_blocks(X), y, offset=offset)
        assert_allclose(found.coef_, wanted.coef_, atol=1e-4)
        assert found.needs_offset_


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_predictions_and_scores_take_theirs(n_classes):
    da = pytest.importorskip("dask.array")
    y, offset = problem(n_classes)
    model = make(n_classes).fit(as_dask(X), y, offset=da.from_array(offset, (100, *offset.shape[1:])))
    methods = ["predict"] + ["decision_function", "predict_proba", "predict_log_proba"] * (n_classes > 1)
    given = {"array": offset, "dask": da.from_array(offset, (120, 1)[: offset.ndim])}
    for name in methods:
        wanted = getattr(model, name)(X, offset=offset)
        for kind, rows in given.items():
            found = getattr(model, name)(as_dask(X), offset=rows)
            assert found.shape == wanted.shape, kind
            check = assert_array_equal if name == "predict" and n_classes > 1 else assert_allclose
            check(found.compute(), wanted)
        check(getattr(model, name)(in_blocks(X), offset), wanted)
        with pytest.raises(ValueError, match="fitted with an offset and predicts with one"):
            getattr(model, name)(as_dask(X))
        with pytest.raises(ValueError, match=r"offset has 499 rows, and X has 500"):
            getattr(model, name)(in_blocks(X), offset=offset[1:])
    wanted = model.score(X, y, WEIGHT, offset)
    assert_allclose(model.score(in_blocks(X), y, WEIGHT, offset), wanted)
    assert_allclose(model.score(as_dask(X), y, WEIGHT, given["dask"]), wanted)
    assert_allclose(model.score(as_dask(X), y, offset=0.5), model.score(X, y, offset=0.5))


@pytest.mark.parametrize("n_classes", [1, 3])
def test_data_frames(n_classes):
    """Whose partitions have unknown sizes, so that everything comes in the same."""
    y, offset = problem(n_classes)
    wanted = make(n_classes).fit(X, y, offset=offset)
    table, rows = frame(X.toarray()), frame(offset)
    found = clone(wanted).fit(table, frame(y), offset=rows)
    assert_allclose(found.coef_, wanted.coef_, atol=0.02)
    predicted = found.predict(table, offset=rows).compute()
    assert (
        np.mean(np.isclose(predicted, wanted.predict(X, offset)) if n_classes == 1 else predicted == y) > 0.5
    )
    assert_allclose(found.score(table, frame(y), offset=rows), wanted.score(X, y, None, offset), atol=0.02)
    if n_classes == 1:  # one column of a frame is as good
        again = clone(wanted).fit(table, frame(y), offset=frame(offset[:, None]))
        assert_array_equal(again.coef_, found.coef_)
    with pytest.raises(ValueError, match="offset can't be cut alike"):
        found.fit(table, frame(y), offset=offset)


def test_paths_and_folds_are_those_of_memory():
    y, offset = problem(3)
    options = dict(offset=offset, n_lambdas=3, tol=1e-8)
    for path, target, own in ((l1_logistic_path, y, offset), (lasso_path, SCORES, OFFSETS[1])):
        options["offset"] = own
        wanted, found = path(X, target, **options), path(in_blocks(X), target, **options)
        assert_allclose(found.lambdas, wanted.lambdas)
        assert_allclose(found.objectives, wanted.objectives, rtol=1e-8)
    # a fold whose training part lacks a class
    rows = np.arange(500)
    lacking = np.flatnonzero(y != "top")
    folds = [(rows[::2], rows[1::2]), (lacking[::2], np.setdiff1d(rows, lacking[::2]))]
    cv = L1LogisticOBACV([0.5, 4.0], cv=folds, scoring="accuracy", tol=1e-7)
    wanted, found = clone(cv).fit(X, y, WEIGHT, offset), clone(cv).fit(in_blocks(X), y, WEIGHT, offset)
    assert_allclose(found.scores_, wanted.scores_, atol=0.01)
    assert_allclose(found.coef_, wanted.coef_, atol=1e-3)
    assert_allclose(found.score(in_blocks(X), y, offset=offset), wanted.score(X, y, offset=offset))
    lasso = LassoOBACV([0.01, 0.002], cv=3, tol=1e-8)
    wanted, found = lasso.fit(X, SCORES, WEIGHT, OFFSETS[1]).mse_path_, clone(lasso)
    found.fit(in_blocks(X), SCORES, WEIGHT, OFFSETS[1])
    assert_allclose(found.mse_path_, wanted, rtol=1e-5)


def test_what_is_wrong_is_named():
    y, offset = problem(3)
    model = L1LogisticOBA()
    for bad, match in (
        (offset[:-1], r"offset has 499 rows, and X has 500"),
        (offset[:, :2], r"offset.shape == \(500, 2\), expected \(500, 3\)"),
        (np.where(offset > 2, np.nan, offset), "offset contains NaN"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(in_blocks(X), y, offset=bad)
