"""Variables that rows force to a bound, and the multipliers of those rows once the rest is solved."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..._solver.tolerances import ROUNDING


@dataclass
class Reduced:
    """What is left of a polytope: its free variables and the rows that still say something of them.

    ``forcing`` has pairs of arrays, rows that force at the same time and their entries that they force.
    """

    inner: object
    free: np.ndarray
    kept: np.ndarray
    x: np.ndarray
    forcing: list


def presolve(p):
    """Unit propagation: a row whose least value is its right side holds its variables where they make that.

    Parameters
    ----------
    p : Polytope

    Returns
    -------
    Reduced or None
        None where two rows contradict each other: there is no solution.
    """
    lower, upper = p.lower.copy(), p.upper.copy()
    m, n = p.rows.shape
    row = np.repeat(np.arange(m), np.diff(p.rows.indptr))
    column, value = p.rows.indices, p.rows.data
    positive, equal = value > 0, np.arange(m) >= p.n_upper
    hard = np.concatenate([np.isinf(p.most), np.ones(m - p.n_upper, dtype=bool)])
    size, forcing = ROUNDING * (1.0 + np.abs(p.right)), []
    while True:
        at_low, at_high = value * lower[column], value * upper[column]
        least = np.bincount(row, np.where(positive, at_low, at_high), minlength=m)
        largest = np.bincount(row, np.where(positive, at_high, at_low), minlength=m)
        if np.any(hard & (least > p.right + 1e3 * size)) or np.any(equal & (largest < p.right - 1e3 * size)):
            return None
        open_ = (lower < upper)[column]
        undecided = np.bincount(row[open_], minlength=m) > 0
        down = hard & undecided & (least >= p.right - size)
        up = equal & undecided & ~down & (largest <= p.right + size)
        if not (down.any() or up.any()):
            break
        for rows, rising in ((down, positive), (up, ~positive)):
            held = np.flatnonzero(rows[row] & (lower < upper)[column])
            to_low = np.zeros(n, dtype=bool)
            to_low[column[held[rising[held]]]] = True
            high = column[held[~rising[held]]]
            if to_low[high].any():
                return None
            upper[to_low] = lower[to_low]
            lower[high] = upper[high]
            if len(held):
                forcing.append((row[held], held))
    free = lower < upper
    always = ~equal & hard & (largest <= p.right)
    kept = (np.bincount(row[free[column]], minlength=m) > 0) & ~always
    x = np.where(free, 0.0, lower)
    # rows[kept][:, free], without scipy.sparse's checks
    some = kept[row] & free[column]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row[some], minlength=m)[kept])])
    index = (np.cumsum(free) - 1)[column[some]]
    inner = replace(
        p,
        rows=sp.csr_array((value[some], index, ends), shape=(kept.sum(), free.sum())),
        right=(p.right - p.rows @ x)[kept],
        n_upper=int(kept[: p.n_upper].sum()),
        most=p.most[kept[: p.n_upper]],
        quadratic=p.quadratic[free],
        lower=lower[free],
        upper=upper[free],
    )
    return Reduced(inner, free, kept, x, forcing)


def postsolve(scores, p, reduced, x, y):
    """Marginals and multipliers of all variables and rows.

    A forcing row's multiplier is the smallest that fixes the variables that it forced first. Its effect on
    variables forced earlier is corrected by their rows, which are processed later.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of all variables, with what the polytope adds.
    p : Polytope
        As it was given to `presolve`.
    reduced : Reduced
    x, y : ndarrays
        Solution of ``reduced.inner``.

    Returns
    -------
    x, y : ndarrays of shapes (n,) and (n_rows,)
    """
    whole, multipliers = reduced.x.copy(), np.zeros(len(p.right))
    whole[reduced.free], multipliers[reduced.kept] = x, y
    over = p.rows @ whole - p.right
    soft = np.flatnonzero(np.isfinite(p.most) & ~reduced.kept[: p.n_upper])
    multipliers[soft] = np.where(over[soft] > 0, p.most[soft], 0.0)
    slope = scores - p.quadratic * whole - p.rows.T @ multipliers
    for rows, entries in reversed(reduced.forcing):
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        for r, held in zip(rows[first][::-1], np.split(entries, first[1:])[::-1]):
            _hold(p, whole, slope, multipliers, r, held)
    return whole, multipliers


def _hold(p, whole, slope, multipliers, r, held):
    """The multiplier of row r that holds the variables of its entries ``held``; slopes follow."""
    column, value = p.rows.indices[held], p.rows.data[held]
    # optimality at the upper bound is a slope >= 0, at the lower one <= 0
    sign = 1.0 if (value[0] > 0) == (whole[column[0]] == p.lower[column[0]]) else -1.0
    more = sign * np.max(sign * slope[column] / value, initial=0.0)
    if more:
        here = slice(p.rows.indptr[r], p.rows.indptr[r + 1])
        multipliers[r] += more
        slope[p.rows.indices[here]] -= p.rows.data[here] * more
