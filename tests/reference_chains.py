"""Linear chains by enumeration of all labellings: slow, and obvious."""

import itertools
from itertools import pairwise

import numpy as np


def labellings(T, K):
    return np.array(list(itertools.product(range(K), repeat=T)), dtype=int).reshape(-1, T)


def score(unary, trans, y):
    return sum(unary[t, k] for t, k in enumerate(y)) + sum(trans[j, k] for j, k in pairwise(y))


def chain(unary, trans):
    """log Z, marginals (T, K), transition marginals (K, K) summed over positions, best score."""
    T, K = unary.shape
    found = labellings(T, K)
    scores = np.array([score(unary, trans, y) for y in found])
    top = scores.max()
    if top == -np.inf:
        return -np.inf, np.zeros((T, K)), np.zeros((K, K)), -np.inf
    weights = np.exp(scores - top)
    p = weights / weights.sum()
    marginals, pairs = np.zeros((T, K)), np.zeros((K, K))
    for y, q in zip(found, p):
        for t, k in enumerate(y):
            marginals[t, k] += q
        for j, k in pairwise(y):
            pairs[j, k] += q
    return top + np.log(weights.sum()), marginals, pairs, top


def features(x, y, K, ends=True):
    """The table (p + K + 2, K) of which a labelling's score is the product with the coefficients."""
    p = x.shape[1]
    table = np.zeros((p + K + 2, K))
    for t, k in enumerate(y):
        table[:p, k] += x[t]
    for j, k in pairwise(y):
        table[p + j, k] += 1.0
    if ends:
        table[p + K, y[0]] += 1.0
        table[p + K + 1, y[-1]] += 1.0
    return table


def hinge(v, X, y, weight, K):
    """sum_i c_i max_z (s(z) + d(z, y) - s(y)), with d the number of labels that differ."""
    total = 0.0
    for x, labels, c in zip(X, y, weight):
        if len(x):
            true = np.vdot(features(x, labels, K), v)
            found = labellings(len(x), K)
            total += c * max(np.vdot(features(x, z, K), v) + (z != labels).sum() - true for z in found)
    return total


def spans(labels, scheme):
    """Spans (kind, first, last) of one sequence: each pair of ends is asked whether it is one."""
    first, inner, last = {"BIO": ("B", "I", ""), "BIOES": ("BS", "IE", "ES"), "BILOU": ("BU", "IL", "LU")}[
        scheme
    ]
    tags, kinds = [label[:1] for label in labels], [label[2:] for label in labels]
    n = len(labels)

    def marked(t):
        return tags[t] in (*first, *inner)

    def new(t):
        """Whether a span begins at t."""
        if not marked(t):
            return False
        before = t > 0 and marked(t - 1) and kinds[t - 1] == kinds[t] and tags[t - 1] not in tuple(last)
        return tags[t] in tuple(first) or not before

    found = set()
    for i in range(n):
        for j in range(i, n):
            whole = all(marked(t) and kinds[t] == kinds[i] for t in range(i, j + 1))
            one = whole and new(i) and not any(new(t) for t in range(i + 1, j + 1))
            over = j + 1 == n or not marked(j + 1) or new(j + 1) or kinds[j + 1] != kinds[i]
            if one and over:
                found.add((kinds[i], i, j))
    return found
