"""Scores of a cross-validation along the penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._fenchel_young.estimators.classifier_cv import SoftmaxClassifierCV, SparsemaxClassifierCV
from .._l1.estimators.lasso_cv import LassoOBACV
from .._l1.estimators.logistic_cv import L1LogisticOBACV
from .._messages import shown
from ._axes import COLORS, Display, draws, penalty_axis, with_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike


@dataclass(eq=False, repr=False)
class CVScoreDisplay(Display):
    """Scores of the penalties that a cross-validation tried, the strongest at the left.

    Marked are the best mean score, and the one-standard-error choice: the strongest penalty whose mean is at
    least the best mean minus its standard error. Make one with `from_estimator`, not directly.

    Parameters
    ----------
    penalties : array-like of shape (n_penalties,)
        Values of C, rising, or of alpha, falling.
    scores : array-like of shape (n_folds, n_penalties)
        Score of each fold.
    standard_errors : array-like of shape (n_penalties,)
        Standard errors of the means over the folds.
    penalty_name : {"C", "alpha"}
        What the penalties are.
    score_name : str, default="score"
        Label of the axis of the scores.

    Attributes
    ----------
    best_, one_standard_error_ : float
        The two choices.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    line_, errorbar_ : matplotlib line and error bar container
        The mean scores, one standard error to either side.
    fold_lines_ : list of matplotlib lines
        One per fold.

    See Also
    --------
    RegularizationPathDisplay : The coefficients along the penalty.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sparsekit import L1LogisticOBACV
    >>> from sparsekit.inspection import CVScoreDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L1LogisticOBACV(scoring="neg_log_loss").fit(scale(X), y)
    >>> display = CVScoreDisplay.from_estimator(model)
    >>> display.best_ == model.C_best_, display.one_standard_error_ == model.C_1se_
    (True, True)
    """

    penalties: ArrayLike
    scores: ArrayLike
    standard_errors: ArrayLike
    penalty_name: str
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator: L1LogisticOBACV | LassoOBACV | SparsemaxClassifierCV | SoftmaxClassifierCV,
        *,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> CVScoreDisplay:
        """Draw the scores of a fitted estimator.

        Parameters
        ----------
        estimator : fitted L1LogisticOBACV, LassoOBACV, SparsemaxClassifierCV or SoftmaxClassifierCV
            Its scores are drawn.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        CVScoreDisplay

        Raises
        ------
        TypeError
            If the estimator is of another kind.
        ValueError
            If it chose its penalty by a criterion, without folds.
        sklearn.exceptions.NotFittedError
            If it is not fitted.
        """
        kinds = (L1LogisticOBACV, LassoOBACV, SparsemaxClassifierCV, SoftmaxClassifierCV)
        if not isinstance(estimator, kinds):
            raise TypeError(
                "estimator must be L1LogisticOBACV, LassoOBACV, SparsemaxClassifierCV or "
                f"SoftmaxClassifierCV; got {type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        if not hasattr(estimator, "scores_"):
            raise ValueError(
                f"this {type(estimator).__name__} has no scores: it chose its penalty by "
                f"selection={shown(estimator.selection)}. Use selection='best' or '1se', or draw criterion_."
            )
        is_logistic = isinstance(estimator, L1LogisticOBACV)
        penalties, name = (estimator.Cs_, "C") if is_logistic else (estimator.alphas_, "alpha")
        scoring = estimator.scoring
        if isinstance(estimator, LassoOBACV):
            penalties, scoring = estimator._tried, scoring or "negative mean squared error"
        if scoring is None:
            scoring = "accuracy" if is_logistic else "negative Jensen-Shannon divergence"
        scoring = scoring if isinstance(scoring, str) else "score"
        display = cls(penalties, estimator.scores_, estimator.se_, name, scoring)
        return display.plot(ax=ax, **plot_options)

    @draws
    def plot(self, ax: Axes | None = None, **line_options: Any) -> CVScoreDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **line_options : dict
            Passed to matplotlib's ``errorbar`` for the means.

        Returns
        -------
        CVScoreDisplay
        """
        ax = self.ax_
        penalties, scores = np.asarray(self.penalties), np.asarray(self.scores)
        mean, error = scores.mean(axis=0), np.asarray(self.standard_errors)
        if self.penalty_name not in ("C", "alpha"):
            raise ValueError(f"penalty_name must be 'C' or 'alpha'; got {shown(self.penalty_name)}.")
        if not np.isfinite(mean).all():
            wrong = penalties[~np.isfinite(mean)]
            raise ValueError(f"The scores of {self.penalty_name} = {wrong[0]:.3g} are not finite.")
        position = penalty_axis(ax, self.penalty_name, penalties)
        best = int(np.argmax(mean))
        lowest = mean[best] - error[best]
        simple = int(np.flatnonzero(mean >= lowest)[0])
        self.best_, self.one_standard_error_ = float(penalties[best]), float(penalties[simple])
        self.fold_lines_: list[Line2D] = []
        for k, fold in enumerate(scores):
            label = "folds" if k == 0 else None
            self.fold_lines_ += ax.plot(position, fold, color="0.8", lw=0.8, zorder=1, label=label)
        style: dict[str, Any] = dict(color=COLORS[0], lw=1.6, marker="o", ms=3.5, capsize=2, zorder=3)
        self.errorbar_ = ax.errorbar(
            position, mean, yerr=error, label="mean, one standard error", **with_options(style, line_options)
        )
        self.line_ = self.errorbar_.lines[0]
        ax.axhline(lowest, color="0.4", lw=0.8, ls=":", zorder=2)
        for k, dashes, color, what in (
            (best, "--", "0.2", "best"),
            (simple, "-.", COLORS[1], "within one standard error"),
        ):
            label = f"{what}: {self.penalty_name} = {penalties[k]:.3g}"
            ax.axvline(position[k], color=color, ls=dashes, lw=1.2, zorder=2, label=label)
        ax.set_ylabel(self.score_name)
        ax.legend(fontsize="small")
        return self
