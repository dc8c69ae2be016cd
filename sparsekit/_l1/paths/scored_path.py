"""The scores of one path in all folds, and how its grid goes on where the weakest penalty is the best."""

import numpy as np

# Part of an automatic grid's weakest penalty down to which it goes on. On unscaled breast_cancer the grid
# ends at C=0.0087 (accuracy 0.928), and the best of 5 folds is at C=87 (0.965), 1e4 times as large.
MOST_WIDENING = 1e-6
# Parts of the first grid by which it goes on at a time, until a part brings no better score. One part is a
# decade of three at the default eps. Value by value, accuracies that rise by steps would end it too early.
PARTS = 3


class ScoredPath:
    """Penalties, scores and solutions of one l1_ratio.

    Parameters
    ----------
    lambdas : ndarray of shape (n_lambdas,)
        Falling.
    scores : ndarray of shape (n_folds, n_lambdas)
    solutions : sequence of list
        Of each fold, one a penalty.
    """

    def __init__(self, lambdas, scores, solutions):
        self.lambdas, self.scores = lambdas, scores
        self.solutions = [list(fold) for fold in solutions]

    def mean(self):
        """Mean score of each penalty, (n_lambdas,)."""
        return self.scores.mean(axis=0)

    def ends_best(self, last=1):
        """Whether one of the ``last`` penalties is better than all before them."""
        return int(np.argmax(self.mean())) >= len(self.lambdas) - last

    def begins_best(self):
        """Whether the strongest penalty is better than the next one, and none is better than it."""
        mean = self.mean()
        return int(np.argmax(mean)) == 0 and bool(mean[0] > mean[1:2].max(initial=-np.inf))

    def next_lambdas(self, size):
        """Weaker penalties, a part of a first grid of ``size`` values, at the same distances."""
        factor = self.lambdas[-1] / self.lambdas[-2]
        return self.lambdas[-1] * factor ** np.arange(1, -(-(size - 1) // PARTS) + 1)

    def extend(self, lambdas, scores, solutions):
        """Append weaker penalties (n_more,), their scores (n_folds, n_more) and solutions."""
        self.lambdas = np.append(self.lambdas, lambdas)
        self.scores = np.hstack([self.scores, scores])
        for own, more in zip(self.solutions, solutions):
            own.extend(more)

    def coefficients(self, fit_intercept, most_bytes, columns):
        """Coefficients of each fold and penalty, intercepts last; None where they are unknown or too large.

        The shape is (n_folds, n_lambdas, n_variables); several outputs have an axis before the last.
        ``columns`` are the `UsedColumns` of the fit.
        """
        every = [solution for fold in self.solutions for solution in fold]
        if any(solution is None for solution in every):
            return None
        (n_outputs, _), _, values, _ = every[0]
        n_features = columns.n_features
        shape = (*self.scores.shape, n_outputs, n_features + bool(fit_intercept))
        if np.prod(shape, dtype=float) * values.itemsize > most_bytes:
            return None
        out = np.empty(shape, dtype=values.dtype)
        for row, solution in zip(out.reshape(-1, *shape[2:]), every):
            coef, intercept = dense_solution(solution)
            row[:, :n_features] = columns.expand(coef)
            row[:, n_features:] = np.asarray(intercept).reshape(-1, 1)[:, : int(fit_intercept)]
        return out[:, :, 0] if shape[2] == 1 else out


def dense_solution(solution):
    """Coefficients (n_outputs, n_features) and intercepts of a solution that was kept by its non-zeros."""
    shape, at, values, intercept = solution
    coef = np.zeros(shape, dtype=values.dtype)
    coef.ravel()[at] = values
    return coef, intercept
