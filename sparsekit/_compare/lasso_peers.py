"""Every compared solver of the Lasso behind one calling convention, that of ``solver``.

``C`` is 1 / (n alpha), see `LassoProblem`.
"""

from __future__ import annotations

import numpy as np

from .peers import Blitz, Celer, Glum, Skglm
from .solver import Fit, Solver, hessian_too_large


class SparsekitLasso(Solver):
    """This package's LassoOBA."""

    key, title, package = "sparsekit", "LassoOBA", "sparsekit"

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol is relative to the gradient at zero."""
        from .. import LassoOBA

        model = LassoOBA(
            _alpha(C, X), tol=tol, max_iter=max_iter, fit_intercept=fit_intercept, n_jobs=n_threads
        )
        model.fit(X, y)
        return Fit(model.coef_, model.intercept_, int(model.n_iter_))


class SklearnLasso(Solver):
    """scikit-learn's coordinate descent on the data."""

    key, title, package = "lasso", "Lasso (scikit-learn)", "scikit-learn"
    layout = "column"
    precompute = False

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol bounds the duality gap relative to the squares of y."""
        from sklearn.linear_model import Lasso

        model = Lasso(
            _alpha(C, X), tol=tol, max_iter=max_iter, fit_intercept=fit_intercept, precompute=self.precompute
        ).fit(X, y)
        return Fit(model.coef_, model.intercept_, int(model.n_iter_))


class SklearnLassoGram(SklearnLasso):
    """scikit-learn's coordinate descent on the Gram matrix."""

    key, title = "lasso-gram", "Lasso, precompute (scikit-learn)"
    precompute = True

    def refuses(self, problem):
        """Sparse data, for which ``precompute`` is ignored, and too many features."""
        if problem.is_sparse:
            return "uses no Gram matrix of sparse data"
        return super().refuses(problem) or hessian_too_large(problem)


class SkglmLasso(Skglm):
    """skglm's Lasso: working sets and Anderson acceleration."""

    estimator = "Lasso"


class CelerLasso(Celer):
    """celer's working sets with dual extrapolation."""

    can_free_intercept = True

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol bounds the duality gap relative to the squares of y."""
        from celer import Lasso

        model = Lasso(alpha=_alpha(C, X), tol=tol, max_iter=max_iter, fit_intercept=fit_intercept).fit(X, y)
        return Fit(model.coef_, model.intercept_, int(np.max(model.n_iter_)))


class BlitzLasso(Blitz):
    """blitzl1's working sets for least squares."""

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """lambda = 1 / C on half the sum of squares."""
        return self.solve("LassoProblem", X, y, 1.0 / C, tol, fit_intercept)


class GlumLasso(Glum):
    """glum's coordinate descent on the Gram matrix."""

    family = "normal"

    def data(self, problem):
        """X and the targets."""
        return problem.design(self.layout), problem.y


def all_lasso_solvers():
    """One instance of every adapter, this package first."""
    of_sklearn = (SklearnLasso, SklearnLassoGram)
    classes = (SparsekitLasso, *of_sklearn, SkglmLasso, CelerLasso, BlitzLasso, GlumLasso)
    return [cls() for cls in classes]


def _alpha(C, X):
    return 1.0 / (C * X.shape[0])
