"""Structures whose mixture a table of marginals is."""

import numpy as np

from ..._cython.factor_graph._structures import matching, sets_that_lack, tree
from ..._solver.tolerances import ROUNDING
from .structure_rows import entering

# Largest mass that counts as rounding of marginals.
MASS_ROUNDING = 1e-9


def matchings(x):
    """Weights and matchings of a mixture, after Birkhoff and von Neumann.

    The smaller side of x sums to 1 in each row, the larger side to at most 1. Each step takes a matching
    within the remaining mass that covers every full member of the larger side. Its weight is the smallest
    entry, or less if another member becomes full first. So each step uses up an entry or fills a member.

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
    while mass > MASS_ROUNDING:
        load = left.sum(axis=0)
        must = load > mass - MASS_ROUNDING
        _, columns = matching(np.where(left > 0.1 * MASS_ROUNDING / n_rows, 0.0, -(n_rows + 1.0)) + must)
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


def trees(x, single_root):
    """Weights and trees of a mixture, after Edmonds.

    Arcs enter every set of words with a mass of at least 1. Each step takes a tree of remaining arcs that
    enters each tight set once. Its weight is its smallest arc, or less if another set becomes tight first. So
    each step uses up an arc or makes a set tight.

    Parameters
    ----------
    x : ndarray of shape (n, n)
        [modifier, head], the diagonal: arcs from the root.
    single_root : bool

    Returns
    -------
    weights : ndarray of shape (k,)
        They sum to 1.
    structures : ndarray of shape (k, n * n)
        Of 0 and 1.
    """
    left, mass, n = np.array(x, dtype=np.float64, order="C"), 1.0, len(x)
    rows, bound = np.arange(n), np.zeros((n, n))  # number of tight sets that an arc enters
    known, weights, structures = set(), [], []
    while mass > MASS_ROUNDING:
        # lexicographic order: used-up arcs, then sets, then masses
        forbidden = (left <= 0.1 * MASS_ROUNDING / n) * (n * (len(known) + 1.0))
        _, heads = tree(np.ascontiguousarray(0.5 * left / (n * mass) - bound - forbidden), False, single_root)
        on = np.zeros((n, n))
        on[rows, heads] = 1.0
        step = min(left[rows, heads].min(), mass)
        met = []
        while True:
            lacking = sets_that_lack(left - step * on, ROUNDING)
            slacks = [_slack(words, left, mass, on) for words in lacking]
            slacks = [(slack, words) for slack, words in slacks if slack < step]
            if not slacks:
                break
            step = max(min(slacks)[0], 0.0)
            met += slacks
        for slack, words in met:
            if slack <= step + ROUNDING and words not in known:
                known.add(words)
                bound += entering(np.frombuffer(words, dtype=bool))
        if step > ROUNDING:
            left = np.maximum(left - step * on, 0.0)
            mass -= step
            weights.append(step)
            structures.append(on.ravel())
        elif not met:
            break
    return np.array(weights) / np.sum(weights), np.array(structures)


def _slack(words, left, mass, on):
    """How far the tree goes until the set is entered by no more than the mass that is left; the set."""
    arcs = entering(words)
    more = on[arcs].sum() - 1.0
    return ((left[arcs].sum() - mass) / more if more > 0 else np.inf), words.tobytes()


def sequences(x, flow):
    """Weights and sequences of a mixture.

    Each step takes a path of transitions with weight, heaviest first. Its weight is its smallest transition,
    so each step uses one up.

    Parameters
    ----------
    x : ndarray of shape (T, K)
    flow : ndarray of shape (T - 1, K, K)
        Weights of the transitions, whose sums x are.

    Returns
    -------
    weights : ndarray of shape (k,)
        They sum to 1.
    structures : ndarray of shape (k, T * K)
        Of 0 and 1.
    additional : ndarray of shape (k, (T - 1) * K * K)
        Of 0 and 1.
    """
    T, K = x.shape
    first = x[0].astype(np.float64)
    left = np.ascontiguousarray(flow, dtype=np.float64).copy()
    weights, paths, steps = [], [], np.arange(T - 1)
    while first.max() > MASS_ROUNDING / K:
        path = np.empty(T, dtype=np.intp)
        path[0] = first.argmax()
        for t in steps:
            path[t + 1] = left[t, path[t]].argmax()
        on_way = (steps, path[:-1], path[1:])
        step = min(first[path[0]], left[on_way].min(initial=np.inf))
        if not step > 0:
            break
        first[path[0]] -= step
        left[on_way] -= step
        weights.append(step)
        paths.append(path)
    tags = np.array(paths)
    k = np.arange(len(tags))[:, None]
    structures = np.zeros((len(tags), T, K))
    structures[k, np.arange(T), tags] = 1.0
    additional = np.zeros((len(tags), T - 1, K, K))
    additional[k, steps, tags[:, :-1], tags[:, 1:]] = 1.0
    weights = np.array(weights) / np.sum(weights)
    return weights, structures.reshape(len(tags), -1), additional.reshape(len(tags), -1)
