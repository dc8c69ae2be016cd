"""Every compared solver behind one calling convention, that of ``solver``.

Nothing here is imported before a solver is asked for, and a solver that is not installed says so instead of
failing.
"""

from __future__ import annotations

import importlib.util

import numpy as np

from .liblinear_package import LiblinearMulticore, LiblinearOfficial
from .solver import ITERATIONS, LOOSE_TOLERANCES, TOLERANCES, Fit, Solver, hessian_too_large


class _SklearnSolver(Solver):
    package = "scikit-learn"
    solver = ""

    def missing(self):
        """Whether the installed scikit-learn knows this solver."""
        if super().missing():
            return super().missing()
        if self.solver not in _sklearn_logistic_solvers():
            return f"scikit-learn {self.version} does not have it"
        return None

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """LogisticRegression with an L1 penalty."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=C,
            tol=tol,
            max_iter=max_iter,
            fit_intercept=fit_intercept,
            solver=self.solver,
            random_state=0,
            **sklearn_l1(self.version),
        ).fit(X, y)
        coef = model.coef_ if len(model.classes_) > 2 else model.coef_[0]
        return Fit(coef, model.intercept_, int(np.max(model.n_iter_)))


class Liblinear(_SklearnSolver):
    """LIBLINEAR's newGLMNET (-s 6) as scikit-learn calls it."""

    key, title, solver = "liblinear", "LIBLINEAR (scikit-learn)", "liblinear"
    can_free_intercept = False


class Saga(_SklearnSolver):
    """Stochastic average gradient; runs by epochs, because its tol is a step length."""

    key, title, solver = "saga", "saga (scikit-learn)", "saga"
    multinomial = True
    knob, ladder = "max_iter", ITERATIONS


class NewtonCD(_SklearnSolver):
    """Proximal Newton with coordinate descent on the data."""

    key, title, solver = "newton-cd", "newton-cd (scikit-learn)", "newton-cd"
    layout = "column"


class NewtonCDGram(_SklearnSolver):
    """Proximal Newton with coordinate descent on the Gram matrix."""

    key, title, solver = "newton-cd-gram", "newton-cd-gram (scikit-learn)", "newton-cd-gram"
    layout = "column"

    def refuses(self, problem):
        """Too many features for a p x p matrix."""
        return super().refuses(problem) or hessian_too_large(problem)


class Skglm(Solver):
    """skglm's SparseLogisticRegression: working sets and proximal Newton, compiled by numba."""

    key, title, package = "skglm", "skglm", "skglm"
    layout = "column"
    compiles = True
    ladder = LOOSE_TOLERANCES
    estimator = "SparseLogisticRegression"

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Mean-scaled: alpha = 1 / (n C); tol is absolute on the mean gradient, so scale it alike."""
        import skglm

        alpha = 1.0 / (C * X.shape[0])
        model = getattr(skglm, self.estimator)(
            alpha=alpha, tol=tol * alpha, max_iter=max_iter, fit_intercept=fit_intercept
        ).fit(X, y)
        return Fit(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), int(np.max(model.n_iter_)))


class Celer(Solver):
    """celer's working sets with proximal Newton; celer_path, since the estimator copies X to CSR."""

    key, title, package = "celer", "celer", "celer"
    layout = "column"
    can_free_intercept = False
    ladder = (1.0, *TOLERANCES)  # the duality gap at zero is at most that

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """alpha = 1 / C; tol bounds the duality gap relative to n log 2."""
        from celer import celer_path

        _, coefs, _, n_iter = celer_path(
            X,
            y,
            "logreg",
            alphas=np.array([1.0 / C]),
            tol=tol,
            max_iter=max_iter,
            use_PN=True,
            return_n_iter=True,
        )
        return Fit(coefs[:, 0], 0.0, int(n_iter[0]))


class Blitz(Solver):
    """blitzl1's working sets with proximal Newton, the C++ of the method's authors."""

    key, title, package = "blitz", "Blitz", "blitzl1"
    layout = "column"
    ladder = LOOSE_TOLERANCES  # the dual point that it starts from is far below

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """lambda = 1 / C on the summed loss; tol bounds the relative duality gap; max_iter is ignored."""
        return self.solve("LogRegProblem", X, y, 1.0 / C, tol, fit_intercept)

    def solve(self, problem, X, y, penalty, tol, fit_intercept):
        """Fit of the class ``problem`` of blitzl1."""
        import blitzl1
        from blitzl1 import _blitzl1 as wrapper

        # the release asks NumPy for the dtype of a pointer, which none since 1.16 knows
        wrapper.data_as = _as_pointer
        blitzl1.set_use_intercept(bool(fit_intercept))
        blitzl1.set_tolerance(tol)
        found = getattr(blitzl1, problem)(X, y).solve(penalty)
        return Fit(found.x, found.intercept, found._num_iterations)


class Adelie(Solver):
    """adelie's group elastic net with groups of one: IRLS, coordinate descent and screening in C++."""

    key, title, package = "adelie", "adelie", "adelie"
    layout = "column"
    multithreaded = True

    def missing(self):
        """How to install it: its metadata ask for NumPy below 2, but it works with later ones."""
        if super().missing():
            return "not installed: pip install --no-deps adelie, then pip install ipython matplotlib"
        if importlib.util.find_spec("IPython") is None or importlib.util.find_spec("matplotlib") is None:
            return "needs what it imports: pip install ipython matplotlib"
        return None

    def data(self, problem):
        """Targets in {0, 1}."""
        return problem.design(self.layout), (problem.y > 0).astype(np.float64)

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Mean-scaled: one lambda = 1 / (n C); tol for its IRLS and for its coordinate descent."""
        limits = dict(irls_max_iters=max_iter, irls_tol=tol)
        return self.solve("binomial", X, y, C, tol, max_iter, fit_intercept, n_threads, **limits)

    @staticmethod
    def solve(family, X, y, C, tol, max_iter, fit_intercept, n_threads, **limits):
        """Fit of one of its families."""
        import adelie
        from scipy import sparse

        view = adelie.matrix.sparse if sparse.issparse(X) else adelie.matrix.dense
        state = adelie.grpnet(
            view(X, method="naive", n_threads=n_threads),
            getattr(adelie.glm, family)(y),
            lmda_path=np.array([1.0 / (C * X.shape[0])]),
            intercept=fit_intercept,
            early_exit=False,
            max_iters=100 * max_iter,
            tol=tol,
            n_threads=n_threads,
            progress_bar=False,
            **limits,
        )
        return Fit(state.betas[-1].toarray().ravel(), float(state.intercepts[-1]), -1)


class Glum(Solver):
    """glum's IRLS with coordinate descent on the Hessian."""

    key, title, package = "glum", "glum", "glum"
    layout = "column"
    multithreaded = True
    ladder = LOOSE_TOLERANCES
    family = "binomial"

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or hessian_too_large(problem)

    def data(self, problem):
        """Targets in {0, 1}."""
        return problem.design(self.layout), (problem.y > 0).astype(np.float64)

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Mean-scaled: alpha = 1 / (n C); gradient_tol is absolute on the mean gradient."""
        from glum import GeneralizedLinearRegressor

        alpha = 1.0 / (C * X.shape[0])
        model = GeneralizedLinearRegressor(
            family=self.family,
            alpha=alpha,
            l1_ratio=1.0,
            fit_intercept=fit_intercept,
            solver="irls-cd",
            gradient_tol=tol * alpha,
            max_iter=max_iter,
        ).fit(X, y)
        return Fit(model.coef_, model.intercept_, model.n_iter_)


class Sparsekit(Solver):
    """This package's L1LogisticOBA."""

    key, title, package = "sparsekit", "L1LogisticOBA", "sparsekit"
    multithreaded = True
    multinomial = True

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol is relative to the gradient at zero."""
        from .. import L1LogisticOBA

        model = L1LogisticOBA(C=C, tol=tol, max_iter=max_iter, fit_intercept=fit_intercept, n_jobs=n_threads)
        model.fit(X, y)
        coef = model.coef_ if len(model.classes_) > 2 else model.coef_[0]
        return Fit(coef, model.intercept_, int(np.max(model.n_iter_)))


def all_solvers():
    """One instance of every adapter, this package first."""
    of_others = (Skglm, Celer, Blitz, Adelie, Glum)
    of_sklearn = (Saga, NewtonCD, NewtonCDGram)
    classes = (Sparsekit, Liblinear, LiblinearOfficial, LiblinearMulticore, *of_others, *of_sklearn)
    return [cls() for cls in classes]


def _as_pointer(array, pointer):
    """The array in the pointer's type, a copy only where that differs, and a pointer to it."""
    array = np.asarray(array, dtype=pointer._type_)
    return array, array.ctypes.data_as(pointer)


def _sklearn_logistic_solvers():
    from sklearn.linear_model import LogisticRegression

    names = set()
    for constraint in LogisticRegression._parameter_constraints["solver"]:
        names |= set(getattr(constraint, "options", ()))
    return names


def sklearn_l1(version):
    """Arguments of LogisticRegression that make its penalty L1: ``penalty`` is deprecated from 1.8 on."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {"l1_ratio": 1.0} if (major, minor) >= (1, 8) else {"penalty": "l1"}
