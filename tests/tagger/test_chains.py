"""Forward-backward and the best sequences against enumeration."""

from itertools import pairwise

import numpy as np
import pytest
from reference_chains import chain, score

import sparsekit as sk
from sparsekit._tagger.losses.chains import Allowed, best, forward_backward


def everything(K):
    return Allowed(np.ones((K, K), dtype=bool), np.ones(K, dtype=bool), np.ones(K, dtype=bool))


def case(seed, K, size, lengths=(3, 0, 1, 5, 2), forbid=0.0):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    unary, trans = size * rng.normal(size=(starts[-1], K)), size * rng.normal(size=(K, K))
    trans[rng.random((K, K)) < forbid] = -np.inf
    return starts, unary, trans, rng.uniform(0.5, 2.0, size=len(lengths))


@pytest.mark.parametrize("K", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e3, 1e7])
@pytest.mark.parametrize("forbid", [0.0, 0.4])
def test_enumeration(K, size, forbid):
    starts, unary, trans, weight = case(K, K, size, forbid=forbid)
    allowed = Allowed(trans > -np.inf, np.ones(K, dtype=bool), np.ones(K, dtype=bool))
    expected = [chain(unary[i:j], trans) if j > i else None for i, j in pairwise(starts)]
    pairs = sum((w * e[2] for w, e in zip(weight, expected) if e), np.zeros((K, K)))
    tags, tops = best(unary, starts, trans, 1)
    for reach in (allowed.reach(), np.inf):  # the way that the scores ask for, and by logarithms
        own = unary.copy()
        value, found = forward_backward(own, starts, trans, weight, 1, reach=reach)
        np.testing.assert_allclose(found, pairs, atol=1e-8 if size > 1e6 else 1e-11)
        for i, e in enumerate(expected):
            rows = slice(starts[i], starts[i + 1])
            if e is None:
                assert value[i] == 0.0 == tops[i]
                continue
            np.testing.assert_allclose(value[i], e[0], rtol=1e-13, atol=1e-12)
            np.testing.assert_allclose(own[rows], weight[i] * e[1], atol=1e-8 if size > 1e6 else 1e-11)
            np.testing.assert_allclose(tops[i], e[3], rtol=1e-13)
            if e[3] > -np.inf:
                np.testing.assert_allclose(score(unary[rows], trans, tags[rows]), e[3], rtol=1e-13)


@pytest.mark.parametrize("K", [1, 3, 8, 9, 17, 30, 41, 60])
def test_both_ways_agree_where_enumeration_is_too_much(K):
    starts, unary, trans, weight = case(5, K, 2.0, lengths=(40, 1, 7, 0, 300))
    results = []
    for reach in (1, np.inf):
        own = unary.copy()
        results.append((*forward_backward(own, starts, trans, weight, 1, reach=reach), own))
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(results[0][1].sum(), weight @ np.maximum(np.diff(starts) - 1, 0))


def test_scores_too_far_apart_are_added_in_logarithms():
    """The only way on is by a label whose forward sum is e^-800 of the other's."""
    unary = np.array([[0.0, -800.0], [0.0, 0.0]])
    trans = np.array([[-np.inf, -np.inf], [0.0, 1.0]])
    starts = np.array([0, 2])
    allowed = Allowed(trans > -np.inf, np.ones(2, dtype=bool), np.ones(2, dtype=bool))
    value, _ = forward_backward(unary.copy(), starts, trans, np.ones(1), 1, reach=allowed.reach())
    np.testing.assert_allclose(value, -800.0 + np.logaddexp(0.0, 1.0))


@pytest.mark.parametrize("unary", [[[-np.inf, -np.inf]], [[0.0, -np.inf], [0.0, -np.inf]]])
def test_nothing_is_allowed(unary):
    unary = np.array(unary)
    trans = np.array([[-np.inf, 0.0], [0.0, 0.0]])
    for reach in (2, np.inf):
        own = unary.copy()
        value, pairs = forward_backward(own, np.array([0, len(unary)]), trans, np.ones(1), 1, reach=reach)
        assert value[0] == -np.inf and not own.any() and not pairs.any()


def test_threads_change_no_bit():
    starts, unary, trans, weight = case(1, 5, 1.0, lengths=tuple(range(60)))
    results = []
    for n_threads in (1, 3):
        own = unary.copy()
        results.append((*forward_backward(own, starts, trans, weight, n_threads, reach=1), own))
        results[-1] += best(unary, starts, trans, n_threads)
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "follow, reach",
    [
        ([[1, 1], [1, 1]], 1),
        ([[1, 1], [1, 0]], 2),
        ([[0, 1], [1, 0]], np.inf),  # labels take turns
        ([[1, 1], [0, 1]], np.inf),  # no way back
    ],
)
def test_reach(follow, reach):
    follow = np.array(follow, dtype=bool)
    assert Allowed(follow, follow[0], follow[0]).reach() == reach


def test_nothing():
    K = 2
    empty = np.zeros((0, K))
    for starts in (np.array([0]), np.array([0, 0])):
        value, pairs = forward_backward(empty, starts, np.zeros((K, K)), np.ones(len(starts) - 1), 1)
        assert value.tolist() == [0.0] * (len(starts) - 1) and not pairs.any()
        assert best(empty, starts, np.zeros((K, K)), 1)[0].shape == (0,)


def test_a_wide_position_before_narrow_ones():
    """What leads to the only last label that is allowed is far behind at first: nothing may underflow."""
    follow = np.ones((3, 3), dtype=bool)
    follow[0, 2] = False
    allowed = Allowed(follow, np.ones(3, dtype=bool), np.ones(3, dtype=bool))
    unary = np.array([[0.0, -3000.0, -3000.0], [-np.inf, -np.inf, 0.0]])
    trans = np.where(follow, 0.0, -np.inf)
    value, pairs = forward_backward(unary, np.array([0, 2]), trans, np.ones(1), 1, reach=allowed.reach())
    np.testing.assert_allclose(value, np.log(2.0) - 3000.0)
    np.testing.assert_allclose(unary, [[0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(pairs, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.5]])


def test_marginals_of_a_way_far_behind():
    """The last label is three forbidden shortcuts away from where all the scores are."""
    forbidden = [(0, 2), (0, 3), (1, 3), (0, None), (1, None), (2, None)]
    X, y = [np.ones((5, 1))], [[0, 0, 1, 2, 3]]
    model = sk.SequenceTagger(constraints=forbidden, fit_ends=False).fit(X, y)
    model.coef_, model.transitions_ = np.array([[0.0], [-400], [-400], [-400]]), np.zeros((4, 4))
    np.testing.assert_allclose(model.predict_proba(X)[0], np.eye(4)[y[0]], atol=1e-12)
