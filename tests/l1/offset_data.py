"""Data that an offset explains a part of."""

import numpy as np


def data(n_classes=2, n=90, p=12, size=2.0, seed=0):
    """X, classes that the offset and two features explain, and the offset, (n,) or (n, K)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    if n_classes == 2:
        offset = size * rng.standard_normal(n) + 1.0
        return X, (2 * X[:, 0] - X[:, 1] + offset + rng.logistic(size=n) > 0).astype(int), offset
    offset = size * rng.standard_normal((n, n_classes)) + np.arange(n_classes)
    return X, (2 * X[:, :n_classes] + offset + rng.gumbel(size=(n, n_classes))).argmax(axis=1), offset


def numbers(seed=0):
    X, _, offset = data(seed=seed)
    return (
        X,
        X[:, 0] - 2 * X[:, 1] + offset + 0.3 * np.random.default_rng(seed).standard_normal(len(X)),
        offset,
    )
