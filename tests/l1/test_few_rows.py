"""A ridge on few rows is solved in as many variables as rows: the same solutions, certified the same way."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from sparsekit import GLMOBA, L1LogisticOBA, LassoOBA, OrdinalOBA
from sparsekit._l1.losses.losses import LeastSquaresLoss
from sparsekit._l1.solver.few_rows import FewRows, few_rows


def data(n=20, p=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.5)
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n) + 3.0, np.arange(n) % 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_solutions_are_those_of_scikit_learn(layout, dtype):
    X, y, codes = data()
    whole, close = layout(X.astype(dtype).astype(float)), 1e-4 if dtype == np.float32 else 1e-6
    X = layout(X.astype(dtype))
    weight = np.random.default_rng(1).random(20)
    for alpha in (1.0, 1e-3):
        model = LassoOBA(alpha, l1_ratio=0.0, tol=1e-7).fit(X, y, weight)
        solver = "cholesky" if layout is np.asarray else "sparse_cg"
        peer = Ridge(alpha * weight.sum(), solver=solver, tol=1e-12).fit(whole, y, weight)
        assert_allclose(model.coef_, peer.coef_, atol=close)
        assert model.dual_gap_ <= 1e-6 * model.objective_
        for target in (codes, codes == 1):
            model = L1LogisticOBA(1.0 / alpha, l1_ratio=0.0, tol=1e-8).fit(X, target, weight)
            peer = LogisticRegression(C=1.0 / alpha, tol=1e-9, max_iter=10**4).fit(whole, target, weight)
            assert_allclose(model.coef_, peer.coef_, atol=20 * close)
            assert model.dual_gap_ <= 1e-7 * model.objective_


def test_what_overflows_has_no_basis():
    X, y, _ = data()
    assert FewRows(LeastSquaresLoss(1e200 * X, y), np.ones(150)).size == 0


@pytest.mark.parametrize(
    "density, n, is_made", [(1.0, 60, True), (1.0, 62, False), (0.02, 28, True), (0.02, 32, False)]
)
def test_the_small_problem_is_no_larger_than_pays(density, n, is_made):
    """A fifth of the numbers of a dense X, five for each of a sparse one."""
    X = np.zeros((n, 300))
    X[:, : int(density * 300)] = np.random.default_rng(0).normal(size=(n, int(density * 300)))
    loss = LeastSquaresLoss(X if density == 1.0 else sp.csr_array(X), np.ones(n))
    assert (few_rows(loss, np.zeros(300), np.ones(300)) is not None) == is_made


@pytest.mark.parametrize("model", [GLMOBA("poisson", tol=1e-9), OrdinalOBA(tol=1e-9)])
def test_families_and_ordered_classes(model):
    """As a fit in all variables, which the least of an L1 penalty asks for."""
    X, y, codes = data()
    target = codes if isinstance(model, OrdinalOBA) else np.round(np.abs(y))
    given = np.random.default_rng(1).random(20), np.linspace(-1.0, 1.0, 20)  # weights and offset
    found, wanted = (
        clone(model).set_params(alpha=0.1, l1_ratio=ratio).fit(X, target, *given) for ratio in (0.0, 1e-12)
    )
    assert_allclose(found.coef_, wanted.coef_, atol=1e-5)
    assert_allclose(found.objective_, wanted.objective_, rtol=1e-8)
    assert found.dual_gap_ <= 1e-8 * found.objective_


@pytest.mark.parametrize("make", [LassoOBA(0.01, l1_ratio=0.0), L1LogisticOBA(10.0, l1_ratio=0.0)])
def test_callbacks_histories_and_limits_are_those_of_all_variables(make):
    X, y, codes = data()
    target = y if isinstance(make, LassoOBA) else codes
    seen = []
    options = dict(tol=1e-8, penalty_weights={0: 0.0, 3: 2.0}, history=True)
    make.set_params(**options, callback=lambda intermediate_result: seen.append(intermediate_result))
    coef, nit = make.fit(X, target).coef_.copy(), int(np.max(make.n_iter_))
    size = coef.size + np.size(make.intercept_)
    assert [one.nit for one in seen] == list(range(1, nit + 1)) and {one.x.size for one in seen} == {size}
    last = seen[-1].x[: coef.size].reshape(150, -1).T
    if len(last) > 1:  # feature 0 has no penalty: what all classes have of it is left out of coef_
        last[:, 0] -= last[:, 0].mean()
    assert_allclose(last, np.atleast_2d(coef), atol=1e-9)
    assert len(make.history_["fun"]) >= nit
    stopped = make.set_params(callback=lambda intermediate_result: True, tol=1e-14).fit(X, target)
    assert np.max(stopped.n_iter_) == 1
    with pytest.warns(UserWarning, match="max_iter"):
        make.set_params(callback=None, max_iter=1, tol=1e-14).fit(X, target)
