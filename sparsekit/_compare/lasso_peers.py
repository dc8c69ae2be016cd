"""Every compared solver of the Lasso behind one calling convention, that of ``solver``.

``C`` is 1 / (n alpha), see `LassoProblem`.
"""

from __future__ import annotations

import numpy as np

from .peers import ADELIE_TOLERANCES, Adelie, Blitz
from .solver import LOOSE_TOLERANCES, TOLERANCES, Fit, Solver, hessian_too_large


class SparsekitLasso(Solver):
    """This package's LassoOBA."""

    key, title, package = "sparsekit", "LassoOBA", "sparsekit"
    multithreaded = True

    def missing(self):
        """Never missing in an installed package; the kernels are part of it."""
        return None

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


class SkglmLasso(Solver):
    """skglm's Lasso: working sets and Anderson acceleration, compiled by numba."""

    key, title, package = "skglm", "skglm", "skglm"
    layout = "column"
    compiles = True
    ladder = LOOSE_TOLERANCES

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol is absolute on the mean gradient, so scale it alike."""
        from skglm import Lasso

        alpha = _alpha(C, X)
        model = Lasso(alpha=alpha, tol=tol * alpha, max_iter=max_iter, fit_intercept=fit_intercept).fit(X, y)
        return Fit(model.coef_, float(np.ravel(model.intercept_)[0]), int(np.max(model.n_iter_)))


class CelerLasso(Solver):
    """celer's working sets with dual extrapolation."""

    key, title, package = "celer", "celer", "celer"
    layout = "column"
    ladder = (1.0, *TOLERANCES)

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


class AdelieLasso(Adelie):
    """adelie's coordinate descent with screening in C++, for one least-squares problem."""

    ladder = ADELIE_TOLERANCES

    def data(self, problem):
        """X and the targets."""
        return problem.design(self.layout), problem.y

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """One lambda = alpha; tol bounds the change of the objective relative to its spread."""
        import adelie

        state = adelie.grpnet(
            self.view(X, n_threads),
            adelie.glm.gaussian(y),
            lmda_path=np.array([_alpha(C, X)]),
            intercept=fit_intercept,
            early_exit=False,
            max_iters=100 * max_iter,
            tol=tol,
            n_threads=n_threads,
            progress_bar=False,
        )
        return Fit(state.betas[-1].toarray().ravel(), float(state.intercepts[-1]), -1)


class GlumLasso(Solver):
    """glum's coordinate descent on the Gram matrix."""

    key, title, package = "glum", "glum", "glum"
    layout = "column"
    multithreaded = True
    ladder = LOOSE_TOLERANCES

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or hessian_too_large(problem)

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """gradient_tol is absolute on the mean gradient."""
        from glum import GeneralizedLinearRegressor

        alpha = _alpha(C, X)
        model = GeneralizedLinearRegressor(
            family="normal",
            alpha=alpha,
            l1_ratio=1.0,
            fit_intercept=fit_intercept,
            solver="irls-cd",
            gradient_tol=tol * alpha,
            max_iter=max_iter,
        ).fit(X, y)
        return Fit(model.coef_, model.intercept_, model.n_iter_)


def all_lasso_solvers():
    """One instance of every adapter, this package first."""
    of_sklearn = (SklearnLasso, SklearnLassoGram)
    classes = (SparsekitLasso, *of_sklearn, SkglmLasso, CelerLasso, BlitzLasso, AdelieLasso, GlumLasso)
    return [cls() for cls in classes]


def _alpha(C, X):
    return 1.0 / (C * X.shape[0])
