"""Attention weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._axes import Display, as_texts, draws
from ._cells import check_weights, draw_cells, frame_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


@dataclass(eq=False, repr=False)
class AttentionDisplay(Display):
    """What each query attends to: a table of weights whose exact zeros are blank.

    Make one with `from_weights`, not directly.

    Parameters
    ----------
    weights : ndarray of shape (n_queries, n_keys)
        Weights >= 0.
    queries, keys : sequence of str
        Labels of the rows and of the columns.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
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
        weights: ArrayLike,
        queries: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        *,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> AttentionDisplay:
        """Draw a matrix of weights.

        Parameters
        ----------
        weights : array-like of shape (n_queries, n_keys)
            Weights >= 0, a row a query; of PyTorch a tensor without a gradient, on the CPU.
        queries : sequence of str of length n_queries, default=None
            Labels of the rows; they may repeat, as words do. None: their numbers.
        keys : sequence of str of length n_keys, default=None
            Labels of the columns, likewise.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure. Give axes side by side to compare matrices.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        AttentionDisplay

        Raises
        ------
        ValueError
            If weights are not finite or negative, or labels do not fit.
        """
        table = check_weights(weights, "weights", "(n_queries, n_keys)")
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
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
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
        self.image_ = draw_cells(
            ax, self.weights, cmap=cmap, vmax=max(1.0, self.weights.max()) if vmax is None else vmax,
            row_labels=self.queries, column_labels=self.keys,
        )  # fmt: skip
        self.frames_ = []
        if frames is not None:
            wanted = np.flatnonzero(frames >= 0)
            self.frames_ = frame_cells(ax, wanted, frames[wanted])
        ax.set_xlabel("key")
        ax.set_ylabel("query")
        if title is not None:
            ax.set_title(title)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="weight (blank: 0)")
        return self
