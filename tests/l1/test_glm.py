"""GLMOBA against proximal gradients, scikit-learn, and the definitions of its certificate and score."""

import numpy as np
import pandas as pd
import pytest
import reference_glm as reference
from numpy.testing import assert_allclose
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsekit as sk
from sparsekit import GLMOBA, glm_path

N, P = 120, 15


def _data(seed=0, n=N, p=P):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    z = 0.5 * X[:, 0] - 0.7 * X[:, 1] + 0.3
    counts = rng.poisson(np.exp(z)).astype(float)
    targets = {
        "poisson": counts,
        "gamma": rng.gamma(2.0, np.exp(z) / 2.0),
        "tweedie": counts * rng.gamma(2.0, 1.0, n),
        "negative-binomial": rng.poisson(np.exp(z) * rng.gamma(1.0, 1.0, n)).astype(float),
        "binomial": (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(float),
        "gaussian": z + rng.standard_normal(n),
        "huber": z + rng.standard_cauchy(n),
    }
    weight = rng.uniform(0.5, 2.0, n)
    weight[:3] = 0.0
    return X, targets, weight, 0.3 * rng.standard_normal(n)


X, TARGETS, WEIGHT, OFFSET = _data()
FAMILIES = list(TARGETS)
POSITIVE = [name for name in FAMILIES if name not in ("gaussian", "huber")]
every = pytest.mark.parametrize("family", FAMILIES)


def _parts(model):
    return np.append(model.coef_, model.intercept_)


@every
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_coefficients_are_the_optimum_of_proximal_gradients(family, l1_ratio):
    y, alpha = TARGETS[family], 0.05
    model = GLMOBA(family, alpha=alpha, l1_ratio=l1_ratio, tol=1e-9).fit(X, y, WEIGHT, offset=OFFSET)
    optimum = reference.optimum(X, y, family, alpha * l1_ratio, alpha * (1 - l1_ratio), WEIGHT, OFFSET)
    assert_allclose(_parts(model), optimum, atol=1e-7)
    assert 0.0 <= model.dual_gap_ <= 1e-8 * model.objective_
    z = model.predict_linear(X, OFFSET)
    link = "logit" if family == "binomial" else "identity" if family in ("gaussian", "huber") else "log"
    losses = np.array([float(reference.loss(family, link, *pair)) for pair in zip(z, y)])
    penalty = l1_ratio * np.abs(model.coef_).sum() + 0.5 * (1 - l1_ratio) * model.coef_ @ model.coef_
    assert_allclose(model.objective_, np.average(losses, weights=WEIGHT) + alpha * penalty, rtol=1e-10)


@every
@pytest.mark.parametrize("alpha", [0.3, 0.01, 1e-4])
def test_the_default_certificate_is_an_upper_bound_and_tight(family, alpha):
    y = TARGETS[family]
    model, exact = GLMOBA(family, alpha=alpha).fit(X, y), GLMOBA(family, alpha=alpha, tol=1e-11).fit(X, y)
    error = model.objective_ - exact.objective_
    assert error - 1e-13 * exact.objective_ <= model.dual_gap_ <= 1e-4 * model.objective_
    # a Newton step beyond tol leaves an error far below the gap, which falls to rounding with it
    assert exact.dual_gap_ <= 1e-9 * exact.objective_


@every
def test_free_features_keep_the_dual_point_in_its_domain(family):
    weights = np.ones(P)
    weights[:5] = 0.0
    model = GLMOBA(family, alpha=0.05, penalty_weights=weights).fit(X, TARGETS[family], WEIGHT, OFFSET)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    assert (model.coef_[:5] != 0.0).all()


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_links_without_a_dual_stop_on_optimality_with_a_nan_gap(link):
    y = TARGETS["binomial"]
    for positive in (False, True):
        model = GLMOBA("binomial", link=link, alpha=0.02, tol=1e-8, positive=positive).fit(X, y)
        assert np.isnan(model.dual_gap_)
        assert model.optimality_ <= 1e-8

        def objective(w, b, link=link):
            means = [float(reference.LINKS[link](z)) for z in X @ w + b]
            losses = [float(reference.half_deviance("binomial", *pair)) for pair in zip(y, means)]
            return np.mean(losses) + 0.02 * np.abs(w).sum()

        assert_allclose(model.objective_, objective(model.coef_, model.intercept_), rtol=1e-9)
        rng = np.random.default_rng(0)
        for _ in range(20):
            step = 1e-3 * rng.standard_normal(P)
            w = np.maximum(model.coef_ + step, 0.0) if positive else model.coef_ + step
            assert objective(w, model.intercept_) > model.objective_ - 1e-10


@pytest.mark.parametrize(
    ("family", "peer"),
    [("poisson", PoissonRegressor()), ("gamma", GammaRegressor()), ("tweedie", TweedieRegressor(power=1.5))],
)
def test_a_ridge_has_the_alpha_and_the_solution_of_scikit_learn(family, peer):
    y = TARGETS[family]
    peer.set_params(alpha=0.1, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=WEIGHT)
    model = GLMOBA(family, alpha=0.1, l1_ratio=0.0, tol=1e-10).fit(X, y, WEIGHT)
    assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert_allclose(model.predict(X), peer.predict(X), rtol=1e-5)
    assert_allclose(model.score(X, y, WEIGHT), peer.score(X, y, WEIGHT), rtol=1e-6)


@every
def test_positive_coefficients_are_certified(family):
    y = TARGETS[family]
    model = GLMOBA(family, alpha=0.01, positive=True).fit(X, y, WEIGHT)
    free = GLMOBA(family, alpha=0.01).fit(X, y, WEIGHT)
    assert model.coef_.min() == 0.0 < model.coef_.max()
    assert free.coef_.min() < 0.0
    assert 0.0 <= model.dual_gap_ <= 1e-4 * model.objective_
    used = model.coef_ > 0.0
    # the same without a sign on the columns in use, which it does not bind
    same = GLMOBA(family, alpha=0.01, tol=1e-8).fit(X[:, used], y, WEIGHT)
    assert_allclose(model.objective_, same.objective_, rtol=2e-4)


@pytest.mark.parametrize("hessian", ["exact", "lbfgs"])
@every
def test_wide_data_and_both_hessians(family, hessian):
    wide, targets, _, _ = _data(1, n=60, p=200)
    y = targets[family]
    model = GLMOBA(family, alpha=0.1, hessian=hessian, max_iter=2000).fit(wide, y)
    exact = GLMOBA(family, alpha=0.1, tol=1e-9).fit(wide, y)
    assert model.objective_ - exact.objective_ <= model.dual_gap_ + 1e-12 <= 1.1e-4 * model.objective_


def test_exposure_as_an_offset_is_exposure_as_a_weight_of_rates():
    y, exposure = TARGETS["poisson"], np.exp(OFFSET)
    counts = GLMOBA(alpha=0.02, tol=1e-10).fit(X, y, offset=OFFSET)
    rates = GLMOBA(alpha=0.02 * N / exposure.sum(), tol=1e-10).fit(X, y / exposure, exposure)
    assert_allclose(_parts(counts), _parts(rates), atol=1e-7)
    assert_allclose(counts.predict(X, OFFSET), exposure * rates.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match="fitted with an offset"):
        counts.predict(X)
    with pytest.raises(ValueError, match="fitted with an offset"):
        counts.score(X, y)


def test_score_is_the_share_of_the_deviance():
    for family, power in (("poisson", 1), ("gamma", 2), ("tweedie", 1.5)):
        y = TARGETS[family]
        model = GLMOBA(family, alpha=0.02).fit(X, y)
        expected = d2_tweedie_score(y, model.predict(X), sample_weight=WEIGHT, power=power)
        assert_allclose(model.score(X, y, WEIGHT), expected, rtol=1e-9)
    y, null = TARGETS["poisson"], GLMOBA(alpha=1e3).fit(X, TARGETS["poisson"], offset=OFFSET)
    assert not null.coef_.any()
    assert_allclose(null.score(X, y, offset=OFFSET), 0.0, atol=1e-12)
    assert null.score(X[:3], np.zeros(3), offset=OFFSET[:3]) == 0.0


def test_the_intercept_of_the_null_model_balances_the_sums():
    for family in POSITIVE:
        null = GLMOBA(family, alpha=1e6).fit(X, TARGETS[family])
        assert_allclose(null.predict(X[:1]), TARGETS[family].mean(), rtol=1e-12)
    for shift in (-1e3, 1e3):
        null = GLMOBA(alpha=1e6).fit(X, TARGETS["poisson"], offset=OFFSET + shift)
        assert_allclose(null.predict(X, OFFSET + shift).sum(), TARGETS["poisson"].sum(), rtol=1e-10)


def test_shared_fits_find_the_same():
    y = TARGETS["poisson"]
    alone = [GLMOBA(family, alpha=0.03, tol=1e-9).fit(X, y) for family in ("poisson", "negative-binomial")]
    with sk.shared_fits():
        for first in alone:
            for alpha in (0.05, 0.03):
                shared = GLMOBA(first.family, alpha=alpha, tol=1e-9).fit(X, y)
            assert_allclose(_parts(shared), _parts(first), atol=1e-7)


def test_names_and_pipelines():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(P)])
    y = TARGETS["poisson"]
    model = GLMOBA(alpha=0.02, penalty_weights={"c5": 0.0}).fit(frame, y)
    assert model.coef_[5] != 0.0
    assert list(model.coefficients().index[:2]) == ["c1", "c0"]
    pipe = make_pipeline(StandardScaler(), GLMOBA(alpha=0.02)).fit(frame, y)
    assert pipe.score(frame, y) > 0.3


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_labels_whose_weighted_mean_is_a_half_up_to_rounding(link):
    y = np.repeat([0.0, 1.0], 30)
    A = np.random.default_rng(0).standard_normal((60, 3)) + y[:, None]
    weight = np.concatenate([np.full(30, 0.1), np.resize([0.3, 0.1, 0.2, 0.1, 0.05, 0.05], 30) / 0.8 * 0.6])
    assert abs(np.average(y, weights=weight) - 0.5) < 1e-15
    options = dict(link=link, alpha=1e-3, tol=1e-8)
    found = GLMOBA("binomial", **options).fit(A, y, weight)
    weight[0] *= 1.0 + 1e-9
    assert_allclose(_parts(found), _parts(GLMOBA("binomial", **options).fit(A, y, weight)), atol=1e-6)
    assert found.objective_ > 0.1 and found.coef_.any()


# paths


@every
def test_a_path_is_the_fits_at_its_penalties(family):
    y, weights = TARGETS[family], np.r_[0.0, np.ones(P - 1)]
    path = glm_path(
        X, y, family, n_lambdas=6, eps=0.05, penalty_weights=weights, sample_weight=WEIGHT, offset=OFFSET,
        tol=1e-9,
    )  # fmt: skip
    assert path.n_nonzero[0] == 1 < path.n_nonzero[-1]
    for k, alpha in enumerate(path.alphas):
        model = GLMOBA(family, alpha=alpha, penalty_weights=weights, tol=1e-9).fit(X, y, WEIGHT, OFFSET)
        assert_allclose(np.append(path.coef(k), path.intercepts[k]), _parts(model), atol=1e-6)
        assert_allclose(path.objectives[k], model.objective_, rtol=1e-8)
    assert (path.dual_gaps <= 1e-8 * path.objectives).all()
    above, below = (
        GLMOBA(family, alpha=factor * path.lambda_max, penalty_weights=weights, tol=1e-10)
        for factor in (1.001, 0.98)
    )
    assert np.count_nonzero(above.fit(X, y, WEIGHT, OFFSET).coef_) == 1
    assert np.count_nonzero(below.fit(X, y, WEIGHT, OFFSET).coef_) == 2


@pytest.mark.parametrize("alpha", [1e-3, 1e-6])
def test_shares_next_to_0_and_1_are_no_straight_parts(alpha):
    """The loss of a share such as 1e-9 is flat where its model is right, and straight far beyond alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 20))
    shares = 1.0 / (1.0 + np.exp(-3.0 * X @ rng.standard_normal(20)))
    y = np.where(rng.random(500) < 0.5, np.round(shares), shares)
    model = GLMOBA("binomial", alpha=alpha, max_iter=50).fit(X, y)
    assert model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_stability_selection_solves_paths_of_the_family(family):
    """The frequencies are those of separate fits to the same halves, of the same penalties."""
    y, penalties = TARGETS[family], [0.05, 0.1, 0.2]

    class Separate(GLMOBA):
        """No path of its own, so that each penalty is fitted anew."""

    def frequencies(model, y=y):
        selection = sk.StabilitySelection(
            model, n_pairs=5, penalties=penalties, max_false=None, random_state=0
        ).fit(X, y, sample_weight=WEIGHT, offset=OFFSET)
        return selection.stability_paths_

    found = frequencies(GLMOBA(family, tol=1e-8))
    assert 0 < found.mean() < 1
    assert_allclose(found, frequencies(Separate(family, tol=1e-8)), atol=1e-12)
    with pytest.raises(ValueError, match="y must be at least 0"):
        frequencies(GLMOBA("poisson"), y - 1.0)
