"""Tables of weights whose exact zeros are seen: the cells of the support and attention displays."""

import numpy as np
import scipy.sparse as sp

from .._arrays import host_only
from .._linalg.structure import check_sparse
from .._messages import check_nonnegative

# smallest value of a sequential colour map that differs visibly from the blank of a zero
_FAINTEST = 0.18


def weights_map(name):
    """The colour map without its palest part, and blank for masked values."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap

    colors = mpl.colormaps[name](np.linspace(_FAINTEST, 1.0, 256))
    return ListedColormap(colors, name=f"{name}_from_{_FAINTEST}").with_extremes(bad="white")


def draw_cells(ax, weights, *, cmap, vmax, row_labels, column_labels):
    """The image of weights >= 0: zeros blank, a thin grid between the cells, labels of rows and columns."""
    image = ax.imshow(
        np.ma.masked_equal(weights, 0.0), cmap=weights_map(cmap), vmin=0.0, vmax=vmax, aspect="auto",
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
    longest = max((len(_visible(label)) for label in column_labels), default=1)
    upright = longest * 0.6 * 9.0 > 0.95 * width / n_columns
    size = float(np.clip(0.8 * width / n_columns, 5.0, 10.0)) if upright else 10.0
    ax.set_xticks(range(n_columns), column_labels, rotation=90 if upright else 0, fontsize=size)
    for text in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        text.set_parse_math(False)  # labels are words of users' data: a $ is a $
    return image


def frame_cells(ax, rows, columns, color="#D55E00"):
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


def _visible(label):
    """A label's letters without the marks of mathematical text."""
    label = str(label)
    return "".join(letter for letter in label if letter not in "$_{}^") if "$" in label else label


def check_weights(weights, argument, what):
    """Weights as a float array of two dimensions.

    Raises
    ------
    ValueError
        If they are of another shape, empty, not finite or negative.
    """
    host_only(**{argument: weights})
    weights = check_sparse(weights, "the weights").toarray() if sp.issparse(weights) else np.asarray(weights)
    if weights.dtype.kind not in "biuf":
        raise TypeError(f"{argument} must hold numbers; got {weights.dtype}.")
    if weights.ndim != 2 or not weights.size:
        raise ValueError(f"{argument} must have the shape {what}, neither 0; got {weights.shape}.")
    weights = weights.astype(np.float64)
    check_nonnegative(weights, argument)
    return weights
