"""Axes to draw on, and styles of all displays.

Matplotlib is imported here and in the displays' methods, when something is drawn, and nowhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

# distinguishable for readers with red-green blindness (Okabe and Ito, 2002)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
DASHES = ("-", "--", "-.", ":")


class Display:
    """Base of the displays, with what `draws` sets.

    Parameters
    ----------
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    **plot_options : dict
        Passed to `plot`.
    **line_options : dict
        Passed to matplotlib's ``plot`` for every line.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    """

    ax_: Any
    figure_: Any


def draws(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorates a `plot`, which draws on ``self.ax_``. An error leaves no empty figure open."""

    @functools.wraps(draw)
    def plot(display: Any, ax: Any = None, **options: Any) -> Any:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("matplotlib is needed for plotting: pip install matplotlib") from error
        own = plt.figure(layout="constrained") if ax is None else None
        display.ax_ = ax if own is None else own.add_subplot()
        display.figure_ = display.ax_.figure
        try:
            draw(display, display.ax_, **options)
        except Exception:
            if own is not None:
                plt.close(own)
            raise
        return display

    return plot  # type: ignore[return-value]


def with_options(style: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """A line's style with the user's options over it, each by its long or its short name (lw, linewidth)."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return normalize_kwargs(style, Line2D) | normalize_kwargs(options, Line2D)


def penalty_axis(ax, name, penalties):
    """Positions of penalties C or alpha on an axis, the strongest at the left; labels the axis."""
    ax.set_xlabel(r"$\log_{10} C$" if name == "C" else r"$-\log_{10} \alpha$")
    return np.log10(penalties) * (1.0 if name == "C" else -1.0)


def draw_paths(ax, position, paths, names, options, n_dark=0):
    """Lines of ``paths`` (n_lines, n_penalties): the first have names and colours, others are grey."""
    lines = []
    for rank, values in enumerate(paths):
        style = dict(color="0.35" if rank < n_dark else "0.75", lw=0.8, zorder=1)
        if rank < len(names):
            dashes = DASHES[rank // len(COLORS) % len(DASHES)]
            color = COLORS[rank % len(COLORS)]
            style = dict(color=color, ls=dashes, lw=1.7, zorder=3, label=as_label(names[rank]))
        if len(position) == 1:
            style["marker"] = "o"
        lines += ax.plot(position, values, **with_options(style, options))
    return lines


def draw_outer_legend(ax, title=None):
    """A legend to the right of the axes, if anything has a label."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title=title, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def as_label(name: object) -> str:
    """What a legend shows of a name; matplotlib leaves out labels that begin with an underscore."""
    return f" {name}" if str(name).startswith("_") else str(name)


def line_style(number):
    """Colour and dashes of a line; dashes let an equal line under it be seen."""
    return dict(color=COLORS[number % len(COLORS)], linestyle=DASHES[number % len(DASHES)])


def as_texts(names, count, argument, what="names"):
    """``count`` names as str, which may repeat.

    Raises
    ------
    ValueError
        If there are more or fewer.
    """
    names = [str(name) for name in names]
    if len(names) != count:
        raise ValueError(f"{argument} must be {count} {what}; got {len(names)}.")
    return names
