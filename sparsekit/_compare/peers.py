"""Every compared solver behind one calling convention, that of ``solver``.

Nothing here is imported before a solver is asked for, and a solver that is not installed says so instead of
failing.
"""

from __future__ import annotations

import numpy as np

from .solver import ITERATIONS, LOOSE_TOLERANCES, TOLERANCES, Fit, Solver, hessian_too_large


class _SklearnSolver(Solver):
    package = "scikit-learn"
    solver = ""

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


class LiblinearOfficial(Solver):
    """LIBLINEAR's own Python package, newest release, ``-s 6``."""

    key, title, package = "liblinear-official", "LIBLINEAR (official)", "liblinear-official"
    compiles = True  # its CSR conversion is a numba function where numba is installed
    can_free_intercept = False  # its option -R does not exist for -s 6

    def data(self, problem):
        """CSR in every case: a dense array would be converted row by row in Python."""
        from scipy import sparse

        return sparse.csr_matrix(problem.design("row")), problem.y

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """train(y, X, "-s 6 -c C -e tol"); max_iter is fixed inside the library."""
        from liblinear.liblinearutil import train

        model = train(y, X, f"-s 6 -c {float(C)} -e {float(tol)} -q")
        # of the labels -1 and +1 the library puts +1 first, whichever it meets first
        return Fit(np.ctypeslib.as_array(model.w, (X.shape[1],)).copy(), 0.0, -1)


class Saga(_SklearnSolver):
    """Stochastic average gradient; runs by epochs, because its tol is a step length."""

    key, title, solver = "saga", "saga (scikit-learn)", "saga"
    multinomial = True
    knob, ladder = "max_iter", ITERATIONS


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


class Glum(Solver):
    """glum's IRLS with coordinate descent on the Hessian."""

    key, title, package = "glum", "glum", "glum"
    layout = "column"
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
    return [cls() for cls in (Sparsekit, Liblinear, LiblinearOfficial, Skglm, Celer, Blitz, Glum, Saga)]


def _as_pointer(array, pointer):
    """The array in the pointer's type, a copy only where that differs, and a pointer to it."""
    array = np.asarray(array, dtype=pointer._type_)
    return array, array.ctypes.data_as(pointer)


def sklearn_l1(version):
    """Arguments of LogisticRegression that make its penalty L1: ``penalty`` is deprecated from 1.8 on."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {"l1_ratio": 1.0} if (major, minor) >= (1, 8) else {"penalty": "l1"}
