"""ExtremeSoftmaxSGD with prior="centroids": leave-one-out gradients, the ridge's optimum, what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad, minimize
from sklearn.preprocessing import normalize

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.solver.centroids import _loss_gradient, fit_centroids


def few_rows(n_classes, n_features, n, seed, dtype=np.float64):
    """Sparse rows of classes that have a few features each."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    words = rng.integers(0, n_features, (n_classes, 4))
    common = rng.integers(0, n_features // 10, (n, 3))
    columns = np.hstack([words[y[:, None], rng.integers(0, 4, (n, 2))], common])
    X = sp.csr_array((np.ones(columns.size), (np.repeat(np.arange(n), 5), columns.ravel())), (n, n_features))
    return normalize(X).astype(dtype), y


def losses_without_each_row(X, y, K, log_d, q):
    """Mean log-loss of the rows, with the centroids of all others, row by row."""
    X, out = X.toarray(), []
    for i in range(len(y)):
        sums, counts = np.zeros((K, X.shape[1])), np.zeros(K)
        for other in range(len(y)):
            if other != i:
                sums[y[other]] += X[other]
                counts[y[other]] += 1
        logs = np.log(np.maximum(counts, 1))
        s = np.exp(q[1] - q[0] * logs) * (sums @ (np.exp(log_d) * X[i])) + q[2] * logs
        out.append(np.logaddexp.reduce(s) - s[y[i]])
    return np.mean(out)


def test_leave_one_out_loss_and_gradient():
    X, y = few_rows(6, 30, 25, 0)
    rng = np.random.default_rng(1)
    sums = sp.csr_array((np.ones(25), (y, np.arange(25))), (6, 25)) @ X
    counts = np.bincount(y, minlength=6)
    data = sp.csr_array(sums.T), counts, np.log(np.maximum(counts, 1))

    def parts(v):
        return _loss_gradient(X, y, *data, v[:30], v[30:])

    at = rng.standard_normal(33) * 0.3
    assert parts(at)[0] == pytest.approx(losses_without_each_row(X, y, 6, at[:30], at[30:]))
    error = check_grad(lambda v: parts(v)[0], lambda v: np.concatenate(parts(v)[1:]), at)
    assert error < 1e-6
    assert np.abs(np.concatenate(parts(at)[1:])).max() > 1e-3


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ridge_shrinks_to_the_centroids(dense, dtype):
    """The optimum of log-loss and ridge around the centroids, by L-BFGS."""
    K, p, alpha = 21, 40, 3e-3  # two blocks, one of them not full
    X, y = few_rows(K, p, 200, 2, dtype)
    model = ExtremeSoftmaxSGD(prior="centroids", alpha=alpha, decay=0.97, max_iter=150, random_state=0)
    model.fit(X.toarray() if dense else X, y)
    # the same draws as in the fit
    rng = np.random.default_rng(np.random.RandomState(0).randint(2**31))
    M, start = fit_centroids(sp.csr_array(X), y, K, rng)
    M, X = M.toarray(), X.toarray().astype(np.float64)

    def objective(v):
        V, b = v[: K * p].reshape(K, p), v[K * p :]
        s = X @ (M + V).T + b
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


def test_lower_log_loss_on_new_rows_of_classes_with_few():
    X, y = few_rows(400, 800, 2400, 3, np.float32)
    fits = [
        ExtremeSoftmaxSGD(prior=prior, random_state=0, tol=None).fit(X[:1600], y[:1600])
        for prior in (None, "centroids")
    ]
    zeros, centroids = (-np.log(one.predict_proba(X[1600:])[np.arange(800), y[1600:]]).mean() for one in fits)
    assert centroids < zeros - 0.02 * np.log(400)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-3, 2.0**10, 1e18])
def test_the_unit_of_the_rows_is_that_of_the_weights(scale):
    X, y = few_rows(8, 40, 120, 2)
    plain, b = fit_centroids(X, y, 8, np.random.default_rng(0))
    scaled, own = fit_centroids(scale * X, y, 8, np.random.default_rng(0))
    np.testing.assert_allclose(scale * scaled.toarray(), plain.toarray(), rtol=1e-6)
    np.testing.assert_allclose(own, b, rtol=1e-6)


def test_equal_seeds_give_equal_weights():
    X, y = few_rows(300, 400, 900, 4)
    first, second = (ExtremeSoftmaxSGD(prior="centroids", random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.alpha_ == pytest.approx(1 / (3 * 900))


def test_several_labels_a_row():
    X, y = few_rows(30, 60, 200, 5)
    Y = sp.csr_array((np.ones(200), (np.arange(200), y)), (200, 30))
    one = ExtremeSoftmaxSGD(prior="centroids", random_state=0).fit(X, y)
    several = ExtremeSoftmaxSGD(prior="centroids", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(one.coef_, several.coef_)


@pytest.mark.parametrize(
    "params", [{"alpha": 0.0}, {"method": "is"}, {"sampling": "independent"}, {"hash_bits": 12}]
)
def test_refused_parameters(params):
    X, y = few_rows(5, 20, 30, 6)
    with pytest.raises(ValueError, match="prior='centroids'"):
        ExtremeSoftmaxSGD(prior="centroids", **params).fit(X, y)


def test_refused_streams(tmp_path):
    X, y = few_rows(5, 20, 30, 7)
    model = ExtremeSoftmaxSGD(prior="centroids", random_state=0)
    with pytest.raises(ValueError, match="partial_fit; take prior=None"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="checkpoints; take prior=None"):
        model.fit(X, y, checkpoint=tmp_path / "run.npz")
    model.fit(X, y).set_params(prior=None).partial_fit(X, y + 3)
    assert len(model.classes_) == 8
