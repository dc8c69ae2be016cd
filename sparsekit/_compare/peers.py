"""Every compared solver behind one calling convention, that of ``solver``.

Nothing here is imported before a solver is asked for, and a solver that is not installed says so instead of
failing.
"""

from __future__ import annotations

import time

import numpy as np

from .options import FAMILIES, POWERS
from .problem import OURS
from .solver import DECADES, LOOSE_TOLERANCES, MAX_ITER, TOLERANCES, Fit, Solver, hessian_too_large


class Sparsekit(Solver):
    """This package's L1LogisticOBA, LassoOBA and GLMOBA."""

    key = package = "sparsekit"
    families = ("binomial", "gaussian", *FAMILIES)
    path_ladder = DECADES

    def __init__(self, family="binomial"):
        super().__init__(family)
        self.title = OURS.get(family, "GLMOBA")
        self.path_form = "lasso_path" if family == "gaussian" else "l1_logistic_path"

    def fit(self, X, problem, C, tol, n_threads=1):
        """tol is relative to the gradient of the model without features."""
        from .. import GLMOBA, L1LogisticOBA, LassoOBA

        options = dict(tol=tol, max_iter=MAX_ITER, fit_intercept=problem.fit_intercept, n_jobs=n_threads)
        if problem.family == "binomial":
            model = L1LogisticOBA(C=C, **options)
        elif problem.family == "gaussian":
            model = LassoOBA(problem.alpha(C), **options)
        else:
            options |= dict(alpha=problem.alpha(C), l1_ratio=problem.l1_ratio)
            model = GLMOBA(problem.family, power=POWERS.get(problem.family, 1.5), **options)
        return Fit.of(model.fit(X, problem.y))

    def path(self, X, problem, Cs, setting, n_threads, end):
        """``setting`` is tol."""
        from .. import l1_logistic_path, lasso_path

        options = dict(fit_intercept=problem.fit_intercept, tol=setting, n_jobs=n_threads)
        if problem.family == "gaussian":
            found = lasso_path(X, problem.y, alphas=[problem.alpha(C) for C in Cs], **options)
        else:
            found = l1_logistic_path(X, problem.y, Cs=Cs, **options)
        return [found.coef(k) for k in range(len(Cs))], list(found.intercepts.T)


class Liblinear(Solver):
    """LIBLINEAR's newGLMNET (-s 6) as scikit-learn calls it."""

    key, title, package = "liblinear", "LIBLINEAR (scikit-learn)", "scikit-learn"
    solver = "liblinear"
    can_free_intercept = False

    def fit(self, X, problem, C, tol, n_threads=1):
        """LogisticRegression with an L1 penalty."""
        from sklearn.linear_model import LogisticRegression

        options = dict(tol=tol, max_iter=MAX_ITER, random_state=0, **sklearn_l1(self.version))
        model = LogisticRegression(C=C, fit_intercept=problem.fit_intercept, solver=self.solver, **options)
        return Fit.of(model.fit(X, problem.y))


class Saga(Liblinear):
    """Stochastic average gradient."""

    key, title, solver = "saga", "saga (scikit-learn)", "saga"
    can_free_intercept = True


class LiblinearOfficial(Solver):
    """LIBLINEAR's own Python package, newest release, ``-s 6``."""

    key, title, package = "liblinear-official", "LIBLINEAR (official)", "liblinear-official"
    compiles = True  # its CSR conversion is a numba function where numba is installed
    can_free_intercept = False  # its option -R does not exist for -s 6

    def design(self, problem):
        """CSR in every case: a dense array would be converted row by row in Python."""
        from scipy import sparse

        return sparse.csr_matrix(super().design(problem))

    def fit(self, X, problem, C, tol, n_threads=1):
        """train(y, X, "-s 6 -c C -e tol")."""
        from liblinear.liblinearutil import train

        model = train(problem.y, X, f"-s 6 -c {float(C)} -e {float(tol)} -q")
        # of the labels -1 and +1 the library puts +1 first, whichever it meets first
        return Fit(np.ctypeslib.as_array(model.w, (X.shape[1],)).copy(), 0.0, -1)


class SklearnLasso(Solver):
    """scikit-learn's coordinate descent on the data."""

    key, title, package = "lasso", "Lasso (scikit-learn)", "scikit-learn"
    families = ("gaussian",)
    layout = "column"
    precompute = False
    path_form, path_ladder = "lasso_path (scikit-learn)", DECADES

    def fit(self, X, problem, C, tol, n_threads=1):
        """tol bounds the duality gap relative to the squares of y."""
        from sklearn.linear_model import Lasso

        options = dict(fit_intercept=problem.fit_intercept, precompute=self.precompute)
        model = Lasso(problem.alpha(C), tol=tol, max_iter=MAX_ITER, **options)
        return Fit.of(model.fit(X, problem.y))

    def refuses_path(self, problem):
        """Sparse X with an intercept: centring would fill it."""
        is_filled = problem.is_sparse and problem.fit_intercept
        return self.refuses(problem) or ("can't centre sparse data" if is_filled else None)

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Of centred data if there is an intercept; ``setting`` is tol, relative to the squares of y."""
        from sklearn.linear_model import lasso_path

        y = problem.y
        means, mean = np.zeros(X.shape[1]), 0.0
        if problem.fit_intercept:
            means, mean = X.mean(axis=0), float(y.mean())
            X = np.asfortranarray(X - means)
        alphas = [problem.alpha(C) for C in Cs]
        _, coefs, _ = lasso_path(
            X, y - mean, alphas=alphas, tol=setting, max_iter=MAX_ITER, precompute=self.precompute
        )
        return list(coefs.T), list(mean - means @ coefs)


class SklearnLassoGram(SklearnLasso):
    """scikit-learn's coordinate descent on the Gram matrix."""

    key, title = "lasso-gram", "Lasso, precompute (scikit-learn)"
    precompute = True
    path_form = "lasso_path, precompute (scikit-learn)"

    def refuses(self, problem):
        """Sparse data, for which ``precompute`` is ignored, and too many features."""
        if problem.is_sparse:
            return "uses no Gram matrix of sparse data"
        return super().refuses(problem) or hessian_too_large(problem)


class Skglm(Solver):
    """skglm's working sets, with proximal Newton or Anderson acceleration, compiled by numba."""

    key, title, package = "skglm", "skglm", "skglm"
    families = ("binomial", "gaussian")
    layout = "column"
    compiles = True
    ladder = LOOSE_TOLERANCES
    path_form = "{}, warm starts"

    def _model(self, problem, **options):
        import skglm

        estimator = skglm.Lasso if problem.family == "gaussian" else skglm.SparseLogisticRegression
        return estimator(fit_intercept=problem.fit_intercept, **options)

    def fit(self, X, problem, C, tol, n_threads=1):
        """tol is absolute on the mean gradient, so scale it like alpha."""
        alpha = problem.alpha(C)
        model = self._model(problem, alpha=alpha, tol=tol * alpha, max_iter=MAX_ITER)
        return Fit.of(model.fit(X, problem.y))

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Each penalty from the last one's solution; ``setting`` is tol as a part of the penalty."""
        model = self._model(problem, warm_start=True, max_iter=MAX_ITER)
        fits = []
        for alpha in map(problem.alpha, Cs):
            if time.monotonic() > end:
                break
            fits.append(Fit.of(model.set_params(alpha=alpha, tol=setting * alpha).fit(X, problem.y)))
        return [fit.coef for fit in fits], [fit.intercept for fit in fits]


class Celer(Solver):
    """celer's working sets with dual extrapolation; celer_path, since its classifier copies X to CSR."""

    key, title, package = "celer", "celer", "celer"
    families = ("binomial", "gaussian")
    layout = "column"
    ladder = (1.0, *TOLERANCES)  # the duality gap at zero is at most that
    path_form = "{}_path"

    def __init__(self, family="binomial"):
        super().__init__(family)
        self.can_free_intercept = family == "gaussian"

    def fit(self, X, problem, C, tol, n_threads=1):
        """tol bounds the duality gap relative to n log 2, or to the squares of y."""
        if problem.family == "gaussian":
            from celer import Lasso

            options = dict(tol=tol, max_iter=MAX_ITER, fit_intercept=problem.fit_intercept)
            return Fit.of(Lasso(alpha=problem.alpha(C), **options).fit(X, problem.y))
        coefs, n_iter = self._path(X, problem, [C], tol)
        return Fit(coefs[:, 0], 0.0, int(n_iter[0]))

    def _path(self, X, problem, Cs, tol):
        """alpha = 1 / C for classes."""
        from celer import celer_path

        is_lasso = problem.family == "gaussian"
        alphas = np.array([problem.alpha(C) if is_lasso else 1.0 / C for C in Cs])
        options = {} if is_lasso else {"use_PN": True}
        _, coefs, _, n_iter = celer_path(
            X, problem.y, "lasso" if is_lasso else "logreg", alphas=alphas, tol=tol, max_iter=MAX_ITER,
            return_n_iter=True, **options,
        )  # fmt: skip
        return coefs, n_iter

    def refuses_path(self, problem):
        """Intercepts, which it leaves to its estimators."""
        return "fits no intercept along paths" if problem.fit_intercept else None

    def path(self, X, problem, Cs, setting, n_threads, end):
        """``setting`` is tol."""
        return list(self._path(X, problem, Cs, setting)[0].T), [0.0] * len(Cs)


class Blitz(Solver):
    """blitzl1's working sets with proximal Newton, the C++ of the method's authors."""

    key, title, package = "blitz", "Blitz", "blitzl1"
    families = ("binomial", "gaussian")
    layout = "column"
    ladder = LOOSE_TOLERANCES  # the dual point that it starts from is far below

    def fit(self, X, problem, C, tol, n_threads=1):
        """lambda = 1 / C on the summed loss; tol bounds the relative duality gap."""
        import blitzl1
        from blitzl1 import _blitzl1 as wrapper

        # the release asks NumPy for the dtype of a pointer, which none since 1.16 knows
        wrapper.data_as = _as_pointer
        blitzl1.set_use_intercept(bool(problem.fit_intercept))
        blitzl1.set_tolerance(tol)
        make = blitzl1.LassoProblem if problem.family == "gaussian" else blitzl1.LogRegProblem
        found = make(X, problem.y).solve(1.0 / C)
        return Fit(found.x, found.intercept, found._num_iterations)


class Glum(Solver):
    """glum's IRLS, with coordinate descent on the Hessian where there is an L1 penalty."""

    key, title, package = "glum", "glum", "glum"
    families = ("binomial", "gaussian", *FAMILIES)
    layout = "column"
    ladder = LOOSE_TOLERANCES

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or hessian_too_large(problem)

    def fit(self, X, problem, C, tol, n_threads=1):
        """gradient_tol is absolute on the mean gradient."""
        import glum

        family = {
            "gaussian": "normal",
            "tweedie": glum.TweedieDistribution(POWERS["tweedie"]),
            "negative-binomial": glum.NegativeBinomialDistribution(),
        }.get(problem.family, problem.family)
        y = (problem.y > 0).astype(np.float64) if problem.family == "binomial" else problem.y
        options = {"link": "log"} if problem.family in FAMILIES else {"solver": "irls-cd"}
        alpha = problem.alpha(C)
        model = glum.GeneralizedLinearRegressor(
            family=family, alpha=alpha, l1_ratio=problem.l1_ratio, fit_intercept=problem.fit_intercept,
            gradient_tol=tol * alpha, max_iter=MAX_ITER, **options,
        )  # fmt: skip
        return Fit.of(model.fit(X, y))


class SklearnGLM(Solver):
    """scikit-learn's GLMs by L-BFGS, for ridges."""

    key, title, package = "sklearn-lbfgs", "lbfgs (scikit-learn)", "scikit-learn"
    families = FAMILIES
    solver = "lbfgs"

    def refuses(self, problem):
        """Penalties and families that it lacks."""
        if problem.family not in POWERS:
            return f"has no {problem.family} family"
        return super().refuses(problem) or ("has no L1 penalty: --l1-ratio 0" if problem.l1_ratio else None)

    def fit(self, X, problem, C, tol, n_threads=1):
        """tol is absolute on the mean gradient."""
        from sklearn.linear_model import TweedieRegressor

        model = TweedieRegressor(
            power=POWERS[problem.family], link="log", alpha=problem.alpha(C), tol=tol, max_iter=MAX_ITER,
            fit_intercept=problem.fit_intercept, solver=self.solver,
        )  # fmt: skip
        return Fit.of(model.fit(X, problem.y))


class SklearnGLMNewton(SklearnGLM):
    """scikit-learn's GLMs by Newton's method, for ridges."""

    key, title = "sklearn-newton", "newton-cholesky (scikit-learn)"
    solver = "newton-cholesky"

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or hessian_too_large(problem)


# this package first
SOLVERS = (
    Sparsekit, Liblinear, LiblinearOfficial, SklearnLasso, SklearnLassoGram, Skglm, Celer, Blitz, Glum, Saga,
    SklearnGLM, SklearnGLMNewton,
)  # fmt: skip


def all_solvers(family="binomial"):
    """Every solver of problems of a family, this package first."""
    return [kind(family) for kind in SOLVERS if family in kind.families]


def _as_pointer(array, pointer):
    """The array in the pointer's type, a copy only where that differs, and a pointer to it."""
    array = np.asarray(array, dtype=pointer._type_)
    return array, array.ctypes.data_as(pointer)


def sklearn_l1(version):
    """Arguments of LogisticRegression that make its penalty L1: ``penalty`` is deprecated from 1.8 on."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {"l1_ratio": 1.0} if (major, minor) >= (1, 8) else {"penalty": "l1"}
