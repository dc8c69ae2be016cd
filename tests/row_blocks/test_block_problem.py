"""Gradients by rounds over blocks: those of main memory, moved to first order, or without a fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import CUTS, in_blocks, labels, text

from sparsekit._l1.losses.block_loss import LossOfBlocks
from sparsekit._l1.losses.block_problem import BlockProblem
from sparsekit._row_blocks.blocks import LocalBlocks
from sparsekit._row_blocks.census import make_census

KINDS = {"squares": 0, "two classes": 2, "four classes": 4}


def problem_of(kind, weight=None, p=40, **options):
    """A problem over blocks, and all of its rows."""
    X, scores = text(p=p)
    n_classes = KINDS[kind]
    y = labels(scores, n_classes) if n_classes else scores + 3.0
    classes, values = np.unique(y, return_inverse=True) if n_classes else (None, y - 2.5)
    blocks = LocalBlocks(in_blocks(X), y, weight)
    spec = LossOfBlocks(True, classes, offset=0.0 if n_classes else 2.5)
    return BlockProblem(blocks, make_census(blocks), spec, values, weight, **options), X


def variables(problem, seed=0):
    """A point, and a way of the intercepts and of two features."""
    rng = np.random.default_rng(seed)
    x, move = 0.3 * rng.standard_normal(problem.n_variables), np.zeros(problem.n_variables)
    at = problem.variables(np.array([3, 17]))
    move[at] = rng.standard_normal(len(at))
    return x, move


def in_memory(problem, X, x, weight=None):
    part = problem.spec.on(X, problem.values, weight).problem()
    part.start(x)
    return part.gradient()


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_is_moved_to_first_order(kind):
    problem, X = problem_of(kind)
    x, move = variables(problem)
    (value, g, theta), h = problem.evaluate(x), 1e-4
    loss = problem.spec.on(X, problem.values, None)
    assert_allclose(g, in_memory(problem, X, x), rtol=1e-9, atol=1e-12)
    assert_allclose(value, loss.value(x), rtol=1e-12)
    assert_allclose(loss.problem().gradient_of(theta), g, rtol=1e-9, atol=1e-12)
    along = (problem.evaluate(x + h * move)[1] - problem.evaluate(x - h * move)[1]) / (2 * h)
    assert np.abs(along).max() > 0.1 * np.abs(g).max()
    _, corrected, theta = problem.evaluate(x, move)
    assert_allclose(corrected, g - along, atol=1e-6 * np.abs(along).max())
    assert_allclose(loss.problem().gradient_of(theta), corrected, rtol=1e-9, atol=1e-12)
    assert_array_equal(problem.evaluate(x, np.zeros_like(x))[1], g)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_a_fold_misses_weigh_nothing(kind, weighted):
    rng = np.random.default_rng(2)
    folds = rng.integers(0, 8, 500).astype(np.uint8)
    weight = rng.uniform(0.5, 2.0, 500) if weighted else None
    for fold in range(3):
        problem, X = problem_of(kind, weight, fold=fold)
        problem.blocks.set_folds(folds, np.diff(CUTS))
        x = variables(problem)[0]
        seen = np.where(folds >> fold & 1, 0.0, 1.0 if weight is None else weight)
        assert_allclose(problem.evaluate(x)[1], in_memory(problem, X, x, seen), rtol=1e-9, atol=1e-12)
