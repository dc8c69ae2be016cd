"""Dual points whose gradient on the active face is that of a solution.

At a weak penalty a small error of x makes gradients that are many times the penalty. Scaling makes such a
dual point feasible, and its gap is nearly the objective. A Newton step on the face makes it nearly optimal.
"""

import numpy as np
import scipy.linalg

from ..._arrays import to_host
from ..._linalg.dense_design import SINGLE_RIDGE
from ..._linalg.newton import MAX_SIDE


def face_points(loss, problem, x, l1, l2, grad, products):
    """Dual points near the derivatives by row at x: at most two, and none where they do not pay.

    H step = gradient + l1 sign(x) is a Newton step on the active face, with H = A^T D A. The derivatives less
    D A step have the gradient -l1 sign(x) there. The step may cross zeros, since it is no step of x.

    Columns that add up to others can have signs that no theta fits. Then the second point violates no
    constraint: it lies between the first and the point whose gradient on the face is zero, as near to the
    first as that allows.

    There is none where X has fewer rows than columns: 300 to 1000 rows by 5000 columns take up to 1.8 times
    as long with them. One-hot tables of 1000 columns take 0.07 of the time at C = 1000.

    Yields
    ------
    theta, gradient
        Derivatives by row, and X^T theta. ``grad`` is that of the derivatives at x.
    """
    slopes = grad + l2 * x
    face = np.flatnonzero((x != 0) | (l1 == 0) | (np.abs(slopes) > l1))
    is_small = len(face) <= MAX_SIDE and problem.size <= problem.n_rows
    system = problem.face_system(face, products) if is_small else None
    if system is None:
        return
    H, change = system
    H[np.diag_indices_from(H)] += to_host(l2[face])
    solve = factorized(H, to_host(l1[face] > 0))
    if solve is None:
        return
    target = l1 * np.where(x != 0, np.sign(x), -np.sign(slopes))

    def point(part):
        """The point whose gradient on the face, with the ridge's, is -part l1 sign(x)."""
        step = np.asarray(solve(to_host((slopes + part * target)[face])), like=x)
        theta = problem.state.u - change(step)
        return theta, problem.inner.gradient_of(theta)

    theta, gradient = point(1.0)
    if loss.dual_value(theta) == -np.inf:
        return
    yield theta, gradient
    hard = (l1 > 0) & (l2 == 0)
    if not bool((np.abs(gradient) > l1)[hard].any()):
        return
    start, start_gradient = point(0.0)
    part = largest_part(start_gradient[hard], gradient[hard], l1[hard])
    if part > 0.0:
        yield start + part * (theta - start), start_gradient + part * (gradient - start_gradient)


def factorized(H, raised):
    """Solver of the symmetric system H, which is overwritten; None where it is not finite or not positive.

    Entries ``raised`` of the diagonal grow by `SINGLE_RIDGE` of themselves.
    """
    diagonal = np.diagonal(H)
    if not (np.isfinite(H).all() and (diagonal > 0.0).all()):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    H *= scale[:, None]
    H *= scale
    H[np.diag_indices_from(H)] += SINGLE_RIDGE * raised
    try:
        factor = scipy.linalg.cho_factor(H.T, overwrite_a=True, check_finite=False)  # LAPACK's order: no copy
    except np.linalg.LinAlgError:
        return None
    return lambda b: scale * scipy.linalg.cho_solve(factor, scale * b, check_finite=False)


def largest_part(start, end, bound):
    """The largest t in [0, 1] with |start + t (end - start)| <= bound; 0 where start exceeds it."""
    move = end - start
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(move == 0.0, 1.0, (np.sign(move) * bound - start) / move)
    if bool((np.abs(start) > bound).any()):
        return 0.0
    return min(1.0, float(parts.min()))
