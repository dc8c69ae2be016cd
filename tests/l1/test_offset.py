"""`offset`: a column whose coefficient is one, at fit and at predict."""

import warnings

import numpy as np
import pytest
import reference_oba
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import sparsekit as sk
from sparsekit._l1.losses.null_intercept import null_intercept
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, ProbitLoss, minimize_oba


def data(n_classes=2, n=90, p=12, size=2.0, seed=0):
    """X, classes that the offset and two features explain, and the offset, (n,) or (n, K)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    if n_classes == 2:
        offset = size * rng.standard_normal(n) + 1.0
        return X, (2 * X[:, 0] - X[:, 1] + offset + rng.logistic(size=n) > 0).astype(int), offset
    offset = size * rng.standard_normal((n, n_classes)) + np.arange(n_classes)
    return X, (2 * X[:, :n_classes] + offset + rng.gumbel(size=(n, n_classes))).argmax(axis=1), offset


def numbers(seed=0):
    X, _, offset = data(seed=seed)
    return (
        X,
        X[:, 0] - 2 * X[:, 1] + offset + 0.3 * np.random.default_rng(seed).standard_normal(len(X)),
        offset,
    )


def reference(model, X, codes, offset):
    """What the model of two classes minimises at its coefficients, and its least value by L-BFGS-B."""
    smooth = reference_oba.logistic(X, 2.0 * codes - 1.0, None, model.fit_intercept, offset)
    l1, x = np.full(X.shape[1], 1.0 / model.C), model.coef_[0]
    if model.fit_intercept:
        l1, x = np.append(l1, 0.0), np.append(x, model.intercept_)
    best = reference_oba.objective(smooth, l1, reference_oba.split_lbfgsb(smooth, l1, 20000))
    return reference_oba.objective(smooth, l1, x), best


@pytest.mark.parametrize("size", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_huge_offsets(fit_intercept, size):
    """Rows that are right or wrong for sure: the loss is nearly linear, and certificates still bound the
    error.
    """
    X, y, _ = data()
    offset = size * np.random.default_rng(5).standard_normal(len(y))
    for C in (0.01, 1.0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model = sk.L1LogisticOBA(C, fit_intercept=fit_intercept).fit(X, y, offset=offset)
        found, best = reference(model, X, y, offset)
        assert_allclose(model.objective_, found, rtol=1e-9)
        assert found - best <= model.dual_gap_ + 1e-10 * found
        if not caught:
            assert model.dual_gap_ <= 1.001e-4 * found
            assert found <= best * (1 + 1e-4)
    # an offset that is right everywhere leaves nothing to learn
    sure = sk.L1LogisticOBA().fit(X, y, offset=size * (2 * y - 1))
    assert not sure.coef_.any()
    assert 0 <= sure.objective_ <= 1e-9 and sure.dual_gap_ <= 1e-9
    assert sure.score(X, y, offset=size * (2 * y - 1)) == 1.0


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_model_of_the_intercept_alone(K):
    _, y, offset = data(K, n=200, p=5)
    weight = np.random.default_rng(0).uniform(size=len(y))
    b = null_intercept(y, weight, K, offset)
    if K == 2:
        P = np.column_stack([expit(-b - offset), expit(b + offset)])
        # far out, where nothing but the bounds leads on
        far = null_intercept(np.array([0, 1, 1]), np.array([2.0, 1.0, 1.0]), 2, np.array([1e3, 2e3, -3e3]))
        assert_allclose(far, -1000.0, rtol=1e-9)
    else:
        P = softmax(offset + b, axis=1)
        assert abs(b.sum()) < 1e-12
        many = np.random.default_rng(1).integers(0, 30, 300)
        apart = 30.0 * np.random.default_rng(3).standard_normal((300, 30))
        found = softmax(apart + null_intercept(many, None, 30, apart), axis=1)
        assert_allclose(found.sum(axis=0), np.bincount(many, minlength=30), rtol=1e-7)
        # rows that are right or wrong for sure
        wide = 300.0 * np.random.default_rng(2).standard_normal(offset.shape)
        far = softmax(wide + null_intercept(y, weight, K, wide), axis=1)
        assert_allclose(weight @ far, np.bincount(y, weight), rtol=1e-5)
    assert_allclose(weight @ P, np.bincount(y, weight), rtol=1e-7)


@pytest.mark.parametrize("loss", [LogisticLoss, LeastSquaresLoss, ProbitLoss])
def test_losses(loss):
    X, y, offset = data(n=40, p=4)
    y = 2.0 * y - 1.0
    f = loss(X, y, fit_intercept=True, offset=offset)
    # as a column that is there
    column = loss(np.column_stack([X, offset]), y, fit_intercept=True)
    x = np.random.default_rng(3).standard_normal(5)
    full, keep = np.insert(x, 4, 1.0), [0, 1, 2, 3, 5]
    assert_allclose(f.value(x), column.value(full), rtol=1e-12)
    assert_allclose(f.gradient(x), column.gradient(full)[keep], rtol=1e-10)
    v = np.arange(1.0, 6.0)
    expected = column.hessian_product(full, np.array(keep), v)
    assert_allclose(f.hessian_product(x, np.arange(5), v), expected, rtol=1e-9)
    start = np.random.default_rng(4).standard_normal(5)
    for x0 in (None, start):
        result = minimize_oba(f, f.l1_vector(0.5), x0, tol=1e-9)
        assert result.success
        if loss is not ProbitLoss:
            assert 0 <= result.dual_gap + 1e-12 <= 1e-8 * result.fun
    for bad, match in ((offset[:-1], r"shape \(40,\)"), (offset * np.nan, "finite")):
        with pytest.raises(ValueError, match=f"offset must .*{match}"):
            loss(X, y, offset=bad)


@pytest.mark.parametrize("K", [2, 3])
def test_predictions_add_the_offset(K):
    X, y, offset = data(K)
    names = np.array(["a", "b", "c"])[y]
    model = sk.L1LogisticOBA(0.5).fit(X, names, offset=offset)
    scores = (X @ model.coef_.T + model.intercept_).squeeze() + offset
    assert_allclose(model.decision_function(X, offset=offset), scores, atol=1e-12)
    both = np.column_stack([np.zeros(len(X)), scores]) if K == 2 else scores
    assert_allclose(model.predict_proba(X, offset=offset), softmax(both, axis=1), atol=1e-12)
    assert_allclose(model.predict_log_proba(X, offset=offset), log_softmax(both, axis=1), atol=1e-10)
    expected = model.classes_[both.argmax(axis=1)]
    assert_array_equal(model.predict(X, offset=offset), expected)
    assert_array_equal(model.predict(sp.csr_array(X), offset), expected)
    assert model.score(X, names, offset=offset) == np.mean(expected == names)
    weight = np.arange(len(y))
    assert_allclose(
        model.score(X, names, weight, offset), np.average(expected == names, weights=weight), rtol=1e-12
    )


def test_predictions_of_numbers(tmp_path):
    X, y, offset = numbers()
    model = sk.LassoOBA(0.05).fit(X, y, offset=offset)
    expected = X @ model.coef_ + model.intercept_ + offset
    assert_allclose(model.predict(X, offset), expected, atol=1e-12)
    r2 = 1 - np.sum((y - expected) ** 2) / np.sum((y - y.mean()) ** 2)
    assert_allclose(model.score(X, y, offset=offset), r2)
    with pytest.raises(ValueError, match="fitted with an offset and predicts with one"):
        model.score(X, y)
    sk.save(model, tmp_path / "model.skops")
    again = sk.load(tmp_path / "model.skops")
    with pytest.raises(ValueError, match="fitted with an offset and predicts with one"):
        again.predict(X)
    assert_array_equal(again.predict(X, offset), model.predict(X, offset))


@pytest.mark.parametrize("K", [2, 3])
def test_a_model_that_had_an_offset_asks_for_one(K):
    X, y, offset = data(K)
    model = sk.L1LogisticOBA(0.5).fit(X, y, offset=offset)
    methods = ("predict", "decision_function", "predict_proba", "predict_log_proba")
    for name in methods:
        with pytest.raises(ValueError, match=r"fitted with an offset .* offset=0\. needs_offset_ = False"):
            getattr(model, name)(X)
    with pytest.raises(ValueError, match="fitted with an offset"):
        model.score(X, y)
    zero = {name: getattr(model, name)(X, offset=0) for name in methods}
    accuracy = model.score(X, y, offset=0.0)
    model.needs_offset_ = False
    for name in methods:
        assert_array_equal(getattr(model, name)(X), zero[name])
    assert accuracy == model.score(X, y)
    # one that had none adds what it is given all the same, and forgets what an earlier fit had
    plain = model.fit(X, y)
    assert not plain.needs_offset_
    assert_allclose(
        plain.decision_function(X, offset=offset), plain.decision_function(X) + offset, atol=1e-12
    )


def test_what_is_wrong_is_named():
    X, y, _ = data(3)
    two = (y > 0).astype(int)
    calls = [
        (lambda o: sk.L1LogisticOBA().fit(X, two, offset=o), (90,)),
        (lambda o: sk.L1LogisticOBA().fit(X, y, offset=o), (90, 3)),
        (lambda o: sk.LassoOBA().fit(X, y, offset=o), (90,)),
        (lambda o: sk.l1_logistic_path(X, y, n_lambdas=2, offset=o), (90, 3)),
        (lambda o: sk.LassoOBA.path(X, y, n_lambdas=2, offset=o), (90,)),
        (lambda o: sk.LassoOBA().fit(X, y).predict(X, offset=o), (90,)),
        (lambda o: sk.L1LogisticOBA().fit(X, y).predict_proba(X, offset=o), (90, 3)),
        (lambda o: sk.L1LogisticOBA().fit(X, two).score(X, two, offset=o), (90,)),
    ]
    for call, shape in calls:
        good = np.ones(shape)
        for bad, match in (
            (good[:-1], r"offset\.shape == \(89.* expected \(90"),
            (good[:, None], r"offset\.shape == \(90, 1.* expected \(90"),
            (np.where(np.arange(90) == 4, np.nan, good.T).T, "Input offset contains NaN"),
            (good * np.inf, "Input offset contains infinity"),
            (np.nan, "offset must be finite"),
            (good * 1e200, "offset must be finite and at most 1e.150 in size; got 1e.200"),
            ("high", "offset must hold numbers"),
        ):
            with pytest.raises(ValueError, match=match):
                call(bad)
                pytest.fail(f"{match}")


# In cross-validation, pictures and on a GPU.


@pytest.mark.parametrize("K", [2, 3])
def test_cross_validation_of_classes_is_a_loop_over_the_folds(K):
    X, y, offset = data(K, n=120)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, size=len(y))
    Cs, cv = [0.05, 0.5], StratifiedKFold(3)
    options = dict(cv=cv, scoring="neg_log_loss", tol=1e-8)
    for l1_ratio in (1.0, 0.5):
        search = sk.L1LogisticOBACV(Cs, l1_ratio=l1_ratio, **options).fit(X, y, weight, offset)
        expected = np.empty((3, 2))
        for k, (a, b) in enumerate(cv.split(X, y)):
            for j, C in enumerate(Cs):
                model = sk.L1LogisticOBA(C, l1_ratio=l1_ratio, tol=1e-8).fit(X[a], y[a], weight[a], offset[a])
                proba = model.predict_proba(X[b], offset=offset[b])
                expected[k, j] = -log_loss(y[b], proba, sample_weight=weight[b])
        assert_allclose(search.scores_, expected, atol=1e-3 if l1_ratio == 1.0 else 2e-3)
        final = sk.L1LogisticOBA(search.C_, l1_ratio=l1_ratio, tol=1e-8).fit(X, y, weight, offset)
        assert_allclose(search.coef_, final.coef_, atol=1e-6)
        assert_allclose(search.objective_, final.objective_, rtol=1e-8)
    proba = search.predict_proba(X, offset=offset)
    assert search.score(X, y, offset=offset) == pytest.approx(-log_loss(y, proba))
    for call in (search.predict, lambda X: search.score(X, y)):
        with pytest.raises(ValueError, match="fitted with an offset"):
            call(X)
    # grids begin where the offset alone is left, and zeros are none
    grid = sk.L1LogisticOBACV(3, cv=cv).fit(X, y, offset=offset)
    assert_allclose(1 / grid.Cs_[0], sk.l1_logistic_path(X, y, n_lambdas=1, offset=offset).lambda_max)
    assert_array_equal(
        sk.L1LogisticOBACV(3, cv=cv).fit(X, y, offset=np.zeros_like(offset)).scores_,
        sk.L1LogisticOBACV(3, cv=cv).fit(X, y).scores_,
    )
    with pytest.raises(ValueError, match=r"offset\.shape"):
        sk.L1LogisticOBACV().fit(X, y, offset=offset[:-1])


@pytest.mark.parametrize("missing", [1, 2])
def test_a_fold_that_lacks_classes_has_their_columns_of_the_offset(missing):
    X, y, offset = data(4, n=100)
    train = np.flatnonzero(y >= missing)
    model = sk.L1LogisticOBACV([0.5], cv=[(train, np.arange(100))], refit=False, tol=1e-9).fit(
        X, y, offset=offset
    )
    part = offset[train][:, missing:]
    part = part[:, 1] - part[:, 0] if part.shape[1] == 2 else part
    only = sk.L1LogisticOBA(0.5, tol=1e-9).fit(X[train], y[train], offset=part)
    assert_allclose(
        model.predict_proba(X[train], offset=offset[train])[:, missing:],
        only.predict_proba(X[train], offset=part), atol=1e-6,
    )  # fmt: skip
    assert not model.predict_proba(X, offset=offset)[:, :missing].any()


@pytest.mark.parametrize("K", [2, 3])
def test_on_a_gpu(cupy, K):
    X, y, offset = data(K)
    here = sk.L1LogisticOBA(0.5, tol=1e-8).fit(X, y, offset=offset)
    dX, dy, do = cupy.asarray(X), cupy.asarray(y), cupy.asarray(offset)
    there = clone(here).fit(dX, dy, offset=do)
    assert isinstance(there.coef_, cupy.ndarray)
    assert_allclose(there.coef_.get(), here.coef_, atol=1e-5)
    assert_allclose(there.objective_, here.objective_, rtol=1e-8)
    assert 0 <= there.dual_gap_ + 1e-10 <= 1e-5 * here.objective_
    proba = there.predict_proba(dX, offset=do)
    assert_allclose(proba.get(), here.predict_proba(X, offset=offset), atol=1e-5)
    assert there.score(dX, dy, offset=do) == pytest.approx(here.score(X, y, offset=offset))
    with pytest.raises(TypeError, match="offset in main memory"):
        there.fit(dX, dy, offset=offset)
    with pytest.raises(ValueError, match=r"offset\.shape == \(89"):
        there.fit(dX, dy, offset=do[:-1])
    with pytest.raises(ValueError, match="offset contains NaN"):
        there.fit(dX, dy, offset=do * cupy.asarray(np.nan))
    with pytest.raises(ValueError, match="fitted with an offset"):
        there.predict(dX)
    assert_array_equal(there.to_cpu().predict(X, offset=offset), there.predict(dX, offset=do).get())
