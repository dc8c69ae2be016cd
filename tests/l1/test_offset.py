"""`offset`: a column whose coefficient is one, at fit and at predict."""

import warnings

import numpy as np
import pytest
import reference_oba
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from offset_data import data, numbers
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsekit import L1LogisticOBA, LassoOBA, l1_logistic_path, load, save
from sparsekit._cython.shared._orthant import measure
from sparsekit._l1.losses import null_intercept as null_intercept_module
from sparsekit._l1.losses.null_intercept import null_intercept
from sparsekit.inspection import sharpness
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, ProbitLoss, minimize_oba

TIGHT = 1e-10


def reference(model, X, codes, offset, K, weight=None, l1=None):
    """What the model minimises at its coefficients, and its least value by L-BFGS-B."""
    p = X.shape[1]
    l1 = np.full(p, 1.0) if l1 is None else l1
    if K == 2:
        smooth = reference_oba.logistic(X, 2.0 * codes - 1.0, weight, model.fit_intercept, offset)
        x = model.coef_[0]
    else:
        smooth = reference_oba.multinomial(X, codes, K, weight, model.fit_intercept, offset)
        l1, x = np.repeat(l1, K), model.coef_.T.ravel()
    if model.fit_intercept:
        l1, x = np.append(l1, np.zeros(smooth.size - len(x))), np.append(x, model.intercept_)
    l1 = l1 / model.C
    best = reference_oba.objective(smooth, l1, reference_oba.split_lbfgsb(smooth, l1, 20000))
    return reference_oba.objective(smooth, l1, x), best


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 2.0])
def test_logistic_against_a_slow_solver(C, fit_intercept, K):
    X, y, offset = data(K)
    weight, v = np.random.default_rng(1).uniform(0.2, 2.0, len(y)), np.ones(X.shape[1])
    weight[:4], v[:3] = 0.0, [0.0, 2.0, 0.5]
    model = L1LogisticOBA(C, fit_intercept=fit_intercept, penalty_weights=v, tol=1e-8)
    model.fit(X, y, weight, offset)
    found, best = reference(model, X, y, offset, K, weight, v)
    assert_allclose(model.objective_, found, rtol=1e-10)
    assert found <= best * (1 + 1e-8)
    assert -1e-12 * best <= model.dual_gap_ <= 1e-6 * best
    # a fit that was cut short is no nearer than its certificate says
    for max_iter in (1, 2, 4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            early = clone(model).set_params(max_iter=max_iter).fit(X, y, weight, offset)
        assert reference(early, X, y, offset, K, weight, v)[0] - best <= early.dual_gap_ + 1e-10 * best


@pytest.mark.parametrize("K", [2, 3])
def test_zeros_change_no_bit_and_a_constant_only_the_intercept(K):
    X, y, offset = data(K)
    plain = L1LogisticOBA(0.5, tol=TIGHT).fit(X, y)
    zeros = clone(plain).fit(X, y, offset=np.zeros_like(offset))
    assert_array_equal(zeros.coef_, plain.coef_)
    assert_array_equal(zeros.intercept_, plain.intercept_)
    assert zeros.dual_gap_ == plain.dual_gap_ and zeros.needs_offset_ and not plain.needs_offset_
    c = 7.0 if K == 2 else np.array([40.0, -3.0, 0.5])
    for given, shift in ((np.zeros_like(offset) + c, c - np.mean(c) * (K > 2)), (offset, None)):
        one = clone(plain).fit(X, y, offset=given)
        two = clone(plain).fit(X, y, offset=given + c)
        assert_allclose(two.coef_, one.coef_, atol=1e-7)
        assert_allclose(two.intercept_, one.intercept_ - (c - np.mean(c) * (K > 2)), atol=1e-6)
        if shift is not None:
            assert_allclose(one.coef_, plain.coef_, atol=1e-7)
            assert_allclose(one.intercept_, plain.intercept_ - shift, atol=1e-6)
    # iterations as well: the intercept that the constant asks for is found before the fit
    # and the tolerance has the same unit
    early = L1LogisticOBA(5.0, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two = (clone(early).fit(X, y, offset=given) for given in (offset, offset + 100 * c))
    assert one.n_iter_ == two.n_iter_ == 1
    assert_allclose(one.optimality_, two.optimality_, rtol=1e-6)


def test_sparse_fits_that_start_at_zero():
    """Without an offset the gradient there is half of its bounds, which columns of sparse X bound."""
    X, y, offset = data(n=200)
    model = L1LogisticOBA(0.5, fit_intercept=False, tol=1e-8).fit(X, y, offset=offset)
    for kind in (sp.csr_array, sp.csc_array):
        found = clone(model).fit(kind(X), y, offset=offset)
        assert_allclose(found.coef_, model.coef_, atol=1e-6)
        assert found.n_iter_ == model.n_iter_
        loss = LogisticLoss(kind(X), 2.0 * y - 1.0, offset=offset)
        zero = np.zeros(X.shape[1])
        gradient = loss.gradient(zero)
        result = minimize_oba(loss, 2.0, tol=1e-6)
        assert result.success
        worst = measure(result.x, result.grad, np.full(X.shape[1], 2.0))
        assert_allclose(result.optimality * np.abs(gradient).max(), worst, rtol=1e-3, atol=1e-12)
        everything = minimize_oba(loss, 1.01 * np.abs(gradient).max())
        assert everything.nit == 0 and not everything.x.any()


@pytest.mark.parametrize("K", [2, 3])
def test_a_ridge_on_few_rows(K):
    """Which is fitted in as many variables as rows."""
    X, y, offset = data(K, n=30, p=200)
    model = L1LogisticOBA(0.1, l1_ratio=0.0, tol=1e-8).fit(X, y, offset=offset)
    small = L1LogisticOBA(0.1, l1_ratio=1e-12, tol=1e-8).fit(X, y, offset=offset)
    assert_allclose(model.coef_, small.coef_, atol=1e-5)
    assert_allclose(model.objective_, small.objective_, rtol=1e-7)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    codes = np.eye(K)[y]
    residual = codes - model.predict_proba(X, offset=offset)
    residual = residual[:, 1:] if K == 2 else residual
    assert_allclose(model.coef_, 0.1 * residual.T @ X, atol=1e-5)


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
            model = L1LogisticOBA(C, fit_intercept=fit_intercept).fit(X, y, offset=offset)
        found, best = reference(model, X, y, offset, 2)
        assert_allclose(model.objective_, found, rtol=1e-9)
        assert found - best <= model.dual_gap_ + 1e-10 * found
        if not caught:
            assert model.dual_gap_ <= 1.001e-4 * found
            assert found <= best * (1 + 1e-4)
    # an offset that is right everywhere leaves nothing to learn
    sure = L1LogisticOBA().fit(X, y, offset=size * (2 * y - 1))
    assert not sure.coef_.any()
    assert 0 <= sure.objective_ <= 1e-9 and sure.dual_gap_ <= 1e-9
    assert sure.score(X, y, offset=size * (2 * y - 1)) == 1.0


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_model_of_the_intercept_alone(K, monkeypatch):
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
        # and those of very many classes
        monkeypatch.setattr(null_intercept_module, "SMALL_SIDE", 0)
        assert_allclose(null_intercept(y, weight, K, offset), b, atol=1e-8)
        many = np.random.default_rng(1).integers(0, 30, 300)
        apart = 30.0 * np.random.default_rng(3).standard_normal((300, 30))
        found = softmax(apart + null_intercept(many, None, 30, apart), axis=1)
        assert_allclose(found.sum(axis=0), np.bincount(many, minlength=30), rtol=1e-7)
        monkeypatch.undo()
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
    model = L1LogisticOBA(0.5).fit(X, names, offset=offset)
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
    model = LassoOBA(0.05).fit(X, y, offset=offset)
    expected = X @ model.coef_ + model.intercept_ + offset
    assert_allclose(model.predict(X, offset), expected, atol=1e-12)
    r2 = 1 - np.sum((y - expected) ** 2) / np.sum((y - y.mean()) ** 2)
    assert_allclose(model.score(X, y, offset=offset), r2)
    with pytest.raises(ValueError, match="fitted with an offset and predicts with one"):
        model.score(X, y)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="fitted with an offset and predicts with one"):
        again.predict(X)
    assert_array_equal(again.predict(X, offset), model.predict(X, offset))


@pytest.mark.parametrize("K", [2, 3])
def test_a_model_that_had_an_offset_asks_for_one(K):
    X, y, offset = data(K)
    model = L1LogisticOBA(0.5).fit(X, y, offset=offset)
    methods = ("predict", "decision_function", "predict_proba", "predict_log_proba")
    for name in methods:
        with pytest.raises(ValueError, match=r"fitted with an offset .* offset=0\. needs_offset_ = False"):
            getattr(model, name)(X)
    with pytest.raises(ValueError, match="fitted with an offset"):
        model.score(X, y)
    with pytest.raises(ValueError, match=r"adds an offset to each row\. Set needs_offset_ = False"):
        model.to_sklearn()
    with pytest.raises(ValueError, match="fitted with an offset"):
        sharpness(model, X, y)
    zero = {name: getattr(model, name)(X, offset=0) for name in methods}
    accuracy = model.score(X, y, offset=0.0)
    model.needs_offset_ = False
    for name in methods:
        assert_array_equal(getattr(model, name)(X), zero[name])
    assert accuracy == model.score(X, y)
    assert_array_equal(model.to_sklearn().predict(X), zero["predict"])
    # one that had none adds what it is given all the same, and forgets what an earlier fit had
    plain = model.fit(X, y)
    assert not plain.needs_offset_
    assert_allclose(
        plain.decision_function(X, offset=offset), plain.decision_function(X) + offset, atol=1e-12
    )


def test_the_model_of_the_intercept_alone_at_large_offsets():
    rng = np.random.default_rng(3)
    y = np.concatenate([np.arange(3), rng.integers(0, 3, 117)])
    offset, weight = 1e4 * rng.standard_normal((120, 3)), rng.uniform(0.1, 2.0, 120)
    P = softmax(offset + null_intercept(y, weight, 3, offset), axis=1)
    totals = np.bincount(y, weights=weight)
    assert_allclose(weight @ P, totals, atol=1e-6 * totals.sum())


def test_what_is_wrong_is_named():
    X, y, _ = data(3)
    two = (y > 0).astype(int)
    calls = [
        (lambda o: L1LogisticOBA().fit(X, two, offset=o), (90,)),
        (lambda o: L1LogisticOBA().fit(X, y, offset=o), (90, 3)),
        (lambda o: LassoOBA().fit(X, y, offset=o), (90,)),
        (lambda o: l1_logistic_path(X, y, n_lambdas=2, offset=o), (90, 3)),
        (lambda o: LassoOBA.path(X, y, n_lambdas=2, offset=o), (90,)),
        (lambda o: LassoOBA().fit(X, y).predict(X, offset=o), (90,)),
        (lambda o: L1LogisticOBA().fit(X, y).predict_proba(X, offset=o), (90, 3)),
        (lambda o: L1LogisticOBA().fit(X, two).score(X, two, offset=o), (90,)),
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
