"""Sparse probabilities: which classes have any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._messages import shown
from ._axes import COLORS, Display, as_texts, draws
from ._cells import check_weights, draw_cells, frame_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import ClassifierMixin


@dataclass(eq=False, repr=False)
class SupportDisplay(Display):
    """The classes that a classifier holds possible: row by row, or how many there are.

    A class is in the support of a row if its probability is not exactly 0. Make one with `from_estimator` or
    `from_probabilities`, not directly.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Numbers >= 0.
    class_names : sequence of str
        Labels of the columns.
    true_classes : ndarray of int of shape (n_samples,), default=None
        The columns of the true classes, -1 where a row's is none of them.

    Attributes
    ----------
    sizes_ : ndarray of int of shape (n_samples,)
        Size of each row's support.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    image_ : matplotlib image
        Of ``kind="rows"``: the probabilities; zeros are masked.
    shown_classes_ : ndarray of int
        Of ``kind="rows"``: the columns that are drawn.
    frames_ : list of matplotlib patches
        Of ``kind="rows"``: the frames of the true classes.
    colorbar_ : matplotlib colour bar or None
        Of ``kind="rows"``.
    bars_ : matplotlib bar container
        Of ``kind="sizes"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sparsekit import SparsemaxClassifier
    >>> from sparsekit.inspection import SupportDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparsemaxClassifier(alpha=1e-3).fit(X, y)
    >>> display = SupportDisplay.from_estimator(model, X[::10], y=y[::10])
    >>> int(display.sizes_.max()) <= 3
    True
    >>> display = SupportDisplay.from_estimator(model, X, kind="sizes")
    """

    probabilities: np.ndarray
    class_names: Sequence[str]
    true_classes: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: ClassifierMixin,
        X: ArrayLike | sp.sparray | sp.spmatrix,
        *,
        y: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> SupportDisplay:
        """Draw what a classifier predicts.

        Parameters
        ----------
        estimator : fitted classifier
            With ``predict_proba``.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to show.
        y : array-like of shape (n_samples,), default=None
            The true labels, which are framed.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        SupportDisplay

        Raises
        ------
        TypeError
            If the estimator has no ``predict_proba``, or it is not one table.
        ValueError
            As `from_probabilities`.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"estimator must have predict_proba; {type(estimator).__name__} has none.")
        check_is_fitted(estimator)
        P = estimator.predict_proba(X)
        if isinstance(P, list):
            raise TypeError(
                "estimator must predict one table of probabilities; "
                f"{type(estimator).__name__} predicts {len(P)}, one an output."
            )
        classes = getattr(estimator, "classes_", None)
        return cls.from_probabilities(P, y=y, classes=classes, ax=ax, **plot_options)

    @classmethod
    def from_probabilities(
        cls,
        P: ArrayLike | sp.sparray | sp.spmatrix,
        *,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> SupportDisplay:
        """Draw probabilities.

        Parameters
        ----------
        P : {array-like, sparse matrix} of shape (n_samples, n_classes)
            Numbers >= 0; rows need not sum to 1, as those of several labels do not.
        y : array-like of shape (n_samples,), default=None
            The true labels, which are framed.
        classes : array-like of shape (n_classes,), default=None
            The labels of the columns, as they are in y; None: 0, 1 ...
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        SupportDisplay

        Raises
        ------
        ValueError
            If P is not finite or negative, or the number of labels does not fit.
        """
        if classes is None and hasattr(P, "columns"):
            classes = P.columns
        table = check_weights(P, "P", "(n_samples, n_classes)")
        n_samples, n_classes = table.shape
        classes = np.arange(n_classes) if classes is None else np.asarray(classes)
        names = as_texts(classes, n_classes, "classes", "labels")
        true_classes = None
        if y is not None:
            y = np.asarray(y)
            if y.shape != (n_samples,):
                raise ValueError(f"y must have the shape ({n_samples},), a label a row; got {y.shape}.")
            same = y[:, None] == classes
            true_classes = np.where(same.any(axis=1), same.argmax(axis=1), -1)
        return cls(table, names, true_classes).plot(ax=ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Literal["rows", "sizes"] = "rows",
        max_rows: int = 25,
        max_classes: int = 40,
        cmap: str = "Blues",
        colorbar: bool = True,
        **bar_options: Any,
    ) -> SupportDisplay:
        """Draw the supports.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        kind : {"rows", "sizes"}, default="rows"
            Probabilities of the first rows, exact zeros blank; or the share of all rows that have a support
            of each size.
        max_rows, max_classes : int, default=25, 40
            Most rows and classes of ``kind="rows"``; of the classes the most probable ones in these rows are
            drawn. The title says what is left out.
        cmap : str, default="Blues"
            Colour map, from pale to dark, of ``kind="rows"``.
        colorbar : bool, default=True
            Whether ``kind="rows"`` gets a colour bar.
        **bar_options : dict
            Passed to matplotlib's ``bar`` for ``kind="sizes"``.

        Returns
        -------
        SupportDisplay
        """
        ax = self.ax_
        if kind not in ("rows", "sizes"):
            raise ValueError(f"kind must be 'rows' or 'sizes', got {shown(kind)}.")
        if kind == "rows" and bar_options:
            raise TypeError(f"plot of kind='rows' has no option {shown(sorted(bar_options)[0])}.")
        for argument, value in (("max_rows", max_rows), ("max_classes", max_classes)):
            if value < 1:
                raise ValueError(f"{argument} must be >= 1, got {shown(value)}.")
        self.sizes_ = np.count_nonzero(self.probabilities, axis=1)
        if kind == "rows":
            self._draw_rows(ax, max_rows, max_classes, cmap, colorbar)
        else:
            self._draw_sizes(ax, bar_options)
        return self

    def _draw_rows(self, ax, max_rows, max_classes, cmap, colorbar):
        n_samples, n_classes = self.probabilities.shape
        rows = self.probabilities[:max_rows]
        order = np.argsort(-rows.sum(axis=0), kind="stable")[:max_classes]
        self.shown_classes_ = np.sort(order)
        self.image_ = draw_cells(
            ax, rows[:, self.shown_classes_], cmap=cmap, vmax=max(1.0, rows.max()),
            row_labels=range(len(rows)), column_labels=[self.class_names[k] for k in self.shown_classes_],
        )  # fmt: skip
        self.frames_ = []
        if self.true_classes is not None:
            row, column = np.nonzero(self.true_classes[:max_rows, None] == self.shown_classes_)
            self.frames_ = frame_cells(ax, row, column)
        ax.set_xlabel("class" + (" (framed: the true one)" if self.frames_ else ""))
        ax.set_ylabel("row")
        left_out = [
            f"{shown} of {all_} {what}"
            for shown, all_, what in (
                (len(rows), n_samples, "rows"),
                (len(self.shown_classes_), n_classes, "classes"),
            )
            if shown < all_
        ]
        if left_out:
            ax.set_title(", ".join(left_out))
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="probability (blank: 0)")

    def _draw_sizes(self, ax, bar_options):
        sizes, counts = np.unique(self.sizes_, return_counts=True)
        style = dict(width=0.8, color=COLORS[0]) | bar_options
        self.bars_ = ax.bar(sizes, counts / len(self.sizes_), **style)
        if len(sizes) <= 12:
            ax.bar_label(self.bars_, fmt="{:.2g}", fontsize=8)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(min(sizes[0], 1) - 0.6, max(sizes[-1], 2) + 0.6)
        ax.margins(y=0.1)
        ax.set_xlabel("classes with a probability > 0")
        ax.set_ylabel(f"share of the {len(self.sizes_)} rows")
