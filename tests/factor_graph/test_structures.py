"""The best structures of factors against enumeration, SciPy and plain methods for trees."""

from functools import cache

import numpy as np
import pytest
from reference_lp_sparsemap import is_tree, structures
from scipy.optimize import linear_sum_assignment, linprog
from structure_oracles import entered

from sparsekit._cython.factor_graph import _structures

FORBIDDEN = -1e12
KINDS = ["gauss", "ties", "positive", "negative", "huge", "masked", "tiny_masked"]
TREES = [(False, False), (False, True), (True, False), (True, True)]


def draw(rng, shape, kind):
    """Scores of a kind; those masked have forbidden entries, the huge ones all sizes."""
    x = rng.standard_normal(shape)
    if kind == "ties":
        return rng.integers(-2, 3, shape).astype(float)
    if kind == "positive":
        return np.abs(x)
    if kind == "negative":
        return -np.abs(x)
    if kind == "huge":
        return x * 10.0 ** rng.integers(-3, 13, shape)
    if kind.endswith("masked"):
        x *= 1e-8 if kind == "tiny_masked" else 1.0
        x[rng.random(shape) < rng.choice([0.2, 0.5, 0.7])] = FORBIDDEN
    return x


def check(flat, every, chosen, value, exact_rest=False):
    """chosen: the entries of flat that the answer takes; every: those of each structure, one a row."""
    chosen = np.sort(np.asarray(chosen))
    assert (np.sort(every, axis=1) == chosen).all(axis=1).any(), "no structure"
    best = flat[every].sum(axis=1).max()
    size = np.abs(flat[chosen]).sum() + abs(best)
    assert abs(value - flat[chosen].sum()) <= 1e-15 * (len(chosen) + 2) * size
    assert value >= best - 1e-14 * size
    # as few forbidden entries as can be, and with none the others lose no digits
    bad = flat == FORBIDDEN
    few = bad[every].sum(axis=1)
    assert bad[chosen].sum() == few.min()
    if few.min() == 0 or exact_rest:
        rest = np.where(bad, 0.0, flat)
        sums = rest[every[few == few.min()]].sum(axis=1)
        assert rest[chosen].sum() >= sums.max() - 1e-13 * np.abs(rest).max()


@cache
def picks(kind, **params):
    """Entries of variables, then of additional scores, that each structure has: one structure a row."""
    return np.array([np.flatnonzero(one) for one in np.vstack(structures(kind, **params)).T])


def is_projective(heads):
    arcs = [(0 if h == d else h + 1, d + 1) for d, h in enumerate(heads)]
    spans = [(min(a), max(a)) for a in arcs]
    return not any(a < c < b < d for a, b in spans for c, d in spans)


def check_viterbi(unary, transitions):
    T, K = unary.shape
    value, tags = _structures.viterbi(unary, transitions)
    pairs = [T * K + (t * K + tags[t]) * K + tags[t + 1] for t in range(T - 1)]
    flat = np.concatenate((unary.ravel(), transitions.ravel()))
    check(flat, picks("sequence", T=T, K=K), [t * K + tags[t] for t in range(T)] + pairs, value)


def check_matching(scores):
    m, n = scores.shape
    value, out = _structures.matching(scores)
    assert len(np.unique(out)) == len(out) == min(m, n)
    chosen = np.arange(m) * n + out if m <= n else out * n + np.arange(n)
    check(scores.ravel(), picks("matching", m=m, n=n), chosen, value)


def check_dense(sizes, unary, joint):
    value, values, at = _structures.dense(np.array(sizes, dtype=np.intp), unary, joint)
    assert at == np.ravel_multi_index(tuple(values), sizes)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    flat = np.concatenate((unary, joint))
    check(flat, picks("dense", sizes=tuple(sizes)), [*(starts[:-1] + values), starts[-1] + at], value)


def check_tree(scores, projective, single_root, exact_rest=False):
    n = len(scores)
    value, heads = _structures.tree(scores, projective, single_root)
    every = picks("dep_tree", n=n, projective=projective, single_root=single_root)
    check(scores.ravel(), every, n * np.arange(n) + heads, value, exact_rest)


@pytest.mark.parametrize("kind", KINDS)
def test_sequences(kind):
    rng = np.random.default_rng(0)
    for T, K in 30 * [(1, 1), (1, 5), (5, 1), (2, 2), (3, 5), (4, 4), (6, 3)]:
        check_viterbi(draw(rng, (T, K), kind), draw(rng, (T - 1, K, K), kind))


@pytest.mark.parametrize("kind", KINDS)
def test_matchings(kind):
    rng = np.random.default_rng(1)
    for shape in 40 * [(1, 1), (1, 4), (4, 1), (2, 2), (3, 5), (5, 3), (5, 5), (4, 6), (6, 6)]:
        check_matching(draw(rng, shape, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_joint_assignments(kind):
    rng = np.random.default_rng(2)
    for sizes in 20 * [(1,), (5,), (2, 3), (1, 4, 1), (3, 2, 4), (2, 2, 2, 2, 2), (4, 17)]:
        check_dense(sizes, draw(rng, sum(sizes), kind), draw(rng, int(np.prod(sizes)), kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("projective, single_root", TREES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_trees(kind, projective, single_root, n):
    rng = np.random.default_rng(n)
    for k in range(150):
        scores = draw(rng, (n, n), kind)
        if k % 3 == 1:  # the root is worth much, or little: many roots, deep sets
            scores = np.where(scores == FORBIDDEN, scores, scores + 3.0 * np.eye(n))
        if k % 3 == 2:
            scores = np.where(scores == FORBIDDEN, scores, scores - 3.0 * np.eye(n))
        check_tree(scores, projective, single_root)


@pytest.mark.parametrize("projective, single_root", TREES)
@pytest.mark.parametrize("scale", [1.0, 1e-7])
def test_one_of_two_words_must_be_the_root(projective, single_root, scale):
    # Words 1 and 2 are reached from each other and from the root only, and the root takes one of them. The
    # forbidden scores of all other arcs into the two must not cancel the digits that decide which.
    rng = np.random.default_rng(3)
    for _ in range(200):
        scores = scale * rng.standard_normal((5, 5))
        scores[1, [0, 3, 4]] = scores[2, [0, 3, 4]] = FORBIDDEN
        scores[[0, 3, 4], [0, 3, 4]] = FORBIDDEN
        check_tree(scores, projective, single_root)


@pytest.mark.parametrize("projective, single_root", TREES)
def test_a_word_without_arcs_costs_the_others_nothing(projective, single_root):
    rng = np.random.default_rng(4)
    for _ in range(100):
        scores = rng.standard_normal((5, 5))
        scores[rng.integers(5)] = FORBIDDEN
        check_tree(scores, projective, single_root, exact_rest=True)


def test_a_position_without_tags_and_a_row_without_columns_cost_the_others_nothing():
    rng = np.random.default_rng(5)
    for _ in range(50):
        unary, transitions = rng.standard_normal((5, 3)), rng.standard_normal((4, 3, 3))
        unary[2] = FORBIDDEN
        free = np.vstack((unary[:2], np.zeros((1, 3)), unary[3:]))
        _, tags = _structures.viterbi(unary, transitions)
        np.testing.assert_array_equal(tags, _structures.viterbi(free, transitions)[1])
        scores = rng.standard_normal((4, 6))
        scores[1] = FORBIDDEN
        _, columns = _structures.matching(scores)
        free = np.vstack((scores[:1], np.zeros((1, 6)), scores[2:]))
        best = _structures.matching(free)[0]
        np.testing.assert_allclose(free[np.arange(4), columns].sum(), best, rtol=1e-14)


@pytest.mark.parametrize("kind", ["gauss", "ties", "positive", "product", "masked"])
def test_matchings_as_scipy(kind):
    rng = np.random.default_rng(6)
    for m, n in 5 * [(1, 50), (20, 20), (50, 50), (60, 80), (80, 60), (7, 64), (33, 34)]:
        scores = rng.standard_normal((m, n))
        if kind == "ties":
            scores = rng.integers(0, 4, (m, n)).astype(float)
        if kind == "product":  # all rows have the same best columns: long chains
            scores = np.outer(rng.random(m), rng.random(n))
        if kind == "positive":
            scores = np.exp(3.0 * scores)
        if kind == "masked":  # some matching is allowed
            forbidden = rng.random((m, n)) < 0.9
            np.fill_diagonal(forbidden, False)
            scores[forbidden] = -1e4
        rows, columns = linear_sum_assignment(scores, maximize=True)
        best = scores[rows, columns].sum()
        scores[scores == -1e4] = FORBIDDEN
        value, out = _structures.matching(scores)
        chosen = scores[np.arange(m), out] if m <= n else scores[out, np.arange(n)]
        assert len(np.unique(out)) == min(m, n)
        np.testing.assert_allclose(value, best, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(value, chosen.sum(), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("T, K", [(50, 50), (30, 7), (100, 3), (2, 33)])
def test_long_sequences(T, K):
    rng = np.random.default_rng(7)
    unary, transitions = rng.standard_normal((T, K)), rng.standard_normal((T - 1, K, K))
    best = unary[0]
    for t in range(1, T):
        best = (best[:, None] + transitions[t - 1]).max(axis=0) + unary[t]
    value, tags = _structures.viterbi(unary, transitions)
    total = unary[np.arange(T), tags].sum() + transitions[np.arange(T - 1), tags[:-1], tags[1:]].sum()
    np.testing.assert_allclose([value, total], best.max(), rtol=1e-13)


def best_projective_value(scores, single_root):
    """By trees over stretches of words of which one is the head, joined two at a time, in O(n^5)."""
    n = len(scores)
    weights = np.full((n + 1, n + 1), -np.inf)
    weights[1:, 1:] = scores
    weights[range(1, n + 1), range(1, n + 1)] = -np.inf
    weights[1:, 0] = np.diag(scores)
    best = {(i, i): np.array([0.0]) for i in range(n + 1)}
    for width in range(1, n + 1):
        for i in range(n + 1 - width):
            j = i + width
            top = np.full(width + 1, -np.inf)
            for k in range(i, j):
                left, right, cut = best[i, k], best[k + 1, j], k + 1 - i
                arcs = weights[k + 1 : j + 1, i : k + 1] + right[:, None]
                top[:cut] = np.maximum(top[:cut], left + arcs.max(axis=0))
                arcs = weights[i : k + 1, k + 1 : j + 1] + left[:, None]
                top[cut:] = np.maximum(top[cut:], right + arcs.max(axis=0))
            best[i, j] = top
    return (best[1, n] + weights[1:, 0]).max() if single_root else best[0, n][0]


def best_value(scores, single_root):
    """By the linear program whose vertices are the trees (Edmonds): each set of words is entered."""
    n = len(scores)
    heads = np.vstack([np.kron(np.eye(n), np.ones(n)), np.eye(n).ravel()])[: n + single_root]
    found = linprog(
        -scores.ravel(), -entered(n)[1].astype(float), -np.ones(2**n - 1), heads, np.ones(len(heads)),
        bounds=(0, None), method="highs",
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("projective, single_root", TREES)
@pytest.mark.parametrize("kind", ["gauss", "ties", "symmetric", "near", "rooty", "masked"])
def test_larger_trees(projective, single_root, kind):
    rng = np.random.default_rng(8)
    for n in (6, 9, 17, 24) if projective else (6, 9):
        scores = rng.standard_normal((n, n))
        if kind == "ties":
            scores = rng.integers(0, 3, (n, n)).astype(float)
        if kind == "symmetric":  # cycles of two words everywhere
            scores += scores.T
        if kind == "near":  # sets in sets
            scores -= 2.0 * np.abs(np.subtract.outer(np.arange(n), np.arange(n))) + 9.0 * np.eye(n)
        if kind == "rooty":
            scores += 2.0 * np.eye(n)
        if kind == "masked":  # a chain is allowed, and little else
            mask = rng.random((n, n)) < 0.8
            mask[range(1, n), range(n - 1)] = False
            mask[0, 0] = False
            scores[mask] = -1e4
        best = (best_projective_value if projective else best_value)(scores, single_root)
        scores[scores == -1e4] = FORBIDDEN
        value, heads = _structures.tree(scores, projective, single_root)
        assert is_tree(heads) and (not projective or is_projective(heads))
        assert not single_root or (heads == np.arange(n)).sum() == 1
        np.testing.assert_allclose(scores[np.arange(n), heads].sum(), value, rtol=1e-14, atol=1e-13)
        np.testing.assert_allclose(value, best, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_scores_that_are_no_numbers_end(bad, n):
    # the answer means nothing, but there is one, of indices in range
    rng = np.random.default_rng(10)
    for share in (0.1, 0.5, 1.0):
        scores, transitions = rng.standard_normal((n, n)), rng.standard_normal((n - 1, n, n))
        scores[rng.random((n, n)) < share] = bad
        transitions[rng.random(transitions.shape) < share] = bad
        found = [_structures.tree(scores, *kind)[1] for kind in TREES]
        found += [_structures.viterbi(scores, transitions)[1], _structures.matching(scores)[1]]
        found += [_structures.dense(np.array([n, n]), np.ravel([scores[0], scores[0]]), scores.ravel())[1]]
        for indices in found:
            assert ((indices >= 0) & (indices < n)).all()


def test_shapes_are_checked():
    empty = np.empty((0, 0))
    for method in (_structures.matching, lambda x: _structures.tree(x, False, False)):
        with pytest.raises(ValueError):
            method(empty)
    with pytest.raises(ValueError):
        _structures.tree(np.zeros((2, 3)), True, False)
    with pytest.raises(ValueError):
        _structures.viterbi(np.zeros((3, 2)), np.zeros((3, 2, 2)))
    with pytest.raises(ValueError):
        _structures.viterbi(np.zeros((3, 2)), np.zeros((2, 2, 3)))
    with pytest.raises(ValueError):
        _structures.dense(np.array([2, 2]), np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError):
        _structures.dense(np.array([2, 0]), np.zeros(2), np.zeros(0))
