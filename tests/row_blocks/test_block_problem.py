"""Gradients by rounds over blocks: those of main memory, and moved to first order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from row_data import in_blocks, labels, text

from sparsekit._l1.losses.block_loss import LossOfBlocks
from sparsekit._l1.losses.block_problem import BlockProblem
from sparsekit._row_blocks.blocks import LocalBlocks
from sparsekit._row_blocks.census import make_census

KINDS = {"squares": 0, "two classes": 2, "four classes": 4}


def problem_of(kind):
    """A problem over blocks, and all of its rows."""
    X, scores = text(p=40)
    n_classes = KINDS[kind]
    y = labels(scores, n_classes) if n_classes else scores + 3.0
    classes, values = np.unique(y, return_inverse=True) if n_classes else (None, y - 2.5)
    blocks = LocalBlocks(in_blocks(X), y, None)
    spec = LossOfBlocks(True, classes, offset=0.0 if n_classes else 2.5)
    return BlockProblem(blocks, make_census(blocks), spec, values, None), X


def variables(problem):
    """A point, and a way of the intercepts and of two features."""
    rng = np.random.default_rng(0)
    x, move = 0.3 * rng.standard_normal(problem.n_variables), np.zeros(problem.n_variables)
    at = problem.variables(np.array([3, 17]))
    move[at] = rng.standard_normal(len(at))
    return x, move


def in_memory(problem, X, x):
    part = problem.spec.on(X, problem.values, None).problem()
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
