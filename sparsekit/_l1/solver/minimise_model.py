"""How well, and by which means, the quadratic model of one OBA iteration is minimised."""

from dataclasses import dataclass

import numpy as np

# Least part of the diagonal that is added to a matrix in double precision.
MIN_RIDGE = 1e-12
# a factor of this side takes 18 MB; beyond it conjugate gradients go on alone
_FACTOR_LIMIT = 1500
# fall of the residual and tolerance of CG where models hold
_SETTLED, _SETTLED_CG = 0.2, 0.1
# tolerance of CG where no variable has an L1 penalty, and steps, so many that a limit is there for rounding
_SMOOTH_CG, _LEAST_CG, _SMOOTH_STEPS = 0.1, 1e-4, 500
# the ridge where steps have to cross zeros: least part of the one that weighs as much as the penalty, and how
# fast it rises and falls
_LEAST_BALANCE, _RISE = 0.1, 10.0


@dataclass
class Effort:
    """How well a model is minimised, and by which means; `solve_model` of the kernels has the meanings."""

    max_cycles: int
    forcing: float
    cg_tol: float
    cg_max: int
    direct_size: int
    sweeps: int = 0
    holds: int = 0
    largest_factor: int = 0


def minimise_model(operator, xv, gv, lv, run, classes=False):
    """Minimiser of the model, corrections of its first cycle, and the predicted reduction.

    ``classes`` says that it is the model of several classes.
    """
    opts, kernels, state = run.options, run.kernels, run.model
    m = len(xv)
    new = np.empty(m, like=xv)
    exact = operator.reads == "matrix"
    # products with a matrix are cheap beside what made it, so its model is solved well; where a
    # product is a pass over rows, the model is solved as loosely as the outer iteration allows
    columns = operator.reads == "columns"
    passes = columns or (classes and not exact)
    cycles = 1 if columns else opts.model_cycles
    cg_tol, cg_max = opts.cg_tol, opts.cg_dense if operator.reads == "dense" else opts.cg_max
    forcing = opts.forcing
    if passes and state.is_settled:
        # what is left lies along directions of little curvature, which sweeps and short runs of CG hardly
        # see; more digits than the end asks for are of no use
        cycles, cg_max, forcing = 2, state.cg_limit, _SETTLED
        cg_tol = max(_SETTLED_CG, min(state.aim_ratio, opts.cg_tol))
    if not kernels.on_device:  # where there are no sweeps
        # where steps have to cross zeros, coordinate descent between them undoes what they found
        operator.sweeps_once = state.crossed or (classes and exact)
    smooth = not exact and not columns and not lv.any()
    if smooth:
        # one linear system and no zeros: conjugate gradients alone, to what the end asks for once models hold
        cycles, cg_max = 1, _SMOOTH_STEPS
        cg_tol = forcing = (
            min(_SMOOTH_CG, max(state.aim_ratio, _LEAST_CG)) if state.is_settled else _SMOOTH_CG
        )
    if exact or operator.always_direct:
        cycles, cg_tol, cg_max = opts.gram_cycles, 0.1, 50
    effort = Effort(
        max_cycles=cycles, forcing=forcing, cg_tol=cg_tol, cg_max=cg_max, direct_size=opts.direct_size,
        sweeps=opts.sweeps if exact else 0 if smooth else opts.row_sweeps, holds=opts.holds,
        largest_factor=_FACTOR_LIMIT if exact else 0,
    )  # fmt: skip
    found = kernels.model.solve_model(operator, xv, gv, lv, new, effort)
    predicted, _, corrections, state.last_cg, n_direct = found
    if operator.error is not None:
        raise operator.error
    state.crossed = operator.crossed > 0
    if state.crossed:
        state.balance = balance_of(operator, lv, new)
    if passes and state.is_settled and state.last_cg >= cg_max:
        # Each model restarts conjugate gradients. At a fixed limit, steps in directions of little curvature
        # then have one length, however far the solution is.
        state.cg_limit *= 2
    run.counts.n_cg += state.last_cg
    run.counts.n_direct += n_direct
    run.counts.n_products += operator.n_products
    if not np.all(np.isfinite(new)):
        new, predicted = xv.copy(), 0.0  # a model that overflowed: the ISTA point will do better
    return new, corrections, predicted


def balance_of(operator, l1, x):
    """The ridge that weighs as much at x as the penalty l1 . |x|."""
    return float(l1 @ abs(x)) / max(float(operator.diag @ x**2), np.finfo(np.float64).tiny)


def next_ridge(ridge, least, balance):
    """The ridge after a model with this one.

    Along combinations of columns that do not change the predictor the penalty alone says how far to go, and a
    ridge lets all of them go their way at once (a proximal step). It rises where steps had to cross zeros, up
    to ``balance``, and falls to ``least`` where they did not, with a ``balance`` of None.
    """
    if balance is None:
        return max(ridge / _RISE, least)
    return min(balance, max(_RISE * ridge, _LEAST_BALANCE * balance))
