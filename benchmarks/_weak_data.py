"""Data sets for weak penalties: generated ones, which need no files, and the real ones of the data folder.

Each has a role. The defaults of the solver were chosen on "tuning" sets; "check" sets are for measuring only,
and a claim is one about them.
"""

from __future__ import annotations

import _data
import numpy as np
from scipy import sparse

TUNING, CHECK = "tuning", "check"


def _labels(rng, score, share=0.5, noise=0.5):
    """-1 and +1 by a logistic draw of the standardised score, ``share`` of them positive or nearly so."""
    score = (score - np.quantile(score, 1 - share)) / max(score.std(), 1e-12)
    return np.where(score + noise * rng.logistic(size=len(score)) > 0, 1.0, -1.0)


def text(n, p, length, *, seed, weighting="tf-idf", share=0.5, n_topics=20):
    """Counts of words in documents: Zipf's law, lengths lognormal about ``length``, 3 of 10 words a topic's.

    A tenth of the words carry meaning; the labels follow their share in the document, with noise.
    """
    rng = np.random.default_rng(seed)
    lengths = np.maximum(3, rng.lognormal(np.log(length), 0.6, n).astype(int))
    frequency = np.cumsum(1.0 / (np.arange(p) + 2.7))
    word = np.searchsorted(frequency / frequency[-1], rng.random(lengths.sum()))
    document = np.repeat(np.arange(n), lengths)
    topic = rng.integers(n_topics, size=n)[document]
    of_topic = rng.random(len(word)) < 0.3
    # a topic has the words in an order of its own
    orders = np.stack([rng.permutation(p) for _ in range(n_topics)])
    word[of_topic] = orders[topic[of_topic], word[of_topic]]
    X = sparse.csr_matrix((np.ones(len(word)), (document, word)), shape=(n, p))
    X.sum_duplicates()
    X.sort_indices()
    meaning = rng.standard_normal(p) * (rng.random(p) < 0.1)
    y = _labels(rng, (X @ meaning) / lengths, share)
    return (_data.tf_idf(X) if weighting == "tf-idf" else X), y


def one_hot(n, p, *, seed, n_fields=12, share=0.3):
    """A table of categories, one-hot encoded: ``n_fields`` columns of about 2, 4, 8, ... levels, p in all."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(2, p, n_fields)
    sizes = np.maximum(2, (sizes * p / sizes.sum()).astype(int))
    sizes[-1] += p - sizes.sum()
    columns, starts = [], np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for start, size in zip(starts, sizes):
        rarity = np.cumsum(1.0 / (np.arange(size) + 1.0))
        columns.append(start + np.searchsorted(rarity / rarity[-1], rng.random(n)))
    indices = np.stack(columns, axis=1).ravel()
    X = sparse.csr_matrix((np.ones(indices.size), indices, np.arange(n + 1) * n_fields), shape=(n, p))
    effect = rng.standard_normal(p) * (rng.random(p) < 0.3)
    return X, _labels(rng, X @ effect, share)


def rows_of(n, p, *, seed, per_row=12, share=0.1):
    """At most ``per_row`` ones in each row, in columns of falling frequency, as in the set w8a."""
    rng = np.random.default_rng(seed)
    frequency = np.cumsum(1.0 / (np.arange(p) + 1.0))
    columns = np.searchsorted(frequency / frequency[-1], rng.random(n * per_row))
    X = sparse.csr_matrix((np.ones(len(columns)), columns, np.arange(n + 1) * per_row), shape=(n, p))
    X.sum_duplicates()
    X.data[:] = 1.0
    effect = rng.standard_normal(p) * (rng.random(p) < 0.3)
    return X, _labels(rng, X @ effect, share)


def hashed(n, width, *, seed, n_fields=20, n_crosses=10, share=0.2):
    """Fields of very many values and some of their pairs, hashed with signs into ``width`` columns."""
    rng = np.random.default_rng(seed)
    values = (rng.pareto(0.8, (n, n_fields)) * 3).clip(max=1e6).astype(np.uint64)
    pairs = rng.integers(n_fields, size=(n_crosses, 2))
    crosses = [values[:, a] * np.uint64(1_000_003) + values[:, b] for a, b in pairs]
    values = np.column_stack([values, *crosses])
    salt = rng.integers(1, 2**62, size=values.shape[1], dtype=np.uint64)
    # splitmix64's mixing of value and field
    code = (values + salt) * np.uint64(0x9E3779B97F4A7C15)
    code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    code ^= code >> np.uint64(27)
    column = (code % np.uint64(width)).astype(np.int64).ravel()
    sign = np.where((code >> np.uint64(40)) & np.uint64(1), 1.0, -1.0)
    start = np.arange(n + 1) * values.shape[1]
    X = sparse.csr_matrix((sign.ravel(), column, start), shape=(n, width))
    X.sum_duplicates()
    X.sort_indices()
    # what the values mean, before any of them collide
    meaning = np.sin((code >> np.uint64(20)).astype(np.float64)) * (rng.random(values.shape[1]) < 0.5)
    return X, _labels(rng, meaning.sum(axis=1), share)


def dense(n, p, *, seed, n_factors=5, own=0.5, share=0.5):
    """Dense columns that share ``n_factors`` factors, standardised; every tenth has an effect."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_factors)) @ rng.standard_normal((n_factors, p)) + own * rng.standard_normal(
        (n, p)
    )
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    effect = rng.standard_normal(p) * (np.arange(p) % 10 == 0)
    return X, _labels(rng, X @ effect, share)


def series(n, p, *, seed, correlation=0.99):
    """Dense columns like a time series, each correlated with the one before."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    effect = rng.standard_normal(p) * (np.arange(p) % 7 == 0)
    return X, _labels(rng, X @ effect)


# name: (role, maker, its arguments)
GENERATED = {
    "text_2k": (TUNING, text, dict(n=2000, p=5000, length=40, seed=1)),
    "text_10k": (CHECK, text, dict(n=10000, p=30000, length=80, seed=2)),
    "text_counts": (CHECK, text, dict(n=20000, p=60000, length=50, seed=3, weighting="counts", share=0.2)),
    "text_long": (CHECK, text, dict(n=3000, p=20000, length=400, seed=4)),
    "one_hot_100": (TUNING, one_hot, dict(n=20000, p=100, seed=5)),
    "one_hot_1000": (CHECK, one_hot, dict(n=20000, p=1000, seed=6)),
    "one_hot_10000": (CHECK, one_hot, dict(n=30000, p=10000, seed=7)),
    "rows_of_12": (CHECK, rows_of, dict(n=50000, p=300, seed=300)),
    "rows_of_12_wide": (CHECK, rows_of, dict(n=30000, p=1000, seed=1000)),
    "hashed_4k": (TUNING, hashed, dict(n=10000, width=4096, seed=8)),
    "hashed_64k": (CHECK, hashed, dict(n=20000, width=65536, seed=9)),
    "dense_tall": (TUNING, dense, dict(n=5000, p=300, seed=10)),
    "dense_wide": (CHECK, dense, dict(n=400, p=3000, seed=11)),
    "dense_series": (CHECK, series, dict(n=3000, p=400, seed=12)),
}
# benchmarks/results/l1_logistic.md: the solver's settings were chosen on these
REAL_TUNING = tuple(name for name in _data.NAMES if name != "synthetic")
REAL_CHECK = ("sector", "bibtex", "delicious", "scene", "emotions", "cal500")
# the other form of the text sets: raw counts where the benchmark takes tf-idf, and the reverse
OTHER_FORM = {"imdb_counts": "imdb", "newsgroups_counts": "newsgroups_bigrams", "news20_tf_idf": "news20"}
NAMES = (*GENERATED, *REAL_TUNING, *OTHER_FORM, *REAL_CHECK)


def role(name):
    """Whether the solver's defaults were chosen on this set."""
    if name in GENERATED:
        return GENERATED[name][0]
    return TUNING if name in REAL_TUNING or name == "imdb_counts" else CHECK


def load(name, folder=None, n_rows=None):
    """X (CSR or C-ordered, float64) and y (-1, +1) of a set; ``folder`` holds the real ones.

    At most ``n_rows`` rows, drawn with a fixed seed.
    """
    X, y = _load(name, folder)
    if n_rows is None or n_rows >= len(y):
        return X, y
    rows = np.sort(np.random.default_rng(0).choice(len(y), n_rows, replace=False))
    return X[rows], y[rows]


def _load(name, folder):
    if name in GENERATED:
        _, make, arguments = GENERATED[name]
        return make(**arguments)
    if name in REAL_TUNING:
        problem = _data.problem(folder, name)
        return _data.by_rows(problem), problem.y
    data = _data.read(folder, OTHER_FORM.get(name, name))
    X = data["X_train"]
    if name == "news20_tf_idf":
        return _data.tf_idf(X), np.where(data["y_train"] <= 10, 1.0, -1.0)
    if name in OTHER_FORM:
        return X, data["y_train"].astype(np.float64)
    if name == "sector":  # the first half of the sectors against the others
        return X, np.where(data["y_train"] <= 52, 1.0, -1.0)
    # of several labels the most frequent: the first has a few dozen rows
    counts = np.asarray(data["Y_train"].sum(axis=0)).ravel()
    column = data["Y_train"][:, [int(counts.argmax())]]
    column = column.toarray() if sparse.issparse(column) else column
    return X, np.where(column.ravel() > 0, 1.0, -1.0)
