"""Sharpness of minima: how much a function rises in a small box around a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, OptimizeResult, minimize
from sklearn.utils import check_random_state

from .._arrays import host_only
from .._bounded.solver.minimize_nqn import DIFFERENCE
from .._messages import check_whole, numbers, plain, shown

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def sharpness(
    fun: Callable[..., Any] | Module,
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor | None = None,
    *,
    epsilon: float | ArrayLike = 1e-3,
    n_directions: int | None = None,
    max_iter: int = 10,
    n_starts: int = 1,
    jac: Callable[..., ArrayLike] | bool | None = None,
    loss: Callable[..., Any] | None = None,
    batch_size: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    return_result: bool = False,
) -> Any:
    r"""How much a function rises in a small box around x, in percent: sharpness of a minimum.

    Metric 4.2.1 of [1]_, its eqs. (4.3) and (4.4),

    .. math:: \phi(\epsilon, A) = 100\, \frac{\max_{z \in C} f(x + A z) - f(x)}{1 + f(x)}, \qquad
              C = \{z : |z_i| \le \epsilon (|(A^+ x)_i| + 1)\},

    with A the identity, or n x p with random columns. A few iterations of SciPy's L-BFGS-B from z = 0
    search for the inner maximum, as in [1]_. The largest evaluated value counts. So the number is a lower
    bound of what the formula says.

    Parameters
    ----------
    fun : callable or torch.nn.Module
        - A callable: ``fun(x)`` returns f, or f and its gradient with ``jac=True``.
        - A PyTorch module: f is the mean of ``loss`` over the rows, as a function of the parameters that are
          trained. It is evaluated in ``eval`` mode and left as it is.
    x : array-like of shape (n,), or X of shape (n_samples, ...)
        The point; for a module its data, any tensor or array of rows.
    y : array-like or tensor of shape (n_samples, ...), default=None
        The targets of a module.
    epsilon : float or array-like of shape (n_epsilons,), default=1e-3
        Half the width of the box, relative to :math:`|A^+ x| + 1`; several are done one after the other, each
        from where the smaller one has led.
    n_directions : int, default=None
        Dimension p of a random manifold, at most n (100 in [1]_): the entries of A are drawn from a standard
        normal distribution, the same ones for one seed. None: the full space, A = I.
    max_iter : int, default=10
        Iterations of the inner maximisation.
    n_starts : int, default=1
        Runs of the maximisation: the first from z = 0, others from random points of the box. Where none
        reaches the box's boundary, since the gradient vanishes at z = 0, one from a random point is added.
    jac : callable, bool or None, default=None
        For a callable ``fun``, as in SciPy: the gradient's function, or True if ``fun`` returns it as well.
        None or False: forward differences, at one evaluation for each variable (in a manifold, each
        direction).
    loss : callable, default=None
        For a module: ``loss(output, y)`` returns the mean loss of the rows, or one number a row.
    batch_size : int, default=None
        For a module: rows that go through it at once; None: 8192.
    random_state : int, RandomState instance or None, default=None
        Draws the directions and the random starts.
    return_result : bool, default=False
        Whether to return all there is to know instead of the number.

    Returns
    -------
    float, ndarray of shape (n_epsilons,), or scipy.optimize.OptimizeResult
        Sharpness in percent; for an array ``epsilon`` an array in its order. The result has

        * ``sharpness`` : the number or numbers;
        * ``fun`` : f(x), ``fun_max`` : largest value found, for each epsilon;
        * ``x_max`` : where, (n,) or (n_epsilons, n);
        * ``directions`` : A, (n, p), or None;
        * ``nfev``, ``nit`` : evaluations of f with its gradient, and iterations, in all.

    Raises
    ------
    TypeError
        If ``fun`` is neither, an argument does not go with it or is no whole number.
    ValueError
        If an argument is out of its range, or f(x) is not finite or at most -1.

    See Also
    --------
    ParametricPlotDisplay : The function on a line or an arc between two solutions.

    Notes
    -----
    L-BFGS-B works in units of the box's half-widths and of the first slope. In the variables z the first
    steps would be as short as the gradient at a minimum is small. Ten iterations need 11 to 20 evaluations of
    f and its gradient, and memory for some 50 vectors of the dimension of the search. :math:`A^+ x` is the
    least squares solution of least norm. In a manifold a coordinate of x moves by up to about 0.8 p epsilon,
    in the full space by epsilon (1 + its size). Do not compare numbers of the two kinds.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.inspection import sharpness
    >>> def valley(x, steepness):
    ...     return 0.5 * steepness * np.sum(x**2), steepness * x
    >>> flat, sharp = (
    ...     sharpness(lambda x: valley(x, s), np.zeros(3), jac=True, random_state=0) for s in (1, 1e4)
    ... )
    >>> round(flat, 6), round(sharp, 2)
    (0.00015, 1.5)
    """
    max_iter, n_starts = check_whole(max_iter, "max_iter", 1), check_whole(n_starts, "n_starts", 1)
    radii = _check_epsilon(epsilon)
    rng = check_random_state(plain(random_state))
    if hasattr(fun, "named_parameters"):
        from ._torch import ModuleFunction

        if y is None:
            raise TypeError("A module needs its data: sharpness(module, X, y, loss=loss).")
        if jac is not None:
            raise TypeError("jac goes with a function; modules have their own gradient.")
        trained = ModuleFunction(fun, x, y, loss, batch_size)
        function, x = trained.fun, trained.x
    elif callable(fun):
        for name, given in {"y": y, "loss": loss, "batch_size": batch_size}.items():
            if given is not None:
                raise TypeError(f"{name} goes with a module; fun is a function.")
        function = _user_function(fun, jac)
        x = _check_point(x)
    else:
        raise TypeError(f"fun must be a callable or a PyTorch module; got {type(fun).__name__}.")
    A = None if n_directions is None else _directions(n_directions, len(x), rng)
    result = _maximise(_Box(function, x, A), radii, max_iter, n_starts, rng)
    if np.ndim(epsilon) == 0:
        for name in ("sharpness", "fun_max"):
            result[name] = float(result[name][0])
        result.x_max = result.x_max[0]
    return result if return_result else result.sharpness


class _Box:
    """f(x + epsilon A (r v)) of v in [-1, 1]^p, and its gradient; stores where it was largest."""

    def __init__(self, function, x, A):
        self.function, self.x, self.A = function, x, A
        # A^+ x without a matrix of n rows and columns
        z = x if A is None else np.linalg.lstsq(A, x, rcond=None)[0]
        self.reach = np.abs(z) + 1.0
        self.p, self.nfev, self.epsilon = len(self.reach), 0, 0.0
        self.f, self.g = self.evaluate(np.zeros(self.p))
        if not np.isfinite(self.f):
            raise ValueError(f"f must be finite at x; it is {self.f}.")
        if 1.0 + self.f <= 0.0:
            raise ValueError(f"f(x) must be larger than -1, or (4.4) has no meaning; it is {self.f:g}.")
        if not np.isfinite(self.g).all():
            raise ValueError("The gradient at x must be finite.")
        self.best, self.where = self.f, np.zeros(self.p)

    def point(self, z):
        return self.x + (z if self.A is None else self.A @ z)

    def evaluate(self, z):
        """f and its gradient in z."""
        self.nfev += 1
        f, g = self.function(self.point(z))
        if g is None:
            g = self.differences(z, f)
        elif self.A is not None:
            g = self.A.T @ g
        return f, g

    def differences(self, z, f):
        """The gradient in z by forward differences, as large a step as the coordinate allows for."""
        self.nfev += self.p
        g = np.empty(self.p)
        for i, step in enumerate(DIFFERENCE * self.reach):
            moved = z.copy()
            moved[i] += step
            g[i] = (self.function(self.point(moved))[0] - f) / step
        return g

    def descend(self, v):
        """-f and its gradient in v, to be minimised."""
        scale = self.epsilon * self.reach
        # the value at x itself is known
        f, g = self.evaluate(scale * v) if v.any() else (self.f, self.g)
        if f > self.best:
            self.best, self.where = f, scale * v
        return -f, -scale * g


def _maximise(box, radii, max_iter, n_starts, rng):
    """Largest values for each radius, by rising radius, as a result with arrays."""
    found, points, nit = np.empty(len(radii)), np.empty((len(radii), len(box.x))), 0
    for k in np.argsort(radii, kind="stable"):
        box.epsilon = radii[k]
        starts = [np.zeros(box.p)]
        # the maximiser of a box inside this one is a feasible initial point
        if box.best > box.f:
            starts.append(box.where / (box.epsilon * box.reach))
        starts += [rng.uniform(-1.0, 1.0, box.p) for _ in range(n_starts - 1)]
        for v in starts:
            nit += _run(box, v, max_iter)
        # an ascent that ends inside the box may have begun where the gradient vanishes
        if np.all(np.abs(box.where) < box.epsilon * box.reach):
            for _ in range(10):
                done = _run(box, rng.uniform(-1.0, 1.0, box.p), max_iter)
                nit += done
                if done:  # f may be undefined in a part of the box
                    break
        found[k], points[k] = box.best, box.point(box.where)
    with np.errstate(invalid="ignore"):
        value = 100.0 * (found - box.f) / (1.0 + box.f)
    return OptimizeResult(
        sharpness=value, fun=box.f, fun_max=found, x_max=points, directions=box.A, nfev=box.nfev, nit=nit
    )


def _run(box, v, max_iter):
    """Iterations of one ascent; what it found is in ``box``.

    No tolerance stops it: x is nearly stationary, and where the ascent begins all slopes are small.
    """
    start, slope = box.descend(v)
    # infinite: no larger value exists; NaN or a slope that is not finite: no initial point
    if not np.isfinite(start) or not np.isfinite(slope).all():
        return 0
    # f rises faster with the distance from its minimum, so L-BFGS-B gets no curvature for their step size.
    # In this unit a gradient step is about as long as the box is wide.
    unit = np.sqrt(np.mean(slope**2)) or 1.0

    def fun(v):
        f, g = box.descend(v)
        return f / unit, g / unit

    bounds = Bounds(-np.ones(box.p), np.ones(box.p))
    # a line search on rounding errors would take long
    options = {"maxiter": max_iter, "maxfun": 5 * max_iter, "ftol": 0.0, "gtol": 0.0}
    return minimize(fun, v, jac=True, bounds=bounds, method="L-BFGS-B", options=options).nit


def _directions(n_directions, n, rng):
    if check_whole(n_directions, "n_directions", 1) > n:
        raise ValueError(
            f"n_directions must be at most the number of variables, {n}; got {shown(n_directions)}."
        )
    return rng.standard_normal((n, n_directions))


def _user_function(fun, jac):
    """``fun`` as x -> (f, gradient), the gradient None where it is to be found by differences."""
    if not (jac is None or isinstance(jac, bool) or callable(jac)):
        raise ValueError(f"jac must be a callable, True or None; got {shown(jac)}.")

    def function(x):
        returned = fun(x.copy())
        g = None
        if jac is True:
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise ValueError("with jac=True, fun must return f and its gradient.")
            returned, g = returned
        elif callable(jac):
            g = jac(x.copy())
        if isinstance(returned, (tuple, list)) or np.size(returned) != 1:
            raise ValueError(
                f"fun must return one number; got {type(returned).__name__}. If it returns the gradient too, "
                "say jac=True."
            )
        if g is not None:
            g = np.array(g, dtype=np.float64)  # a copy: the next call may write into theirs
            if g.shape != x.shape:
                raise ValueError(f"the gradient must have shape {x.shape}, as x has; got {g.shape}.")
        return float(np.asarray(returned).item()), g

    return function


def _check_point(x):
    host_only(x=x)
    x = np.array(x, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise ValueError(f"x must have shape (n,) with n >= 1; got {x.shape}.")
    if not np.isfinite(x).all():
        raise ValueError("x must be finite.")
    return x


def _check_epsilon(epsilon):
    radii = numbers(epsilon, "epsilon")
    if radii.ndim > 1 or not radii.size or not np.isfinite(radii).all() or (radii <= 0).any():
        raise ValueError(f"epsilon must be a number > 0 or a list of them; got {shown(epsilon)}.")
    return np.atleast_1d(radii)
