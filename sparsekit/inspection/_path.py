"""Coefficients along a regularisation path."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._fenchel_young.estimators.classifier import SoftmaxClassifier, SparsemaxClassifier
from .._fenchel_young.estimators.classifier_cv import SoftmaxClassifierCV, SparsemaxClassifierCV
from .._fenchel_young.estimators.path import fenchel_young_path
from .._l1.estimators.lasso import LassoOBA
from .._l1.estimators.lasso_cv import LassoOBACV
from .._l1.estimators.logistic import L1LogisticOBA
from .._l1.estimators.logistic_cv import L1LogisticOBACV
from .._l1.paths.path import l1_logistic_path
from .._l1.paths.path_solver import RegularizationPath
from .._typing import Array
from ._axes import COLORS, Display, as_label, draws, penalty_axis, with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator
    from sklearn.utils import Bunch

_SOLVER = ("fit_intercept", "tol", "max_iter", "n_jobs")
_OBA = (*_SOLVER, "penalty_weights", "hessian", "memory")


@dataclass(eq=False, repr=False)
class RegularizationPathDisplay(Display):
    """Coefficients of an L1, sparsemax or softmax model against its penalty, the strongest at the left.

    Make one with `from_estimator` or `from_path`, not directly.

    Parameters
    ----------
    path : RegularizationPath or Bunch
        The path to show.
    feature_names : array-like of shape (n_features,), default=None
        Names for the largest coefficients; None: those of the path, else x0, x1 ...
    chosen_C, chosen_alpha : float, default=None
        A value of C, or of alpha, to mark: that which the path's model has.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where the path was drawn.
    lines_ : list of matplotlib lines
        One per coefficient that is drawn, in the order of ``drawn_``.
    drawn_ : ndarray
        Columns of X of the coefficients that are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sparsekit import l1_logistic_path
    >>> from sparsekit.inspection import RegularizationPathDisplay
    >>> data = load_breast_cancer()
    >>> path = l1_logistic_path(scale(data.data), data.target, n_lambdas=10)
    >>> display = RegularizationPathDisplay.from_path(path, feature_names=data.feature_names)
    >>> len(display.lines_) == len(display.drawn_)
    True
    """

    path: RegularizationPath | Bunch
    _: KW_ONLY
    feature_names: Sequence[str] | None = None
    chosen_C: float | None = None
    chosen_alpha: float | None = None

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath | Bunch,
        *,
        feature_names: Sequence[str] | None = None,
        chosen_C: float | None = None,
        chosen_alpha: float | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> RegularizationPathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : RegularizationPath or Bunch
            Result of :func:`~sparsekit.l1_logistic_path`, of ``LassoOBA.path`` or of
            :func:`~sparsekit.fenchel_young_path`.
        feature_names : array-like of shape (n_features,), default=None
            Names for the largest coefficients; None: those of the path, else x0, x1 ...
        chosen_C, chosen_alpha : float, default=None
            A value of C (logistic paths) or alpha (the others) to mark with a vertical line.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        RegularizationPathDisplay

        Raises
        ------
        TypeError
            If path is none, or is marked at a C and has alphas, or the other way round.
        """
        if not isinstance(path, RegularizationPath) and not _is_table_path(path):
            raise TypeError(
                "path must be a result of l1_logistic_path, LassoOBA.path or fenchel_young_path; got "
                f"{type(path).__name__}."
            )
        wrong = chosen_alpha if _is_logistic(path) else chosen_C
        if wrong is not None:
            raise TypeError(
                "this path has "
                + ("Cs: give chosen_C." if _is_logistic(path) else "alphas: give chosen_alpha.")
            )
        display = cls(path, feature_names=feature_names, chosen_C=chosen_C, chosen_alpha=chosen_alpha)
        return display.plot(ax=ax, **plot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | sp.sparray | sp.spmatrix,
        y: ArrayLike | sp.sparray | sp.spmatrix,
        *,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        n_lambdas: int | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> RegularizationPathDisplay:
        """Compute and draw the path that an estimator's parameters belong to.

        Parameters
        ----------
        estimator : L1LogisticOBA, LassoOBA, SparsemaxClassifier, SoftmaxClassifier, or one of their ...CV
            Its parameters other than C or alpha are used; its C or alpha (or ``C_``, ``alpha_``) is marked.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Or what else the estimator fits.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Of the L1 estimators, as in their ``fit``.
        n_lambdas : int, default=None
            Points of the path. None: 50, or for sparsemax and softmax ``alphas_`` of a ...CV, else the ten of
            :func:`~sparsekit.fenchel_young_path`.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        RegularizationPathDisplay

        Raises
        ------
        TypeError
            If estimators of its kind have no path, or take no offset.
        ValueError
            If it was fitted with an offset and none is given.
        """
        ratio: Any = getattr(estimator, "l1_ratio_", getattr(estimator, "l1_ratio", None))
        if offset is None and getattr(estimator, "needs_offset_", False):
            raise ValueError(
                f"this {type(estimator).__name__} was fitted with an offset: pass the offset of these rows."
            )
        if offset is not None and hasattr(estimator, "_transform"):
            raise TypeError(f"{type(estimator).__name__} takes no offset.")
        if isinstance(estimator, (L1LogisticOBA, L1LogisticOBACV)):
            path = l1_logistic_path(
                X, y, sample_weight=sample_weight, offset=offset,
                n_lambdas=50 if n_lambdas is None else n_lambdas, l1_ratio=ratio,
                **{name: getattr(estimator, name) for name in (*_OBA, "class_weight")},
            )  # fmt: skip
            chosen = dict(chosen_C=getattr(estimator, "C_", getattr(estimator, "C", None)))
        elif isinstance(estimator, (LassoOBA, LassoOBACV)):
            path = LassoOBA.path(
                X, y, sample_weight=sample_weight, offset=offset,
                n_lambdas=50 if n_lambdas is None else n_lambdas, l1_ratio=ratio,
                **{name: getattr(estimator, name) for name in (*_OBA, "positive")},
            )  # fmt: skip
            chosen = dict(chosen_alpha=getattr(estimator, "alpha_", getattr(estimator, "alpha", None)))
        elif isinstance(
            estimator, (SparsemaxClassifier, SoftmaxClassifier, SparsemaxClassifierCV, SoftmaxClassifierCV)
        ):
            names = (*_SOLVER, "penalize_intercept", "class_weight")
            path = fenchel_young_path(
                X, y, transform=estimator._transform, sample_weight=sample_weight,
                alphas=_alphas(getattr(estimator, "alphas_", None), n_lambdas),
                **{name: getattr(estimator, name) for name in names},
            )  # fmt: skip
            path.feature_names = getattr(X, "columns", None)
            chosen = dict(chosen_alpha=getattr(estimator, "alpha_", getattr(estimator, "alpha", None)))
        else:
            raise TypeError(
                "estimator must be L1LogisticOBA, LassoOBA, SparsemaxClassifier, SoftmaxClassifier or one of "
                f"their ...CV; got {type(estimator).__name__}."
            )
        return cls.from_path(path, **chosen, ax=ax, **plot_options)

    @draws
    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_named: int = 8,
        max_lines: int = 200,
        target: int = 0,
        **line_options: Any,
    ) -> RegularizationPathDisplay:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        n_named : int, default=8
            How many coefficients, those that grow largest along the path, are coloured and named.
        max_lines : int, default=200
            How many coefficients are drawn, the largest first; the title says if some are not.
        target : int, default=0
            Which class to show, where each has coefficients of its own.
        **line_options : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        RegularizationPathDisplay
        """
        ax = self.ax_
        path = self.path
        is_logistic = _is_logistic(path)
        name, chosen = ("C", self.chosen_C) if is_logistic else ("alpha", self.chosen_alpha)
        position = penalty_axis(ax, name, path.Cs if is_logistic else path.alphas)
        coefs = self._target_coefs(target)
        largest = np.abs(coefs).max(axis=1)
        if sp.issparse(largest):
            largest = largest.toarray().ravel()
        nonzero = np.flatnonzero(largest)
        order = nonzero[np.argsort(-largest[nonzero], kind="stable")]
        self.drawn_ = order[:max_lines]
        drawn = coefs[self.drawn_]
        drawn = drawn.toarray() if sp.issparse(drawn) else drawn
        names = self._names(coefs.shape[0])
        self.lines_: list[Line2D] = []
        for rank, (feature, values) in enumerate(zip(self.drawn_, drawn)):
            if rank < n_named:
                style = dict(
                    color=COLORS[rank % len(COLORS)], lw=1.6, zorder=3, label=as_label(names[feature])
                )
            else:
                style = dict(color="0.75", lw=0.7, zorder=2)
            self.lines_ += ax.plot(position, values, **with_options(style, line_options))
        ax.axhline(0.0, color="0.4", lw=0.8, zorder=1)
        if chosen is not None and 0 < chosen < np.inf:
            ax.axvline(
                penalty_axis(ax, name, chosen), color="0.2", ls="--", lw=1.0, label=f"{name} = {chosen:.3g}"
            )
        ax.set_ylabel("coefficient")
        ax.set_title(self._title(len(nonzero), target))
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        return self

    def _target_coefs(self, target):
        """(n_features, n_penalties), dense or sparse, of one class."""
        coefs, intercepts = self.path.coefs, self.path.intercepts
        if _is_table_path(self.path):
            n_outputs = intercepts.shape[1]
        else:
            n_outputs = intercepts.shape[0] if intercepts.ndim == 2 else 1
        if not 0 <= target < n_outputs:
            raise ValueError(f"target must be in [0, {n_outputs - 1}], got {target}.")
        if _is_table_path(self.path):
            return coefs[:, target].T
        if sp.issparse(coefs):
            n_features = coefs.shape[0] // n_outputs
            return coefs.tocsr()[target * n_features : (target + 1) * n_features]
        return coefs[target] if n_outputs > 1 else coefs

    def _names(self, n_features):
        for names in (self.feature_names, getattr(self.path, "feature_names", None)):
            if names is not None:
                if len(names) != n_features:
                    raise ValueError(f"feature_names has {len(names)} names, the path {n_features} features.")
                return names
        return [f"x{j}" for j in range(n_features)]

    def _title(self, n_nonzero, target):
        path: Any = self.path
        title = "Regularisation path"
        if _is_table_path(path) or (path.classes is not None and len(path.classes) > 2):
            title += f", class {path.classes[target]}"
        if len(self.drawn_) < n_nonzero:
            title += f" ({len(self.drawn_)} of {n_nonzero} coefficients)"
        return title


def _is_table_path(path):
    """Whether it is of `fenchel_young_path`, whose coefs are (n_alphas, n_classes, n_features)."""
    return isinstance(path, dict) and {"alphas", "coefs", "intercepts", "classes"} <= set(path)


def _is_logistic(path):
    return isinstance(path, RegularizationPath) and path.classes is not None


def _alphas(tried: Array | None, count: int | None) -> Array | None:
    """Alphas for `fenchel_young_path`: as many as asked for, over the range of those that were tried."""
    if count is None:
        return tried
    ends = (10.0, 1e-8) if tried is None else (np.max(tried), np.min(tried))
    return np.geomspace(ends[0], ends[1], count)
