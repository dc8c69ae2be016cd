"""Penalties, weights of classes, signs and offsets over blocks of rows, against fits in memory."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import as_dask, in_blocks, labels, text
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import sparsekit as sk
from sparsekit._l1.solver import block_columns

X, SCORES = text(p=60, density=0.2)
DENSE = X.toarray() + 0.3
RNG = np.random.default_rng(3)
WEIGHT = RNG.uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0
OFFSETS = {1: RNG.standard_normal(500), 2: RNG.standard_normal(500), 3: RNG.standard_normal((500, 3))}
UNPENALISED = {3: 0.0, 50: 0.0, 0: 2.5}


@pytest.fixture(params=["here", "there", "there, 0.9", "there, 0", "there, inf"])
def columns(request, monkeypatch):
    """Where the columns are, see `test_fits_on_blocks`; "there, PART" has a Hessian of 24 columns."""
    if request.param != "here":
        monkeypatch.setenv("SPARSEKIT_MEMORY", "0")
    if "," in request.param:
        monkeypatch.setattr(block_columns, "MAX_SIDE", 25)
        monkeypatch.setattr("sparsekit._l1.plan.BLOCKS_PART_IN_USE", float(request.param[7:]))
    return request.param


def target(n_classes):
    """Of one class it is a regression."""
    return SCORES + 2.0 if n_classes == 1 else labels(SCORES, n_classes)


def make(n_classes, weak=1.0, **options):
    return sk.LassoOBA(5e-4 / weak, **options) if n_classes == 1 else sk.L1LogisticOBA(weak, **options)


OPTIONS = {
    "plain": {},
    "weak": dict(weak=20.0),
    "all unpenalised but few": dict(penalty_weights=np.arange(60) % 20 // 2),
    "lbfgs": dict(hessian="lbfgs", tol=1e-4, max_iter=2000),
    "threads": dict(n_jobs=2),
    "classes balanced": dict(class_weight="balanced"),
    "classes weighted": dict(class_weight={"low": 2.0, "mid": 0.3}),
    "ridge": dict(l1_ratio=0.0, penalty_weights=UNPENALISED),
    "elastic net": dict(l1_ratio=0.2, penalty_weights=UNPENALISED),
    "little of a ridge": dict(l1_ratio=0.9, fit_intercept=False),
    "offset": dict(offset=True, penalty_weights=UNPENALISED),
    "offset, elastic net": dict(offset=True, l1_ratio=0.4),
    "offset, no intercept": dict(offset=True, fit_intercept=False),
    "positive": dict(positive=True, penalty_weights=UNPENALISED),
    "positive ridge": dict(positive=True, l1_ratio=0.0),
    "positive, no intercept": dict(positive=True, l1_ratio=0.5, fit_intercept=False),
}


def is_meant(name, n_classes):
    """Weights of classes need classes, and coefficients >= 0 are the regression's."""
    return not name.startswith("classes" if n_classes == 1 else "positive")


CASES = [(name, k) for name in OPTIONS for k in (1, 2, 3) if is_meant(name, k)]
FORMS = {"sparse": X, "dense": DENSE, "single": DENSE.astype(np.float32)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name, n_classes", CASES)
def test_fits_are_those_of_memory(name, form, n_classes, columns):
    options, A, y = dict(OPTIONS[name]), FORMS[form], target(n_classes)
    offset = OFFSETS[n_classes] if options.pop("offset", False) else None
    tol = options.pop("tol", 1e-8 if A.dtype == np.float64 else 1e-5)
    wanted = make(n_classes, tol=tol, **options).fit(A, y, WEIGHT, offset)
    found = clone(wanted).fit(in_blocks(A), y, WEIGHT, offset)
    assert_allclose(found.objective_, wanted.objective_, rtol=10 * tol)
    assert_allclose(found.coef_, wanted.coef_, atol=1e-3 if tol < 1e-6 else 0.1)
    if n_classes < 3:
        assert_allclose(found.intercept_, wanted.intercept_, atol=1e-3 if tol < 1e-6 else 0.1)
    assert -1e-12 <= found.dual_gap_ <= 10 * tol * found.objective_ and found.optimality_ <= tol
    assert found.needs_offset_ == (offset is not None)
    if options.get("positive"):
        assert (found.coef_ >= 0).all() and 2 < (found.coef_ > 0).sum() < 60
        assert found.n_rounds_ <= 14 or "," in columns
    if offset is not None:
        far = abs(wanted.objective_ - clone(wanted).fit(A, y, WEIGHT).objective_)
        assert far > 0.01 * wanted.objective_
    if form == "sparse":
        certified(found, y, offset)


def certified(model, y, offset):
    """The bound holds, and so it does where the fit stops early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = clone(model).set_params(tol=1e-13, hessian="exact", max_iter=500).fit(X, y, WEIGHT, offset)
        rough = clone(model).set_params(max_iter=2).fit(in_blocks(X), y, WEIGHT, offset)
    for one in (model, rough):
        error = one.objective_ - best.objective_
        assert error >= -1e-11 * abs(best.objective_)
        assert one.dual_gap_ >= error - 1e-12 * abs(best.objective_)
        assert one.objective_ - one.dual_gap_ <= best.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_paths_are_those_of_memory(n_classes):
    y = target(n_classes)
    cases = [dict(l1_ratio=0.3), dict(offset=OFFSETS[n_classes])]
    cases += [dict(positive=True, l1_ratio=0.6), dict(positive=True, penalty_weights=UNPENALISED)] * (
        n_classes == 1
    )
    for options in cases:
        path = sk.lasso_path if n_classes == 1 else sk.l1_logistic_path
        wanted, found = (path(A, y, n_lambdas=2, tol=1e-8, **options) for A in (X, in_blocks(X)))
        assert_allclose(found.lambdas, wanted.lambdas, rtol=1e-6)
        assert_allclose(found.objectives, wanted.objectives, rtol=1e-8)
        if n_classes == 1:
            assert_allclose(found.coefs, wanted.coefs, atol=1e-3)


# Offsets.


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_predictions_and_scores_take_theirs(n_classes):
    da = pytest.importorskip("dask.array")
    y, offset = target(n_classes), OFFSETS[n_classes]
    model = make(n_classes).fit(as_dask(X), y, offset=da.from_array(offset, (100, *offset.shape[1:])))
    lazy = da.from_array(offset, (120, 1)[: offset.ndim])
    for name in ["predict"] + ["decision_function", "predict_proba", "predict_log_proba"] * (n_classes > 1):
        predict = getattr(model, name)
        wanted = predict(X, offset=offset)
        check = assert_array_equal if name == "predict" and n_classes > 1 else assert_allclose
        for found in (predict(as_dask(X), offset=offset), predict(as_dask(X), offset=lazy)):
            check(found.compute(), wanted)
        check(predict(in_blocks(X), offset), wanted)
        with pytest.raises(ValueError, match="fitted with an offset and predicts with one"):
            predict(as_dask(X))
        with pytest.raises(ValueError, match=r"offset has 499 rows, and X has 500"):
            predict(in_blocks(X), offset=offset[1:])
    one = clone(model).fit(in_blocks(X), y, offset=5.0)
    assert_allclose(one.objective_, clone(model).fit(X, y, offset=5.0 + 0.0 * offset).objective_, rtol=1e-6)
    wanted = model.score(X, y, WEIGHT, offset)
    assert_allclose(model.score(in_blocks(X), y, WEIGHT, offset), wanted)
    assert_allclose(model.score(as_dask(X), y, WEIGHT, lazy), wanted)
    assert_allclose(model.score(as_dask(X), y, offset=0.5), model.score(X, y, offset=0.5))


def test_what_is_wrong_is_named():
    offset = OFFSETS[3]
    for bad, match in (
        (offset[:-1], r"offset has 499 rows, and X has 500"),
        (offset[:, :2], r"offset.shape == \(500, 2\), expected \(500, 3\)"),
        (np.where(offset > 2, np.nan, offset), "offset contains NaN"),
    ):
        with pytest.raises(ValueError, match=match):
            sk.L1LogisticOBA().fit(in_blocks(X), target(3), offset=bad)


def test_a_callback_and_a_limit_stop_a_positive_fit(columns):
    y = target(1)
    best = sk.LassoOBA(0.001, positive=True, tol=1e-10).fit(X, y).objective_
    seen = []
    model = sk.LassoOBA(0.001, positive=True, callback=lambda now: seen.append(now.x) or True, history=True)
    stopped = model.fit(in_blocks(X), y)
    assert len(seen) == stopped.n_iter_ == len(stopped.history_["fun"]) - 1 == 1
    assert seen[0].shape == (61,) and (seen[0][:60] >= 0).all()
    assert 0 < stopped.objective_ - best + 1e-12 <= stopped.dual_gap_ + 1e-12
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        sk.LassoOBA(0.0, positive=True, max_iter=1, tol=1e-15).fit(in_blocks(DENSE), y)
