"""ExtremeSoftmaxSGD's prior: leave-one-out gradients, the ridge's optimum, where it is used or refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from extreme_things import few_rows
from scipy.optimize import check_grad, minimize
from sklearn.preprocessing import normalize

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme import plan
from sparsekit._extreme.solver import centroids
from sparsekit._extreme.solver.centroids import _loss_gradient, fit_weights


def fit_centroids(X, y, n_classes, rng, weight=None):
    return fit_weights(X, y, n_classes, rng, weight).centroids(X, y, n_classes, weight)


def losses_without_each_row(X, y, weight, K, log_d, q):
    """Weighted mean log-loss of the rows, with the centroids of all others, row by row."""
    X, out = X.toarray(), []
    for i in range(len(y)):
        sums, counts = np.zeros((K, X.shape[1])), np.zeros(K)
        for other in range(len(y)):
            if other != i:
                sums[y[other]] += weight[other] * X[other]
                counts[y[other]] += weight[other]
        logs = np.log(np.maximum(counts, 1))
        s = np.exp(q[1] - q[0] * logs) * (sums @ (np.exp(log_d) * X[i])) + q[2] * logs
        out.append(np.logaddexp.reduce(s) - s[y[i]])
    return np.average(out, weights=weight)


@pytest.mark.parametrize("weighted, dense", [(False, True), (True, False)])
def test_leave_one_out_loss_and_gradient(weighted, dense):
    X, y = few_rows(6, 30, 25, 0)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.7, 1.3, 25) if weighted else np.ones(25)
    sums = sp.csr_array((weight, (y, np.arange(25))), (6, 25)) @ X
    counts = np.bincount(y, weight, minlength=6)
    sums = sums.T.toarray() if dense else sp.csr_array(sums.T)
    data = sums, counts, np.log(np.maximum(counts, 1))

    def parts(v):
        return _loss_gradient(X, y, weight, *data, v[:30], v[30:])

    at = rng.standard_normal(33) * 0.3
    assert parts(at)[0] == pytest.approx(losses_without_each_row(X, y, weight, 6, at[:30], at[30:]))
    error = check_grad(lambda v: parts(v)[0], lambda v: np.concatenate(parts(v)[1:]), at)
    assert error < 1e-6
    assert np.abs(np.concatenate(parts(at)[1:])).max() > 1e-3


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_what_a_row_adds_to_its_own_score(fit_intercept):
    """The score of its class less that of the centroids of all other rows."""
    X, y = few_rows(6, 30, 25, 0)
    weight = np.random.default_rng(1).uniform(0.7, 1.3, 25)
    weights = fit_weights(X, y, 6, np.random.default_rng(0), weight)
    M, b, own = weights.centroids(X, y, 6, weight, fit_intercept)
    for i in range(25):
        others = weight * (np.arange(25) != i)
        M_others, b_others, nothing = weights.centroids(X, y, 6, others, fit_intercept)
        score, left = ((X[[i]] @ W.T).toarray()[0, y[i]] + c[y[i]] for W, c in ((M, b), (M_others, b_others)))
        assert own[i] == pytest.approx(score - left)
        assert nothing[i] == pytest.approx(0.0, abs=1e-12)
    assert own.min() > 0.01 and fit_intercept == bool(b.any())


def test_dense_sums_change_the_time_alone(monkeypatch):
    X, y = few_rows(8, 60, 200, 1, np.float32)
    found = []
    for least in (0.0, np.inf):
        monkeypatch.setattr(plan, "DENSE_PART", least)
        weights = fit_weights(X, y, 8, np.random.default_rng(0))
        found.append(np.append(weights.log_d, weights.q))
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("n_frequent", "n_rare", "most", "dense"),
    [(10, 0, 0, True), (10, 500, 10200, True), (10, 500, 10199, False), (0, 500, 10000, False)],
)
def test_a_table_is_for_features_of_many_classes_in_few_numbers(n_frequent, n_rare, most, dense, monkeypatch):
    """Of few numbers beside its entries, or at all; rare features count as often as rows have them."""
    monkeypatch.setattr(plan, "MAX_SCORES", most)
    y = np.arange(500) % 20
    frequent = np.ones((500, n_frequent))
    X = sp.csr_array(sp.hstack([frequent, sp.eye_array(500, n_rare) if n_rare else sp.csr_array((500, 0))]))
    assert fit_weights(X, y, 20, np.random.default_rng(0)).dense == dense


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ridge_shrinks_to_the_centroids(dense, dtype):
    """The optimum of log-loss and ridge around the centroids, a row without its part in them, by L-BFGS."""
    K, p, alpha = 21, 40, 3e-3  # two blocks, one of them not full
    X, y = few_rows(K, p, 200, 2, dtype)
    model = ExtremeSoftmaxSGD(prior="centroids", alpha=alpha, decay=0.99, max_iter=459, random_state=0)
    model.fit(X.toarray() if dense else X, y)
    # the same draws as in the fit
    rng = np.random.default_rng(np.random.RandomState(0).randint(2**31))
    M, start, own = fit_centroids(sp.csr_array(X), y, K, rng)
    M, X = M.toarray(), X.toarray().astype(np.float64)

    def objective(v):
        V, b = v[: K * p].reshape(K, p), v[K * p :]
        s = X @ (M + V).T + b
        s[np.arange(len(y)), y] -= own
        log_p = s - np.logaddexp.reduce(s, axis=1)[:, None]
        g = np.exp(log_p)
        g[np.arange(len(y)), y] -= 1.0
        g /= len(y)
        value = -log_p[np.arange(len(y)), y].mean() + alpha / 2 * (v @ v)
        return value, np.concatenate([(g.T @ X).ravel(), g.sum(axis=0)]) + alpha * v

    exact = minimize(objective, np.zeros(K * p + K), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    ours = np.concatenate([(model.coef_ - M).ravel(), model.intercept_])
    at_start = objective(np.concatenate([np.zeros(K * p), start]))[0]
    assert at_start > exact.fun + 0.05 * np.log(K)
    assert objective(ours)[0] < exact.fun + 0.01 * np.log(K)


def test_rows_of_weight_0_are_not_drawn():
    """Their labels change nothing."""
    X, y = few_rows(8, 40, 600, 3)
    weight = (np.arange(600) % 3 == 0).astype(float)
    others = np.where(weight > 0, y, 0)
    found = [fit_weights(X, labels, 8, np.random.default_rng(0), weight) for labels in (y, others)]
    np.testing.assert_array_equal(found[0].log_d, found[1].log_d)


def test_two_classes_do_not_fit_a_weight_to_each_rare_feature():
    """Log-loss of new rows, with a hundred times as many features as classes and few rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    rare = rng.integers(100, 3000, (600, 30))
    telling = 50 * y[:, None] + rng.integers(0, 60, (600, 4))
    columns = np.hstack([rare, telling]).ravel()
    X = normalize(
        sp.csr_array((np.ones(len(columns)), (np.repeat(np.arange(600), 34), columns)), (600, 3000))
    )
    M, b, _ = fit_centroids(X[:300], y[:300], 2, rng)
    S = (X[300:] @ M.T).toarray() + b
    loss = (np.logaddexp.reduce(S, axis=1) - S[np.arange(300), y[300:]]).mean()
    assert loss < 0.7 * np.log(2)


def words(telling, seed, n=1500, n_classes=20):
    """Rows of frequent words and of rare ones; of which of them the class follows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    frequent = (100 * rng.random((n, 15)) ** 2).astype(int)
    known = (rng.random((n, 3)) < 0.5) & (telling == "rare")
    of = np.where(known, y[:, None], rng.integers(0, n_classes, (n, 3)))
    columns = np.hstack([frequent, 100 + 40 * of + rng.integers(0, 40, (n, 3))])
    X = sp.csr_array((np.ones(columns.size), (np.repeat(np.arange(n), 18), columns.ravel())), (n, 900))
    X.sum_duplicates()
    if telling == "frequent":
        y = (X[:, :100] @ rng.standard_normal((100, n_classes))).argmax(axis=1)
    return normalize(X), y


@pytest.mark.parametrize("seed", [0, 1])
def test_the_power_of_the_inverse_document_frequency_follows_the_data(seed):
    """It is 2 at first."""
    rare, frequent = (
        fit_weights(*words(telling, seed), 20, np.random.default_rng(0)).q[3]
        for telling in ("rare", "frequent")
    )
    assert rare > 2.3 and frequent < 1.7


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-3, 2.0**10, 1e18])
def test_the_unit_of_the_rows_is_that_of_the_weights(scale):
    X, y = few_rows(8, 40, 120, 2)
    plain, *parts = fit_centroids(X, y, 8, np.random.default_rng(0))
    scaled, *scaled_parts = fit_centroids(scale * X, y, 8, np.random.default_rng(0))
    np.testing.assert_allclose(scale * scaled.toarray(), plain.toarray(), rtol=1e-6)
    for found, expected in zip(scaled_parts, parts):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_weights_count_in_the_sums():
    """Logarithms are those of the weighted sums, a number a feature and a multiple of log n_k."""
    X, y = few_rows(30, 60, 300, 8)
    weight = np.where(y < 15, 0.5, 1.5)
    weighted, b, _ = fit_centroids(X, y, 30, np.random.default_rng(0), weight)
    sums = (sp.csr_array((weight, (y, np.arange(300))), (30, 300)) @ X).toarray()
    logs = np.log(np.bincount(y, weight))
    k, j = sums.nonzero()
    design = np.column_stack([np.eye(60)[j], logs[k]])
    target = np.log(weighted.toarray()[k, j] / sums[k, j])
    np.testing.assert_allclose(design @ np.linalg.lstsq(design, target)[0], target, atol=1e-9)
    assert b[0] / logs[0] == pytest.approx(b[29] / logs[29])


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_objective_has_the_distance_to_the_centroids(fit_intercept):
    K = 21
    X, y = few_rows(K, 40, 200, 2)
    model = ExtremeSoftmaxSGD(
        prior="centroids", alpha=3e-3, decay=0.9, max_iter=10, fit_intercept=fit_intercept, random_state=0
    ).fit(X, y)
    weights = fit_weights(X, y, K, np.random.default_rng(np.random.RandomState(0).randint(2**31)))
    M, _, own = weights.centroids(X, y, K, None, fit_intercept)
    V = np.column_stack([model.coef_ - M.toarray(), model.intercept_])
    S = X @ model.coef_.T + model.intercept_
    S[np.arange(200), y] -= own  # each row without its part in the centroids
    value = (np.logaddexp.reduce(S, axis=1) - S[np.arange(200), y]).mean()
    assert model.objective_ == pytest.approx(value + model.alpha_ / 2 * (V**2).sum(), rel=1e-9)
    assert model.objective_error_ == 0.0


def test_the_default_is_the_one_of_the_two_that_fits_the_data():
    """Centroids, but for dense rows that Newton's method follows, where nothing else is asked for."""
    X, y = few_rows(1500, 2000, 3000, 4)
    default, named = (ExtremeSoftmaxSGD(random_state=0, **p).fit(X, y) for p in ({}, {"prior": "centroids"}))
    assert default.prior_ == "centroids"
    np.testing.assert_array_equal(default.coef_, named.coef_)
    few, few_labels = X[:200], y[:200] % 3
    assert ExtremeSoftmaxSGD(random_state=0).fit(few, few_labels).prior_ == "centroids"
    dense, zeros = (
        ExtremeSoftmaxSGD(random_state=0, **p).fit(few.toarray(), few_labels) for p in ({}, {"prior": None})
    )
    assert dense.prior_ == zeros.prior_ == "zeros"
    np.testing.assert_array_equal(dense.coef_, zeros.coef_)


@pytest.mark.parametrize("params", [{"alpha": 0.0}, {"alpha": 1e-4}, {"method": "is"}, {"hash_bits": 12}])
def test_the_default_is_zeros_where_something_else_is_asked_for(params):
    X, y = few_rows(1500, 2000, 3000, 4)
    params = {"max_iter": 2, "learning_rate": 1.0, "random_state": 0, **params}
    default, zeros = (ExtremeSoftmaxSGD(**params, **p).fit(X, y) for p in ({}, {"prior": None}))
    assert default.prior_ == "zeros"
    name = "table_" if "hash_bits" in params else "coef_"
    np.testing.assert_array_equal(getattr(default, name), getattr(zeros, name))


def test_a_stream_goes_on_from_the_default():
    X, y = few_rows(1500, 2000, 3000, 4)
    model = ExtremeSoftmaxSGD(random_state=0).fit(X[:2500], y[:2500])
    assert model.prior_ == "centroids"
    before = model.log_loss(X[2500:], y[2500:])
    model.partial_fit(X[2500:], y[2500:])
    assert model.prior_ == "centroids" and model.alpha_ == 0.0
    assert model.log_loss(X[2500:], y[2500:]) < before - 1.0
    model.partial_fit(X, y + 3)
    assert len(model.classes_) == 1503


def test_several_labels_a_row():
    X, y = few_rows(30, 60, 200, 5)
    Y = sp.csr_array((np.ones(200), (np.arange(200), y)), (200, 30))
    one = ExtremeSoftmaxSGD(prior="centroids", random_state=0).fit(X, y)
    several = ExtremeSoftmaxSGD(prior="centroids", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(one.coef_, several.coef_)


@pytest.mark.parametrize("params", [{"alpha": 0.0}, {"method": "is"}, {"hash_bits": 12}])
def test_refused_parameters(params):
    X, y = few_rows(5, 20, 30, 6)
    with pytest.raises(ValueError, match="prior='centroids'"):
        ExtremeSoftmaxSGD(prior="centroids", **params).fit(X, y)


def test_refused_streams():
    X, y = few_rows(5, 20, 30, 7)
    model = ExtremeSoftmaxSGD(prior="centroids", random_state=0)
    with pytest.raises(ValueError, match="partial_fit; take prior=None"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="blocks of rows; take prior=None"):
        model.fit(ListOfBlocks([X, X]), np.concatenate([y, y]))
    model.fit(X, y).set_params(prior=None).partial_fit(X, y + 3)
    assert len(model.classes_) == 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_read_a_table_of_the_centre_as_they_read_its_entries(dtype, monkeypatch):
    rng = np.random.default_rng(6)
    y = rng.integers(0, 70, 500)
    X = sp.random_array((500, 120), density=0.08, rng=rng, format="csr")
    X = sp.csr_array(X + sp.csr_array((np.ones(500), (np.arange(500), y % 120)), shape=X.shape)).astype(dtype)
    weights = []
    for least in (0.0, np.inf):
        monkeypatch.setattr(plan, "DENSE_PART", least)
        model = ExtremeSoftmaxSGD(prior="centroids", max_iter=3, tol=0.0, random_state=0)
        weights.append(model.fit(X, y).coef_)
    np.testing.assert_allclose(*weights, rtol=1e-3, atol=1e-3 * np.abs(weights[1]).max())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("scale", [1e-18, 1e-25])
def test_a_ridge_beyond_the_range_of_float32_leaves_the_centroids(dense, table, scale, monkeypatch):
    """The ridge of rows so small outweighs their losses: it leaves zeros, or the centroids."""
    X, y = few_rows(21, 40, 200, 2)
    X = sp.csr_array(X * scale, dtype=np.float32)
    monkeypatch.setattr(plan, "DENSE_PART", 0.0 if table else np.inf)
    params = {"alpha": 1e-3, "max_iter": 3, "tol": None, "random_state": 0}
    X_of_fit = X.toarray() if dense else X
    zeros, around = (ExtremeSoftmaxSGD(prior=p, **params).fit(X_of_fit, y) for p in (None, "centroids"))
    assert np.abs(X @ zeros.coef_.T).max() < 1e-6
    M, _, _ = fit_centroids(X, y, 21, np.random.default_rng(np.random.RandomState(0).randint(2**31)))
    M = M.toarray()
    np.testing.assert_allclose(around.coef_, M, rtol=1e-5, atol=1e-5 * M.max())


@pytest.mark.parametrize("block", [1, 40, 2**18])
def test_scores_of_labels_by_blocks_of_rows(block, monkeypatch):
    monkeypatch.setattr(centroids, "BLOCK", block)
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 12), density=0.3, rng=rng, format="csr")
    weights = sp.random_array((5, 12), density=0.5, rng=rng, format="csr")
    y = rng.integers(4, size=50)
    expected = (X.toarray() * weights.toarray()[y]).sum(axis=1)
    np.testing.assert_allclose(centroids._scores_of_labels(X, y, weights), expected, rtol=1e-12, atol=1e-15)
