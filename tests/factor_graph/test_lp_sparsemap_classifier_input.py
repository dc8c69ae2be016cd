"""LPSparseMAPClassifier: tools of scikit-learn, runs that are watched or stopped, what is refused."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from sparsekit import Budget, Factor, FactorGraph, Imply, LPSparseMAPClassifier, Or, Pair, Sequence, Xor
from sparsekit._factor_graph.labels import coupled_hinge, label_solver
from sparsekit._factor_graph.labels.independent import ROWS

every_loss = pytest.mark.parametrize("loss", ROWS)


def rows(n=60, p=6, K=4, seed=0):
    X, Y = make_multilabel_classification(n, p, n_classes=K, random_state=seed)
    return StandardScaler().fit_transform(X), Y


# ------------------------------------------------------------------------------------------------- tools


@every_loss
def test_warm_start(loss):
    X, Y = rows()
    model = LPSparseMAPClassifier(
        1e-2, loss=loss, warm_start=True, tol=1e-4 if loss == "hinge" else 1e-5
    ).fit(X, Y)
    first, steps = model.objective_, model.n_iter_[0]
    model.fit(X, Y)
    assert model.objective_ <= first * (1.0 + 1e-9)
    if loss != "hinge":
        assert model.n_iter_[0] <= 1
        model.set_params(alpha=0.95e-2).fit(X, Y)
        assert model.n_iter_[0] < steps
    # other pairs, another dtype, other shapes
    for params, y in (
        ({"pairs": 2}, Y),
        ({"pairs": [[0, 3]]}, Y),
        ({"pairs": "all"}, Y[:, :3]),
        ({}, Y[:, 0]),
    ):
        model.set_params(**params).fit(X.astype(np.float32), y)
        cold = clone(model).set_params(warm_start=False).fit(X.astype(np.float32), y)
        assert model.objective_ == pytest.approx(cold.objective_, rel=2e-4 if loss == "hinge" else 1e-5)
        assert model.predict_proba(X.astype(np.float32)).dtype == np.float32
    model.set_params(fit_intercept=False).fit(X, Y[:, 0])
    assert not model.intercept_.any()
    assert model.fit(X[:, :4], Y[:, 0]).coef_.shape == (2, 4)


def test_warm_start_keeps_pairs_of_the_last_fit():
    X, Y = rows()
    model = LPSparseMAPClassifier(1e-2, pairs=[[2, 0], [1, 3]], warm_start=True, tol=1e-6).fit(X, Y)
    assert model.pair_coef_.any()
    first = model.objective_
    model.set_params(pairs=[[3, 1], [0, 2]], max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    assert model.objective_ == pytest.approx(first, rel=1e-6)


def test_fit_changes_no_parameter_and_no_data():
    X, Y = rows()
    pairs, columns, weight = np.array([[3, 1], [0, 2]]), np.array([0, 1, 2, 3]), np.ones(60)
    factors = [(Budget, columns, 4)]
    copies = [a.copy() for a in (X, Y, pairs, columns, weight)]
    model = LPSparseMAPClassifier(pairs=pairs, factors=factors).fit(X, Y, weight)
    assert model.pairs is pairs and model.factors is factors
    model.pairs_[:] = 0
    model.predict(X)
    for now, then in zip((X, Y, pairs, columns, weight), copies):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_order_of_indicators_in_memory_does_not_matter(make):
    X, Y = rows()
    expected = LPSparseMAPClassifier(pairs="all").fit(make(X), Y)
    found = LPSparseMAPClassifier(pairs="all").fit(make(X), np.asfortranarray(Y, dtype=float))
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_weights_are_routed():
    X, y = load_iris(return_X_y=True)
    with config_context(enable_metadata_routing=True):
        model = (
            LPSparseMAPClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        cross_validate(model, X, y, params={"sample_weight": np.ones(150)}, error_score="raise")


# -------------------------------------------------------------------------------------------------- runs


@every_loss
def test_history_verbose_and_callback(loss, capsys):
    X, Y = rows()
    seen = []
    model = LPSparseMAPClassifier(
        1e-2, pairs="all", loss=loss, history=True, verbose=1, callback=seen.append
    ).fit(X, Y)
    steps = model.n_iter_[0]
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert all("LPSparseMAPClassifier" in line and "objective" in line for line in lines)
    nits = [result.nit for result in seen]
    assert nits in (list(range(1, steps + 1)), list(range(steps + 1)))  # one count over all continuations
    assert len(model.history_["fun"]) == len(model.history_["time"]) == len(model.history_["optimality"])
    assert len(model.history_["fun"]) == len(nits) == len(lines)
    assert (np.diff(model.history_["time"]) >= 0).all()
    # of the hinge they are of the proximal steps' problems
    assert model.history_["fun"][-1] == pytest.approx(model.objective_, rel=1e-4 if loss == "hinge" else 1e-9)
    assert model.history_["fun"][-1] == seen[-1].fun
    if loss != "hinge":
        assert model.history_["fun"][-1] <= model.history_["fun"][0]
    assert not hasattr(model.set_params(history=False, verbose=0, callback=None).fit(X, Y), "history_")


def test_a_callback_stops_the_fit_without_pairs_and_the_one_with_them():
    X, Y = rows()
    model = LPSparseMAPClassifier(1e-2, pairs="all", history=True)
    steps = model.fit(X, Y).n_iter_[0]
    for n in (1, 2, steps // 2, steps - 1):
        seen = []

        def stop(result, n=n, seen=seen):
            seen.append(result.nit)
            return result.nit == n

        model.set_params(callback=stop).fit(X, Y)
        assert seen == list(range(1, n + 1)) and model.n_iter_[0] == n
        assert model.history_["fun"][-1] == pytest.approx(model.objective_, rel=1e-9)
        assert model.history_["optimality"][-1] == pytest.approx(model.optimality_, rel=1e-9)


@pytest.mark.parametrize("most", [0, 1, 1000])
@pytest.mark.parametrize("loss, solver", [("sparsemap", label_solver), ("hinge", coupled_hinge)])
def test_answers_do_not_depend_on_the_fit_without_pairs(loss, solver, most, monkeypatch):
    X, Y = rows()
    model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, tol=1e-6)
    known = model.fit(X, Y).objective_
    monkeypatch.setattr(solver, "PAIRLESS_STEPS", most)
    assert model.fit(X, Y).objective_ == pytest.approx(known, rel=1e-5) and model.optimality_ <= 1e-6


@every_loss
def test_what_did_not_converge_says_so(loss):
    X, Y = rows()
    steps = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss).fit(X, Y).n_iter_[0]
    if loss != "sparsemap":  # bounds are computed where it is cut short, so that fewer steps may suffice
        for n in range(1, steps, max(1, steps // 8)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, max_iter=n).fit(X, Y)
            said = any(f"it reached max_iter={n}." in str(w.message) for w in caught)
            assert model.n_iter_[0] == n and said == (model.dual_gap_ > 1e-4 * model.objective_)
        return
    for n in range(1, steps, max(1, steps // 60)):
        with pytest.warns(ConvergenceWarning, match=rf"did not converge: it reached max_iter={n}\b"):
            model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, max_iter=n).fit(X, Y)
        assert model.n_iter_[0] == n
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, max_iter=steps + 1).fit(X, Y)


@every_loss
def test_max_time_is_named(loss):
    X, Y = rows()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        LPSparseMAPClassifier(loss=loss, max_time=1e-9).fit(X, Y)


@every_loss
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(60)
def test_overflowing_data_ends(loss):
    X, Y = rows()
    for target in (Y, Y[:, 0]):
        model = LPSparseMAPClassifier(loss=loss, max_iter=20).fit(X * 1e160, target)
        assert model.n_iter_[0] <= 20


# ------------------------------------------------------------------------------------------- what is refused


def refused(match, X=None, Y=None, error=ValueError, weight=None, **params):
    data = rows()
    X, Y = data[0] if X is None else X, data[1] if Y is None else Y
    with pytest.raises(error, match=match):
        LPSparseMAPClassifier(**params).fit(X, Y, weight)


@pytest.mark.parametrize(
    "pairs, match",
    [
        ([[0, 4]], r"pairs must be columns of y, 0 to 3"), ([[-1, 2]], r"pairs must be columns of y, 0 to 3"),
        ([[1, 1]], "two different labels"), ([[0, 1], [1, 0]], "none twice"),
        ([0, 1], r"shape \(n_pairs, 2\)"),
        ([[0, 1, 2]], r"shape \(n_pairs, 2\)"), ([[0.0, 1.0]], "pairs must be whole numbers"),
        ([["a", "b"]], "pairs must be whole numbers"), ([[True, False]], "pairs must be whole numbers"),
        ([[0, 1], [2]], "pairs"),
    ],
)  # fmt: skip
def test_bad_pairs(pairs, match):
    refused(match, pairs=pairs)


@pytest.mark.parametrize(
    "factors",
    [
        [(Budget, [0, 4], 1)], [(Budget, [0, -1], 2)], [(Budget, [0.0, 1.0], 2)], [(Budget, [], 0)],
        [(Budget, [True, False, True, False], 2)], [(Budget, [0, 0], 2)], [(Budget, [0, 1], 3)],
        [(Budget, [0, 1], -1)], [(Budget, [0, 1], 1.5)], [(Budget, [0, 1])], [(Imply, [2])], [(int, [0, 1])],
        [Budget], [[Budget, [0, 1], 1]], [(Budget,)], ["Budget"], [(Pair, [0, 1])], [(Factor, [0, 1])],
        [(Sequence, [[0, 1], [2, 3]])], lambda labels: None, lambda labels: Budget(labels, 4),
        lambda labels: [3], lambda labels: [Budget(FactorGraph().variable((4,)), 4)],
        lambda labels: [Budget(FactorGraph().variable((9,)), 9)],
        lambda labels: [Budget(labels.graph.variable((2,)), 2)],
    ],
)  # fmt: skip
def test_bad_factors(factors):
    """Whatever is wrong, the message names the argument."""
    refused("factors", error=(ValueError, TypeError), factors=factors)


def test_factors_where_there_are_none():
    X, Y = rows()
    refused("factors", Y=Y[:, 0], factors=[(Budget, [0, 1], 1)])
    refused("factors need loss='sparsemap' or 'hinge'", factors=[(Budget, [0, 1], 2)], loss="logistic")
    for loss in ("sparsemap", "hinge"):
        refused(r"row \d+ of y breaks a factor, Or", factors=[(Xor, [0]), (Or, [1])][1:], loss=loss, Y=Y * 0)
        everything = LPSparseMAPClassifier(1e-2, pairs="all", factors=[], loss=loss).fit(X, Y)
        np.testing.assert_array_equal(
            everything.coef_, LPSparseMAPClassifier(1e-2, pairs="all", loss=loss).fit(X, Y).coef_
        )


@every_loss
@pytest.mark.parametrize(
    "change, match",
    [
        (lambda Y: Y * 2, "y must be an indicator of zeros and ones"),
        (lambda Y: 2 * Y - 1, "y must be an indicator of zeros and ones"),
        (lambda Y: Y * 0.5, "y must be an indicator of zeros and ones"),
        (lambda Y: sp.csr_array(Y * 3), "y must be an indicator of zeros and ones"),
        (lambda Y: Y.astype(str), "y must be an indicator of zeros and ones"),
        (lambda Y: np.where(Y, np.nan, 0.0), "Input y contains NaN"),
        (lambda Y: np.where(Y, np.inf, 0.0), "Input y contains infinity"),
        (lambda Y: sp.csr_array(np.where(Y, np.nan, 0.0)), "NaN"),
        (lambda Y: Y[:9], "inconsistent numbers of samples"), (lambda Y: Y[:, :0], "0 feature|label|column"),
        (lambda Y: Y[:, :, None], "dim 3"), (lambda Y: np.zeros(60), "only one class"),
        (lambda Y: np.zeros((60, 1)), "only one class"),
        (lambda Y: np.linspace(0, 1, 60), "Unknown label type"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_bad_targets(loss, change, match):
    refused(match, Y=change(rows()[1]), loss=loss)


@every_loss
def test_probabilities_of_classes_far_from_the_data(loss):
    X, y = load_iris(return_X_y=True)
    model = LPSparseMAPClassifier(loss=loss).fit(X - X.mean(axis=0), y)
    far = np.random.default_rng(0).normal(size=(50, 4)) * np.logspace(0, 9, 50)[:, None]
    P = model.predict_proba(far)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-7)
    assert P.min() >= 0.0
