"""Progress of solvers."""

import numpy as np

from ._axes import get_axes


class ConvergenceDisplay:
    """Progress of one or more fits: optimality measure or objective gap against time or iterations.

    Make one with `from_estimator` or `from_history`, not directly.

    Parameters
    ----------
    histories : dict of str to dict
        Histories by name, each with arrays time, fun and optimality.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    lines_ : list of matplotlib lines
        One per history.
    """

    def __init__(self, histories):
        self.histories = histories

    @classmethod
    def from_estimator(cls, *estimators, names=None, ax=None, **plot_options):
        """Draw fitted estimators that recorded their history.

        Parameters
        ----------
        *estimators : fitted estimators
            With ``history_``, that is, fitted with ``history=True``.
        names : sequence of str, default=None
            Labels; None: the class names.
        ax : matplotlib axes, default=None
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        for estimator in estimators:
            if not hasattr(estimator, "history_"):
                raise ValueError(
                    f"{type(estimator).__name__} has no history_: fit it with history=True before plotting."
                )
        if names is None:
            names = [type(estimator).__name__ for estimator in estimators]
            if len(set(names)) < len(names):
                names = [f"{name} {k + 1}" for k, name in enumerate(names)]
        if len(names) != len(estimators) or len(set(names)) < len(names):
            raise ValueError(f"names must be {len(estimators)} different labels, got {list(names)}.")
        return cls.from_history(
            {name: estimator.history_ for name, estimator in zip(names, estimators)}, ax=ax, **plot_options
        )

    @classmethod
    def from_history(cls, histories, *, ax=None, **plot_options):
        """Draw histories, such as those of :func:`minimize_oba` with ``history=True``.

        Parameters
        ----------
        histories : dict of str to dict
        ax : matplotlib axes, default=None
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        return cls(histories).plot(ax=ax, **plot_options)

    def plot(self, ax=None, *, y="optimality", x="time", best=None, **line_options):
        """Draw the histories.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        y : {"optimality", "gap"}, default="optimality"
            The relative optimality measure, or the objective's distance to ``best``, relative to it.
        x : {"time", "iteration"}, default="time"
        best : float, default=None
            The optimal objective for ``y="gap"``; None: the least in the histories, which hides what
            the best run itself still lacks.
        **line_options : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        ConvergenceDisplay
        """
        if y not in ("optimality", "gap"):
            raise ValueError(f"y must be 'optimality' or 'gap', got {y!r}.")
        if x not in ("time", "iteration"):
            raise ValueError(f"x must be 'time' or 'iteration', got {x!r}.")
        ax = get_axes(ax)
        if best is None:
            best = min(float(np.min(history["fun"])) for history in self.histories.values())
        self.lines_ = []
        for name, history in self.histories.items():
            if y == "gap":
                values = (np.asarray(history["fun"]) - best) / max(abs(best), np.finfo(float).tiny)
            else:
                values = np.asarray(history["optimality"])
            position = np.asarray(history["time"]) if x == "time" else np.arange(len(values))
            # a log axis has no zero: an exact optimum ends the line
            values = np.where(values > 0, values, np.nan)
            self.lines_ += ax.plot(
                position, values, **{**dict(marker="o", ms=3.5, lw=1.4, label=name), **line_options}
            )
        ax.set_yscale("log")
        ax.set_xlabel("time (s)" if x == "time" else "outer iteration")
        ax.set_ylabel("relative optimality measure" if y == "optimality" else "relative objective gap")
        ax.grid(True, which="major", color="0.9")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
