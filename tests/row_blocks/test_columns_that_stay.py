"""Fits whose working set is larger than the memory of this process: its columns stay where the blocks are."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from row_data import CUTS, in_blocks, labels, strength, text

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA
from sparsekit._l1.losses.block_loss import LossOfBlocks
from sparsekit._l1.losses.block_problem import BlockProblem
from sparsekit._l1.solver.block_columns import HeldColumns, RemoteColumns, working_set
from sparsekit._row_blocks.blocks import LocalBlocks
from sparsekit._row_blocks.census import make_census


@pytest.fixture(autouse=True)
def no_memory(monkeypatch):
    monkeypatch.setenv("SPARSEKIT_MEMORY", "0")


@pytest.fixture(scope="module")
def data():
    return text()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("share", [0.3, 0.05, 0.01])
def test_a_newton_step_is_one_round(n_classes, share, data):
    """And each of a few expansions takes some more."""
    X, scores = data
    y = labels(scores, n_classes)
    model = L1LogisticOBA(strength(X, y, share), tol=1e-7).fit(in_blocks(X), y)
    assert model.n_rounds_ <= model.n_iter_ + 15
    wanted = L1LogisticOBA(strength(X, y, share), tol=1e-7).fit(X, y)
    assert_allclose(model.objective_, wanted.objective_, rtol=1e-9)


def test_least_squares_are_solved_by_one_hessian(data):
    X, scores = data
    model = LassoOBA(2e-4, tol=1e-8).fit(in_blocks(X), scores)
    assert model.n_rounds_ <= 15 < model.n_iter_
    assert_allclose(model.objective_, LassoOBA(2e-4, tol=1e-8).fit(X, scores).objective_, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_what_a_round_brings(n_classes, weighted, dense, data, monkeypatch):
    """Value, gradient, Hessian and products are those of the loss in main memory."""
    X, scores = data
    X, y = X.toarray() if dense else X, labels(scores, n_classes)
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y)) if weighted else None
    classes, codes = np.unique(y, return_inverse=True)
    blocks = LocalBlocks(in_blocks(X), y, weight)
    problem = BlockProblem(blocks, make_census(blocks), LossOfBlocks(True, classes), codes, weight)
    columns = np.arange(3, 60, 2)
    remote = working_set(problem, columns, True)
    assert isinstance(remote, RemoteColumns)
    monkeypatch.setenv("SPARSEKIT_MEMORY", "1")
    here = working_set(BlockProblem(blocks, problem.census, problem.spec, codes, weight), columns, True)
    assert isinstance(here, HeldColumns)
    rng = np.random.default_rng(1)
    x, v = rng.normal(size=(2, remote.n_variables))
    assert remote.n_variables == here.loss.n_variables
    assert_allclose(remote.value(x), here.loss.value(x), rtol=1e-12)
    assert_allclose(remote.gradient(x), here.loss.gradient(x), rtol=1e-9, atol=1e-10)
    subset = np.r_[1:20:3, remote.n_variables - 1]
    wanted = here.loss.hessian_product(x, subset, v[subset])
    assert_allclose(remote.hessian_product(x, subset, v[subset]), wanted, rtol=1e-9, atol=1e-10)
    # the models of sparse rows hold X in single precision
    close = dict(rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    assert_allclose(remote.hessian(x, subset) @ v[subset], wanted, **close)
    # and at least the true diagonal
    exact = np.array([here.loss.hessian_product(x, np.array([j]), np.ones(1))[0] for j in subset])
    assert np.all(remote.hessian_diagonal(x)[subset] >= exact * (1 - 1e-9))


def test_cross_validation_says_what_it_needs(data):
    X, scores = data
    with pytest.raises(MemoryError, match="SPARSEKIT_MEMORY"):
        L1LogisticOBACV(Cs=2, cv=2).fit(in_blocks(X), labels(scores))


def test_unpenalised_columns_that_say_the_same(data):
    """Their Hessian is singular; the correction to a feasible dual point is found all the same."""
    X, scores = data
    y = labels(scores)
    X = sp.csr_matrix(sp.hstack([X, X[:, :2]]))
    free = {0: 0.0, 1: 0.0, 300: 0.0, 301: 0.0}
    model = L1LogisticOBA(strength(X, y, 0.05), penalty_weights=free, tol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(in_blocks(X, CUTS), y)
    found = model.objective_
    assert model.dual_gap_ <= 1e-6 * found
    assert_allclose(found, model.fit(X, y).objective_, rtol=1e-7)
