"""The nonsmooth test set of the NQN paper: 25 problems, their bounds, and ten starts each.

Section 3.3.1 of Keskar's thesis: with x* the unconstrained minimiser and i counted from 1,

    even i:  x*_i - 5.5 <= x_i <= x*_i - 0.5        odd i:  -100 <= x_i <= 100

and starts uniform on [-2, 2] around the midpoint of the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.optimize import Bounds
from sklearn.utils import check_random_state

from ..._docstrings import shares_entries
from ..._messages import plain, shown
from ..._typing import FloatArray, RandomState
from . import nonsmooth_functions as functions

N_STARTS = 10
_HALF_WIDTH = 2.0


@shares_entries()
class NonsmoothProblem:
    """A nonsmooth function, its unconstrained minimiser, and the paper's bounds and starts.

    Attributes
    ----------
    name : str
        As in Table 3.2.
    n : int
        Number of variables.
    minimizer : ndarray of shape (n,)
        An unconstrained global minimiser x*, which fixes the bounds.
    minimum : float
        f(x*), the unconstrained optimum.
    bounded_minimum : float or None
        The optimum within ``bounds`` where it has a closed form (14 problems), else None.
    bounds : scipy.optimize.Bounds
        The paper's bounds. x* lies outside.
    """

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        minimizer: FloatArray,
        minimum: float,
        bounded_minimum: float | None,
        seed: Sequence[int],
    ) -> None:
        self.name, self.n = name, len(minimizer)
        self.minimizer, self.minimum, self.bounded_minimum = minimizer, minimum, bounded_minimum
        self._evaluate, self._seed = evaluate, seed
        even = np.arange(1, self.n + 1) % 2 == 0
        self.bounds = Bounds(np.where(even, minimizer - 5.5, -100.0), np.where(even, minimizer - 0.5, 100.0))

    def __repr__(self):
        return f"NonsmoothProblem({self.name!r}, n={self.n})"

    def _checked(self, x):
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (self.n,):
            raise ValueError(f"x must have shape ({self.n},) for {self.name}; got {x.shape}")
        return x

    def fun(self, x: ArrayLike) -> float:
        """Value of f at x.

        Parameters
        ----------
        x : array-like of shape (n,)
            The point.

        Returns
        -------
        float
            Inf where a power or exponential in it overflows.
        """
        return self.fun_and_jac(x)[0]

    def jac(self, x: ArrayLike) -> FloatArray:
        """Gradient of f at x where f is differentiable, else one fixed generalised gradient.

        Of a maximum it is that of the first largest piece; absolute values and norms have 0 at 0. Where f is
        not finite, the gradient may not be either.

        {Parameters}

        Returns
        -------
        ndarray of shape (n,)
            The gradient.
        """
        return self.fun_and_jac(x)[1]

    def fun_and_jac(self, x: ArrayLike) -> tuple[float, FloatArray]:
        """Value and gradient, as ``jac=True`` of SciPy's minimisers takes them.

        {Parameters}

        Returns
        -------
        f : float
            As `fun`.
        g : ndarray of shape (n,)
            As `jac`.
        """
        f, g = self._evaluate(self._checked(x))
        return float(f), g

    def starts(self, n_starts: int = N_STARTS) -> FloatArray:
        """Starting points; the first ones do not depend on ``n_starts``.

        Parameters
        ----------
        n_starts : int, default=10
            How many, at least 1.

        Returns
        -------
        ndarray of shape (n_starts, n)
            A point a row.
        """
        if not n_starts >= 1 or n_starts != int(n_starts):
            raise ValueError(f"n_starts must be a whole number, at least 1; got {shown(n_starts)}")
        rng = np.random.default_rng([*self._seed, 1])
        middle = 0.5 * (self.bounds.lb + self.bounds.ub)
        return middle + rng.uniform(-_HALF_WIDTH, _HALF_WIDTH, (int(n_starts), self.n))


def _newton(residuals, x):
    """Zero of a tridiagonal system whose off-diagonal derivatives are -1, by Newton's method."""
    bands = np.full((3, len(x)), -1.0)
    best, smallest = x, np.inf
    for _ in range(200):
        r, bands[1] = residuals(x)
        # the last steps only stir the rounding errors
        if not np.abs(r).max() < smallest:
            break
        best, smallest = x, np.abs(r).max()
        x = x - linalg.solve_banded((1, 1), bands, r)
    return best


def _mifflin_minimizer(n):
    """Minimiser of Chained_Mifflin_2, which is convex, from its dual.

    2y + 1.75 |y| is the maximum of t y over t in [1/4, 15/4], and for given t_1 .. t_{n-1} (t_0 = 0)
    the sum is least at x_i = 1 / (2 w_i), w_i = t_{i-1} + t_i, and x_n = 0. The dual is to minimise
    sum_i 1 / (4 w_i) + t_i over the box. Its Hessian is almost singular along (1, -1, 1, ...), which
    defeats active-set methods; this is a primal-dual interior point method.
    """
    low, high = 0.25, 3.75
    t = np.full(n - 1, 0.5)
    lower, upper = np.ones(n - 1), np.ones(n - 1)  # multipliers of the two bounds
    bands = np.zeros((3, n - 1))
    for _ in range(100):
        below, above = t - low, high - t
        gap = (lower @ below + upper @ above) / (2 * n)
        if gap < 1e-15:
            break
        target = 0.1 * gap
        w = t + np.append(0.0, t[:-1])
        slope, curvature = 0.25 / w**2, 0.5 / w**3
        g = 1.0 - slope - np.append(slope[1:], 0.0)
        bands[0, 1:] = bands[2, :-1] = curvature[1:]
        bands[1] = curvature + np.append(curvature[1:], 0.0) + lower / below + upper / above
        step = linalg.solve_banded((1, 1), bands, target / below - target / above - g)
        d_lower = (target - lower * step) / below - lower
        d_upper = (target + upper * step) / above - upper
        value = np.concatenate([below, above, lower, upper])
        change = np.concatenate([step, -step, d_lower, d_upper])
        shrinking = change < 0
        # stay inside: at most 99 % of the way to the nearest wall
        share = min(1.0, 0.99 * np.min(-value[shrinking] / change[shrinking], initial=np.inf))
        t, lower, upper = t + share * step, lower + share * d_lower, upper + share * d_upper
    return np.append(0.5 / (t + np.append(0.0, t[:-1])), 0.0)


def _closed_forms(n):
    """Optimal values within the bounds, where they have closed forms.

    e is the upper bound of the even variables. In each sum over neighbours listed here all terms have their
    minimum at one point, so that their sum is the optimum. The other problems couple neighbours (linear or
    quadratic programs), or are not convex.
    """
    even, odd = n // 2, n - n // 2
    last_odd = n % 2
    circle = np.sqrt(0.5) - 0.5
    # Crescents: x_1 = 0 and even entries are -1/2. Inner odd entries are 1/4 (_1) or at the kink 1 -
    # sqrt(3/4) (_2); a last odd one is 1/2 or at the kink. A last even one enters one term only.
    kink = 1 - np.sqrt(0.75)
    inner = odd - 1 - last_odd
    crescent_1 = (even - 1 + last_odd) * 1.0 + (1 - last_odd) * 0.75 - inner / 8 - last_odd / 4
    crescent_2 = inner * (1 + 2 * kink**2 - kink) + last_odd * (1 + kink**2 - kink) + (1 - last_odd) * 0.75
    cube = 0.5 ** (1 / 3)
    return {
        "Active_Faces": np.log(1.5),
        "Chained_Crescent_1": crescent_1,
        "Chained_Crescent_2": crescent_2,
        "Chained_LQ": -(n - 1) * (circle + np.sqrt(1 - circle**2)),
        "L1": 0.5 * even,
        "L2": 0.5 * np.sqrt(even),
        "MAXQ": 0.25,
        "Modified_Rosenbrock_1": (1 - np.sqrt(0.5)) ** 2,
        "Modified_Rosenbrock_2": (1 - cube) ** 2 + (cube**2 - 0.5) ** 2,
        # odd -0.45 and even -0.5 in every pair
        "Myopic_Decoupled": 0.3 * even,
        "Nesterov_1": 0.25 * (1 - np.sqrt(0.75)) ** 2,
        "Nesterov_3": 0.25,
        "Nonsmooth_Brown": 0.5 * (n - 1),
        "TEST29_2": 0.5,
    }


def _table(n, seed):
    """name -> (function, unconstrained minimiser, its value) in the order of Table 3.2."""
    f = functions
    zero, one = np.zeros(n), np.ones(n)
    inside = np.arange(1, n + 1) / (n + 1)
    hilbert = f.Hilbert(n)
    mifflin = _mifflin_minimizer(n)
    roots = {
        # TEST29_6 has more than one root; these are the ones reached from the literature's starts
        f.broyden_tridiagonal: _newton(f.broyden_tridiagonal, -one),
        f.boundary_value: _newton(f.boundary_value, inside * (inside - 1)),
        # from above the solution Newton's method decreases to it
        f.troesch: _newton(f.troesch, inside),
    }
    table = {
        "Active_Faces": (f.active_faces, zero, 0.0),
        "Chained_CB3_1": (f.chained_cb3_1, one, 2.0 * (n - 1)),
        "Chained_CB3_2": (f.chained_cb3_2, one, 2.0 * (n - 1)),
        "Chained_Crescent_1": (f.chained_crescent_1, zero, 0.0),
        "Chained_Crescent_2": (f.chained_crescent_2, zero, 0.0),
        "Chained_LQ": (f.chained_lq, np.sqrt(0.5) * one, -(n - 1) * np.sqrt(2.0)),
        "Chained_Mifflin_2": (f.chained_mifflin_2, mifflin, float(f.chained_mifflin_2(mifflin)[0])),
        "Convex_Nonsmooth": (f.ConvexNonsmooth(n, np.random.default_rng([seed, 0])), zero, 0.0),
        "L1": (f.l1, zero, 0.0),
        "L1HILB": (hilbert.l1, zero, 0.0),
        "L2": (f.l2, zero, 0.0),
        "MAXHILB": (hilbert.maximum, zero, 0.0),
        "MAXQ": (f.maxq, zero, 0.0),
        "Modified_Rosenbrock_1": (f.modified_rosenbrock_1, one, 0.0),
        "Modified_Rosenbrock_2": (f.modified_rosenbrock_2, one, 0.0),
        "Myopic_Coupled": (f.myopic_coupled, zero, 0.0),
        "Myopic_Decoupled": (f.myopic_decoupled, zero, 0.0),
        "Nesterov_1": (f.nesterov_1, one, 0.0),
        "Nesterov_2": (f.nesterov_2, one, 0.0),
        "Nesterov_3": (f.nesterov_3, zero, 0.0),
        "Nonsmooth_Brown": (f.nonsmooth_brown, zero, 0.0),
        "TEST29_2": (f.test29_2, zero, 0.0),
    }
    for name, residuals in zip(("TEST29_6", "TEST29_22", "TEST29_24"), roots, strict=True):
        table[name] = (f.max_residual(residuals), roots[residuals], 0.0)
    return table


def nonsmooth_problems(n: int, *, random_state: RandomState = 0) -> list[NonsmoothProblem]:
    """The 25 nonsmooth test problems of NQN (Table 3.2 of [1]_), with bounds and starts.

    Parameters
    ----------
    n : int
        Number of variables of each, at least 2. The paper has 100, 1000 and 10000.
    random_state : int, RandomState instance or None, default=0
        Seed of the starts and of the matrices of Convex_Nonsmooth.

    Returns
    -------
    list of NonsmoothProblem
        In the order of Table 3.2, each with ``name``, ``fun``, ``jac``, ``fun_and_jac``, ``bounds``,
        ``starts()``, ``minimizer``, ``minimum`` and ``bounded_minimum``. An evaluation costs O(n), or
        O(n log n) for L1HILB, MAXHILB and Convex_Nonsmooth.

    Raises
    ------
    ValueError
        If n is not a whole number of at least 2.

    See Also
    --------
    sparsekit.minimize_nqn : The solver that was made for them.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, section 3.3.1.

    Examples
    --------
    >>> from sparsekit.optimize import nonsmooth_problems
    >>> problem = nonsmooth_problems(4)[8]
    >>> problem.name, problem.fun([1.0, -2.0, 0.0, 3.0]), problem.bounded_minimum
    ('L1', 6.0, 1.0)
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 2:
        raise ValueError(f"n must be a whole number, at least 2; got {shown(n)}")
    n = int(n)
    seed = int(check_random_state(plain(random_state)).randint(2**31 - 1))
    known = _closed_forms(n)
    return [
        NonsmoothProblem(name, evaluate, minimizer, float(minimum), known.get(name), (seed, number))
        for number, (name, (evaluate, minimizer, minimum)) in enumerate(_table(n, seed).items(), 1)
    ]
