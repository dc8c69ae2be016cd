"""Every compared solver of generalised linear models behind one calling convention, that of ``solver``.

Here ``fit`` gets the `FamilyProblem` instead of its targets, with the family and the penalty.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .options import DISPERSION, POWERS
from .solver import LOOSE_TOLERANCES, Fit, Solver, hessian_too_large


class _FamilySolver(Solver):
    def data(self, problem):
        """X, and the problem."""
        return problem.design(self.layout), problem


class SparsekitGLM(_FamilySolver):
    """This package's GLMOBA."""

    key, title, package = "sparsekit", "GLMOBA", "sparsekit"

    def fit(self, X, problem, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol is relative to the gradient of the model without features."""
        from .. import GLMOBA

        model = GLMOBA(
            problem.family, power=POWERS.get(problem.family, 1.5), dispersion=DISPERSION,
            alpha=problem.alpha(C), l1_ratio=problem.l1_ratio, tol=tol, max_iter=max_iter,
            fit_intercept=fit_intercept, n_jobs=n_threads,
        ).fit(X, problem.y)  # fmt: skip
        return Fit(model.coef_, model.intercept_, int(model.n_iter_))


class GlumGLM(_FamilySolver):
    """glum's IRLS, with coordinate descent where there is an L1 penalty."""

    key, title, package = "glum", "glum", "glum"
    layout = "column"
    ladder = LOOSE_TOLERANCES

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or hessian_too_large(problem)

    def fit(self, X, problem, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """gradient_tol is absolute on the mean gradient."""
        import glum

        families = {
            "tweedie": glum.TweedieDistribution(POWERS["tweedie"]),
            "negative-binomial": glum.NegativeBinomialDistribution(DISPERSION),
        }
        alpha = problem.alpha(C)
        model = glum.GeneralizedLinearRegressor(
            family=families.get(problem.family, problem.family), link="log", alpha=alpha,
            l1_ratio=problem.l1_ratio, fit_intercept=fit_intercept, gradient_tol=tol * alpha,
            max_iter=max_iter,
        ).fit(X, problem.y)  # fmt: skip
        return Fit(model.coef_, model.intercept_, model.n_iter_)


class SklearnGLM(_FamilySolver):
    """scikit-learn's GLMs by L-BFGS, for ridges."""

    key, title, package = "sklearn-lbfgs", "lbfgs (scikit-learn)", "scikit-learn"
    solver = "lbfgs"

    def refuses(self, problem):
        """Penalties and families that it lacks."""
        if problem.family not in POWERS:
            return f"has no {problem.family} family"
        return super().refuses(problem) or ("has no L1 penalty: --l1-ratio 0" if problem.l1_ratio else None)

    def fit(self, X, problem, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol is absolute on the mean gradient."""
        from sklearn.linear_model import TweedieRegressor

        model = TweedieRegressor(
            power=POWERS[problem.family], link="log", alpha=problem.alpha(C), tol=tol, max_iter=max_iter,
            fit_intercept=fit_intercept, solver=self.solver,
        ).fit(X, problem.y)  # fmt: skip
        return Fit(model.coef_, model.intercept_, int(model.n_iter_))


class SklearnGLMNewton(SklearnGLM):
    """scikit-learn's GLMs by Newton's method, for ridges."""

    key, title = "sklearn-newton", "newton-cholesky (scikit-learn)"
    solver = "newton-cholesky"

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or hessian_too_large(problem)


class Statsmodels(_FamilySolver):
    """statsmodels' elastic net, coordinate descent in Python."""

    key, title, package = "statsmodels", "statsmodels", "statsmodels"
    names: ClassVar = {"poisson": "Poisson", "gamma": "Gamma", "negative-binomial": "NegativeBinomial"}

    def refuses(self, problem):
        """Sparse data, and families whose likelihood is not the deviance there."""
        if problem.family not in self.names:
            return f"has no penalised {problem.family} deviance"
        return super().refuses(problem) or ("takes no sparse data" if problem.is_sparse else None)

    def fit(self, X, problem, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol bounds the largest change of a coefficient."""
        import statsmodels.api as sm

        log = sm.families.links.Log()
        options = {"negative-binomial": {"alpha": DISPERSION}}.get(problem.family, {})
        family = getattr(sm.families, self.names[problem.family])(log, **options)
        first = int(fit_intercept)
        design = np.column_stack([np.ones((len(X), first)), X])
        alpha = np.concatenate([np.zeros(first), np.full(X.shape[1], problem.alpha(C))])
        found = sm.GLM(problem.y, design, family=family).fit_regularized(
            alpha=alpha, L1_wt=problem.l1_ratio, cnvrg_tol=tol, maxiter=max_iter
        )
        return Fit(found.params[first:], float(found.params[0]) if first else 0.0, -1)


def all_family_solvers():
    """One instance of every adapter, this package first."""
    return [cls() for cls in (SparsekitGLM, GlumGLM, SklearnGLM, SklearnGLMNewton, Statsmodels)]
