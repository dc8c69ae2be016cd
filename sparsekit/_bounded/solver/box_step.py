"""Newton's step in a box: a quadratic model, minimised on the bounds that it meets."""

import numpy as np
from scipy.linalg import LinAlgError


def minimize_in_box(system, gradient, low, high, ridge):
    """A step that minimises the quadratic model with low <= step <= high, all (m,), on the bounds it meets.

    Coefficients that leave the box are put on their bound, and the system of the others is solved again. That
    ends near the minimiser: the next step may free a coefficient. NaN where the system is singular: a larger
    ridge may help.
    """
    step, is_free = np.zeros_like(gradient), np.ones_like(gradient, dtype=bool)
    while len(free := is_free.nonzero()[0]):
        right = gradient[free]
        if len(free) < len(gradient):
            right = right + system.product(np.where(is_free, 0.0, step))[free]
        try:
            solve = system.factor(free, ridge)
        except LinAlgError:
            return np.full_like(gradient, np.nan)
        s = step.copy()
        s[free] = -solve(right)
        step = np.clip(s, low, high)
        beyond = is_free & (step != s)
        if not beyond.any():
            break
        is_free &= ~beyond
    return step
