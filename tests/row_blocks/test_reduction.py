"""Sums over blocks: one tree, whoever sums which part of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsekit._row_blocks.reduction import combine, group_size, tree_sum


def slow(leaves):
    """The tree, level by level; None is no leaf's value."""
    while len(leaves) > 1:
        pairs = [leaves[i : i + 2] for i in range(0, len(leaves), 2)]
        leaves = [pair[0] if len(pair) == 1 else add(*pair) for pair in pairs]
    return leaves[0]


def add(left, right):
    if left is None or right is None:
        return right if left is None else left
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def make(n, seed, without=()):
    """Leaves whose sums depend on their order: a number, an array, a list."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-8, 8, n)
    return [
        None if i in without else (float(s * rng.normal()), s * rng.normal(size=3), [i])
        for i, s in enumerate(scale)
    ]


def same(found, wanted):
    if wanted is None:
        return found is None
    return found[0] == wanted[0] and found[1].tobytes() == wanted[1].tobytes() and found[2] == wanted[2]


@given(st.integers(1, 40), st.integers(0, 99), st.sets(st.integers(0, 40)))
def test_every_grouping_has_the_bits_of_the_slow_tree(n, seed, without):
    wanted = slow(make(n, seed, without))
    assert same(tree_sum(make(n, seed, without)), wanted)
    for size in (1, 2, 4, 8, 64):
        leaves = make(n, seed, without)
        nodes = [tree_sum(leaves[at : at + size]) for at in range(0, n, size)]
        while len(nodes) > 1:
            twos = [nodes[i : i + 2] for i in range(0, len(nodes), 2)]
            nodes = [combine(*two) if len(two) == 2 else two[0] for two in twos]
        assert same(nodes[0], wanted)


def test_the_order_matters_to_these_sums():
    """Or the test above would show nothing."""
    leaves = make(33, 0)
    assert tree_sum(leaves[::-1])[0] != tree_sum(make(33, 0))[0]


@given(st.integers(1, 5000), st.integers(0, 300))
def test_groups_are_few_and_lie_under_a_node(n, most):
    size = group_size(n, most)
    assert size & (size - 1) == 0
    assert -(-n // size) <= max(most, 1)
    assert size == 1 or -(-n // (size // 2)) > max(most, 1)


def test_what_a_task_returned_stays_as_it_is():
    """Dask may hand the same object to two tasks."""
    left, right = np.ones(3), np.full(3, 2.0)
    assert combine((left, [1]), (right, [2]))[1] == [1, 2]
    np.testing.assert_array_equal(left, 1.0)
    np.testing.assert_array_equal(combine(left, right), 3.0)
    assert left[0] == 1.0


def test_no_leaves_and_leaves_that_do_not_match():
    assert tree_sum([]) is None and tree_sum([None, None, None]) is None
    with pytest.raises(ValueError, match="zip"):
        combine((1, 2), (1, 2, 3))
