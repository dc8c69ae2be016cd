"""Solves of a search on all rows: paths, the fit without a penalty, the choice by AIC, BIC and EBIC."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from ..._messages import shown
from ..paths.coefficients import l1_weights
from ..paths.path_solver import LEAST_RATIO, warn_if_path_unconverged
from ..solver.gram_path import MAX_PENALTY

CRITERIA = ("aic", "bic", "ebic")
# Features per row up to which a model of unknown dispersion is a candidate. Near one feature a row the
# deviance goes to zero, and its logarithm below any penalty. 100 x 1000 normal numbers, 5 true features of
# size 1, noise 1, 20 seeds: BIC and EBIC choose 99 and 98 features (medians) without it, 8.5 and 5.5 with it.
MAX_FEATURES_PER_ROW = 0.5


def check_selection(selection, ratios, refit, relaxed):
    """ValueError where the parameters of a search contradict one another."""
    if selection in CRITERIA and ratios[0] == 0.0:
        raise ValueError(
            f"selection={shown(selection)} counts the coefficients that are not zero, and l1_ratio=0 leaves "
            "none at zero: use an l1_ratio above 0, or selection='best'."
        )
    if relaxed and not refit and selection not in CRITERIA:
        raise ValueError("relaxed=True is a fit to all rows: use refit=True, or relaxed=False.")


def criterion_of(whole, selection, loss, x):
    """The criterion of the variables x, where the loss of the problem ``whole`` is ``loss``.

    n is the sum of the weights, which count like repeated rows. Where the dispersion is unknown their unit is
    that of the dispersion. Then n is the number of rows that have a positive weight, and those weights have
    the mean 1.
    """
    coef, _ = whole.unpacked(x)
    n, total = whole.rows_and_weight()
    n = total if whole.dispersion_is_known else n
    # a feature's coefficients of K classes have K - 1 degrees of freedom, and so have the intercepts
    n_outputs = max(len(coef) - 1, 1)
    k = int(np.minimum(np.count_nonzero(coef, axis=0), n_outputs).sum())
    fit = 2.0 * max(loss, 0.0) * n / total
    if not whole.dispersion_is_known:
        if k > MAX_FEATURES_PER_ROW * n:
            return np.inf
        fit = n * np.log(max(fit / n, np.finfo(np.float64).tiny))
    df = k + n_outputs * whole.fit_intercept
    if selection == "aic":
        return fit + 2.0 * df
    if selection == "bic":
        return fit + np.log(n) * df
    # EBIC with gamma = 1: consistent for p = O(n^k) of any k (Chen and Chen, 2008, theorem 1)
    p = whole.columns.n_features * n_outputs
    models = gammaln(p + 1.0) - gammaln(k + 1.0) - gammaln(p - k + 1.0)
    return fit + np.log(n) * df + 2.0 * models


class Search:
    """The problem ``whole`` of all rows, its loss and null model, and the outcomes of all solves.

    Parameters
    ----------
    whole : PathProblem
    options : dict
        Of the solver.
    """

    def __init__(self, whole, options):
        self.whole, self.options = whole, options
        self.loss, self.l1, self.x_null, self.lambda_max = whole.start(options)
        self._outcomes = Bunch(statuses=[], optimality=[])
        self._names: list[str] = []

    def largest(self, ratio):
        """The solver's penalty from which on all penalised coefficients are zero."""
        return self.lambda_max / max(ratio, LEAST_RATIO)

    def path(self, lambdas, ratio, x, options, max_time):
        """Results of falling penalties, as users have them, from x."""
        weights = l1_weights(lambdas, self.whole.scale)
        return self.whole.mixing(ratio).path(self.loss, self.l1, weights, x, options, max_time)

    def refit(self, x, max_time, what):
        """The result without a penalty on the variables that x uses, and without the others.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If it separates the classes, so that larger coefficients are better for ever.
        """
        whole = self.whole
        is_used = (x[: len(self.l1)] != 0.0) | (self.l1 == 0.0)
        weights = np.where(is_used, 0.0, MAX_PENALTY)
        (result,) = whole.path(self.loss, weights, np.ones(1), x, self.options, max_time)
        self.add([result.status], [result.optimality], [what])
        if whole.is_separated(float(result.fun)):
            warnings.warn(
                f"{what} separates the classes, so that the best coefficients are infinite and these are "
                "large ones: use relaxed=False, or a stronger penalty.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return result

    def add(self, statuses, optimality, names):
        """Record the outcomes of solves, one of each a solve."""
        self._outcomes.statuses += list(statuses)
        self._outcomes.optimality += list(optimality)
        self._names += names

    def warn(self, who):
        """One warning for all solves that did not converge."""
        report = Bunch(**{name: np.array(values) for name, values in self._outcomes.items()})
        warn_if_path_unconverged(report, self.options, who, stacklevel=5, names=self._names)
