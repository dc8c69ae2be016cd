"""How often features are selected in halves of the data, along the penalty."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._docstrings import shares_entries
from .._estimator.linear_model import feature_names_of
from .._messages import shown
from .._stability.estimators.selection import StabilitySelection
from ._axes import Display, as_texts, draw_outer_legend, draw_paths, draws, penalty_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator


@shares_entries(Display)
@dataclass(eq=False, repr=False)
class StabilityPathDisplay(Display):
    """Frequencies of the features along the penalties of a stability selection, the strongest at the left.

    Selected features are coloured and named, the threshold is a dashed line. Make one with `from_estimator`,
    not directly.

    Parameters
    ----------
    selection : StabilitySelection
        A fitted one.
    feature_names : sequence of str of length n_features
        Names of the features.

    Attributes
    ----------
    {ax_, figure_}
    lines_ : list of matplotlib lines
        One per feature that is drawn, in the order of ``drawn_``.
    drawn_ : ndarray of int
        Columns of X of the features that are drawn, the most frequent first.
    threshold_line_ : matplotlib line
        At the threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsekit import LassoOBA, StabilitySelection
    >>> from sparsekit.inspection import StabilityPathDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> selection = StabilitySelection(LassoOBA(), random_state=0).fit(X, y)
    >>> display = StabilityPathDisplay.from_estimator(selection)
    >>> display.ax_.get_title()
    '3 of 10 features selected, at most 0.92 false to be expected'
    """

    selection: StabilitySelection
    feature_names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> StabilityPathDisplay:
        """Draw the frequencies of a fitted stability selection.

        Parameters
        ----------
        estimator : fitted StabilitySelection or Pipeline
            Of a pipeline its last step, with the names of the features that reach it.
        feature_names : sequence of str of length n_features, default=None
            None: those of the fit, else x0, x1 ...
        {ax, **plot_options}

        Returns
        -------
        StabilityPathDisplay

        Raises
        ------
        TypeError
            If estimator is none.
        ValueError
            If the number of names does not fit.
        """
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        if not isinstance(model, StabilitySelection):
            raise TypeError(f"estimator must be a StabilitySelection; got {type(model).__name__}.")
        check_is_fitted(model)
        names = names_at_end(estimator) if feature_names is None else feature_names
        names = as_texts(names, model.n_features_in_, "feature_names")
        return cls(model, names).plot(ax=ax, **plot_options)

    @draws
    def plot(
        self, ax: Axes | None = None, *, n_named: int = 8, max_lines: int = 200, **line_options: Any
    ) -> StabilityPathDisplay:
        """Draw the frequencies.

        Parameters
        ----------
        {ax}
        n_named : int, default=8
            How many of the selected features, the most frequent first, get a colour of their own and a name.
        max_lines : int, default=200
            How many features are drawn at most, the most frequent first; selected ones always are.
        {**line_options}

        Returns
        -------
        StabilityPathDisplay

        Raises
        ------
        ValueError
            If ``max_lines`` is below 1.
        """
        ax = self.ax_
        if max_lines < 1:
            raise ValueError(f"max_lines must be >= 1, got {shown(max_lines)}.")
        paths, selected = self.selection.stability_paths_, self.selection.get_support()
        # among equally frequent ones, the one in use at most penalties
        order = np.lexsort((-paths.sum(axis=1), -paths.max(axis=1, initial=0.0), ~selected))
        n_selected = int(np.count_nonzero(selected))
        seen = int(np.count_nonzero(paths.any(axis=1)))
        self.drawn_ = order[: max(n_selected, min(seen, max_lines))]
        position = penalty_axis(ax, self.selection.parameter_, self.selection.penalties_)
        names = [self.feature_names[feature] for feature in self.drawn_[: min(n_selected, n_named)]]
        self.lines_: list[Line2D] = draw_paths(
            ax, position, paths[self.drawn_], names, line_options, n_selected
        )
        self.threshold_line_ = ax.axhline(
            self.selection.threshold, color="black", linestyle="--", linewidth=0.8
        )
        draw_outer_legend(ax, "selected")
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel("share of the halves that use the feature")
        false = f"at most {self.selection.expected_false_:.2g} false to be expected"
        ax.set_title(f"{n_selected} of {len(paths)} features selected, {false}", fontsize="medium")
        return self


def names_at_end(estimator):
    """Names of the features that reach a model, or a pipeline's last step; x0, x1 ... if it has none."""
    if isinstance(estimator, Pipeline):
        with contextlib.suppress(AttributeError, ValueError):
            if len(estimator) > 1:
                return list(estimator[:-1].get_feature_names_out())
        estimator = estimator[-1]
    return list(feature_names_of(estimator))
