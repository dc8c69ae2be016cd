"""LPSparseMAPClassifier as a user sees it: its optimum, its predictions, scikit-learn's conventions."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsekit import (
    AndOut,
    AtMostOne,
    Budget,
    FactorGraph,
    Imply,
    Knapsack,
    LPSparseMAPClassifier,
    Or,
    OrOut,
    SparsemaxClassifier,
    Xor,
)
from sparsekit._factor_graph.labels.independent import ROWS
from sparsekit._factor_graph.labels.label_loss import LabelLoss, Labels
from sparsekit._factor_graph.solver.layout import GraphOptions

STRUCTURED = ("sparsemap", "hinge")
every_loss = pytest.mark.parametrize("loss", ROWS)


@parametrize_with_checks(
    [
        LPSparseMAPClassifier(),
        # a gap determines coefficients the less, the weaker the penalty
        LPSparseMAPClassifier(1e-4, pairs="all", loss="sparsemap"),
        LPSparseMAPClassifier(1e-2, pairs="all", loss="hinge", tol=1e-10),
        LPSparseMAPClassifier(1e-4, pairs="all", loss="logistic", tol=1e-12),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_loss
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_classifiers_multilabel_representation_invariance,
        estimator_checks.check_classifiers_multilabel_output_format_predict,
        estimator_checks.check_classifiers_multilabel_output_format_decision_function,
    ],
)
def test_scikit_learn_checks_of_multilabel_classifiers(loss, check):
    """Those that marginals can pass: the fourth demands probabilities strictly between 0 and 1."""
    check("LPSparseMAPClassifier", LPSparseMAPClassifier(loss=loss))


def rows(n=60, p=6, K=4, seed=0):
    X, Y = make_multilabel_classification(n, p, n_classes=K, random_state=seed)
    return StandardScaler().fit_transform(X), Y


def objective(model, X, Y, factors=(), weight=None):
    """The objective by LabelLoss, of a model's attributes and its minimum by L-BFGS-B."""
    weight = np.ones(len(Y)) if weight is None else np.asarray(weight, dtype=float)
    pair_alpha = model.alpha if model.pair_alpha is None else model.pair_alpha
    loss = LabelLoss(
        model.loss, Labels(Y.shape[1], model.pairs_, factors), X, Y, weight / weight.sum(),
        fit_intercept=model.fit_intercept, alpha=model.alpha, pair_alpha=pair_alpha,
    )  # fmt: skip
    table = np.vstack([model.coef_.T, model.intercept_] if model.fit_intercept else [model.coef_.T])
    s = model.pair_coef_
    x = np.concatenate([table.ravel(), np.maximum(s, 0.0), np.maximum(-s, 0.0)])
    lower, upper = loss.bounds()
    found = minimize(
        loss.value_and_gradient, np.zeros(loss.n_variables), jac=True, method="L-BFGS-B",
        bounds=list(zip(lower, upper)), options=dict(maxiter=5000, maxfun=20000, ftol=1e-15, gtol=1e-9),
    )  # fmt: skip
    return loss.value_and_gradient(x)[0], found.fun


# ------------------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("pairs", ["all", 2, None])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_optimum_is_that_of_another_optimiser(pairs, fit_intercept):
    X, Y = rows()
    model = LPSparseMAPClassifier(1e-2, pairs=pairs, fit_intercept=fit_intercept, pair_alpha=3e-2, tol=1e-6)
    model.fit(X, Y)
    value, best = objective(model, X, Y)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.objective_ <= best * (1.0 + 1e-6) and model.optimality_ <= 1e-6
    if fit_intercept and pairs:
        assert np.isnan(model.dual_gap_)
    else:
        assert -1e-9 <= model.objective_ - best <= model.dual_gap_ + 1e-9 and model.dual_gap_ < 1e-6
        assert fit_intercept or not model.intercept_.any()


def test_optimum_with_factors():
    X, Y = rows()
    Y *= np.cumsum(Y, axis=1) == 1
    model = LPSparseMAPClassifier(1e-2, pairs="all", factors=[(AtMostOne, [0, 1, 2, 3])], tol=1e-6).fit(X, Y)
    value, best = objective(model, X, Y, [AtMostOne(FactorGraph().variable((4,)))])
    assert model.objective_ == pytest.approx(value, rel=1e-9) and value <= best * (1.0 + 1e-6)
    free = LPSparseMAPClassifier(1e-2, pairs="all", tol=1e-6).fit(X, Y)
    assert model.objective_ < free.objective_  # fewer rivals


@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_is_one_versus_rest(weighted):
    X, Y = rows(120)
    w = np.random.default_rng(0).random(120) if weighted else np.ones(120)
    model = LPSparseMAPClassifier(1e-3, loss="logistic", tol=1e-8).fit(X, Y, w)
    for coef, intercept, y in zip(model.coef_, model.intercept_, Y.T):
        single = LogisticRegression(C=1.0 / (1e-3 * w.sum()), tol=1e-10, max_iter=5000).fit(X, y, w)
        np.testing.assert_allclose(coef, single.coef_[0], atol=1e-4)
        assert intercept == pytest.approx(single.intercept_[0], abs=1e-4)
        j = list(model.coef_[:, 0]).index(coef[0])
        np.testing.assert_allclose(model.predict_proba(X)[:, j], single.predict_proba(X)[:, 1], atol=1e-4)
    assert model.pairs_.shape == (0, 2) and model.pair_coef_.shape == (0,)


def test_classes_are_sparsemax_regression():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for labels in (names, names[50:]):
        data = X[-len(labels) :]
        ours = LPSparseMAPClassifier(1e-2, pairs="all", tol=1e-7).fit(data, labels)
        theirs = SparsemaxClassifier(1e-2, penalize_intercept=False, tol=1e-9).fit(data, labels)
        assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-7)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.predict_proba(data), theirs.predict_proba(data), atol=1e-4)
        np.testing.assert_array_equal(ours.predict(data), theirs.predict(data))
        assert not ours.multilabel_ and list(ours.classes_) == sorted(set(labels))
        assert ours.decision_function(data).shape == theirs.decision_function(data).shape


# ------------------------------------------------------------------------------------------------ pairs


def test_which_pairs_have_a_score():
    X, Y = rows()
    together = Y.T @ Y
    fit = lambda pairs: LPSparseMAPClassifier(pairs=pairs).fit(X, Y)  # noqa: E731
    assert fit("all").pairs_.tolist() == [list(pair) for pair in itertools.combinations(range(4), 2)]
    two = fit(2).pairs_
    ranked = sorted((together[j, k] for j, k in itertools.combinations(range(4), 2)), reverse=True)
    assert sorted((together[j, k] for j, k in two), reverse=True) == ranked[:2]
    for none in (None, 0, [], np.zeros((0, 2), dtype=int)):
        model = fit(none)
        assert model.pairs_.shape == (0, 2) and model.pair_coef_.shape == (0,)
    given = fit([[3, 1], [0, 2]])
    assert sorted(map(sorted, given.pairs_.tolist())) == [[0, 2], [1, 3]]
    assert given.pair_coef_.shape == (2,)
    np.testing.assert_allclose(
        sorted(given.pair_coef_), sorted(fit(np.array([[0, 2], [1, 3]])).pair_coef_), atol=1e-3
    )
    assert len(fit(100).pairs_) <= 6
    every = LPSparseMAPClassifier(1e-2, pairs=list(itertools.combinations(range(4), 2)), tol=1e-6).fit(X, Y)
    assert every.objective_ == pytest.approx(
        LPSparseMAPClassifier(1e-2, pairs="all", tol=1e-6).fit(X, Y).objective_
    )


# ------------------------------------------------------------------------------------------------ rows


def test_huge_weights_are_ratios_too():
    X, Y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LPSparseMAPClassifier(1e-2, pairs="all").fit(X, Y, np.full(len(X), 1e308))
    assert model.objective_ == pytest.approx(LPSparseMAPClassifier(1e-2, pairs="all").fit(X, Y).objective_)


@every_loss
def test_representations_of_labels_agree(loss):
    X, Y = rows(80)
    model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss)
    first = clone(model).fit(X, Y)
    for target in (
        sp.csr_matrix(Y),
        sp.csc_array(Y),
        Y.astype(bool),
        Y.astype(float),
        Y.tolist(),
        pd.DataFrame(Y),
    ):
        np.testing.assert_array_equal(clone(model).fit(X, target).coef_, first.coef_)


@every_loss
def test_threads_change_nothing(loss):
    X, Y = rows(60 if loss == "hinge" else 300)
    one, two = (
        LPSparseMAPClassifier(1e-4, loss=loss, pairs="all", n_jobs=n, max_iter=2000).fit(X, Y) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.pair_coef_, two.pair_coef_)
    np.testing.assert_array_equal(one.predict_marginals(X), two.predict_marginals(X))


@every_loss
@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_never_or_always_occur(loss, value):
    X, Y = rows()
    Y[:, 2] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss).fit(X, Y)
        same = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss).fit(X, np.full_like(Y, value))
    assert (model.predict(X)[:, 2] == value).all() and (same.predict(X) == value).all()
    assert np.isfinite(model.coef_).all() and same.objective_ < 1e-2


@every_loss
def test_one_column_is_a_vector(loss):
    X, Y = rows()
    model, column = (LPSparseMAPClassifier(loss=loss).fit(X, y) for y in (Y[:, 0], Y[:, :1]))
    sparse = LPSparseMAPClassifier(loss=loss).fit(X, sp.csr_array(Y[:, :1]))
    for other in (column, sparse):
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert other.predict(X).shape == (len(X),) and list(other.classes_) == [0, 1]


@every_loss
def test_empty_rows_and_constant_columns(loss):
    X, Y = rows()
    X[:5], X[:, 1], Y[:3] = 0.0, 0.0, 0
    model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss).fit(X, Y)
    assert not model.coef_[:, 1].any()
    np.testing.assert_array_equal(model.decision_function(X[:2]), [model.intercept_] * 2)
    other = clone(model).fit(sp.csr_array(X), Y)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-3)
    assert model.predict(np.zeros((1, 6))).shape == (1, 4)


# ------------------------------------------------------------------------------------------ predictions

LOGIC = {  # factors, and the sets of five labels that they allow
    "budget": ([(Budget, [0, 1, 2, 3], 2)], lambda y: y[:4].sum() <= 2),
    "imply": ([(Imply, [4, 0]), (Imply, [1, 2, 3])], lambda y: y[4] <= y[0] and y[1] * y[2] <= y[3]),
    "xor": ([(Xor, [0, 1, 2])], lambda y: y[:3].sum() == 1),
    "or": ([(Or, [0, 1]), (Or, [1, 2]), (Or, [0, 2])], lambda y: y[:3].sum() >= 2),
    "or_out": ([(OrOut, [0, 1, 2])], lambda y: y[2] == max(y[:2])),
    "and_out": (
        [(AndOut, [0, 1, 2]), (AtMostOne, [2, 3])],
        lambda y: y[2] == min(y[:2]) and y[2] * y[3] == 0,
    ),
    "knapsack": ([(Knapsack, [0, 1, 2], [1.0, 1.0, 2.0], 2.5)], lambda y: y[0] + y[1] + 2 * y[2] <= 2.5),
    "callable": (
        lambda u: [Budget(u[:3], 1, exactly=True), Imply(u[[3, 4]], negated=[True, False])],
        lambda y: y[:3].sum() == 1 and y[3] + y[4] >= 1,
    ),
}


@pytest.mark.parametrize("loss", STRUCTURED)
@pytest.mark.parametrize("name", LOGIC)
def test_factors_are_obeyed_by_every_prediction(loss, name):
    factors, allowed = LOGIC[name]
    every = np.array([y for y in itertools.product([0, 1], repeat=5) if allowed(np.array(y))])
    rng = np.random.default_rng(0)
    Y = every[rng.integers(len(every), size=60)]
    X = StandardScaler().fit_transform(Y @ rng.normal(size=(5, 6)) + rng.normal(size=(60, 6)))
    model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, factors=factors).fit(X, Y)
    new = np.vstack([X, 3 * rng.normal(size=(200, 6)), np.zeros((1, 6)), 1e3 * rng.normal(size=(20, 6))])
    for threshold in (0.5, 0.0, 0.2, 0.9):
        model.threshold = threshold
        predicted = model.predict(new)
        assert all(allowed(y) for y in predicted)
    model.threshold = 0.5
    assert f1_score(Y, model.predict(X), average="micro") > 0.6
    broken = Y.copy()
    broken[[7, 9]] = next(y for y in itertools.product([0, 1], repeat=5) if not allowed(np.array(y)))
    with pytest.raises(ValueError, match=r"row 7 of y breaks a factor, \w+"):
        clone(model).fit(X, broken)


@pytest.mark.parametrize("loss", STRUCTURED)
@pytest.mark.parametrize("factors", [[(Xor, [0, 1, 2])], [(Or, [0, 1]), (Or, [1, 2]), (Or, [0, 2])]])
def test_ties_obey_factors(loss, factors):
    """Rows that say nothing: all labels are as good as each other, and the nearest set is one of several."""
    Y = np.eye(3, dtype=int) if len(factors) == 1 else 1 - np.eye(3, dtype=int)
    X = np.zeros((3, 2))
    for threshold in (0.5, 0.9, 0.1):
        model = LPSparseMAPClassifier(factors=factors, loss=loss, pairs="all", threshold=threshold).fit(X, Y)
        predicted = model.predict(X)
        assert (predicted.sum(axis=1) == 1 if len(factors) == 1 else predicted.sum(axis=1) >= 2).all()


@every_loss
def test_predictions_are_consistent(loss):
    X, Y = rows()
    model = LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, threshold=0.5).fit(X, Y)
    scores, mu = model.decision_function(X), model.predict_marginals(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, atol=1e-12)
    assert scores.shape == mu.shape == Y.shape and mu.min() >= 0.0 and mu.max() <= 1.0
    np.testing.assert_array_equal(model.predict_proba(X), mu)
    predicted = model.predict(X)
    assert predicted.dtype.kind == "i" and set(np.unique(predicted)) <= {0, 1}
    labels = Labels(4, model.pairs_)
    s = model.pair_coef_
    sides = np.maximum(s, 0.0), np.maximum(-s, 0.0)
    if loss == "logistic":
        np.testing.assert_allclose(mu, 1.0 / (1.0 + np.exp(-scores)), atol=1e-12)
    else:
        np.testing.assert_allclose(mu, labels.marginals(scores, *sides, GraphOptions())[0], atol=1e-6)
    if loss == "hinge":
        mu = labels.marginals(scores, *sides, GraphOptions(quadratic=False, tol_primal=1e-9))[0]
    np.testing.assert_array_equal(predicted, mu > 0.5)
    if loss != "hinge":
        model.threshold = 0.2
        np.testing.assert_array_equal(model.predict(X), mu > 0.2)
    assert model.score(X, Y) == np.mean((model.predict(X) == Y).all(axis=1))
    # a row's marginals do not depend on the others
    np.testing.assert_allclose(model.predict_marginals(X[5:6]), model.predict_marginals(X)[5:6], atol=1e-12)
