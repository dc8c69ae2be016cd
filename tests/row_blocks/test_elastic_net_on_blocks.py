"""The elastic net and the ridge over blocks of rows, against fits in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import in_blocks, labels, text

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA, l1_logistic_path
from sparsekit._l1.solver import block_columns

X, SCORES = text(p=60, density=0.2)
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, 500)
WEIGHT[::7] = 0.0
UNPENALISED = {3: 0.0, 50: 0.0, 0: 2.5}


@pytest.fixture(params=["here", "there", "there, by products"])
def columns(request, monkeypatch):
    """Where the columns are, see `test_fits_on_blocks`; there the Hessian may be too large for a matrix."""
    if request.param != "here":
        monkeypatch.setenv("SPARSEKIT_MEMORY", "0")
    if request.param == "there, by products":
        monkeypatch.setattr(block_columns, "MAX_HESSIAN", 10)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.9])
def test_fits_are_those_of_memory(ratio, n_classes, columns):
    options = dict(l1_ratio=ratio, tol=1e-7, penalty_weights=UNPENALISED)
    make = LassoOBA(0.002, **options) if n_classes == 1 else L1LogisticOBA(1.0, **options)
    y = SCORES if n_classes == 1 else labels(SCORES, n_classes)
    wanted = make.fit(X, y, WEIGHT)
    value, coef, gap = wanted.objective_, wanted.coef_, wanted.dual_gap_
    found = make.fit(in_blocks(X), y, WEIGHT)
    assert_allclose(found.objective_, value, rtol=1e-9)
    assert_allclose(found.coef_, coef, atol=1e-3)
    assert 0.0 <= gap + 1e-12 <= 1e-6 * value and 0.0 <= found.dual_gap_ + 1e-12 <= 1e-6 * value
    assert found.optimality_ <= 1e-7


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_a_loose_gap_is_a_bound(ratio):
    y = labels(SCORES, 2)
    best = L1LogisticOBA(1.0, l1_ratio=ratio, tol=1e-10).fit(X, y).objective_
    for tol in (1e-2, 1e-3, 1e-4):
        found = L1LogisticOBA(1.0, l1_ratio=ratio, tol=tol).fit(in_blocks(X), y)
        assert found.objective_ - best <= found.dual_gap_ + 1e-12 <= 10 * tol * found.objective_


def test_paths_and_folds_are_those_of_memory():
    y = labels(SCORES, 3)
    wanted = l1_logistic_path(X, y, n_lambdas=4, l1_ratio=0.3, tol=1e-7)
    found = l1_logistic_path(in_blocks(X), y, n_lambdas=4, l1_ratio=0.3, tol=1e-7)
    assert_allclose(found.lambdas, wanted.lambdas)
    assert_allclose(found.objectives, wanted.objectives, rtol=1e-8)
    cv = L1LogisticOBACV([0.2, 2.0], l1_ratio=[0.0, 0.5], cv=2, scoring="neg_log_loss", tol=1e-7)
    wanted = cv.fit(X, y)
    scores, ratio, mean = wanted.scores_, wanted.l1_ratio_, wanted.l1_ratio_scores_
    found = cv.fit(in_blocks(X), y)
    assert_allclose(found.scores_, scores, rtol=1e-4)
    assert_allclose(found.l1_ratio_scores_, mean, rtol=1e-4)
    assert_array_equal([found.l1_ratio_, *found.l1_ratios_], [ratio, 0.0, 0.5])
