"""Coefficients along a regularisation path."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._docstrings import shares_entries
from .._l1.paths.path_solver import RegularizationPath
from .._messages import shown
from ._axes import Display, draw_outer_legend, draw_paths, draws, penalty_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from sklearn.utils import Bunch


@shares_entries(Display)
@dataclass(eq=False, repr=False)
class RegularizationPathDisplay(Display):
    """Coefficients of an L1, sparsemax or softmax model against its penalty, the strongest at the left.

    Make one with `from_path`, not directly.

    Parameters
    ----------
    path : RegularizationPath or Bunch
        The path to show.
    {feature_names, chosen}

    Attributes
    ----------
    {ax_, figure_}
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
    >>> display = RegularizationPathDisplay.from_path(path, feature_names=data.feature_names, chosen=1.0)
    >>> len(display.lines_) == len(display.drawn_)
    True
    """

    path: RegularizationPath | Bunch
    _: KW_ONLY
    feature_names: Sequence[str] | None = None
    chosen: float | None = None

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath | Bunch,
        *,
        feature_names: Sequence[str] | None = None,
        chosen: float | None = None,
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
        chosen : float, default=None
            The penalty to mark with a vertical line: C of a path by :func:`~sparsekit.l1_logistic_path`,
            alpha of any other path.
        {ax, **plot_options}

        Returns
        -------
        RegularizationPathDisplay

        Raises
        ------
        TypeError
            If path is none.
        ValueError
            If chosen is not a finite number > 0.
        """
        if not isinstance(path, RegularizationPath) and not _is_table_path(path):
            raise TypeError(
                "path must be a result of l1_logistic_path, LassoOBA.path or fenchel_young_path; got "
                f"{type(path).__name__}."
            )
        return cls(path, feature_names=feature_names, chosen=chosen).plot(ax=ax, **plot_options)

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
        {ax}
        n_named : int, default=8
            How many coefficients, those that grow largest along the path, are coloured and named.
        max_lines : int, default=200
            How many coefficients are drawn, the largest first; the title says if some are not.
        target : int, default=0
            Which class to show, where each has coefficients of its own.
        {**line_options}

        Returns
        -------
        RegularizationPathDisplay
        """
        ax = self.ax_
        path = self.path
        is_logistic = _is_logistic(path)
        name, chosen = "C" if is_logistic else "alpha", self.chosen
        if chosen is not None and not (isinstance(chosen, Real) and 0 < chosen < np.inf):
            raise ValueError(f"chosen must be a finite number > 0, the path's {name}; got {shown(chosen)}.")
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
        named = [names[feature] for feature in self.drawn_[:n_named]]
        self.lines_: list[Line2D] = draw_paths(ax, position, drawn, named, line_options)
        ax.axhline(0.0, color="0.4", lw=0.8, zorder=1)
        if chosen is not None:
            ax.axvline(
                penalty_axis(ax, name, chosen), color="0.2", ls="--", lw=1.0, label=f"{name} = {chosen:.3g}"
            )
        draw_outer_legend(ax)
        ax.set_ylabel("coefficient")
        ax.set_title(self._title(len(nonzero), target))
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
