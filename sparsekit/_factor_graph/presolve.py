"""Variables that rows force to a bound, and the multipliers of those rows once the rest is solved."""

from dataclasses import dataclass, replace

import numpy as np

# distance from its right side, relative to it, at which a row leaves nothing to choose
TIGHT = 1e-12


@dataclass
class Reduced:
    """What is left of a polytope: its free variables and the rows that still say something of them."""

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
    row = np.repeat(np.arange(len(p.right)), np.diff(p.rows.indptr))
    column, value = p.rows.indices, p.rows.data
    hard = np.concatenate([np.isinf(p.most), np.ones(len(p.right) - p.n_upper, dtype=bool)])
    equal = np.arange(len(p.right)) >= p.n_upper
    size, forcing = TIGHT * (1.0 + np.abs(p.right)), []
    while True:
        at_low, at_high = value * lower[column], value * upper[column]
        least = np.bincount(row, np.minimum(at_low, at_high), minlength=len(p.right))
        largest = np.bincount(row, np.maximum(at_low, at_high), minlength=len(p.right))
        if np.any(hard & (least > p.right + 1e3 * size)) or np.any(equal & (largest < p.right - 1e3 * size)):
            return None
        open_ = (lower < upper)[column]
        undecided = np.bincount(row, open_, minlength=len(p.right)) > 0
        down = hard & undecided & (least >= p.right - size)
        up = equal & undecided & ~down & (largest <= p.right + size)
        if not (down.any() or up.any()):
            break
        for rows, sign in ((down, 1.0), (up, -1.0)):
            here = rows[row] & open_
            to_low, to_high = here & (sign * value > 0), here & (sign * value < 0)
            if np.intersect1d(column[to_low], column[to_high]).size:
                return None
            upper[column[to_low]] = lower[column[to_low]]
            lower[column[to_high]] = upper[column[to_high]]
            held = np.flatnonzero(here)
            first = np.flatnonzero(np.diff(row[held], prepend=-1))
            forcing += list(zip(row[held[first]], np.split(held, first[1:])))
            open_ = (lower < upper)[column]
    free = lower < upper
    always = ~equal & hard & (largest <= p.right)
    kept = (np.bincount(row, free[column], minlength=len(p.right)) > 0) & ~always
    x = np.where(free, 0.0, lower)
    inner = replace(
        p,
        rows=p.rows[kept][:, free],
        right=(p.right - p.rows @ x)[kept],
        n_upper=int(kept[: p.n_upper].sum()),
        most=p.most[kept[: p.n_upper]],
        lower=lower[free],
        upper=upper[free],
    )
    return Reduced(inner, free, kept, x, forcing)


def postsolve(scores, p, reduced, x, y):
    """Marginals and multipliers of all variables and rows.

    A forcing row's multiplier is the least that holds the variables that it was the first to force; what it
    does to those before is made up for by their rows, which come after it here.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Of all variables.
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
    slope = scores - whole - p.rows.T @ multipliers
    for r, held in reversed(reduced.forcing):
        column, value = p.rows.indices[held], p.rows.data[held]
        # at its upper bound a variable wants a slope >= 0, at its lower one <= 0
        sign = 1.0 if (value[0] > 0) == (whole[column[0]] == p.lower[column[0]]) else -1.0
        more = sign * np.max(sign * slope[column] / value, initial=0.0)
        if more:
            here = slice(p.rows.indptr[r], p.rows.indptr[r + 1])
            multipliers[r] += more
            slope[p.rows.indices[here]] -= p.rows.data[here] * more
    return whole, multipliers
