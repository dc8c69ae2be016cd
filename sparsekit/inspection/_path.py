"""Coefficients along a regularisation path."""

import numpy as np
import scipy.sparse as sp

from .._path import l1_logistic_path
from ._axes import get_axes


class RegularizationPathDisplay:
    """Coefficients of an L1 logistic model against log10(C).

    Make one with `from_estimator` or `from_path`, not directly.

    Parameters
    ----------
    path : RegularizationPath
        The path to show.
    feature_names : array-like of shape (n_features,), default=None
        Names for the largest coefficients; None: those of the path, else x0, x1 ...
    chosen_C : float, default=None
        A value of C to mark.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where the path was drawn.
    lines_ : list of matplotlib lines
        One per coefficient that is drawn, in the order of ``drawn_``.
    drawn_ : ndarray
        Columns of X of the coefficients that are drawn.
    """

    def __init__(self, path, *, feature_names=None, chosen_C=None):
        self.path = path
        self.feature_names = feature_names
        self.chosen_C = chosen_C

    @classmethod
    def from_path(cls, path, *, feature_names=None, chosen_C=None, ax=None, **plot_options):
        """Draw a path.

        Parameters
        ----------
        path : RegularizationPath
            Result of :func:`l1_logistic_path` (or of ``LassoOBA.path``).
        feature_names : array-like of shape (n_features,), default=None
        chosen_C : float, default=None
            A value of C to mark with a vertical line.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        RegularizationPathDisplay
        """
        return cls(path, feature_names=feature_names, chosen_C=chosen_C).plot(ax=ax, **plot_options)

    @classmethod
    def from_estimator(cls, estimator, X, y, *, sample_weight=None, n_lambdas=50, ax=None, **plot_options):
        """Compute and draw the path that a fitted estimator's parameters belong to.

        Parameters
        ----------
        estimator : L1LogisticOBA or L1LogisticOBACV
            Its parameters other than C are used; its C (or ``C_``) is marked.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        n_lambdas : int, default=50
            Points of the path.
        ax : matplotlib axes, default=None
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        RegularizationPathDisplay
        """
        names = (
            "fit_intercept", "penalty_weights", "class_weight", "tol", "max_iter", "hessian", "memory",
            "n_jobs",
        )  # fmt: skip
        path = l1_logistic_path(
            X,
            y,
            sample_weight=sample_weight,
            n_lambdas=n_lambdas,
            **{name: getattr(estimator, name) for name in names},
        )
        chosen = getattr(estimator, "C_", getattr(estimator, "C", None))
        return cls.from_path(path, chosen_C=chosen, ax=ax, **plot_options)

    def plot(self, ax=None, *, n_named=8, max_lines=200, target=0, **line_options):
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
            Which class to show, where there are more than two.
        **line_options : dict
            Passed to matplotlib's ``plot`` for every line.

        Returns
        -------
        RegularizationPathDisplay
        """
        ax = get_axes(ax)
        path = self.path
        is_logistic = path.classes is not None
        position = np.log10(path.Cs) if is_logistic else -np.log10(path.alphas)
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
        self.lines_ = []
        for rank, (feature, values) in enumerate(zip(self.drawn_, drawn)):
            if rank < n_named:
                style = dict(color=f"C{rank % 10}", lw=1.6, zorder=3, label=str(names[feature]))
            else:
                style = dict(color="0.75", lw=0.7, zorder=2)
            self.lines_ += ax.plot(position, values, **{**style, **line_options})
        ax.axhline(0.0, color="0.4", lw=0.8, zorder=1)
        if self.chosen_C is not None and is_logistic and 0 < self.chosen_C < np.inf:
            ax.axvline(
                np.log10(self.chosen_C), color="0.2", ls="--", lw=1.0, label=f"C = {self.chosen_C:.3g}"
            )
        ax.set_xlabel(r"$\log_{10} C$" if is_logistic else r"$-\log_{10} \alpha$")
        ax.set_ylabel("coefficient")
        ax.set_title(self._title(len(nonzero), target))
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _target_coefs(self, target):
        coefs, intercepts = self.path.coefs, self.path.intercepts
        n_outputs = intercepts.shape[0] if intercepts.ndim == 2 else 1
        if not 0 <= target < n_outputs:
            raise ValueError(f"target must be in [0, {n_outputs - 1}], got {target}.")
        if sp.issparse(coefs):
            n_features = coefs.shape[0] // n_outputs
            return coefs.tocsr()[target * n_features : (target + 1) * n_features]
        return coefs[target] if n_outputs > 1 else coefs

    def _names(self, n_features):
        for names in (self.feature_names, self.path.feature_names):
            if names is not None:
                if len(names) != n_features:
                    raise ValueError(f"feature_names has {len(names)} names, the path {n_features} features.")
                return names
        return [f"x{j}" for j in range(n_features)]

    def _title(self, n_nonzero, target):
        path = self.path
        title = "Regularisation path"
        if path.classes is not None and len(path.classes) > 2:
            title += f", class {path.classes[target]}"
        if len(self.drawn_) < n_nonzero:
            title += f" ({len(self.drawn_)} of {n_nonzero} coefficients)"
        return title
