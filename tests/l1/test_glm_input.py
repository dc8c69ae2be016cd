"""GLMOBA where data or parameters are refused, or lead out of floating point."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_glm import POSITIVE, TARGETS, N, X, _parts, every

from sparsekit import GLMOBA, GLMOBACV, L1LogisticOBA


@pytest.mark.parametrize(
    ("family", "y", "message"),
    [
        ("poisson", np.r_[-1.0, np.ones(N - 1)], "y must be at least 0 for this family; got -1.0 in row 0"),
        ("gamma", np.r_[np.ones(N - 1), 0.0], f"y must be above 0 for this family; got 0.0 in row {N - 1}"),
        ("binomial", np.full(N, 2.0), "y must be at least 0 and at most 1"),
        ("tweedie", np.r_[-1.0, np.ones(N - 1)], "y must be at least 0 for this family; got -1.0 in row 0"),
        ("negative-binomial", np.r_[-0.5, np.ones(N - 1)], "y must be at least 0"),
        ("poisson", np.zeros(N), "y is 0.0 in every row with a positive weight"),
        ("tweedie", np.zeros(N), "y is 0.0 in every row"),
        ("negative-binomial", np.zeros(N), "y is 0.0 in every row"),
        ("binomial", np.ones(N), "y is 1.0 in every row"),
        ("gaussian", np.r_[np.nan, np.ones(N - 1)], "NaN"),
    ],
)
def test_targets_without_a_model_are_refused(family, y, message):
    with pytest.raises(ValueError, match=message):
        GLMOBA(family).fit(X, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("family", ["poisson", "gamma", "tweedie", "negative-binomial", "huber", "gaussian"])
def test_one_valued_targets_have_an_objective_of_zero_and_no_warning(family):
    X = np.random.default_rng(0).standard_normal((60, 8))
    for value in (0.3, 3.0, 7.0, 1e5):
        model = GLMOBA(family, alpha=1e-3).fit(X, np.full(60, value))
        assert model.objective_ == model.dual_gap_ == 0.0 and not model.coef_.any()
        assert model.score(X, np.full(60, value)) in (0.0, 1.0)


def test_parameters_out_of_their_range_are_named():
    for power in (0.5, 2.5, -1.0):
        with pytest.raises(ValueError, match="power must be 0, or from 1 to 2"):
            GLMOBA("tweedie", power=power).fit(X, TARGETS["tweedie"])
    for name, bad in (("dispersion", 0.0), ("epsilon", -1.0), ("family", "normal"), ("link", "sqrt")):
        with pytest.raises(ValueError, match=f"The '{name}' parameter"):
            GLMOBA(**{name: bad}).fit(X, TARGETS["poisson"])
    with pytest.raises(ValueError, match="link must be one of"):
        GLMOBA("poisson", link="logit").fit(X, TARGETS["poisson"])


@pytest.mark.parametrize("family", POSITIVE)
@pytest.mark.parametrize("offset", [1e3, -1e3, 1e5])
def test_nothing_infinite_is_returned_for_offsets_that_overflow(family, offset):
    y = TARGETS[family]
    model = GLMOBA(family, alpha=0.02).fit(X, y, offset=offset)
    plain = GLMOBA(family, alpha=0.02).fit(X, y)
    assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    assert_allclose(model.predict(X, offset=offset), plain.predict(X), rtol=1e-3)
    far = plain.predict(X, offset=offset)
    assert np.isfinite(far).all()
    assert np.isfinite(plain.score(X, y, offset=offset))
    if family == "binomial" or (family == "poisson") == (offset < 0):
        # the loss itself is finite: a fit without an intercept may move
        return
    with pytest.raises(ValueError, match="the deviance of y overflows"):
        GLMOBA("poisson" if offset > 0 else "gamma", fit_intercept=False).fit(
            X, TARGETS["gamma"], offset=offset
        )


@every
def test_large_targets_are_fitted_without_an_intercept(family):
    scale = 1.0 if family == "binomial" else 1e4
    model = GLMOBA(family, alpha=0.01 * scale, fit_intercept=False, max_iter=500).fit(
        np.abs(X), scale * TARGETS[family]
    )
    assert np.isfinite(model.predict(np.abs(X))).all()
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_a_separable_binomial_fit_without_a_penalty_says_that_it_did_not_converge():
    y = (X[:, 0] > 0).astype(float)
    with pytest.warns(UserWarning):
        model = GLMOBA("binomial", alpha=0.0, max_iter=20).fit(X, y)
    assert np.isfinite(_parts(model)).all()


@pytest.mark.parametrize("size", [1e308, 1e-308])
def test_sizes_of_equal_weights_change_nothing(size):
    """But for rounding: Hessians of paths are in single precision."""
    y, weight = TARGETS["gamma"], np.full(N, size)
    found, wanted = (GLMOBACV("gamma", alphas=3, cv=3).fit(X, y, s) for s in (weight, None))
    assert_allclose(found.scores_, wanted.scores_, rtol=1e-8)
    assert_allclose(found.coef_, wanted.coef_, rtol=1e-8)
    assert_allclose(found.score(X, y, weight), wanted.score(X, y), rtol=1e-12)


@pytest.mark.parametrize("dispersion", [1e-8, 1e-12, 1e-100])
def test_negative_binomial_counts_of_no_dispersion_are_those_of_poisson(dispersion):
    y = TARGETS["poisson"]
    found = GLMOBA("negative-binomial", dispersion=dispersion, alpha=0.02, tol=1e-8).fit(X, y)
    wanted = GLMOBA("poisson", alpha=0.02, tol=1e-8).fit(X, y)
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-7)
    assert_allclose(found.coef_, wanted.coef_, atol=1e-6)
    assert 0.0 <= found.dual_gap_ <= 1e-7 * found.objective_
    assert_allclose(found.score(X, y), wanted.score(X, y), rtol=1e-6)


@pytest.mark.parametrize("offset", [100.0, 1e3, -1e3])
def test_binomial_rows_on_the_straight_part_of_the_loss_are_fitted(offset):
    """Without an intercept the second derivative is zero at an offset of 1000."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 4)), np.tile([0.0, 0.25, 1.0, 1.0], 25)
    model = GLMOBA("binomial", alpha=0.01, fit_intercept=False).fit(X, y, offset=offset)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    # shares are rows of both classes
    rows, both, share = (
        np.repeat(X, 2, axis=0),
        np.tile([0.0, 1.0], 100),
        np.column_stack([1.0 - y, y]).ravel(),
    )
    peer = L1LogisticOBA(1.0, fit_intercept=False).fit(rows, both, share, offset)
    assert_allclose(model.coef_, peer.coef_[0], rtol=1e-3, atol=1e-2)
