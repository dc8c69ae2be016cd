"""Fits to sparse X with many empty columns are those to the others, with zeros put back."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor

import sparsekit as sk
from sparsekit._estimator.used_columns import UsedColumns, has_entries, without_empty_columns

rng = np.random.default_rng(0)
N, P = 60, 400
KEPT = np.sort(rng.choice(P, 12, replace=False))
SMALL = sp.csr_array(rng.standard_normal((N, 12)) * (rng.random((N, 12)) < 0.5))
WIDE = UsedColumns(P, KEPT).widen(SMALL)
real = SMALL @ rng.standard_normal(12) + 0.1 * rng.standard_normal(N)
labels, sets = (
    np.digitize(real, [-1.0, 1.0]),
    np.c_[real > 0, real < 1, SMALL.toarray()[:, 0] > 0].astype(int),
)

MODELS = [
    sk.L1LogisticOBA(C=0.5), sk.LassoOBA(0.01), sk.BoundedRegressor(alpha=0.01), sk.BoundedClassifier(),
    sk.SoftmaxClassifier(), sk.LPSparseMAPClassifier(pairs="all"), sk.L1LogisticOBACV(Cs=3, cv=2),
    sk.L1LogisticOBACV(Cs=3, cv=2, scoring="neg_log_loss", refit=False), sk.LassoOBACV(alphas=3, cv=2),
    sk.SparsemaxClassifierCV(alphas=[0.1, 0.01], cv=2), sk.LPSparseMAPClassifierCV(alphas=[1.0, 0.1], cv=2),
]  # fmt: skip
every = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def target(model):
    return sets if isinstance(model, sk.LPSparseMAPClassifier) else real if is_regressor(model) else labels


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_columns_go_and_come_back(form):
    X = WIDE.asformat(form)
    found, columns = without_empty_columns(X)
    assert found.format == form and np.shares_memory(found.data, X.data)
    assert_array_equal(found.toarray(), SMALL.toarray())
    assert_array_equal(columns.widen(found).toarray(), WIDE.toarray())
    assert_array_equal(columns.kept, KEPT)
    assert_array_equal(has_entries(WIDE), has_entries(WIDE.toarray()))
    needed = np.zeros(P, dtype=bool)
    needed[[0, 1]] = True
    assert_array_equal(without_empty_columns(X, needed)[1].kept, np.union1d(KEPT, [0, 1]))
    # few empty columns, none that is not, and dense X stay
    for stays in (SMALL, sp.csr_array((3, P)), WIDE.toarray()):
        assert without_empty_columns(stays)[0] is stays


@every
def test_fits(model):
    y = target(model)
    wanted, found = clone(model).fit(SMALL, y), clone(model).fit(WIDE, y)
    assert found.n_features_in_ == found.coef_.shape[-1] == P
    assert_array_equal(found.coef_[..., KEPT], wanted.coef_)
    assert np.count_nonzero(found.coef_) == np.count_nonzero(wanted.coef_)
    assert_array_equal(found.predict(WIDE), wanted.predict(SMALL))
    for name in ("scores_", "objective_", "dual_gap_"):
        assert_array_equal(getattr(found, name, 0), getattr(wanted, name, 0))


@pytest.mark.parametrize("model", MODELS[:6], ids=lambda model: type(model).__name__)
def test_starts_and_callbacks_have_all_columns(model):
    y, last = target(model), []
    for X in (SMALL, WIDE):
        seen = []
        one = clone(model).set_params(
            warm_start=True, callback=lambda result, seen=seen: seen.append(result.x)
        )
        one.fit(X, y)
        if isinstance(one, sk.L1LogisticOBA):
            one.sparsify()  # also of a sparse coef_
        one.fit(X, y)
        last.append((seen[-1], one.n_iter_))
    (x, steps), (whole, others) = last
    assert_array_equal(steps, others)
    n_outputs = 1 if is_regressor(model) else 3
    assert whole.size - x.size == (P - len(KEPT)) * n_outputs
    assert_array_equal(whole[whole != 0], x[x != 0])


@pytest.mark.parametrize("coefs", ["dense", "sparse"])
def test_paths(coefs):
    options, sizes = dict(n_lambdas=4, coefs=coefs), set()

    def paths(X):
        note = lambda result: sizes.add(result.x.size)  # noqa: E731
        yield sk.lasso_path(X, real, callback=note, **options)
        yield sk.lasso_path(X, real, hessian="lbfgs", callback=note, **options)
        yield sk.l1_logistic_path(X, labels, callback=note, **options)

    for wanted, found in zip(paths(SMALL), paths(WIDE)):
        assert_array_equal(found.objectives, wanted.objectives)
        for i in range(4):
            assert_array_equal(found.coef(i)[..., KEPT], wanted.coef(i))
            assert found.coef(i).shape[-1] == P and found.n_nonzero[i] == wanted.n_nonzero[i]
    assert sizes == {13, P + 1, 3 * 13, 3 * (P + 1)}
    wanted, found = (sk.fenchel_young_path(X, labels, alphas=[0.1, 1.0]) for X in (SMALL, WIDE))
    assert_array_equal(found.coefs[..., KEPT], wanted.coefs)


def test_penalty_weights_are_those_of_all_columns():
    weights = rng.random(P) * (rng.random(P) < 0.8)
    for model in (sk.L1LogisticOBA(), sk.LassoOBA(0.1), sk.LassoOBACV(alphas=3, cv=2)):
        wanted = clone(model).set_params(penalty_weights=weights[KEPT]).fit(SMALL, target(model))
        found = clone(model).set_params(penalty_weights=weights).fit(WIDE, target(model))
        assert_array_equal(found.coef_[..., KEPT], wanted.coef_)
        with pytest.raises(ValueError, match=r"penalty_weights\[399\] is -1"):
            clone(model).set_params(penalty_weights=np.append(np.ones(P - 1), -1.0)).fit(WIDE, target(model))


def test_bounds_that_exclude_zero_keep_their_columns():
    lower = np.full(P, -np.inf)
    empty = np.setdiff1d(np.arange(P), KEPT)[:2]
    lower[empty] = 0.5, 2.0
    for model in (sk.BoundedRegressor(alpha=0.1), sk.BoundedClassifier(alpha=0.1)):
        y = target(model) > 0 if model.loss == "log_loss" else target(model)
        found = clone(model).set_params(bounds=(lower, None)).fit(WIDE, y)
        assert_allclose(np.ravel(found.coef_)[empty], [0.5, 2.0])
        free = clone(model).fit(SMALL, y)
        assert_allclose(found.objective_, free.objective_ + 0.1 * (0.25 + 4.0) / 2, rtol=1e-5)


def test_scorers_get_all_columns():
    widths = set()

    def score(model, X, y):
        widths.add((X.shape[1], model.coef_.shape[-1], model.n_features_in_))
        return model.score(X, y)

    for model in (
        sk.L1LogisticOBACV(Cs=2, cv=2), sk.LassoOBACV(alphas=2, cv=2),
        sk.SoftmaxClassifierCV(alphas=[1.0], cv=2), sk.LPSparseMAPClassifierCV(alphas=[1.0], cv=2),
    ):  # fmt: skip
        model.set_params(scoring=score).fit(WIDE, target(model))
    assert widths == {(P, P, P)}
