"""Generated tables for generalised linear models: claims, counts of words, dense columns."""

import numpy as np
import scipy.sparse as sp

# Rows of freMTPL2, the table of French motor policies.
POLICIES = 678_013


def tables(rows):
    """Name -> function that makes (X, exposure or None, means of the targets)."""
    return {
        "claims": lambda: claims(rows),
        "policies": lambda: claims(POLICIES, level=-2.5),
        "text": text,
        "tall": lambda: dense(50_000, 50),
        "wide": lambda: dense(500, 5_000),
        "small": lambda: dense(1_000, 20),
    }


def claims(n, sizes=(400, 200, 100, 100, 80, 60, 30, 20, 10), level=-1.0):
    """One-hot columns of categories with falling shares, 1,000 in all, and an exposure of each row.

    ``level`` is the logarithm of a mean without effects: -2.5 gives claims as rare as those of freMTPL2.
    """
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    drawn = [(size * rng.beta(1, 3, n)).astype(int) for size in sizes]
    index = np.stack([start + one for start, one in zip(starts, drawn)], axis=1)
    shape, pointers = (n, sum(sizes)), np.arange(0, n * len(sizes) + 1, len(sizes))
    X = sp.csr_matrix((np.ones(index.size), index.ravel(), pointers), shape=shape)
    return X, rng.uniform(0.1, 1.0, n), np.exp(X @ effects(shape[1], 0.2, rng) + level)


def text(n=20_000, p=3_000):
    """Logarithms of word counts, whose columns have falling shares."""
    rng = np.random.default_rng(1)
    words = np.minimum((p * rng.beta(0.6, 3, n * 50)).astype(int), p - 1)
    X = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(n), 50), words)), shape=(n, p))
    X.data = np.log1p(X.data)
    return X, None, np.exp(np.clip(X @ effects(p, 0.1, rng) - 0.5, -4, 3))


def dense(n, p):
    """Correlated normal columns, ten of them with an effect."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    w = np.zeros(p)
    w[:: p // 10] = 0.15
    return X, None, np.exp(np.clip(X @ w, -4, 3))


def effects(p, share, rng):
    return rng.standard_normal(p) * 0.5 * (rng.random(p) < share)


def targets(family, mean, exposure):
    """Targets of a family with these means for a unit of exposure."""
    rng = np.random.default_rng(3)
    mean = mean if exposure is None else mean * exposure
    if family == "poisson":
        return rng.poisson(mean).astype(float)
    if family == "gamma":
        return rng.gamma(2.0, mean / 2.0)
    if family == "binomial":
        return (rng.random(len(mean)) < mean / (1 + mean)).astype(float)
    return rng.gamma(np.maximum(rng.poisson(mean), 1e-12), 1.0)  # a sum of exponential amounts
