"""Rows of factors with an oracle whose polytope is known by rows, with variables of the factors' own.

A table's own variables are the probabilities of its joint assignments, a sequence's those of its transitions.
They have the additional scores. A matching needs none: its rows and columns describe its polytope. Neither
does a tree: its arcs enter every set of words with a mass of at least 1. These rows are added as cutting
planes, when a solution violates them.
"""

import numpy as np

from ..._cython.factor_graph._structures import sets_that_lack
from ..._solver.tolerances import ROUNDING
from .factors import DENSE, MATCHING, SEQUENCE, TREE


class TreeSets:
    """Sets of words that arcs enter, for each tree of a layout.

    Attributes
    ----------
    found : dict from int to ndarray of bool of shape (n_sets, n)
        By the index of the tree among the factors with an oracle.
    """

    def __init__(self, layout):
        self._var, self._factors = layout.var, layout.structured
        self.found = {
            k: np.ones((1, factor["rows"]), dtype=bool)
            for k, factor in enumerate(self._factors)
            if factor["kind"] == TREE
        }

    def extend(self, x):
        """Add those that marginals x (n_variables,) enter by too little; whether there is a new one."""
        new = False
        for k, known in self.found.items():
            factor = self._factors[k]
            n, slot = factor["rows"], factor["slot"]
            lacking = sets_that_lack(x[self._var[slot : slot + n * n]].reshape(n, n), ROUNDING)
            total = np.unique(np.concatenate([known, lacking]), axis=0)
            new = new or len(total) > len(known)
            self.found[k] = total
        return new


def entering(words):
    """Which arcs [modifier, head] enter a set of words, (n, n); arcs from the root lie on the diagonal."""
    return words[:, None] & (~words[None, :] | np.eye(len(words), dtype=bool))


def own_indices(layout):
    """Which of a layout's additional scores are those of factors' own variables."""
    indices = (f["add"] + np.arange(f["n_add"]) for f in layout.structured)
    return np.concatenate([np.zeros(0, dtype=np.intp), *indices])


def add_structures(specs, n_slots, sets, upper, equal):
    """Rows of factors of the kinds in `ROWS`.

    Parameters
    ----------
    specs : list of dict
        Of the layout. A factor's own variables are its additional scores', in their order.
    n_slots : int
        A factor's own variables stand after the slots: the first factor's first one is number ``n_slots``.
    sets : dict
        Of `TreeSets`.
    upper, equal : _Rows
        To be added to.
    """
    own = n_slots
    for k, spec in enumerate(specs):
        first = sets[k] if spec["kind"] == TREE else own
        ROWS[spec["kind"]](spec, first, upper, equal)
        own += spec["n_add"]


def _one(slots, rows):
    """Slots (n, d) sum to one in each row, or to at most one where ``rows`` are inequalities."""
    n, d = slots.shape
    rows.add(np.repeat(np.arange(n), d), slots.ravel(), np.ones(n * d), np.ones(n))


def _shares(slot, parts, equal):
    """Variables (n,) are the sums of their parts (n, d)."""
    n, d = parts.shape
    row = np.concatenate([np.arange(n), np.repeat(np.arange(n), d)])
    value = np.concatenate([np.ones(n), -np.ones(n * d)])
    equal.add(row, np.concatenate([slot, parts.ravel()]), value, np.zeros(n))


def _dense(spec, own, upper, equal):
    sizes, offsets = spec["sizes"], spec["offsets"]
    joint = own + np.arange(spec["n_add"]).reshape(sizes)
    for axis, (size, offset) in enumerate(zip(sizes, offsets)):
        slot = spec["slot"] + offset + np.arange(size)
        _shares(slot, np.moveaxis(joint, axis, 0).reshape(size, -1), equal)
        if axis == 0:
            _one(slot[None], equal)


def _sequence(spec, own, upper, equal):
    T, K = spec["rows"], spec["columns"]
    slot = spec["slot"] + np.arange(T * K).reshape(T, K)
    step = own + np.arange((T - 1) * K * K).reshape(T - 1, K, K)
    _one(slot[:1], equal)
    if T > 1:
        _shares(slot[:-1].ravel(), step.reshape(-1, K), equal)
        _shares(slot[1:].ravel(), step.transpose(0, 2, 1).reshape(-1, K), equal)


def _matching(spec, own, upper, equal):
    m, n = spec["rows"], spec["columns"]
    slot = spec["slot"] + np.arange(m * n).reshape(m, n)
    _one(slot, equal if m <= n else upper)
    _one(slot.T, equal if n <= m else upper)


def _tree(spec, sets, upper, equal):
    n = spec["rows"]
    slot = spec["slot"] + np.arange(n * n).reshape(n, n)
    _one(slot, equal)
    if spec["flag"]:  # a single root
        _one(np.diagonal(slot)[None], equal)
    for words in sets:
        into = slot[entering(words)]
        upper.add(np.zeros(len(into), dtype=np.intp), into, -np.ones(len(into)), [-1.0])


# the kinds whose polytopes are known
ROWS = {DENSE: _dense, SEQUENCE: _sequence, MATCHING: _matching, TREE: _tree}
