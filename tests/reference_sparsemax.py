"""Sparsemax, its Jacobian and its loss, written down as slowly and plainly as the papers do."""

import numpy as np


def sparsemax(z):
    """Algorithm 1 for one vector, by sorting."""
    z = np.asarray(z, dtype=np.float64)
    ranked = np.sort(z)[::-1]
    k = np.arange(1, len(z) + 1)
    held = 1.0 + k * ranked > np.cumsum(ranked)
    size = k[held].max()
    tau = (np.cumsum(ranked)[size - 1] - 1.0) / size
    return np.maximum(z - tau, 0.0), tau, size


def rows(Z):
    """The same for every row: probabilities, thresholds, support sizes."""
    found = [sparsemax(z) for z in Z]
    return tuple(np.array(part) for part in zip(*found))


def jacobian(p):
    """diag(s) - s s^T / |S| for one vector, s the indicator of the support of p."""
    s = (np.asarray(p) > 0).astype(float)
    return np.diag(s) - np.outer(s, s) / s.sum()


def loss(z, q):
    """Eq. (8) for one vector: by the threshold and the support."""
    z, q = np.asarray(z, dtype=np.float64), np.asarray(q, dtype=np.float64)
    p, tau, _ = sparsemax(z)
    S = p > 0
    return 0.5 * np.sum(z[S] ** 2 - tau**2) + 0.5 * np.dot(q, q) - np.dot(q, z)
