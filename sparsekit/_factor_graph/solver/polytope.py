"""The polytope of a graph as rows of a general solver.

With Q the quadratic term's weights, and x the marginals, then the factors' own variables, the problem is

    min  <Q x, x> / 2 - <(eta, 0) + linear, x> + sum_i most_i max(0, G_i x - h_i)
    subject to  G_i x <= h_i where most_i is inf, A x = b, lower <= x <= upper.

A logic factor is its own rows. A pair of score s > 0 counts min(x, y) = x - max(0, x - y). One of score s < 0
counts max(0, x + y - 1). Either is one row whose multiplier lies between 0 and |s|.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..factors.factors import Relation
from ..factors.structure_rows import add_structures, own_indices


@dataclass
class Polytope:
    """Rows of a graph, and which slots (positions of a variable in a factor) each entry belongs to.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_variables)
        The inequalities, then the equalities. Columns are the graph's variables, then the factors' own.
    right : ndarray of shape (n_rows,)
    n_upper : int
        Number of inequalities.
    most : ndarray of shape (n_upper,)
        Largest multipliers: inf for a constraint, a price for what may be exceeded.
    linear : ndarray of shape (n_variables,)
        What the pairs add to the scores; scores of the factors' own variables.
    quadratic : ndarray of shape (n_variables,)
        1 for the graph's variables, 0 for the factors' own.
    lower, upper : ndarray of shape (n_variables,)
        0 and 1; 0 and 0 for what a score of -inf forbids.
    entries : tuple of ndarrays
        Row, slot and value of every entry of `rows` that belongs to a slot, by which multipliers get back to
        the factors.
    slot_linear : ndarray of shape (n_slots,)
        The slots' shares of `linear`.
    """

    rows: sp.csr_array
    right: np.ndarray
    n_upper: int
    most: np.ndarray
    linear: np.ndarray
    quadratic: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    entries: tuple
    slot_linear: np.ndarray


class _Rows:
    """Rows as they are found: entries by slot, right sides, largest multipliers."""

    def __init__(self):
        self.count = 0
        self._row, self._slot, self._value, self._right, self._most = [], [], [], [], []

    def add(self, row, slot, value, right, most=np.inf):
        """Entries of new rows, which are numbered from 0."""
        self._row.append(row + self.count)
        self._slot.append(slot)
        self._value.append(value)
        self._right.append(right)
        self._most.append(np.broadcast_to(most, len(right)))
        self.count += len(right)

    def arrays(self):
        whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
        return tuple(
            np.concatenate([*parts, empty])
            for parts, empty in (
                (self._row, whole),
                (self._slot, whole),
                (self._value, real),
                (self._right, real),
                (self._most, real),
            )
        )


def polytope_of(layout, additional, off, off_additional, sets=None):
    """Rows of a graph whose factors with an oracle, if there are any, are of `structure_rows.ROWS`.

    Parameters
    ----------
    layout : Layout
    additional : ndarray of shape (n_additional,)
        Scores of the pairs and structures.
    off, off_additional : ndarrays of bool
        What a score of -inf forbids, of variables and of additional scores.
    sets : TreeSets, default=None
        Of the trees, if there are any.

    Returns
    -------
    Polytope
    """
    n, arrays, var = layout.n_variables, layout.arrays, layout.var
    own = own_indices(layout)
    upper, equal = _Rows(), _Rows()
    slot_linear = _add_pairs(layout, arrays, additional, off_additional, upper)
    _add_linear(arrays, upper, equal)
    _add_orouts(arrays, upper)
    add_structures(layout.structured, len(var), sets and sets.found, upper, equal)
    row, slot, value, right, most = upper.arrays()
    row_e, slot_e, value_e, right_e, _ = equal.arrays()
    row = np.concatenate([row, row_e + upper.count])
    slot, value = np.concatenate([slot, slot_e]), np.concatenate([value, value_e])
    by_row, count = np.argsort(row, kind="stable"), upper.count + equal.count
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
    column = np.concatenate([var, n + np.arange(len(own))])[slot[by_row]]
    of_slots = slot < len(var)
    return Polytope(
        rows=sp.csr_array((value[by_row], column, ends), shape=(count, n + len(own))),
        right=np.concatenate([right, right_e]),
        n_upper=upper.count,
        most=most,
        linear=np.concatenate(
            [np.bincount(var, slot_linear, minlength=n), np.where(off_additional, 0.0, additional)[own]]
        ),
        quadratic=np.repeat([1.0, 0.0], [n, len(own)]),
        lower=np.zeros(n + len(own)),
        upper=np.where(np.concatenate([off, off_additional[own]]), 0.0, 1.0),
        entries=(row[of_slots], slot[of_slots], value[of_slots]),
        slot_linear=slot_linear,
    )


def _add_pairs(layout, arrays, additional, off_additional, upper):
    """One row a pair with a score; returns what the pairs add to the scores, by slot."""
    n, linear = layout.n_pairs, np.zeros(len(arrays["var"]) - 1)
    index = arrays["pair_add"][:-1]
    score, forbidden = additional[index], off_additional[index]
    sign, right = np.ones(2 * n), np.zeros(2 * n)
    flip = arrays["flip"][:-1]
    sign[flip], right[flip] = -1.0, 1.0  # a literal is right + sign x
    first, second = np.arange(n), n + np.arange(n)
    both = (score > 0) & ~forbidden
    linear[first[both]] = score[both] * sign[first[both]]
    turn = np.where(both, -1.0, 1.0)  # x - y, or x + y - 1
    kept = np.flatnonzero((score != 0) | forbidden)
    upper.add(
        np.tile(np.arange(len(kept)), 2),
        np.concatenate([first[kept], second[kept]]),
        np.concatenate([sign[first[kept]], turn[kept] * sign[second[kept]]]),
        np.where(both, 0.0, 1.0)[kept] - right[first[kept]] - turn[kept] * right[second[kept]],
        np.where(forbidden, np.inf, np.abs(score))[kept],
    )
    return linear


def _add_linear(arrays, upper, equal):
    start, relation = arrays["linear"], arrays["relation"][:-1]
    bound, size = arrays["bound"][:-1], np.diff(start)
    owner, slot = np.repeat(np.arange(len(size)), size), np.arange(start[0], start[-1])
    for kind, rows in ((relation == Relation.EQUAL, equal), (relation != Relation.EQUAL, upper)):
        number = np.cumsum(kind) - 1
        here = kind[owner] & (arrays["a"][slot] != 0.0)  # variables of cost 0 are in no row
        sign = np.where(relation == Relation.EQUAL, 1, -relation)  # at least b is at most -b
        value = arrays["a"][slot[here]] * sign[owner[here]]
        rows.add(number[owner[here]], slot[here], value, (bound * sign)[kind])


def _add_orouts(arrays, upper):
    """The last is at least each of the others, and at most their sum."""
    start = arrays["orout"]
    size = np.diff(start)
    owner, slot = np.repeat(np.arange(len(size)), size), np.arange(start[0], start[-1])
    flipped = arrays["negated"][slot] != 0
    sign, right = np.where(flipped, -1.0, 1.0), flipped.astype(np.float64)
    last = np.zeros(len(slot), dtype=bool)
    last[start[1:] - start[0] - 1] = True
    ends, others = np.flatnonzero(last), np.flatnonzero(~last)
    end = ends[owner[others]]
    number = np.arange(len(others))
    upper.add(
        np.tile(number, 2),
        slot[np.concatenate([others, end])],
        np.concatenate([sign[others], -sign[end]]),
        right[end] - right[others],
    )
    side = np.where(last, 1.0, -1.0)
    upper.add(owner, slot, side * sign, -np.bincount(owner, side * right, minlength=len(size)))
