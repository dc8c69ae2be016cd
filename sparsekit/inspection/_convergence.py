"""Progress of solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.optimize import OptimizeResult

from .._docstrings import shares_entries
from .._messages import shown
from ._axes import Display, as_label, as_texts, draws, line_style, with_options
from ._histories import Position, history_of_estimator, history_of_result, split_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

_Measure = Literal["optimality", "projected_gradient", "gap", "dual_gap", "objective"]
_LABELS = {
    "optimality": "relative optimality measure",
    "projected_gradient": "largest entry of the projected gradient",
    "dual_gap": "duality gap",
    "objective": "objective",
    "time": "time (s)",
    "iteration": "iteration",
    "evaluations": "evaluations",
}


@shares_entries(Display)
@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Progress of one or more fits: optimality measure, gap or objective against time or iterations.

    Make one with `from_estimator` or `from_history`, not directly.

    A logarithmic axis has no 0. Such a value is drawn as a triangle at the lower end, an infinite one at the
    upper end. So a run that is at the optimum at once is seen.

    Parameters
    ----------
    histories : dict of str to dict
        Histories by name.

    Attributes
    ----------
    {ax_, figure_}
    lines_ : list of matplotlib lines
        One per history, and per output where an estimator fitted several; NaN where a logarithmic axis
        cannot show the value.
    edges_ : list of matplotlib lines
        The triangles at the ends of the axis, of the lines that have any.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sparsekit import L1LogisticOBA
    >>> from sparsekit.inspection import ConvergenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> exact = L1LogisticOBA(history=True).fit(scale(X), y)
    >>> lbfgs = L1LogisticOBA(history=True, hessian="lbfgs").fit(scale(X), y)
    >>> display = ConvergenceDisplay.from_estimator(exact, lbfgs, names=["exact", "L-BFGS"])
    >>> display.ax_.get_ylabel()
    'relative optimality measure'
    """

    histories: Mapping[str, Mapping[str, ArrayLike]]

    @classmethod
    def from_estimator(
        cls,
        *estimators: BaseEstimator,
        names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> ConvergenceDisplay:
        """Draw fitted estimators that recorded their history.

        Parameters
        ----------
        *estimators : fitted estimators
            With ``history_`` (fitted with ``history=True``), or with the ``loss_curve_`` of
            ExtremeSoftmaxSGD, whose iterations are epochs without times.
        names : sequence of str, default=None
            Labels; None: the class names.
        {ax, **plot_options}

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If an estimator has recorded none yet, or names do not fit.
        TypeError
            If an estimator is of a kind that records none.
        """
        if not estimators:
            raise ValueError("estimators is empty; pass at least one fitted estimator.")
        histories = [history_of_estimator(estimator) for estimator in estimators]
        kinds = [type(estimator).__name__ for estimator in estimators]
        if len(set(kinds)) < len(kinds):
            kinds = [f"{kind} {k + 1}" for k, kind in enumerate(kinds)]
        names = as_texts(kinds if names is None else names, len(estimators), "names", "labels")
        if len(set(names)) < len(names):
            raise ValueError(f"names must be different labels; got {names}.")
        return cls.from_history(dict(zip(names, histories)), ax=ax, **plot_options)

    @classmethod
    def from_history(
        cls,
        histories: Mapping[str, Mapping[str, ArrayLike] | OptimizeResult],
        *,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> ConvergenceDisplay:
        """Draw results of :func:`~sparsekit.minimize_oba` or :func:`~sparsekit.minimize_nqn`, or histories.

        Parameters
        ----------
        histories : dict of str to OptimizeResult or dict
            For each name the result of a call with ``history=True``; one that had nothing to do is drawn as a
            point. Or arrays of one length: ``fun`` or others that `plot` draws, and ``time`` in seconds.
            Without ``iteration`` the first entry is number 0.
        {ax, **plot_options}

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If a result has no history, or arrays differ in length.
        """
        if not histories:
            raise ValueError("histories is empty; pass at least one history.")
        histories = {
            name: history_of_result(history, name) if isinstance(history, OptimizeResult) else history
            for name, history in histories.items()
        }
        for name, history in histories.items():
            lengths = {len(np.ravel(np.asarray(column))) for column in history.values()}
            if len(lengths) != 1 or lengths == {0}:
                raise ValueError(f"The history {shown(name)} must hold arrays of one length, at least 1.")
        return cls(histories).plot(ax=ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        y: _Measure | None = None,
        x: Position | None = None,
        best: float | None = None,
        **line_options: Any,
    ) -> ConvergenceDisplay:
        """Draw the histories.

        Parameters
        ----------
        {ax}
        y : {"optimality", "projected_gradient", "gap", "dual_gap", "objective"}, default=None
            The relative optimality measure (that of :func:`~sparsekit.minimize_nqn` stays large at a kink);
            the objective's distance to ``best``; the duality gap, where the histories have one. Or the
            objective itself, on a linear axis. None: the optimality measure if all histories have it, else
            the objective.
        x : {"time", "iteration", "evaluations"}, default=None
            None: the time if all histories have it, else the iteration. Evaluations are those that
            :func:`~sparsekit.minimize_nqn` counts.
        best : float, default=None
            The optimal objective for ``y="gap"``; None: the least in the histories, which hides what
            the best run itself still lacks. The gap is relative to it, unless it is 0.
        {**line_options}

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If x or y is unknown, or a history lacks it.
        """
        ax = self.ax_
        runs = [run for name, history in self.histories.items() for run in split_outputs(name, history)]
        y = self._choose("y", y, get_args(_Measure), ("optimality", "objective"))
        x = self._choose("x", x, get_args(Position), ("time", "iteration"))
        self.lines_: list[Line2D] = []
        self.edges_: list[Line2D] = []
        logarithmic = y != "objective"
        for number, (name, output, history) in enumerate(runs):
            values = self._values(history, output, y, best, runs)
            position = np.asarray(history[x], dtype=np.float64)
            # a log axis has no zero and no infinity; rounding may take a gap below zero
            shown = np.isfinite(values) & ((values > 0) | (not logarithmic))
            style = dict(**line_style(number), marker="o", ms=3.5, lw=1.4, label=as_label(name))
            line = ax.plot(position, np.where(shown, values, np.nan), **with_options(style, line_options))[0]
            self.lines_.append(line)
            if logarithmic:
                self._draw_edges(ax, line, position, values)
        if logarithmic:
            ax.set_yscale("log")
        ax.set_xlabel(_LABELS[x])
        ax.set_ylabel(self._gap_label(best, runs) if y == "gap" else _LABELS[y])
        ax.grid(True, which="major", color="0.9")
        ax.legend(frameon=False)
        return self

    def _choose(self, argument, given, allowed, defaults):
        if given is None:
            first, other = defaults
            if all(first in history for history in self.histories.values()):
                return first
            given = other
        if given not in allowed:
            raise ValueError(f"{argument} must be one of {allowed}, got {shown(given)}.")
        column = "fun" if given in ("gap", "objective") else given
        for name, history in self.histories.items():
            if column not in history and column != "iteration":
                raise ValueError(
                    f"{argument}={shown(given)} needs {shown(column)}; {shown(name)} recorded "
                    f"{', '.join(history)}."
                )
        return given

    def _values(self, history, output, y, best, runs):
        if y != "gap":
            return np.asarray(history["fun" if y == "objective" else y], dtype=np.float64)
        lowest = _lowest(runs, output) if best is None else float(best)
        return (np.asarray(history["fun"], dtype=np.float64) - lowest) / (abs(lowest) or 1.0)

    def _gap_label(self, best, runs):
        lowest = [_lowest(runs, output) if best is None else float(best) for _, output, _ in runs]
        return "relative objective gap" if all(lowest) else "objective gap"

    def _draw_edges(self, ax, line, position, values):
        """Triangles in the line's colour at the ends of the axis, where the axis cannot show a value."""
        for where, edge, marker, what in (
            (values <= 0, 0.0, "v", "0"),
            (np.isposinf(values), 1.0, "^", "infinite"),
        ):
            if where.any():
                self.edges_ += ax.plot(
                    position[where],
                    np.full(where.sum(), edge),
                    transform=ax.get_xaxis_transform(),
                    linestyle="none",
                    marker=marker,
                    ms=8,
                    color=line.get_color(),
                    clip_on=False,
                    zorder=4,
                    label=f"{line.get_label()}: {what}",
                )


def _lowest(runs, output):
    """The least objective of one output, which is a problem of its own."""
    values = np.concatenate([np.ravel(history["fun"]) for _, other, history in runs if other == output])
    known = values[~np.isnan(values)]  # ignore a run that broke down
    return float(known.min()) if len(known) else np.nan
