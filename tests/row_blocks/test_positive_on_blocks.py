"""Coefficients >= 0 over blocks of rows, against fits in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import as_dask, in_blocks, text
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsekit import LassoOBA, LassoOBACV, lasso_path
from sparsekit._l1.losses.block_loss import LossOfBlocks
from sparsekit._l1.losses.block_problem import BlockProblem
from sparsekit._l1.solver.blockwise import Run, State, certify
from sparsekit._row_blocks.blocks import LocalBlocks
from sparsekit._row_blocks.census import take_census
from sparsekit._solver.outcome import Limits

X, Y = text(p=60, density=0.2)
Y = Y + 2.0
DENSE = X.toarray() + 0.3
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0
UNPENALISED = {3: 0.0, 50: 0.0, 0: 2.5}


@pytest.fixture(params=["here", "there"])
def columns(request, monkeypatch):
    """Where the columns are; of those that are there the blocks add up the products."""
    if request.param != "here":
        monkeypatch.setenv("SPARSEKIT_MEMORY", "0")


@pytest.mark.parametrize("kind", [X, DENSE, DENSE.astype(np.float32)], ids=["sparse", "dense", "single"])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_fits_are_those_of_memory(ratio, kind, columns):
    tol = 1e-8 if kind.dtype == np.float64 else 1e-5
    for v, intercept in ((None, True), (UNPENALISED, False), (UNPENALISED, True)):
        options = dict(l1_ratio=ratio, penalty_weights=v, fit_intercept=intercept, tol=tol, positive=True)
        model = LassoOBA(5e-4, **options).fit(kind, Y, WEIGHT)
        found = clone(model).fit(in_blocks(kind), Y, WEIGHT)
        assert_allclose(found.objective_, model.objective_, rtol=10 * tol)
        assert_allclose(found.coef_, model.coef_, atol=1e-4 if tol < 1e-6 else 0.02)
        assert_allclose(found.intercept_, model.intercept_, atol=1e-4 if tol < 1e-6 else 0.1)
        assert (found.coef_ >= 0).all() and 2 < (found.coef_ > 0).sum() < 60
        assert 0.0 <= found.dual_gap_ <= 10 * tol * found.objective_ and found.optimality_ <= tol
        assert found.n_rounds_ <= 14


def test_a_loose_gap_is_a_bound(columns):
    best = LassoOBA(0.001, positive=True, tol=1e-10).fit(X, Y).objective_
    for tol in (1e-1, 1e-3):
        found = LassoOBA(0.001, positive=True, tol=tol).fit(in_blocks(X), Y)
        assert found.objective_ - best <= found.dual_gap_ + 1e-12 <= 10 * tol * found.objective_
    seen = []
    model = LassoOBA(0.001, positive=True, callback=lambda now: seen.append(now.x) or True, history=True)
    stopped = model.fit(in_blocks(X), Y)
    assert len(seen) == stopped.n_iter_ == len(stopped.history_["fun"]) - 1 == 1
    assert seen[0].shape == (61,) and (seen[0][:60] >= 0).all()
    assert 0 < stopped.objective_ - best + 1e-12 <= stopped.dual_gap_ + 1e-12
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        LassoOBA(0.0, positive=True, max_iter=1, tol=1e-15).fit(in_blocks(DENSE), Y)


def test_working_sets_grow_until_the_whole_is_proved(columns, monkeypatch):
    """From two columns on, with those that a round names."""
    monkeypatch.setattr("sparsekit._l1.solver.blockwise.MIN_NEW", 2)
    model = LassoOBA(1e-4, positive=True, tol=1e-8).fit(X, Y)
    found = clone(model).set_params(warm_start=True).fit(in_blocks(X), Y)
    assert_allclose(found.objective_, model.objective_, rtol=1e-8)
    assert_allclose(found.coef_, model.coef_, atol=1e-4)
    rounds = found.n_rounds_
    assert found.fit(in_blocks(X), Y).n_rounds_ < rounds
    assert_allclose(found.coef_, model.coef_, atol=1e-4)


def test_without_a_penalty_and_on_dask():
    da = pytest.importorskip("dask.array")
    model = LassoOBA(0.0, positive=True, tol=1e-8).fit(X, Y)
    found = clone(model).fit(as_dask(X), da.from_array(Y, 100))
    assert_allclose(found.objective_, model.objective_, rtol=1e-8)
    assert_allclose(found.coef_, model.coef_, atol=1e-4)
    assert_allclose(found.predict(as_dask(X)).compute(), model.predict(X), atol=1e-4)


def test_paths_and_folds_are_those_of_memory(columns, request):
    wanted = lasso_path(X, Y, n_lambdas=4, l1_ratio=0.6, positive=True, tol=1e-8)
    found = lasso_path(in_blocks(X), Y, n_lambdas=4, l1_ratio=0.6, positive=True, tol=1e-8)
    assert_allclose(found.lambdas, wanted.lambdas)
    assert_allclose(found.objectives, wanted.objectives, rtol=1e-8)
    assert_allclose(found.coefs, wanted.coefs, atol=1e-4)
    assert found.n_nonzero[0] == 0 < found.n_nonzero[1]
    free = lasso_path(in_blocks(X), Y, n_lambdas=2, positive=True, penalty_weights=UNPENALISED)
    again = lasso_path(X, Y, n_lambdas=2, positive=True, penalty_weights=UNPENALISED)
    assert_allclose(free.lambdas, again.lambdas, rtol=1e-6)
    if "there" in request.node.name:  # where scores can't be had
        return
    wanted = LassoOBACV([0.01, 0.002], l1_ratio=[0.5, 1.0], positive=True, cv=3, tol=1e-8).fit(X, Y, WEIGHT)
    found = clone(wanted).fit(in_blocks(X), Y, WEIGHT)
    assert_allclose(found.mse_path_, wanted.mse_path_, rtol=1e-4)
    assert_array_equal([found.alpha_, found.l1_ratio_], [wanted.alpha_, wanted.l1_ratio_])
    assert_allclose(found.coef_, wanted.coef_, atol=1e-4)


def test_a_slope_at_what_has_no_penalty_leaves_no_dual_point():
    blocks, mean = LocalBlocks(in_blocks(X), Y), Y.mean()
    spec = LossOfBlocks(True, offset=mean)
    problem = BlockProblem(blocks, take_census(blocks), spec, Y - mean, None, positive=True)
    x = problem.start()
    problem.gradient(x)
    for penalty, has_dual in ((1.0, True), (0.0, False)):
        run = Run(problem, np.append(np.full(60, penalty), 0.0), np.zeros(61), 1e-3, Limits())
        state = State(x, np.arange(60), 1e-3)
        ratios = certify(state, run)
        assert (state.gap < state.fun) == has_dual and state.optimality > 0
        assert (ratios.max() > 1) == has_dual
