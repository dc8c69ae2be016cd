"""`partial_fit` of the losses that have gradients: its steps, where they lead, what comes between calls."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reference_chains import hinge

import sparsekit as sk
from sparsekit._linalg.class_design import design_of
from sparsekit._tagger.losses.constraints import allowed_by
from sparsekit._tagger.losses.hinge import WorstLoss
from sparsekit._tagger.losses.loss import ChainLoss
from sparsekit._tagger.solver.ftrl import INITIAL_ROOT, RATE, SEQUENCES_PER_STEP
from sparsekit._tagger.solver.sparse_loss import SparseMAPLoss

K = 3
LOSSES = {"crf": ChainLoss, "sparsemap": SparseMAPLoss, "hinge": WorstLoss}


@pytest.fixture
def data():
    """Sequences of rows that say their labels, mostly; the last column is never there."""
    rng = np.random.default_rng(0)
    y = [rng.integers(0, K, size=T) for T in rng.integers(1, 6, size=24)]
    X = [np.eye(K + 1)[np.where(rng.random(len(k)) < 0.8, k, (k + 1) % K)] + 0.0 for k in y]
    return X, y


def table(model):
    return np.vstack([model.coef_.T, model.transitions_, model.start_, model.stop_])


def loss_of(loss, X, y, C=1.0, weight=None, ridge=0.0, ends=True):
    starts = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    weight = C * (np.ones(len(X)) if weight is None else weight)
    flat = np.concatenate(y).astype(np.int32)
    allowed = allowed_by(None, np.arange(K))
    return LOSSES[loss](
        design_of(np.concatenate(X), 1), starts, flat, allowed, weight, ridge=ridge, ends=ends
    )


@pytest.mark.parametrize("ends", [True, False])
# with zeros SparseMAP's transitions have several answers
@pytest.mark.parametrize(
    ("loss", "rho"), [("crf", 0.0), ("crf", 0.6), ("hinge", 0.0), ("hinge", 0.6), ("sparsemap", 0.0)]
)
def test_coefficients_are_the_leaders(data, loss, rho, ends):
    """Each is the minimiser that the module's head has, with all v_s and h_s kept; over two calls."""
    X, y = (part[: 2 * SEQUENCES_PER_STEP - 3] for part in data)
    C, weight = 0.7, np.random.default_rng(1).random(len(X)) + 0.1
    model = sk.SequenceTagger(C, loss=loss, l1_ratio=rho, fit_ends=ends)
    n = (K + 1 + K + 2 * ends) * K
    v, G, past = np.zeros(n), np.zeros(n), []

    def h():
        return np.sqrt((C * INITIAL_ROOT) ** 2 + G) / RATE

    steep = h()
    past.append((np.zeros(n), steep, v))
    for _ in range(2):
        model.partial_fit(X, y, classes=range(K), sample_weight=weight)
        met = 0.0
        for part in (slice(0, SEQUENCES_PER_STEP), slice(SEQUENCES_PER_STEP, None)):
            few = loss_of(loss, X[part], y[part], C, weight[part], ends=ends)
            value, g = few.value_and_gradient(v)
            G, met, before = G + g * g, met + value, h()
            past.append((g, h() - before, v))
            summed = sum(g - sigma * center for g, sigma, center in past)
            v = (
                -np.sign(summed)
                * np.maximum(np.abs(summed) - rho, 0)
                / (sum(s for _, s, _ in past) + 1 - rho)
            )
    np.testing.assert_allclose(table(model).ravel()[:n], v, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        model.objective_, met + 0.5 * (1 - rho) * v @ v + rho * np.abs(v).sum(), rtol=1e-6
    )
    assert np.isnan(model.optimality_) and np.isnan(model.dual_gap_)
    # the column that is never there
    assert not model.coef_[:, K].any()


def test_worst_labelling_is_the_hinge_losss():
    """Value and subgradient by all labellings, through finite differences where it is smooth."""
    rng = np.random.default_rng(3)
    X, y = [rng.normal(size=(T, 2)) for T in (3, 1, 0, 4)], [rng.integers(0, K, size=T) for T in (3, 1, 0, 4)]
    weight = np.array([1.0, 0.5, 1.0, 2.0])
    loss = loss_of("hinge", X, y, weight=weight)
    v = rng.normal(size=loss.n_variables)
    f, g = loss.value_and_gradient(v)
    np.testing.assert_allclose(f, hinge(v.reshape(-1, K), X, y, weight, K))
    for j, e in enumerate(1e-6 * np.eye(len(v))):
        high, low = (hinge((v + d).reshape(-1, K), X, y, weight, K) for d in (e, -e))
        np.testing.assert_allclose(g[j], (high - low) / 2e-6, atol=1e-6)


@pytest.mark.parametrize(("loss", "most"), [("crf", 0.01), ("sparsemap", 0.03), ("hinge", 0.08)])
def test_passes_lead_to_the_optimum(data, loss, most):
    """n passes at C / n have the objective of `fit`."""
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = sk.SequenceTagger(2.0, loss=loss, tol=1e-6).fit(X, y)
    whole, excess = loss_of(loss, X, y, 2.0, ridge=1.0), []
    for n in (1, 30):
        stream = sk.SequenceTagger(2.0 / n, loss=loss)
        for t in range(n):
            for part in (slice(0, 5 + t % 3), slice(5 + t % 3, None)):  # wherever the data are cut
                stream.partial_fit(X[part], y[part], classes=range(K))
        excess.append(whole.value(whole.pack(table(stream))) / batch.objective_ - 1.0)
    assert 0.0 <= excess[1] < most and excess[1] < 0.3 * excess[0] and excess[0] < 0.4


def test_l1_leaves_zeros_of_noise(data):
    X, y = data
    rng = np.random.default_rng(4)
    X = [np.hstack([x, rng.normal(size=(len(x), 5)) * (rng.random((len(x), 5)) < 0.3)]) for x in X]
    model = sk.SequenceTagger(0.5, l1_ratio=0.95).partial_fit(X, y, classes=range(K))
    assert np.count_nonzero(model.coef_[:, K:]) < 8 and (np.diag(model.coef_[:, :K]) > 0).all()
    assert model.sparsify().predict(X) == model.densify().predict(X)
    assert sp.issparse(model.sparsify().partial_fit(X, y).sparsify().coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_empty_and_weightless_sequences_change_nothing(data, loss):
    X, y = data
    more = [X[0], np.zeros((0, K + 1)), X[1], X[2], *X[3:9]], [y[0], [], y[1], y[2], *y[3:9]]
    one = sk.SequenceTagger(loss=loss).partial_fit(*more, range(K), sample_weight=[1, 1, 0, 1, *[2] * 6])
    other = sk.SequenceTagger(loss=loss, n_jobs=3).partial_fit(
        [X[0], *X[2:9]], [y[0], *y[2:9]], range(K), sample_weight=[1, 1, *[2] * 6]
    )
    np.testing.assert_array_equal(table(one), table(other))
    # a label's weight is its sequence's
    heavy = sk.SequenceTagger(loss=loss, class_weight=dict.fromkeys(range(K), 2.0))
    heavy.partial_fit(X[:9], y[:9], range(K))
    np.testing.assert_array_equal(
        table(heavy), table(sk.SequenceTagger(loss=loss).partial_fit(X[:9], y[:9], range(K), [2.0] * 9))
    )


@pytest.mark.parametrize("way", ["pickle", "save"])
@pytest.mark.parametrize("loss", LOSSES)
def test_new_features_and_pickles_between_calls(way, loss, tmp_path):
    rng = np.random.default_rng(2)
    y = [rng.choice(["B-A", "O"], size=4).tolist() for _ in range(12)]
    X = [[{"w": label + str(rng.integers(2))} for label in labels] for labels in y]
    more = [[{**d, "new": label} for d, label in zip(words, labels)] for words, labels in zip(X, y)]
    model = sk.SequenceTagger(constraints="BIO", loss=loss)
    model.partial_fit(X, y, classes=["O", "B-A", "I-A"])
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        sk.save(model, tmp_path / "model.skops")
        again = sk.load(tmp_path / "model.skops")
    for one in (model, again):
        one.partial_fit(more, y)
    np.testing.assert_array_equal(table(model), table(again))
    assert model.feature_names_in_.tolist()[-2:] == ["new=B-A", "new=O"] and model.coef_[:, -1].any()
    # O before I-A, I-A at the beginning
    assert model.transitions_[2, 1] == model.start_[1] == 0.0 and model.transitions_[2, 0] != 0.0
    assert model.predict(more) == y


def test_a_fit_is_gone_on_from(data):
    X, y = data
    fitted = sk.SequenceTagger(l1_ratio=0.1).fit(X, y)
    before = table(fitted)
    fitted.set_params(class_weight=dict.fromkeys(range(K), 0.0)).partial_fit(X[:1], y[:1])
    np.testing.assert_allclose(table(fitted), before, atol=1e-15)
    fitted.set_params(class_weight=None)
    change = table(fitted.partial_fit(X, y)) - before
    assert 0.0 < np.abs(change).max() < 3 * RATE  # as many steps of that size, and not from 0
    assert (fitted._sums[1] >= 0).all()
    assert not hasattr(fitted.set_params(l1_ratio=0.0).fit(X, y), "_sums")
    np.testing.assert_array_equal(table(fitted), table(sk.SequenceTagger().fit(X, y)))
    for loss in LOSSES:
        with pytest.raises(ValueError, match="too large"):
            sk.SequenceTagger(loss=loss).partial_fit([1e200 * x for x in X], y, classes=range(K))


def test_callers_may_write_into_gradients(data):
    loss = loss_of("crf", *data)
    x = np.linspace(-1.0, 1.0, loss.n_variables)
    expected = loss.gradient(x)
    given = loss.gradient(x)
    given[:] = 0.0
    np.testing.assert_array_equal(loss.gradient(x), expected)
    assert expected.any()
