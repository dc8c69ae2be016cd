"""Newton's step in a box: a quadratic model with bounds, minimised by a primal-dual active set method."""

import numpy as np
from scipy.linalg import LinAlgError

# Rounds of the active set of a step.
MAX_ROUNDS = 20
# Coefficients at a bound may be freed in the first rounds only, which prevents cycles.
MAX_RELEASE_ROUNDS = 3


def minimize_in_box(system, gradient, low, high, ridge, releases=MAX_RELEASE_ROUNDS):
    """Minimiser of the quadratic model with low <= step <= high, all (m,).

    Coefficients that leave the box are put on their bound. Those whose slope leads away from it are freed,
    and the system of the free ones is solved again. That ends at the minimiser or, seldom, cycles; then the
    bounds of the last round stay. NaN where the system is singular: a larger ridge may help.
    """
    m = len(gradient)
    step, is_free = np.zeros_like(gradient), np.ones_like(gradient, dtype=bool)
    for k in range(MAX_ROUNDS):
        s, free = step, is_free.nonzero()[0]
        if len(free):
            right = gradient[free]
            if len(free) < m:
                right = right + system.product(np.where(is_free, 0.0, step))[free]
            try:
                solve = system.factor(free, ridge)
            except LinAlgError:
                return np.full_like(gradient, np.nan)
            s = step.copy()
            s[free] = -solve(right)
        beyond = is_free & ((s < low) | (s > high))
        step = np.clip(s, low, high)
        wrong = np.zeros_like(is_free)
        if len(free) < m and k < releases:
            # of the model with the unclipped step
            slope = gradient + system.product(s) + ridge * s
            wrong = ~is_free & (((step <= low) & (slope < 0)) | ((step >= high) & (slope > 0)))
        if not (beyond | wrong).any():
            break
        is_free = (is_free & ~beyond) | wrong
    return step
