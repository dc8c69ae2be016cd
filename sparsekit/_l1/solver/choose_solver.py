"""Which solver minimises a loss: over blocks of rows, by a session that keeps its Hessian, or by OBA."""

from __future__ import annotations

from functools import partial

from .. import plan
from ..losses.block_problem import BlockProblem
from ..losses.linear_loss import LinearLoss
from ..losses.losses import LeastSquaresLoss
from .blockwise import minimize_on_blocks
from .centred_loss import CentredLoss
from .nonnegative import minimize_nonnegative
from .oba import minimize_oba


def choose_solver(loss, l1_ratio=1.0, kind="fit", *, hessian="exact", solver="auto"):
    """The solver of a loss with an elastic net of ``l1_ratio``, and the session behind it or None.

    The solver takes L1 penalties, x0 and the options of `minimize_oba`. ``kind`` is "fit", "path" (several
    penalties) or "shared" (fits that reuse a session's Hessian). ``solver`` is that of `LassoOBA`.

    - Blocks of rows: `minimize_on_blocks`.
    - Least squares in main memory: a `SquaresSession`.
    - Other losses of one score a row in main memory: a `NewtonSession`, with an L1 part where penalties or
      fits follow each other, without one within `plan.ridge_keeps_hessian`. Their coefficients have any sign.
    - All else, ``solver="oba"`` and ``hessian="lbfgs"``: `minimize_oba`, or `minimize_nonnegative` where
      coefficients are >= 0.

    A `CentredLoss` has the solver of its loss.
    """
    if isinstance(loss, BlockProblem):
        return partial(minimize_on_blocks, loss), None
    own = loss.loss if isinstance(loss, CentredLoss) else loss
    by_oba = minimize_nonnegative if getattr(own, "one_sided", False) else minimize_oba
    minimize, session = partial(by_oba, own), None
    if solver != "oba" and hessian == "exact" and isinstance(own, LinearLoss):
        session = _session_of(own, l1_ratio, kind, solver)
    if session is not None:
        minimize = session.minimize
    return minimize if own is loss else partial(loss.minimize, minimize), session


def _session_of(loss, l1_ratio, kind, solver):
    """The session of a `LinearLoss`, or None."""
    (n, p), design = loss.design.shape, loss.design
    if design.is_on_device:
        return None
    # other fits don't pay for the imports
    if isinstance(loss, LeastSquaresLoss):
        from .squares_session import SquaresSession

        return SquaresSession(loss, solver, kind == "path")
    keeps_hessian = kind != "fit" if l1_ratio > 0.0 else plan.ridge_keeps_hessian(n, p, design.is_sparse)
    if not keeps_hessian or getattr(loss, "one_sided", False):
        return None
    from .newton_session import NewtonSession

    return NewtonSession(loss)
