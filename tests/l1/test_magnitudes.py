"""Numbers near the ends of floating point: what can be scaled is fitted, the rest is a ValueError by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import sparsekit as sk
from sparsekit._linalg.lbfgs import add_pair, new_pairs, operator
from sparsekit.optimize import LeastSquaresLoss, LogisticLoss, minimize_oba

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 8))
NUMBERS = X @ rng.standard_normal(8) + rng.standard_normal(60)
LABELS, THREE = (NUMBERS > 0).astype(int), rng.integers(0, 3, 60)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
HESSIANS = pytest.mark.parametrize("hessian", ["exact", "lbfgs"])
LOGISTIC = [
    (sk.L1LogisticOBA(), LABELS),
    (sk.L1LogisticOBA(), THREE),
    (sk.L1LogisticOBACV(Cs=3, cv=2), LABELS),
]
WEIGHTED = [*LOGISTIC, (sk.LassoOBA(0.01), NUMBERS)]


def is_finite(model):
    return all(
        np.isfinite(getattr(model, name)).all()
        for name in ("coef_", "intercept_", "objective_", "dual_gap_", "optimality_")
    )


@LAYOUTS
@HESSIANS
@pytest.mark.parametrize("model, y", WEIGHTED)
def test_norms_that_overflow(model, y, hessian, layout):
    """L-BFGS took theta from itself for ever where the squares of X * 1e150 are too large."""
    model = clone(model).set_params(hessian=hessian)
    assert is_finite(model.fit(layout(X * 1e150), y))
    assert is_finite(model.fit(layout(X > 0), y))
    for scale in (1e155, 1e300):
        with pytest.raises(ValueError, match=r"X is too large: .*MaxAbsScaler|the penalty at which"):
            model.fit(layout(X * scale), y)


@LAYOUTS
@HESSIANS
@pytest.mark.parametrize("scale", [1e300, 1e150, 1e-150, 1e-300])
def test_weights_have_a_unit(scale, hessian, layout):
    """The sum of weighted losses and its penalty may be divided by any number."""
    weight = rng.uniform(0.5, 1.0, 60)
    plain = sk.L1LogisticOBA(hessian=hessian, C=1.0).fit(layout(X), LABELS, weight)
    scaled = sk.L1LogisticOBA(hessian=hessian, C=1.0 / scale).fit(layout(X), LABELS, weight * scale)
    np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(scaled.objective_ / scale, plain.objective_, rtol=1e-5)
    assert is_finite(scaled) and 0 <= scaled.dual_gap_ <= 1e-3 * scaled.objective_
    lasso = sk.LassoOBA(0.01, hessian=hessian)
    means = [clone(lasso).fit(layout(X), NUMBERS, weight * c) for c in (1.0, scale)]
    np.testing.assert_allclose(means[1].coef_, means[0].coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(means[1].objective_, means[0].objective_, rtol=1e-5)


def test_paths_and_cross_validation_have_the_unit_too():
    weight = rng.uniform(0.5, 1.0, 60)
    for scale in (2.0**900, 2.0**-900):
        paths = [sk.l1_logistic_path(X, LABELS, n_lambdas=4, sample_weight=weight * c) for c in (1.0, scale)]
        np.testing.assert_allclose(paths[1].coefs, paths[0].coefs, rtol=1e-3, atol=1e-4)
        for name in ("lambdas", "lambda_max", "objectives"):
            np.testing.assert_allclose(getattr(paths[1], name) / scale, getattr(paths[0], name), rtol=1e-5)
        plain, scaled = (
            sk.L1LogisticOBACV(Cs=Cs, cv=2).fit(X, LABELS, weight * c)
            for Cs, c in (([0.1, 1.0], 1.0), ([0.1 / scale, 1.0 / scale], scale))
        )
        np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(scaled.Cs_ * scale, plain.Cs_)
        np.testing.assert_allclose(scaled.objective_ / scale, plain.objective_, rtol=1e-5)
        grids = [sk.L1LogisticOBACV(Cs=3, cv=2).fit(X, LABELS, weight * c).Cs_ for c in (1.0, scale)]
        np.testing.assert_allclose(grids[1] * scale, grids[0], rtol=1e-6)
        lasso = [sk.LassoOBA.path(X, NUMBERS, n_lambdas=3, sample_weight=weight * c) for c in (1.0, scale)]
        np.testing.assert_allclose(lasso[1].alphas, lasso[0].alphas)
        np.testing.assert_allclose(lasso[1].coefs, lasso[0].coefs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("weight", [np.r_[1e300, np.ones(59)], np.where(np.arange(60) % 2, 1e300, 1.0),
                                    np.full(60, 5e-324)])  # fmt: skip
@pytest.mark.parametrize("model, y", [WEIGHTED[0], WEIGHTED[1], WEIGHTED[3]])
@HESSIANS
def test_mixed_and_subnormal_weights(model, y, weight, hessian):
    assert is_finite(clone(model).set_params(hessian=hessian).fit(sp.csr_array(X), y, weight))


@pytest.mark.parametrize("model, y", WEIGHTED[:3])
def test_weights_whose_sum_overflows_have_no_objective(model, y):
    with pytest.raises(ValueError, match="sample_weight is too large: the sum of the weights overflows"):
        clone(model).fit(X, y, sample_weight=np.full(60, 1e308))
    with pytest.raises(ValueError, match="sample_weight is too large"):
        sk.l1_logistic_path(X, y, sample_weight=np.full(60, 1e308))


@pytest.mark.parametrize(
    "model, y",
    [(sk.LassoOBA(0.01), NUMBERS), (sk.SparsemaxClassifier(), THREE), (sk.SoftmaxClassifierCV(cv=2), THREE),
     (sk.BoundedRegressor(), NUMBERS), (sk.ExtremeSoftmaxSGD(random_state=0), THREE),
     # alpha="auto" takes weights for counts
     (sk.LPSparseMAPClassifier(alpha=1e-3), THREE)],
)  # fmt: skip
def test_means_have_the_ratios_of_weights_alone(model, y):
    """Though the sum of these weights is no number."""
    weight = rng.uniform(0.5, 1.0, 60)
    plain, huge = (clone(model).fit(X, y, sample_weight=weight * c) for c in (1.0, 2.0**1023))
    np.testing.assert_allclose(huge.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    if hasattr(huge, "log_loss"):
        losses = [huge.log_loss(X, y, weight * c) for c in (1.0, 2.0**1023)]
        np.testing.assert_allclose(*losses, rtol=1e-12)


@pytest.mark.parametrize("model", [sk.L1LogisticOBA(), sk.SoftmaxClassifier()])
def test_class_weights_that_overflow(model):
    with pytest.raises(ValueError, match="class_weight times sample_weight is too large"):
        clone(model).set_params(class_weight=dict.fromkeys(range(3), 1e200)).fit(X, THREE, np.full(60, 1e150))
    weight = rng.uniform(0.5, 1.0, 60)
    if isinstance(model, sk.SoftmaxClassifier):
        sets = np.eye(3)[THREE] + np.eye(3)[THREE[::-1]] > 0
        with pytest.raises(ValueError, match="class_weight times sample_weight is too large"):
            clone(model).set_params(class_weight={1: 1e300}).fit(X, sets, weight * 1e300)
        model = clone(model).set_params(class_weight="balanced")
        plain, huge = (clone(model).fit(X, sets, weight * c) for c in (1.0, 2.0**1020))
        np.testing.assert_allclose(huge.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    if not isinstance(model, sk.L1LogisticOBA):
        model = clone(model).set_params(class_weight="balanced")
        plain, huge = (clone(model).fit(X, THREE, weight * c) for c in (1.0, 2.0**1020))
        np.testing.assert_allclose(huge.coef_, plain.coef_, rtol=1e-3, atol=1e-4)


def test_a_grid_that_floating_point_does_not_hold():
    tiny = np.where(X > 0, 5e-324, 0.0)
    for call in (sk.L1LogisticOBACV(Cs=3, cv=2).fit, sk.l1_logistic_path):
        with pytest.raises(ValueError, match="the penalty at which no feature is left is"):
            call(tiny, LABELS)


@HESSIANS
def test_losses_by_themselves_end_with_a_status(hessian):
    for loss in (LogisticLoss(X * 1e155, 2.0 * LABELS - 1), LeastSquaresLoss(X * 1e155, NUMBERS)):
        result = minimize_oba(loss, 1.0, hessian=hessian)
        assert result.status == 11 and not result.success and "not finite" in result.message
        assert np.isfinite(result.x).all() and np.isfinite(result.fun)
    with pytest.raises(ValueError, match="f must be finite at x0; it is inf"):
        minimize_oba(LeastSquaresLoss(X, NUMBERS * 1e300), 1.0, hessian=hessian)


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_pairs_have_a_unit(size):
    """B of steps and gradients of any size is that of plain ones, times the unit."""
    steps = rng.standard_normal((6, 5))
    H = np.diag(rng.uniform(1.0, 9.0, 5))
    plain, extreme = (new_pairs(5, 4, np.empty(0)) for _ in range(2))
    small, zero = size**-0.5, np.zeros(5)
    for s in steps:
        assert add_pair(plain, zero, s, zero, H @ s)
        assert add_pair(extreme, zero, small * s, zero, (H * size) @ (small * s))
    v = rng.standard_normal(5)
    for rows in (None, np.array([1, 3, 4])):
        part = v if rows is None else v[rows]
        expected = operator(plain, rows).matvec(part)
        np.testing.assert_allclose(operator(extreme, rows).matvec(part) / size, expected, rtol=1e-9)
        expected = operator(plain, rows).solve(part)
        np.testing.assert_allclose(operator(extreme, rows).solve(part) * size, expected, rtol=1e-8)
    for wrong in (zero, np.full(5, np.nan), np.full(5, np.inf)):
        assert not add_pair(extreme, zero, wrong, zero, v) and not add_pair(extreme, zero, v, zero, wrong)
    assert len(extreme) == 4


def test_targets_without_a_sum_of_squares():
    bounded = sk.BoundedRegressor(loss="absolute")
    for scale, calls in ((1e154, (sk.LassoOBA().fit, sk.LassoOBA.path)), (1.7e308, (bounded.fit,))):
        for call in calls:
            with pytest.raises(ValueError, match=r"y is too large: .*Divide y"):
                call(X, np.sign(NUMBERS) * scale)
    assert is_finite(sk.LassoOBA(1e148).fit(X, NUMBERS * 1e150))


@LAYOUTS
def test_numbers_beyond_float32_are_refused(layout):
    """Coefficients were infinite, without a word, or the error was about a gradient."""
    small = layout(X.astype(np.float32))
    for call in (sk.LassoOBA(1.0).fit, sk.LassoOBA.path):
        with pytest.raises(ValueError, match=r"y is too large: .* in float32, .* or pass float64 data"):
            call(small, NUMBERS * 1e140)
    assert is_finite(sk.LassoOBA(1e130).fit(layout(X), NUMBERS * 1e140))
    tiny = layout((X * 1e-12).astype(np.float32))
    with pytest.raises(ValueError, match=r"beyond the numbers of float32|left floating point"):
        sk.LassoOBA(0.0).fit(tiny, NUMBERS * 1e30)
    model = sk.BoundedRegressor("squared").fit(small, NUMBERS * 1e140)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_)
