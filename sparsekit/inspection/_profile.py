"""Performance profiles of solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import shown
from ._axes import Display, check_names, draws, line_style, with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike


@dataclass(eq=False, repr=False)
class PerformanceProfileDisplay(Display):
    r"""Share of the problems that each solver solves within a factor of the best solver's cost.

    With t_ps the cost of solver s on problem p, and n_p problems, it draws (Dolan and Moré [1]_, eqs. (1)
    and (2))

    .. math:: \rho_s(\tau) = \frac{1}{n_p} \left|\left\{ p : \frac{t_{ps}}{\min_r t_{pr}} \le \tau
              \right\}\right| .

    At the left end is the share of problems on which a solver is the best. At the right end is the share that
    it solves at all. Make one with `from_table`, not directly.

    Parameters
    ----------
    costs : ndarray of shape (n_problems, n_solvers)
        Costs > 0; inf where a problem was not solved.
    names : sequence of str
        The solvers.

    Attributes
    ----------
    ratios_ : ndarray of shape (n_problems, n_solvers)
        Costs over the least of the problem; inf where it was not solved.
    profiles_ : dict of str to tuple of ndarray
        For each solver its finite ratios, rising and without repetition, and rho_s there.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    lines_ : list of matplotlib lines
        One per solver.

    References
    ----------
    .. [1] E. D. Dolan, J. J. Moré, "Benchmarking optimization software with performance profiles",
       Mathematical Programming 91 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.inspection import PerformanceProfileDisplay
    >>> costs = [[10, 20], [30, 15], [5, np.inf], [8, 8]]
    >>> display = PerformanceProfileDisplay.from_table(costs, names=["NQN", "L-BFGS-B"])
    >>> for name, (ratios, shares) in display.profiles_.items():
    ...     print(name, ratios, shares)
    NQN [1. 2.] [0.75 1.  ]
    L-BFGS-B [1. 2.] [0.5  0.75]
    """

    costs: np.ndarray
    names: Sequence[str]

    @classmethod
    def from_table(
        cls,
        costs: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> PerformanceProfileDisplay:
        """Draw a table of costs.

        Parameters
        ----------
        costs : array-like or DataFrame of shape (n_problems, n_solvers)
            What each solver spent on each problem, > 0: seconds, evaluations, iterations. inf or NaN where
            it did not solve the problem; a problem that no solver solved still counts as a problem.
        names : sequence of str, default=None
            The solvers; None: a DataFrame's columns, else "solver 1" and so on.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        PerformanceProfileDisplay

        Raises
        ------
        ValueError
            If costs is empty, not of two dimensions, or holds a number <= 0; or names do not fit.
        """
        if names is None:
            names = getattr(costs, "columns", None)
        costs = np.asarray(costs, dtype=np.float64)
        if costs.ndim != 2 or not costs.size:
            raise ValueError(
                f"costs must have the shape (n_problems, n_solvers), neither 0; got {costs.shape}."
            )
        costs = np.where(np.isnan(costs), np.inf, costs)
        if (costs <= 0).any():
            p, s = np.argwhere(costs <= 0)[0]
            raise ValueError(
                f"costs must be > 0, or there is no ratio to the least; costs[{p}, {s}] is {costs[p, s]:g}."
            )
        names = check_names(names, costs.shape[1], lambda k: f"solver {k + 1}")
        return cls(costs, names).plot(ax=ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        base: int = 2,
        max_ratio: float | None = None,
        legend: bool = True,
        **line_options: Any,
    ) -> PerformanceProfileDisplay:
        """Draw the profiles.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        base : int, default=2
            Base of the logarithmic axis of the ratios, >= 2.
        max_ratio : float, default=None
            Right end of that axis, > 1; None: a little beyond the largest finite ratio. Larger ones are not
            shown.
        legend : bool, default=True
            Whether to name the solvers.
        **line_options : dict
            Passed to matplotlib's ``step`` for every line.

        Returns
        -------
        PerformanceProfileDisplay
        """
        ax = self.ax_
        if base < 2:
            raise ValueError(f"base must be >= 2; got {shown(base)}.")
        if max_ratio is not None and not 1 < max_ratio < np.inf:
            raise ValueError(f"max_ratio must be a finite number > 1; got {shown(max_ratio)}.")
        self.ratios_, self.profiles_ = self._profiles()
        finite = self.ratios_[np.isfinite(self.ratios_)]
        largest = finite.max(initial=1.0)
        end = max_ratio or (largest**1.05 if largest > 1 else float(base))
        self.lines_: list[Line2D] = []
        for k, (name, (ratios, shares)) in enumerate(self.profiles_.items()):
            # from the left end, where a solver that is never the best has 0, to the right one
            x = np.concatenate([[1.0], ratios, [max(end, largest)]])
            y = np.concatenate([[0.0], shares, shares[-1:] if len(shares) else [0.0]])
            if len(ratios) and ratios[0] == 1.0:
                x, y = x[1:], y[1:]
            style = dict(**line_style(k), lw=1.8, label=name)
            self.lines_ += ax.step(x, y, where="post", **with_options(style, line_options))
        ax.set_xscale("log", base=base)
        # margins for lines at 0 and 1, and at the ratio 1
        ax.set_xlim(end**-0.015, end)
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlabel(r"cost / the least cost ($\tau$)")
        ax.set_ylabel(r"share of the problems ($\rho$)")
        ax.grid(True, which="major", color="0.9")
        if legend:
            ax.legend(loc="best")
        return self

    def _profiles(self):
        least = self.costs.min(axis=1, keepdims=True)
        solved = np.isfinite(self.costs)
        # not inf / inf, where no solver solved a problem
        ratios = np.where(solved, self.costs / np.where(np.isfinite(least), least, 1.0), np.inf)
        profiles = {}
        for name, column in zip(self.names, ratios.T):
            steps, counts = np.unique(column[np.isfinite(column)], return_counts=True)
            profiles[name] = steps, np.cumsum(counts) / len(column)
        return ratios, profiles
