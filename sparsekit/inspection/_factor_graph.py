"""Pictures of factor graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._factor_graph.graphs.graph import FactorGraph
from .._factor_graph.graphs.solution import Solution
from ._axes import COLORS, Display, as_texts, draws
from ._cells import weights_map
from ._graph_layout import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

# radius of a circle, half the side of a square; neighbours are about 1 apart
_RADIUS, _HALF_SIDE = 0.27, 0.16
# Points of the smallest text.
_SMALLEST_TEXT = 5.0


@dataclass(eq=False, repr=False)
class FactorGraphDisplay(Display):
    """A factor graph: circles are variables, squares factors, a line leads to each variable of a factor.

    With a solution a variable is darker the larger its marginal is, and blank where it is exactly 0. A matrix
    of variables with factors over rows and columns is drawn as a matrix. In other graphs distances are the
    numbers of edges between nodes. Make one with `from_graph`, not directly.

    Parameters
    ----------
    graph : FactorGraph
        The graph to show.
    marginals : ndarray of shape (n_variables,) or None
        Marginals mu.
    names : sequence of str
        Names of the variables.

    Attributes
    ----------
    positions_ : ndarray of shape (n_variables + n_factors, 2)
        Where the nodes are drawn, variables first. What is a factor a row has a node a row.
    edges_ : ndarray of int of shape (n_edges, 2)
        Variable and factor of each line, the factors counted from 0.
    factor_names_ : list of str
        Names of the factors' classes.
    variables_, factors_ : matplotlib patch collections
        Circles and squares.
    lines_ : matplotlib line collection
        The edges.
    colorbar_ : matplotlib colour bar or None
        None without a solution.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.

    Examples
    --------
    >>> from sparsekit import AtMostOne, FactorGraph, Xor
    >>> from sparsekit.inspection import FactorGraphDisplay
    >>> graph = FactorGraph()
    >>> u = graph.variable([[0.9, 0.1, 0.4], [0.8, 0.5, 0.3]])
    >>> graph.add(Xor(u))
    >>> graph.add(AtMostOne(u.T))
    >>> display = FactorGraphDisplay.from_graph(graph, graph.solve())
    >>> display.factor_names_
    ['Xor', 'Xor', 'AtMostOne', 'AtMostOne', 'AtMostOne']
    """

    graph: FactorGraph
    marginals: np.ndarray | None
    names: Sequence[str]

    @classmethod
    def from_graph(
        cls,
        graph: FactorGraph,
        solution: Solution | ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        max_nodes: int = 60,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> FactorGraphDisplay:
        """Draw a graph.

        Parameters
        ----------
        graph : FactorGraph
            The graph to draw.
        solution : Solution or array-like of shape (n_variables,), default=None
            What `FactorGraph.solve` or `FactorGraph.map` returned, or marginals in [0, 1]. None: the graph
            alone.
        names : sequence of str of length n_variables, default=None
            Names of the variables, in the order in which they were made. None: their indices in their array,
            such as "1,2", after a letter where the graph has several arrays.
        max_nodes : int, default=60
            Most variables and factors together: larger graphs are no longer readable.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        FactorGraphDisplay

        Raises
        ------
        TypeError
            If graph is none.
        ValueError
            If the graph is empty or has more than ``max_nodes`` nodes, the solution is of another graph or
            infeasible, or names do not fit.
        """
        if not isinstance(graph, FactorGraph):
            raise TypeError(f"graph must be a FactorGraph; got {type(graph).__name__}.")
        n_factors = sum(len(factor.index) for factor in graph.factors)
        n_nodes = graph.n_variables + n_factors
        if not graph.n_variables:
            raise ValueError("graph has no variables.")
        if n_nodes > max_nodes:
            raise ValueError(
                f"graph has {n_nodes} nodes ({graph.n_variables} variables, {n_factors} factors), more than "
                f"max_nodes={max_nodes}; with a larger max_nodes it is drawn, as small as it takes."
            )
        if names is None:
            names = _default_names(graph._shapes)
        names = as_texts(names, graph.n_variables, "names", "names, one a variable")
        return cls(graph, _marginals(graph, solution), names).plot(ax=ax, **plot_options)

    @draws
    def plot(
        self, ax: Axes | None = None, *, cmap: str = "Blues", colorbar: bool = True
    ) -> FactorGraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        cmap : str, default="Blues"
            Colour map of the marginals, from pale to dark.
        colorbar : bool, default=True
            Whether to add a colour bar, where there are marginals.

        Returns
        -------
        FactorGraphDisplay
        """
        ax = self.ax_
        from matplotlib.collections import LineCollection, PatchCollection
        from matplotlib.patches import Circle, Rectangle

        members = [row for factor in self.graph.factors for row in factor.index]
        self.factor_names_ = [
            type(factor).__name__ for factor in self.graph.factors for _ in range(len(factor.index))
        ]
        self.edges_ = np.array([(v, f) for f, row in enumerate(members) for v in row], dtype=int)
        self.edges_ = self.edges_.reshape(-1, 2)
        variables, factors = layout(self.graph._shapes, members)
        self.positions_ = np.concatenate([variables, factors])
        self.lines_ = ax.add_collection(
            LineCollection(
                list(np.stack([variables[self.edges_[:, 0]], factors[self.edges_[:, 1]]], axis=1)),
                colors="0.6", linewidths=0.9, zorder=1,
            )
        )  # fmt: skip
        self.variables_ = ax.add_collection(
            PatchCollection(
                [Circle(center, _RADIUS) for center in variables], edgecolor="0.2", linewidth=1.0, zorder=2
            )
        )
        corners = factors - _HALF_SIDE
        kinds = list(dict.fromkeys(self.factor_names_))
        # none is blue: marginals are
        colors = {kind: COLORS[1 + k % 4] for k, kind in enumerate(kinds)}
        self.factors_ = ax.add_collection(
            PatchCollection(
                [Rectangle(corner, 2 * _HALF_SIDE, 2 * _HALF_SIDE) for corner in corners],
                facecolor=[colors[name] for name in self.factor_names_], edgecolor="0.2", linewidth=1.0,
                zorder=3,
            )
        )  # fmt: skip
        self.colorbar_ = None
        if self.marginals is None:
            self.variables_.set_facecolor("0.95")
        else:
            # rounding may take a marginal just out of the box
            shown = np.clip(self.marginals, 0.0, 1.0)
            self.variables_.set(array=np.ma.masked_equal(shown, 0.0), cmap=weights_map(cmap), clim=(0.0, 1.0))
            if colorbar:
                label = r"marginal $\mu$ (blank: 0)"
                self.colorbar_ = ax.figure.colorbar(self.variables_, ax=ax, label=label)
        low, high = self.positions_.min(axis=0) - 0.6, self.positions_.max(axis=0) + 0.6
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        ax.set_axis_off()
        self._write_names(ax, variables, factors, colors)
        return self

    def _write_names(self, ax, variables, factors, colors):
        """Names of variables in their circles, of factors under their squares or once if there is no
        space."""
        from matplotlib.lines import Line2D
        from matplotlib.patheffects import withStroke

        # points to a unit of the picture, whose units are the same both ways
        box = ax.get_window_extent().size * 72 / ax.figure.dpi
        unit = float(min(box / [np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())]))
        longest = max(map(len, self.names))
        size = min(10.0, 1.8 * _RADIUS * unit / (0.6 * longest), 1.3 * _RADIUS * unit)
        halo = [withStroke(linewidth=2, foreground="w")]
        dark = np.zeros(len(variables), dtype=bool) if self.marginals is None else self.marginals > 0.5
        for (x, y), name, is_dark in zip(variables, self.names, dark):
            if size >= _SMALLEST_TEXT:
                options = dict(y=y, va="center", fontsize=size, color="w" if is_dark else "k")
            else:  # the label is larger than the circle: put it below
                options = dict(y=y - _RADIUS - 0.04, va="top", fontsize=_SMALLEST_TEXT, path_effects=halo)
            ax.text(x=x, s=name, ha="center", zorder=5, **options)
        size = min(0.16 * unit, 9.0)
        if size < _SMALLEST_TEXT and colors:
            squares = [
                Line2D([], [], marker="s", ls="none", mfc=color, mec="0.2", label=kind)
                for kind, color in colors.items()
            ]
            ax.legend(
                handles=squares, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=min(len(squares), 4),
                frameon=False,
            )  # fmt: skip
            return
        for center, name in zip(factors, self.factor_names_):
            ax.text(
                center[0], center[1] - _HALF_SIDE - 0.04, name, ha="center", va="top", fontsize=size,
                path_effects=halo, zorder=5,
            )  # fmt: skip


def _marginals(graph, solution):
    """Marginals (n_variables,) of a solution or an array, checked; None stays None."""
    if solution is None:
        return None
    if isinstance(solution, Solution):
        if solution._graph is not graph:
            raise ValueError("solution is of another graph.")
        solution = solution.x
    marginals = np.asarray(solution, dtype=np.float64).ravel()
    if len(marginals) != graph.n_variables:
        raise ValueError(
            f"solution must have {graph.n_variables} marginals, one a variable; it has {len(marginals)}."
        )
    if np.isnan(marginals).any():
        raise ValueError("solution has no marginals: it is NaN, as that of an infeasible graph is.")
    if marginals.min() < -1e-6 or marginals.max() > 1 + 1e-6:
        raise ValueError("solution must hold marginals in [0, 1].")
    return marginals


def _default_names(shapes):
    """Indices in the arrays, as "1,2", after a letter where there are several arrays."""
    names = []
    for k, shape in enumerate(shapes):
        letter = chr(ord("a") + k) if len(shapes) <= 26 else f"{k}" + ":" * bool(shape)
        letter = "" if len(shapes) == 1 and shape else letter
        names += [letter + ",".join(map(str, index)) for index in np.ndindex(shape)]
    return names
