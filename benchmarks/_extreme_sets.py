"""Data sets that are made for benchmarks of many classes: clouds, a graph's facts, skip-grams."""

from __future__ import annotations

import _data
import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize


def gaussians(n, d, n_classes, spread, seed):
    """Overlapping normal clouds, with frequencies between 1 and 4."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(1, 4, n_classes)
    y = rng.choice(n_classes, n, p=share / share.sum())
    X = spread * rng.standard_normal((n_classes, d))[y] + rng.standard_normal((n, d))
    return X / np.abs(X).max(), y


def graph(n_nodes, n_relations, n_facts, d, seed, share=0.9):
    """Facts (head, relation, tail) of a random graph: X, y, X_test, y_test.

    Tails are drawn by latent factors and a popularity; a row has the head, the relation and up to twelve
    tails of the head's other training facts. Test facts stay out of all rows: least squares finds the tail
    that is in a head's training rows and not in the test row itself (P@1 of .85, where a model without that
    has .05).
    """
    rng = np.random.default_rng(seed)
    nodes, popularity = rng.standard_normal((n_nodes, d)), -0.8 * np.log(np.arange(1, n_nodes + 1))
    head, relation = rng.integers(0, n_nodes, n_facts), rng.integers(0, n_relations, n_facts)
    factors, tail = rng.standard_normal((n_relations, d)), np.empty(n_facts, dtype=np.int64)
    for begin in range(0, n_facts, 2000):
        part = slice(begin, begin + 2000)
        scores = 3.3 / np.sqrt(d) * (nodes[head[part]] * factors[relation[part]]) @ nodes.T + popularity
        tail[part] = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    is_train = rng.random(n_facts) < share
    known: dict = {}
    for h, t in zip(head[is_train], tail[is_train]):
        of_head = known.setdefault(h, {})
        of_head[t] = of_head.get(t, 0) + 1
    rows, columns = [], []
    for i, (h, r, t) in enumerate(zip(head, relation, tail)):
        of_head = known.get(h, {})
        others = [one for one, n in of_head.items() if n > (is_train[i] and one == t)][:12]
        rows += [i] * (len(others) + 2)
        columns += [n_relations + one for one in others] + [r, n_relations + n_nodes + h]
    shape = (n_facts, n_relations + 2 * n_nodes)
    X = normalize(sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape))
    return _parts(X, tail, np.flatnonzero(is_train), np.flatnonzero(~is_train))


def skip_grams(folder, n_rows, reach, seed):
    """Words of ptb and one of the words around each: X (the word), y (its neighbour), X_test, y_test."""
    rng = np.random.default_rng(seed)
    d = _data.read(folder, "ptb")
    words, n_words = np.asarray(d["train"], dtype=np.int64), len(d["vocab"])
    at = rng.integers(reach, len(words) - reach, n_rows)
    side = rng.integers(1, reach + 1, n_rows) * rng.choice([-1, 1], n_rows)
    X = sp.csr_array((np.ones(n_rows), words[at], np.arange(n_rows + 1)), shape=(n_rows, n_words))
    order, n = rng.permutation(n_rows), int(0.9 * n_rows)
    return _parts(X, words[at + side], order[:n], order[n:])


def _parts(X, y, train, test):
    """The training rows, and the test rows whose class is among them; used features only."""
    X = X[:, np.unique(X.indices)]
    classes, codes = np.unique(y[train], return_inverse=True)
    test = test[np.isin(y[test], classes)]
    return sp.csr_array(X[train]), codes, sp.csr_array(X[test]), np.searchsorted(classes, y[test])
