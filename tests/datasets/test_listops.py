"""make_listops: expressions parsed back from their text give the values, the tags and the trees."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparsekit.datasets import make_listops

APPLY = {
    "[MAX": max,
    "[MIN": min,
    "[MED": lambda values: int(np.floor(np.median(values))),
    "[SM": lambda values: sum(values) % 10,
}


def parse(words, position=0):
    """Value, end, depth, heads (index -> head) and valencies of the expression that starts at an index."""
    if words[position] not in APPLY:
        return int(words[position]), position + 1, 0, {}, {}
    values, depths, heads, valencies, end = [], [0], {}, {}, position + 1
    while words[end] != "]":
        heads[end] = position
        value, end, depth, below, tags = parse(words, end)
        values.append(value)
        depths.append(depth)
        heads |= below
        valencies |= tags
    heads[end] = position
    valencies[position] = len(values)
    return APPLY[words[position]](values), end + 1, 1 + max(depths), heads, valencies


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_length": 4},
        {"max_depth": 1},
        {"max_depth": 2, "max_arguments": 7, "max_length": 40},
        {"max_arguments": 2, "max_length": 25},
    ],
)
def test_expressions_parse_back(options):
    data = make_listops(150, **options, random_state=3)
    assert data.inputs.shape == data.valencies.shape == data.heads.shape == (150, data.lengths.max())
    for array in (data.inputs, data.valencies, data.heads, data.results):
        assert array.dtype == np.int64
    deepest, most = 0, 0
    for i, text in enumerate(data.texts):
        words = text.split(" ")
        n = len(words)
        assert n == data.lengths[i] <= options.get("max_length", 100)
        assert_array_equal([data.tokens.index(word) for word in words], data.inputs[i, :n])
        value, end, depth, heads, valencies = parse(words)
        assert end == n and value == data.results[i]
        deepest, most = max(deepest, depth), max(most, *valencies.values())
        assert_array_equal(data.heads[i, :n], [heads.get(k, k) for k in range(n)])
        assert_array_equal(data.valencies[i, :n], [valencies.get(k, -1) for k in range(n)])
        assert (data.inputs[i, n:] == 0).all()
        assert (data.valencies[i, n:] == -1).all() and (data.heads[i, n:] == -1).all()
    assert deepest <= options.get("max_depth", 20)
    assert most <= options.get("max_arguments", 5)


def test_bounds_are_reached_and_everything_occurs():
    data = make_listops(3000, random_state=0)
    assert_array_equal(np.unique(data.valencies), [-1, 2, 3, 4, 5])
    assert_array_equal(np.unique(data.inputs), np.arange(len(data.tokens)))
    assert data.lengths.min() == 4 and data.lengths.max() > 90
    # an argument is an expression with probability 1/4, but for those that got too long
    arguments = (data.valencies[data.valencies > 0]).sum()
    nested = (data.valencies > 0).sum() - len(data.texts)
    assert 0.15 < nested / arguments < 0.25
    assert make_listops(50, max_depth=1, random_state=0).lengths.max() <= 7
    assert len(set(make_listops(200, max_length=4, random_state=0).texts)) > 100


def test_seeds():
    one, two = make_listops(20, random_state=5), make_listops(20, random_state=np.random.RandomState(5))
    assert one.texts == two.texts
    assert make_listops(20, random_state=6).texts != one.texts
    assert make_listops(30, random_state=5).texts[:20] == one.texts


def test_no_samples():
    data = make_listops(0)
    assert data.texts == [] and data.inputs.shape == data.heads.shape == data.valencies.shape == (0, 0)
    assert data.lengths.shape == data.results.shape == (0,)


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"n_samples": -1}, "n_samples must be at least 0"),
        ({"max_depth": 0}, "max_depth must be at least 1"),
        ({"max_arguments": 1}, "max_arguments must be at least 2"),
        ({"max_length": 3}, "max_length must be at least 4"),
    ],
)
def test_bad_input(options, problem):
    with pytest.raises(ValueError, match=problem):
        make_listops(**({"n_samples": 3} | options))
