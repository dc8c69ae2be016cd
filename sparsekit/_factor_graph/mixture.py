"""Matchings whose mixture a table of marginals is."""

import numpy as np

from .._cython._structures import matching

# mass that rounding leaves
LEAST = 1e-9


def matchings(x):
    """Weights and matchings of a mixture, after Birkhoff and von Neumann.

    Each of the fewer of rows and columns sums to 1, each of the others to at most 1. A matching on what is
    left, which takes every one of the others that is as full as can be, goes as far as its smallest entry, or
    as one of the others that it leaves out is full: one entry or more is used up, or full, each time.

    Parameters
    ----------
    x : ndarray of shape (m, n)

    Returns
    -------
    weights : ndarray of shape (k,)
        They sum to 1.
    structures : ndarray of shape (k, m * n)
        Of 0 and 1.
    """
    turned = x.shape[0] > x.shape[1]
    left = np.ascontiguousarray(x.T if turned else x, dtype=np.float64).copy()
    n_rows = len(left)
    rows, mass = np.arange(n_rows), 1.0
    weights, structures = [], []
    while mass > LEAST:
        load = left.sum(axis=0)
        must = load > mass - LEAST
        _, columns = matching(np.where(left > 0.1 * LEAST / n_rows, 0.0, -(n_rows + 1.0)) + must)
        out = np.ones(left.shape[1], dtype=bool)
        out[columns] = False
        step = min(left[rows, columns].min(), mass, *(mass - load[out & ~must]))
        if not step > 0:
            break
        left[rows, columns] = np.maximum(left[rows, columns] - step, 0.0)
        mass -= step
        one = np.zeros_like(left)
        one[rows, columns] = 1.0
        weights.append(step)
        structures.append((one.T if turned else one).ravel())
    return np.array(weights) / np.sum(weights), np.array(structures)
