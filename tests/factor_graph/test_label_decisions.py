"""Which labels a row gets from its marginals, and the penalty that follows from the data."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler

from sparsekit import AtMostOne, Budget, Imply, LPSparseMAPClassifier
from sparsekit._factor_graph.estimators.label_decisions import decide, f1_thresholds
from sparsekit._factor_graph.labels import label_strengths
from sparsekit._factor_graph.labels.label_strengths import strengths
from sparsekit._linalg.as_design import as_design

SETS = np.array(list(itertools.product([0, 1], repeat=5)))


def expected(mu, never_empty):
    """Expected F1 of every set: the ratio of expectations, and for the empty one that it is right."""
    value = 2.0 * SETS @ mu / np.maximum(SETS.sum(axis=1) + mu.sum(), 1e-300)
    value[0] = -1.0 if never_empty else np.prod(1.0 - mu)
    return value


@pytest.mark.parametrize("never_empty", [False, True])
def test_the_set_of_the_largest_expected_f1(never_empty):
    rng = np.random.default_rng(0)
    mu = np.clip(rng.normal(0.3, 0.4, size=(300, 5)), 0.0, 1.0)
    mu[:3] = [[0.0] * 5, [1.0] * 5, [0.1, 0.0, 0.0, 0.0, 0.0]]
    eta = mu - rng.random((300, 5))
    found = decide(mu, eta, "expected_f1", never_empty, None, 1)
    kinds = set()
    for y, m in zip(found, mu):
        value = expected(m, never_empty)
        assert value[(y == SETS).all(axis=1).argmax()] == pytest.approx(value.max(), abs=1e-12)
        kinds.add(int(y.sum()))
    assert kinds >= {1, 2, 3, 5} and (0 in kinds) != never_empty
    # rows whose marginals are all 0 get the label of the largest score, if any
    none = mu.max(axis=1) == 0.0
    assert none.any()
    best = np.eye(5)[eta[none].argmax(axis=1)]
    np.testing.assert_array_equal(found[none], best if never_empty else 0 * best)


def test_thresholds_of_no_label_and_of_one():
    assert f1_thresholds(np.zeros((3, 0)), True).shape == (3, 1)
    assert decide(np.zeros((3, 0)), np.zeros((3, 0)), "expected_f1", True, None, 1).shape == (3, 0)
    one = np.array([[0.0], [0.3], [0.5], [1.0]])
    np.testing.assert_array_equal(decide(one, one, "expected_f1", False, None, 1).ravel(), [0, 0, 1, 1])
    np.testing.assert_array_equal(decide(one, one, "expected_f1", True, None, 1).ravel(), [1, 1, 1, 1])


LOGIC = {
    "none": (None, lambda y: True),
    "at most one": ([(AtMostOne, range(5))], lambda y: y.sum() <= 1),
    # labels 0, 1 and 2 cost another one, so that the best single label is none of them
    "implied": (
        [(Imply, [0, 3]), (Imply, [1, 3]), (Imply, [2, 4])],
        lambda y: y[3] >= max(y[:2]) and y[4] >= y[2],
    ),
    "callable": (lambda u: [Budget(u[:3], 2), Imply(u[[0, 1]])], lambda y: y[:3].sum() <= 2 and y[1] >= y[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGIC)
@pytest.mark.parametrize("threshold", ["expected_f1", 0.5, 0.95])
def test_sets_that_are_not_empty_obey_logic_and_are_the_best(name, threshold):
    factors, allowed = LOGIC[name]
    rng = np.random.default_rng(1)
    mu = np.clip(rng.normal(0.1, 0.5, size=(60, 5)), 0.0, 1.0)
    eta = np.where(mu > 0.0, mu, -rng.random((60, 5)))
    possible = np.array([y for y in SETS if allowed(y)])
    cut = f1_thresholds(mu, True) if threshold == "expected_f1" else threshold
    for never_empty in (True, False):
        found = decide(mu, eta, threshold, never_empty, factors, 1)
        gain = mu - (cut if never_empty or threshold != "expected_f1" else f1_thresholds(mu, False))
        some = possible[possible.any(axis=1)]
        plain = np.array([(possible @ g).max() for g in gain])
        for y, g, e, m, best in zip(found, gain, eta, mu, plain):
            assert allowed(y)
            if (y.any() and best > 1e-9) or not never_empty:
                assert g @ y == pytest.approx(best, abs=1e-7)
            else:
                rank = g if m.max() > 0.0 else e
                assert rank @ y == pytest.approx((some @ rank).max(), abs=1e-7)
        assert found.any(axis=1).all() or not never_empty


def test_no_label_can_be_on():
    factors = [(Budget, range(3), 0)]
    model = LPSparseMAPClassifier(factors=factors, never_empty=True).fit(np.eye(4), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="no set of labels satisfies all"):
        model.predict(np.eye(4))
    model = LPSparseMAPClassifier(factors=factors).fit(np.eye(4), np.zeros((4, 3)))
    assert not model.never_empty_ and not model.predict(np.eye(4)).any()


def data(n=80, p=12, K=4, seed=0):
    X, Y = make_multilabel_classification(n, p, n_classes=K, random_state=seed, allow_unlabeled=False)
    return StandardScaler().fit_transform(X), Y


def test_never_empty_is_what_the_training_data_are():
    X, Y = data()
    model = LPSparseMAPClassifier().fit(X, Y)
    far = np.vstack([X, -100.0 * np.sign(model.coef_.sum(axis=0)) * np.ones((1, 12))])
    assert model.never_empty_ and model.predict(far).any(axis=1).all()
    assert (model.predict_marginals(far[-1:]) == 0.0).any()
    assert not model.set_params(never_empty=False).fit(X, Y).never_empty_
    Y[3] = 0
    assert not LPSparseMAPClassifier().fit(X, Y).never_empty_
    # a row of no weight is none
    assert LPSparseMAPClassifier().fit(X, Y, sample_weight=np.arange(80) != 3).never_empty_
    assert LPSparseMAPClassifier(never_empty=True).fit(X, Y).never_empty_


# --------------------------------------------------------------------------------------- alpha="auto"


def automatic(X, Y, weight=None, loss="sparsemap", centred=True, pair_alpha=None):
    weight = np.ones(len(Y)) if weight is None else weight
    design = as_design(X)
    return strengths("auto", pair_alpha, loss, design, np.asarray(Y, dtype=float), weight, centred)[:2]


def exact(X, Y, alphas):
    """Generalised cross-validation by a singular value decomposition."""
    n, X, Y = len(X), X - X.mean(axis=0), Y - Y.mean(axis=0)
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    inside, outside = U.T @ Y, (Y**2).sum() - ((U.T @ Y) ** 2).sum()
    score = []
    for alpha in alphas:
        hat = s**2 / (s**2 + n * alpha)
        rss = outside + (((1.0 - hat)[:, None] * inside) ** 2).sum()
        score.append(rss / (1.0 - (hat.sum() + 1.0) / n) ** 2)
    return np.array(score)


def noisy(noise, n=300, p=40, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.exponential(size=p)
    score = X @ rng.normal(size=(p, K))
    return X, (score / score.std() + noise * rng.normal(size=(n, K)) > 0).astype(int)


@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("K", [3, 20])
@pytest.mark.parametrize("columns", [0, 40], ids=["Lanczos", "spectrum"])
def test_alpha_is_that_of_generalised_cross_validation(monkeypatch, noise, K, columns):
    monkeypatch.setattr(label_strengths, "SMALL_SIDE", columns)
    X, Y = noisy(noise, K=K)
    alpha = automatic(X, Y)[0]
    grid = X.var(axis=0).sum() / 300 * np.logspace(-3, 2, 51)
    score = exact(X, Y, grid)
    # as good as the best, though the trace and the sum over many labels are estimates without the spectrum
    assert exact(X, Y, [alpha])[0] <= (1.01 if columns == 0 else 1.0 + 1e-9) * score.min()


def test_alpha_follows_noise_scale_and_rows():
    by_noise = [automatic(*noisy(noise))[0] for noise in (0.0, 1.0, 5.0)]
    assert by_noise[0] < by_noise[1] < by_noise[2]
    X, Y = noisy(1.0)
    alpha, pair_alpha = automatic(X, Y)
    assert pair_alpha == pytest.approx(alpha / X.var(axis=0).sum())
    assert automatic(10.0 * X, Y) == pytest.approx((100.0 * alpha, pair_alpha))
    assert automatic(X, Y, loss="logistic")[0] == pytest.approx(alpha / 4)
    assert automatic(X, Y, loss="hinge")[0] == pytest.approx(alpha / 10)
    assert automatic(X, Y, pair_alpha=3.0)[1] == 3.0
    for same in (sp.csr_matrix(X), X.astype(np.float32), np.asfortranarray(X)):
        assert automatic(same, Y)[0] == pytest.approx(alpha, rel=1e-5)
    # means are taken off the columns, where there are intercepts to do so
    assert automatic(X + 3.0, Y)[0] == pytest.approx(alpha)
    assert automatic(X + 3.0, Y, centred=False)[0] != pytest.approx(alpha)


def test_weights_are_repeated_rows_and_small_ones_no_penalty():
    X, Y = noisy(1.0)
    times = np.random.default_rng(3).integers(0, 4, size=300)
    weighted = automatic(X, Y, times.astype(float))
    assert weighted == pytest.approx(automatic(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)))
    assert automatic(X, Y, np.full(300, 1e-8)) == pytest.approx(automatic(X, Y))


@pytest.mark.parametrize(
    "X, Y",
    [
        (np.ones((5, 2)), np.eye(5)[:, :2]), (np.zeros((5, 2)), np.eye(5)[:, :2]),
        (np.ones((1, 2)), np.ones((1, 2))),
        (np.arange(6.0).reshape(3, 2), np.ones((3, 2))), (np.eye(3), np.eye(3)), (np.eye(3, 30), np.eye(3)),
        (1e160 * np.eye(3), np.eye(3)), (1e-160 * np.eye(3), np.eye(3)), (np.eye(3), np.zeros((3, 0))),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_alpha_of_data_that_say_little(X, Y):
    for centred in (True, False):
        alpha, pair_alpha = automatic(X, Y, centred=centred)
        assert alpha >= 0.0 and np.isfinite(alpha * alpha) and 0.0 < pair_alpha < np.inf


def test_more_columns_than_rows():
    """Near interpolation the criterion is 0 / 0: labels without a reason get no small penalty for that."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, Y = (rng.random((100, 150)) < 0.1).astype(float), rng.random((100, 4)) < 0.1
        assert automatic(X, Y)[0] >= 0.1 * X.var(axis=0).sum() / 100


def test_strengths_of_a_fit():
    X, Y = data()
    model = LPSparseMAPClassifier(pairs="all").fit(X, Y)
    assert (model.alpha_, model.pair_alpha_) == pytest.approx(automatic(X, Y))
    for same in (sp.csr_matrix(X), sp.csc_matrix(X), X.astype(np.float32)):
        assert LPSparseMAPClassifier().fit(same, Y).alpha_ == pytest.approx(model.alpha_, rel=1e-5)
    again = LPSparseMAPClassifier(model.alpha_, pairs="all", pair_alpha=model.pair_alpha_).fit(X, Y)
    assert again.objective_ == model.objective_
    model = LPSparseMAPClassifier(0.3).fit(X, Y)
    assert model.alpha_ == model.pair_alpha_ == 0.3
    model = LPSparseMAPClassifier().fit(X, Y[:, 0])
    assert model.alpha_ == pytest.approx(automatic(X, np.eye(2)[Y[:, 0]])[0])
