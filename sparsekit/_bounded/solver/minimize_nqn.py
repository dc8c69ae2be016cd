"""minimize_nqn: the public face of the solver in `nqn.py`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, OptimizeResult

from ..._arrays import namespace
from ..._messages import numbers, shown
from ..._solver import outcome
from ..._solver.user_values import as_number, as_vector, check_start
from ..._typing import ActiveSet
from .nqn import ACTIVE_SETS, MESSAGES, NQNOptions, minimize

# relative step of a forward difference: half of the digits
DIFFERENCE = np.sqrt(np.finfo(np.float64).eps)


def minimize_nqn(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    jac: Callable[..., ArrayLike] | bool | Literal["2-point"] | None = None,
    bounds: Bounds | Sequence[tuple[float | None, float | None]] | None = None,
    *,
    active_set: ActiveSet = NQNOptions.active_set,
    memory: int = NQNOptions.memory,
    n_gradients: int = NQNOptions.n_gradients,
    gtol: float | None = None,
    ftol: float | None = None,
    max_iter: int | None = None,
    max_fun: int | None = None,
    max_time: float | None = None,
    callback: Callable[..., object] | None = None,
    history: bool = False,
    tol: float | None = None,
    maxiter: int | None = None,
    maxfun: int | None = None,
    disp: bool = False,
    hess: None = None,
    hessp: None = None,
    constraints: Sequence[Any] = (),
) -> OptimizeResult:
    r"""Minimise a function, differentiable or not, subject to bounds, by the quasi-Newton method NQN.

    .. math:: \min_x f(x) \quad \text{subject to} \quad l \le x \le u

    f is to be continuous and differentiable almost everywhere, convex or not: maxima, absolute values,
    quantile losses. L-BFGS sees kinks as curvature. A projected line search with weak Wolfe conditions
    crosses them. The active set is corrected until the step stays in the box.

    It is also a ``method`` of SciPy: ``scipy.optimize.minimize(fun, x0, jac=True, bounds=bounds,
    method=minimize_nqn, tol=1e-8, options={"maxiter": 100})``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns f, a number, or with ``jac=True`` f and its gradient; x, of shape (n,), is
        a copy. At trial points it may return inf or NaN: the step is then shortened.
    x0 : array-like of shape (n,)
        Start. Outside the bounds it is moved to them, and the result's ``warning`` says so. With a CuPy array
        everything of length n stays on its GPU. ``fun`` then gets and returns CuPy arrays (f is a number or
        of shape ()).
    args : tuple, default=()
        More arguments of ``fun`` and ``jac``.
    jac : callable, bool, "2-point" or None, default=None
        ``jac(x, *args)`` returns the gradient, shape (n,), where f is differentiable, and that of any piece
        elsewhere; x is a copy. None, False and "2-point" take forward differences inside the bounds, at n
        more evaluations each.
    bounds : sequence of (min, max) pairs, or scipy.optimize.Bounds, default=None
        A pair for each variable, also where there are two of them. None or infinity stand for no bound;
        ``min == max`` fixes a variable. With x0 on a GPU also a CuPy array of shape (n, 2).
    active_set : {"gradient", "subgradient", "corrected", "corrected-subgradient"}, default="corrected"
        How the variables fixed at their bounds are chosen: Variants 1 to 4 of [1]_, Section 3.2.6. "gradient"
        uses the gradient, "subgradient" also the least element of the hull of recent gradients (eq. 3.9). The
        "corrected" ones add Algorithm 3.
    memory : int, default=20
        Pairs of L-BFGS, >= 0. Memory is allocated as pairs arrive; m of them take 16 m (n + 5 m) bytes.
    n_gradients : int, default=20
        Recent gradients for the "subgradient" choices, >= 1.
    gtol : float, default=None
        Stop when no entry of the projected gradient is larger. None: ``tol``, else 1e-6.
    ftol : float, default=None
        Stop when ten iterations together decrease f by at most ``ftol * max(1, |f|)``; negative: never.
        None: ``tol``, else 1e-9.
    max_iter : int, default=None
        Largest number of iterations. None: 15000.
    max_fun : int, default=None
        Largest number of evaluations; None: no limit.
    max_time : float, default=None
        Largest time in seconds, checked before each evaluation; None: no limit.
    callback : callable, default=None
        Called after each iteration as ``callback(x)``. If its argument is named ``intermediate_result``, it
        gets a :class:`scipy.optimize.OptimizeResult` of x, fun, jac, nit and nfev instead. Arrays are copies.
        A true value or StopIteration stops the run.
    history : bool, default=False
        Whether the result has a ``history``.
    tol : float, default=None
        SciPy's name for one tolerance: ``gtol`` and ``ftol``, unless these are given.
    maxiter, maxfun : int, default=None
        SciPy's names for ``max_iter`` and ``max_fun``.
    disp : bool, default=False
        Whether to print how the run ended.
    hess, hessp, constraints : default=None, None, ()
        For SciPy's sake; must be None, None and empty.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With x (within the bounds, exactly), fun, jac (there), nit, nfev, njev, success, status, message, and

        * ``optimality`` : largest entry of the projected gradient. At a kink it stays large: f is then
          stationary in the sense of Clarke, which no single gradient shows;
        * ``n_corrections``, ``n_skipped``, ``n_restarts`` : corrections of the active set, pairs that were
          skipped, and restarts from a multiple of the identity after rounding errors;
        * ``warning`` : None, or what was changed in the input;
        * ``history`` : None, or a dict (f, optimality, alpha, n_active, n_predicted, n_held, nfev, time in
          seconds) for each iteration. n_active variables are at a bound after it. n_predicted are fixed
          before the corrections, n_held after them.

        The two successes are status 0, projected gradient at most gtol, and 6, small decrease. Limits are 1
        (max_iter), 2 (max_time) and 5 (max_fun); 3 is the callback. 4: no step decreases f, the usual end at
        a kink if ``ftol`` is negative. 7: no direction of descent. 8: f falls without bound, along a ray or
        to -inf.

    Raises
    ------
    ValueError
        If bounds cross or are NaN, shapes disagree, or f at x0 or its gradient is not finite.
    TypeError
        If some arrays are on a GPU and others in main memory, or a limit is given by both of its names.

    See Also
    --------
    minimize_oba : For a smooth convex function plus an L1 norm.
    BoundedRegressor, BoundedClassifier : Linear models in a box, with a certificate.
    sparsekit.optimize.nonsmooth_problems : Problems to try it on.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit import minimize_nqn
    >>> def fun(x):  # (3.6) of the thesis
    ...     r = x[0] + 0.1 * x[1]
    ...     sign = np.sign(x[0] - x[1])
    ...     return abs(x[0] - x[1]) + 0.5 * r**2, np.array([sign + r, 0.1 * r - sign])
    >>> result = minimize_nqn(fun, [-0.7, 3.0], jac=True, bounds=[(None, -0.5), (None, None)])
    >>> result.x.round(6)
    array([-0.5, -0.5])
    """
    max_iter = _one_of("max_iter", max_iter, "maxiter", maxiter)
    max_fun = _one_of("max_fun", max_fun, "maxfun", maxfun)
    if tol is not None:
        _check_tolerance("tol", tol)
        gtol = tol if gtol is None else gtol
        ftol = tol if ftol is None else ftol
    gtol = NQNOptions.gtol if gtol is None else gtol
    ftol = NQNOptions.ftol if ftol is None else ftol
    max_iter = NQNOptions.max_iter if max_iter is None else max_iter
    opts = _check_options(active_set, memory, n_gradients, gtol, ftol, max_iter, max_fun, max_time)
    for name, given in (("hess", hess is not None), ("hessp", hessp is not None)):
        if given:
            raise ValueError(f"{name} must be None: the method needs no second derivatives.")
    if len(constraints) if hasattr(constraints, "__len__") else constraints is not None:
        raise ValueError("constraints must be empty: the method has bounds only.")
    x: Any = numbers(x0, "x0", namespace(x0=x0)).copy()
    if x.ndim != 1:
        raise ValueError(f"x0 must have shape (n,); got {x.shape}.")
    if np.isnan(x).any():
        raise ValueError(f"x0 must not hold NaN; entry {int(np.flatnonzero(np.isnan(x))[0])} does.")
    lower, upper = check_bounds(bounds, len(x), x)
    outside = int(np.count_nonzero((x < lower) | (x > upper)))
    x = np.clip(x, lower, upper)
    if not np.isfinite(x).all():
        raise ValueError("x0 must be finite.")
    objective = Objective(fun, args, jac, lower, upper)
    if len(x):
        f, g = objective(x)
        objective.kept = (f, g)
        check_start(f, g, "fun", "the gradient")
        result = minimize(objective, x, lower, upper, opts, callback=_wrapped(callback), history=history)
    else:
        result = OptimizeResult(
            x=x, fun=objective(x)[0], jac=np.empty_like(x), nit=0, nfev=1, njev=1, status=outcome.CONVERGED,
            success=True, message=MESSAGES[outcome.CONVERGED], optimality=0.0, n_corrections=0, n_skipped=0,
            n_restarts=0, history=[] if history else None,
        )  # fmt: skip
    result.nfev += objective.differences
    result.warning = None
    if outside:
        result.warning = f"{outside} entries of x0 were outside the bounds and were moved to them."
        result.message += " " + result.warning
    if disp:
        print(
            f"{result.message}\n    f = {float(result.fun):g}\n    iterations: {result.nit}\n"
            f"    evaluations: {result.nfev}"
        )
    return result


def _one_of(name, value, scipys_name, scipys_value):
    """The value of an argument that has two names."""
    if value is not None and scipys_value is not None:
        raise TypeError(f"{scipys_name} is SciPy's name for {name}: give one of them, not both.")
    return scipys_value if value is None else value


def _check_tolerance(name, value, least=0.0):
    if not isinstance(value, Real) or not float(value) >= least:
        raise ValueError(f"{name} must be a number >= {least:g}; got {shown(value)}.")


def _check_options(active_set, memory, n_gradients, gtol, ftol, max_iter, max_fun, max_time):
    if active_set not in ACTIVE_SETS:
        raise ValueError(f"active_set must be one of {ACTIVE_SETS}; got {shown(active_set)}.")
    for name, value, least in (
        ("memory", memory, 0), ("n_gradients", n_gradients, 1), ("max_iter", max_iter, 0),
        ("max_fun", max_fun, 1),
    ):  # fmt: skip
        if name == "max_fun" and (value is None or value == np.inf):
            continue
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be an integer >= {least}; got {shown(value)}.")
    for name, value in (("gtol", gtol), ("ftol", ftol), ("max_time", max_time)):
        if name == "max_time" and value is None:
            continue
        _check_tolerance(name, value, -np.inf if name == "ftol" else 0.0)
    return NQNOptions(
        gtol=float(gtol), ftol=float(ftol), max_iter=int(max_iter),
        max_fun=np.inf if max_fun is None else max_fun,
        max_time=np.inf if max_time is None else float(max_time), active_set=active_set,
        memory=min(int(memory), sys.maxsize), n_gradients=min(int(n_gradients), sys.maxsize),
    )  # fmt: skip


def check_bounds(bounds, n, like=None):
    """(lower, upper), float64 (n,), of SciPy's kinds of bounds, where the array ``like`` is.

    Raises ValueError where they cross, with the index, where they are NaN, or of another length.
    """
    xp = namespace(x0=like)
    if bounds is None:
        return xp.full(n, -np.inf), xp.full(n, np.inf)
    out = []
    for name, side in zip(("lower", "upper"), _sides(bounds, n, like)):
        side = numbers(side, f"the {name} bounds", xp)
        if side.ndim > 1 or (side.ndim == 1 and side.shape not in ((n,), (1,))):
            raise ValueError(f"the {name} bounds must have shape ({n},); got {side.shape}.")
        side = xp.ascontiguousarray(xp.broadcast_to(side, (n,)))
        if np.isnan(side).any():
            raise ValueError(f"the {name} bound of variable {int(np.flatnonzero(np.isnan(side))[0])} is NaN.")
        out.append(side)
    lower, upper = out
    wrong = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
    if len(wrong):
        i = int(wrong[0])
        low, high = float(lower[i]), float(upper[i])
        why = "cross" if low > high else "hold no finite number"
        raise ValueError(f"the bounds of variable {i} {why}: [{low:g}, {high:g}].")
    return lower, upper


def _sides(bounds, n, like):
    """Lower and upper bounds as they were given; arrays of many on the GPU if ``like`` is."""
    if isinstance(bounds, Bounds):
        sides = bounds.lb, bounds.ub
        for name, side in zip(("bounds.lb", "bounds.ub"), sides):
            if np.size(side) > 1:
                namespace(x0=like, **{name: side})
        return sides
    if hasattr(bounds, "dtype") and not np.ma.isMaskedArray(bounds):
        namespace(x0=like, bounds=bounds)
        if bounds.shape == (n, 2) and bounds.dtype.kind in "biuf":
            return bounds[:, 0], bounds[:, 1]
    pairs = list(bounds)
    if len(pairs) != n:
        raise ValueError(
            f"bounds must hold a (min, max) pair for each of the {n} variables; got {len(pairs)}."
        )
    for i, pair in enumerate(pairs):
        if np.ndim(pair) != 1 or len(pair) != 2:
            raise ValueError(f"bounds must hold (min, max) pairs; number {i} is {shown(pair)}.")
    return (
        [-np.inf if low is None else low for low, _ in pairs],
        [np.inf if high is None else high for _, high in pairs],
    )


class Objective:
    """f and its gradient as the solver needs them, from the user's ``fun`` and ``jac``, checked."""

    def __init__(self, fun, args, jac, lower, upper):
        if not callable(fun):
            raise TypeError(f"fun must be callable; got {type(fun).__name__}.")
        if isinstance(jac, str) and jac == "2-point":
            jac = None
        if not (jac is None or jac is False or jac is True or callable(jac)):
            raise ValueError(
                "jac must be a callable, True, or for forward differences None, False or '2-point'; "
                f"got {shown(jac)}."
            )
        self.fun, self.jac, self.lower, self.upper = fun, jac, lower, upper
        self.args = args if isinstance(args, tuple) else (args,)
        self.kept = None  # the values at x0, which the solver asks for once more
        self.differences = 0

    def __call__(self, x):
        if self.kept is not None:
            kept, self.kept = self.kept, None
            return kept
        if self.jac is True:
            returned = self.fun(x.copy(), *self.args)
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise ValueError("with jac=True, fun must return f and its gradient.")
            f, g = as_number(returned[0], "fun"), returned[1]
        else:
            f = as_number(self.fun(x.copy(), *self.args), "fun, without jac=True,")
            g = self.jac(x.copy(), *self.args) if callable(self.jac) else self._forward(x, f)
        return f, as_vector(g, x, "the gradient")

    def _forward(self, x, f):
        """Differences forward, backward where a bound is in the way, zero for a fixed variable."""
        g = np.zeros_like(x)
        if not np.isfinite(f):
            return g
        for i in range(len(x)):
            h = DIFFERENCE * max(1.0, abs(x[i]))
            if x[i] + h > self.upper[i]:
                h = (
                    -h
                    if x[i] - h >= self.lower[i]
                    else max(self.upper[i] - x[i], self.lower[i] - x[i], key=abs)
                )
            if h == 0.0:
                continue
            moved = x.copy()
            moved[i] += h
            step = moved[i] - x[i]  # before fun, which may overwrite its argument
            g[i] = (as_number(self.fun(moved, *self.args), "fun") - f) / step
            self.differences += 1
        return g


def _wrapped(callback):
    """SciPy's two kinds of callback as one of an OptimizeResult."""
    if callback is None:
        return None
    try:
        names = set(inspect.signature(callback).parameters)
    except (TypeError, ValueError):  # a builtin, which has none
        names = set()
    if names == {"intermediate_result"}:
        return lambda report: callback(intermediate_result=report)
    return lambda report: callback(report.x)
