"""Dual points from several iterates: near the end they are tighter than the last iterate's own."""

import numpy as np

from .._linalg.special import largest

# iterates that are combined
_KEPT = 5
# trust at which no more is given
_LEAST_TRUST = 0.1


class DualExtrapolation:
    """Gradients and derivatives by row of the last iterates on one set of variables, and their combination.

    Near the solution the residual (the gradient plus the penalty's part) on the support is affine in x, so
    the combination of iterates, with weights that sum to 1, whose residual is smallest is closer to the
    solution than any of them; and that of their derivatives by row, at no pass over X, is a better dual
    point. Cf. M. Massias, A. Gramfort, J. Salmon, "Celer: a fast solver for the Lasso with dual
    extrapolation", ICML 2018.
    """

    def __init__(self):
        self.problem, self.kept = None, []
        # part of the allowed gap that an estimate may reach; it falls with each that held out too much
        self.trust = 1.0

    def add(self, problem, g, u):
        """Take an iterate's gradient (n_variables,) and its derivatives by row (n_rows,)."""
        if problem is not self.problem:
            self.problem, self.kept = problem, []
        self.kept.append((g.copy(), u.copy()))
        del self.kept[:-_KEPT]

    def lose_trust(self):
        """Ask for more the next time; False after a few times."""
        self.trust *= 0.5
        return self.trust > _LEAST_TRUST

    def combine(self, x, l1):
        """Dual point (n_rows,) and the largest relative violation that it leaves, or None."""
        support = np.flatnonzero((x != 0) | (l1 == 0))
        if len(self.kept) < 2 or not len(support):
            return None
        pull = l1[support] * np.sign(x[support])
        residuals = np.array([g[support] + pull for g, _ in self.kept])
        weights = np.linalg.lstsq((residuals[:-1] - residuals[-1]).T, -residuals[-1], rcond=None)[0]
        weights = np.append(weights, 1.0 - weights.sum())
        if not np.all(np.isfinite(weights)):
            return None
        gradient = sum(w * g for w, (g, _) in zip(weights, self.kept))
        penalised = l1 > 0
        worst = largest(np.abs(gradient[penalised]) / l1[penalised]) - 1.0
        return sum(w * u for w, (_, u) in zip(weights, self.kept)), max(worst, 0.0)
