"""Attention weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._arrays import host_only
from .._docstrings import shares_entries
from .._linalg.structure import check_sparse
from ._axes import Display, as_texts, draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

# smallest value of a sequential colour map that differs visibly from the blank of a zero
FAINTEST_COLOR = 0.18


@shares_entries(Display)
@dataclass(eq=False, repr=False)
class AttentionDisplay(Display):
    """What each query attends to: a table of weights whose exact zeros are blank.

    It draws the probabilities of a classifier as well: a row a query, a class a key. Make one with
    `from_weights`, not directly.

    Parameters
    ----------
    weights : ndarray of shape (n_queries, n_keys)
        Weights >= 0.
    queries, keys : sequence of str
        Labels of the rows and of the columns.

    Attributes
    ----------
    {ax_, figure_}
    image_ : matplotlib image
        The weights; zeros are masked.
    frames_ : list of matplotlib patches
        The framed cells.
    colorbar_ : matplotlib colour bar or None

    Examples
    --------
    Two maps side by side, from the same scores:

    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from sparsekit import sparsemax
    >>> from sparsekit.inspection import AttentionDisplay
    >>> scores = np.array([[2.0, 0.1, 0.2], [0.3, 1.5, 1.4]])
    >>> words = dict(queries=["3", "7"], keys=["three", "seven", "four"])
    >>> figure, axes = plt.subplots(1, 2, layout="constrained")
    >>> dense = AttentionDisplay.from_weights(softmax(scores, axis=1), **words, ax=axes[0])
    >>> sparse = AttentionDisplay.from_weights(sparsemax(scores), **words, ax=axes[1])
    >>> int(sparse.image_.get_array().mask.sum())  # blank cells
    3
    """

    weights: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]

    @classmethod
    def from_weights(
        cls,
        weights: ArrayLike | sp.sparray | sp.spmatrix,
        queries: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        *,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> AttentionDisplay:
        """Draw a matrix of weights.

        Parameters
        ----------
        weights : {array-like, sparse matrix} of shape (n_queries, n_keys)
            Weights >= 0, a row a query; of PyTorch a tensor without a gradient, on the CPU.
        queries : sequence of str of length n_queries, default=None
            Labels of the rows; they may repeat, as words do. None: their numbers.
        keys : sequence of str of length n_keys, default=None
            Labels of the columns, likewise.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure. Give axes side by side to compare matrices.
        {**plot_options}

        Returns
        -------
        AttentionDisplay

        Raises
        ------
        ValueError
            If weights are not finite or negative, or labels do not fit.
        """
        host_only(weights=weights)
        if sp.issparse(weights):
            weights = check_sparse(weights, "the weights").toarray()
        table = check_array(weights, dtype=np.float64, ensure_non_negative=True, input_name="weights")
        labels = [
            as_texts(range(count) if given is None else given, count, argument, "labels")
            for argument, given, count in zip(("queries", "keys"), (queries, keys), table.shape)
        ]
        return cls(table, *labels).plot(ax=ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        cmap: str = "Blues",
        vmax: float | None = None,
        frames: ArrayLike | None = None,
        colorbar: bool = True,
        title: str | None = None,
    ) -> AttentionDisplay:
        """Draw the weights.

        Parameters
        ----------
        {ax}
        cmap : str, default="Blues"
            Colour map, from pale to dark; its palest part is not used, so that a small weight is not taken
            for a zero.
        vmax : float, default=None
            The weight that is darkest; None: 1, or the largest where that is more.
        frames : array-like of int of shape (n_queries,), default=None
            For each query a key whose cell is framed, such as the right one; negative: none.
        colorbar : bool, default=True
            Whether to add a colour bar.
        title : str, default=None
            Title of the picture.

        Returns
        -------
        AttentionDisplay
        """
        ax = self.ax_
        n_queries, n_keys = self.weights.shape
        if frames is not None:
            frames = np.asarray(frames)
            if frames.shape != (n_queries,) or frames.dtype.kind not in "iu" or frames.max() >= n_keys:
                raise ValueError(
                    f"frames must be a number of a key, below {n_keys}, for each of the {n_queries} queries."
                )
        self.image_ = _draw_cells(
            ax, self.weights, cmap=cmap, vmax=max(1.0, self.weights.max()) if vmax is None else vmax,
            row_labels=self.queries, column_labels=self.keys,
        )  # fmt: skip
        self.frames_ = []
        if frames is not None:
            wanted = np.flatnonzero(frames >= 0)
            self.frames_ = _frame_cells(ax, wanted, frames[wanted])
        ax.set_xlabel("key")
        ax.set_ylabel("query")
        if title is not None:
            ax.set_title(title)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="weight (blank: 0)")
        return self


def _weights_map(name):
    """The colour map without its palest part, and blank for masked values."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap

    colors = mpl.colormaps[name](np.linspace(FAINTEST_COLOR, 1.0, 256))
    return ListedColormap(colors, name=f"{name}_from_{FAINTEST_COLOR}").with_extremes(bad="white")


def _draw_cells(ax, weights, *, cmap, vmax, row_labels, column_labels):
    """The image of weights >= 0: zeros blank, a thin grid between the cells, labels of rows and columns."""
    image = ax.imshow(
        np.ma.masked_equal(weights, 0.0), cmap=_weights_map(cmap), vmin=0.0, vmax=vmax, aspect="auto",
        interpolation="none",
    )  # fmt: skip
    n_rows, n_columns = weights.shape
    ax.set_xticks(np.arange(n_columns - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n_rows - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="0.9", linewidth=0.6)
    ax.tick_params(which="minor", length=0)
    width, height = ax.get_window_extent().size * 72 / ax.figure.dpi
    size = float(np.clip(0.8 * height / n_rows, 5.0, 10.0))
    ax.set_yticks(range(n_rows), row_labels, fontsize=size)
    # as wide as a letter, of 0.6 of its height, times the longest label
    longest = max((len(str(label)) for label in column_labels), default=1)
    upright = longest * 0.6 * 9.0 > 0.95 * width / n_columns
    size = float(np.clip(0.8 * width / n_columns, 5.0, 10.0)) if upright else 10.0
    ax.set_xticks(range(n_columns), column_labels, rotation=90 if upright else 0, fontsize=size)
    for text in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        text.set_parse_math(False)  # labels are words of users' data: a $ is a $
    return image


def _frame_cells(ax, rows, columns, color="#D55E00"):
    """Frames around cells; returns their patches."""
    from matplotlib.patches import Rectangle

    return [
        ax.add_patch(
            Rectangle(
                (column - 0.45, row - 0.45), 0.9, 0.9, fill=False, edgecolor=color, linewidth=1.6, zorder=3
            )
        )
        for row, column in zip(rows, columns)
    ]
