"""Solves of a search for a penalty on all rows: paths, the fit without a penalty, one warning for all."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from ..paths.coefficients import l1_weights
from ..paths.path_solver import LEAST_RATIO, warn_if_path_unconverged
from ..solver.gram_path import MAX_PENALTY


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
                stacklevel=5,
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
        warn_if_path_unconverged(report, self.options, who, stacklevel=6, names=self._names)
