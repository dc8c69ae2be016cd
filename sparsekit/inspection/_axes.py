"""Axes to draw on, and styles of all displays.

Matplotlib is imported here and in the displays' methods, when something is drawn, and nowhere else.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_NEEDED = "matplotlib is needed for plotting: pip install matplotlib"

# distinguishable for readers with red-green blindness (Okabe and Ito, 2002)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
DASHES = ("-", "--", "-.", ":")


def get_axes(ax):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax


def closes_its_figure(plot: Callable[P, R]) -> Callable[P, R]:
    """Decorates a `plot`: an error leaves no empty figure open."""

    @functools.wraps(plot)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        before = _figures()
        try:
            return plot(*args, **kwargs)
        except Exception:
            for number in _figures() - before:
                sys.modules["matplotlib.pyplot"].close(number)
            raise

    return guarded


def _figures() -> set[int]:
    plt = sys.modules.get("matplotlib.pyplot")
    return set(plt.get_fignums()) if plt is not None else set()


def with_options(style: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """A line's style with the user's options over it, each by its long or its short name (lw, linewidth)."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return normalize_kwargs(style, Line2D) | normalize_kwargs(options, Line2D)


def as_label(name: object) -> str:
    """What a legend shows of a name; matplotlib leaves out labels that begin with an underscore."""
    return f" {name}" if str(name).startswith("_") else str(name)


def line_style(number):
    """Colour and dashes of a line; dashes let an equal line under it be seen."""
    return dict(color=COLORS[number % len(COLORS)], linestyle=DASHES[number % len(DASHES)])


def check_names(names, count, default, argument="names"):
    """``count`` different labels, as str; None: ``default(k)`` of each number.

    Raises
    ------
    ValueError
        If there are more or fewer, or two are equal.
    """
    if names is None:
        return [default(k) for k in range(count)]
    names = [str(name) for name in names]
    if len(names) != count or len(set(names)) < count:
        raise ValueError(f"{argument} must be {count} different labels; got {names}.")
    return names
