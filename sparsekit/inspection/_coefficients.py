"""The largest coefficients of a linear model."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._estimator.linear_model import by_magnitude, coefficients_of, feature_names_of
from .._messages import shown
from ._axes import COLORS, Display, as_label, as_texts, draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator


@dataclass(eq=False, repr=False)
class CoefficientDisplay(Display):
    """The largest coefficients of a linear model: bars, or for several classes a dot each.

    Make one with `from_estimator` or `from_coefficients`, not directly.

    Parameters
    ----------
    coef : ndarray or sparse matrix of shape (n_outputs, n_features)
        Coefficients.
    feature_names : sequence of str of length n_features
        Names of the columns.
    output_names : sequence of str of length n_outputs, default=None
        The classes that positive coefficients speak for.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    drawn_ : ndarray of int
        Columns of X of the features that are drawn, the largest magnitude first.
    bars_ : matplotlib bar container
        Where one coefficient a feature is drawn.
    dots_ : list of matplotlib collections
        Where several are: one for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sparsekit import L1LogisticOBA
    >>> from sparsekit.inspection import CoefficientDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), L1LogisticOBA(C=0.1)).fit(X, y)
    >>> display = CoefficientDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][:2]
    ['worst radius', 'worst concave points']
    """

    coef: Any
    feature_names: Sequence[str]
    output_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> CoefficientDisplay:
        """Draw the coefficients of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            With ``coef_``, of this package or of another; of a pipeline the last step, with the names of the
            features that reach it.
        feature_names : sequence of str of length n_features, default=None
            None: those of the fit, else x0, x1 ...
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        CoefficientDisplay

        Raises
        ------
        TypeError
            If the estimator is none with ``coef_``.
        ValueError
            As `from_coefficients`.
        """
        check_is_fitted(estimator)
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        if getattr(model, "coef_", None) is None:
            raise TypeError(f"estimator must have coef_; this {type(model).__name__} has none.")
        coef = coefficients_of(model)
        feature_names = names_at_end(estimator) if feature_names is None else feature_names
        classes = getattr(model, "classes_", None)
        if classes is not None and coef.shape[0] == 1 and len(classes) == 2:
            classes = classes[1:]
        if classes is not None and len(classes) != coef.shape[0]:
            classes = None  # a row for each pair of classes
        return cls.from_coefficients(
            coef, feature_names=feature_names, output_names=classes, ax=ax, **plot_options
        )

    @classmethod
    def from_coefficients(
        cls,
        coef: ArrayLike | sp.sparray | sp.spmatrix,
        *,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> CoefficientDisplay:
        """Draw coefficients.

        Parameters
        ----------
        coef : array-like or sparse matrix of shape (n_features,) or (n_outputs, n_features)
            Coefficients.
        feature_names : sequence of str of length n_features, default=None
            None: x0, x1 ...
        output_names : sequence of str of length n_outputs, default=None
            The classes that positive coefficients speak for; None: 0, 1 ... where there are several.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        CoefficientDisplay

        Raises
        ------
        ValueError
            If coef is not of that shape, or the number of names does not fit.
        """
        coef = sp.csr_array(coef) if sp.issparse(coef) else np.atleast_2d(np.asarray(coef))
        if coef.ndim != 2:
            raise ValueError(f"coef must have one or two dimensions, got the shape {coef.shape}.")
        n_outputs, n_features = coef.shape
        names = [f"x{j}" for j in range(n_features)] if feature_names is None else feature_names
        labels = None if output_names is None else as_texts(output_names, n_outputs, "output_names")
        display = cls(coef, as_texts(names, n_features, "feature_names"), labels)
        return display.plot(ax=ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_features: int = 20,
        target: int | None = None,
        **options: Any,
    ) -> CoefficientDisplay:
        """Draw the coefficients that are not zero, the largest magnitude at the top.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        max_features : int, default=20
            Most features; the title says how many are not zero, and what is left out.
        target : int, default=None
            Which class to show, as a column of ``classes_``; None: all of them, up to eight.
        **options : dict
            Passed to matplotlib's ``barh``, or where several classes are drawn to ``scatter``.

        Returns
        -------
        CoefficientDisplay

        Raises
        ------
        ValueError
            If ``max_features`` or ``target`` is out of range, or there are more classes than colours.
        """
        ax = self.ax_
        n_outputs, n_features = self.coef.shape
        if max_features < 1:
            raise ValueError(f"max_features must be >= 1, got {shown(max_features)}.")
        if target is not None and not 0 <= target < n_outputs:
            raise ValueError(f"target must be from 0 to {n_outputs - 1}, got {shown(target)}.")
        if target is None and n_outputs > len(COLORS):
            raise ValueError(
                f"there are {n_outputs} classes, of which {len(COLORS)} can be told apart: choose one by "
                "target."
            )
        coef = self.coef if target is None else self.coef[[target]]
        order, count = by_magnitude(coef)
        self.drawn_ = order[: min(count, max_features)]
        values = coef[:, self.drawn_]
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        rows = np.arange(len(self.drawn_))
        if len(values) == 1:
            colors = np.where(values[0] > 0, COLORS[0], COLORS[1])
            self.bars_ = ax.barh(rows, values[0], **(dict(color=list(colors), height=0.7) | options))
        else:
            names = self.output_names or range(n_outputs)
            self.dots_ = [
                ax.scatter(
                    row[row != 0], rows[row != 0],
                    **(dict(color=COLORS[k], s=30, label=as_label(name), zorder=3) | options),
                )
                for k, (name, row) in enumerate(zip(names, values))
            ]  # fmt: skip
            ax.legend(title="class", fontsize=8)
            ax.grid(axis="y", alpha=0.3)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(rows, [self.feature_names[j] for j in self.drawn_])
        ax.set_ylim(max(len(rows), 1) - 0.5, -0.5)  # the largest at the top
        ax.set_xlabel("coefficient" + self._speaks_for(0 if n_outputs == 1 else target))
        shows = f", the largest {len(rows)}" if len(rows) < count else ""
        ax.set_title(f"{count} of {n_features} features{shows}")
        return self

    def _speaks_for(self, target):
        if target is None or (self.output_names is None and self.coef.shape[0] == 1):
            return ""
        return f" (positive: class {target if self.output_names is None else self.output_names[target]})"


def names_at_end(estimator):
    """Names of the features that reach a model, or a pipeline's last step; x0, x1 ... if it has none."""
    if isinstance(estimator, Pipeline):
        with contextlib.suppress(AttributeError, ValueError):
            if len(estimator) > 1:
                return list(estimator[:-1].get_feature_names_out())
        estimator = estimator[-1]
    return list(feature_names_of(estimator))
