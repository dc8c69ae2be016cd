"""Every compared solver behind one calling convention.

The problem is stated in scikit-learn's scale, ``||w||_1 + C * sum_i log(1 + exp(-y_i z_i))``; an
adapter converts to its solver's own. Nothing here is imported before a solver is asked for, and a
solver that is not installed says so instead of failing.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import metadata

import numpy as np

# half decades: fine enough that no solver is charged for accuracy far beyond the one asked for
TOLERANCES = tuple(float(f"{10.0 ** (-k / 2):.2g}") for k in range(1, 25))
# for tolerances relative to lambda: at 0.001 lambda_max the loosest useful one is above lambda
LOOSE_TOLERANCES = (10.0, 3.2, 1.0, *TOLERANCES)
ITERATIONS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10000, 30000, 100000)
# a dense p x p Hessian beyond this is not attempted
MAX_HESSIAN_BYTES = 1 << 30


@dataclass
class Fit:
    """One answer: coefficients (p,) or (K, p), intercept (scalar or (K,)), and the solver's own count."""

    coef: np.ndarray
    intercept: float | np.ndarray
    n_iter: int


class Solver(ABC):
    """What a compared solver declares, and how it is called.

    Attributes
    ----------
    key, title : str
        Name on the command line and in tables.
    package, pip : str
        Distribution that provides it and what to install.
    layout : {"row", "column"}
        Memory layout of X that it likes best; the conversion is not timed.
    can_free_intercept, multithreaded, multinomial : bool
    compiles : bool
        Whether its first fit compiles code at run time.
    knob : {"tol", "max_iter"}
        What the rungs of the accuracy ladder set.
    """

    key = title = package = pip = ""
    layout = "row"
    can_free_intercept = True
    multithreaded = False
    multinomial = False
    compiles = False
    knob = "tol"
    ladder = TOLERANCES

    @property
    def version(self):
        """Version of the installed distribution, or None."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

    def missing(self):
        """Why it cannot be used here, with the command that changes that; None if it can."""
        if self.version is None:
            return f"not installed: pip install {self.pip or self.package}"
        return None

    def refuses(self, problem):
        """Why it cannot solve this problem; None if it can."""
        if problem.fit_intercept and not self.can_free_intercept:
            return "cannot fit an unpenalised intercept"
        return None

    def data(self, problem):
        """Arguments (X, y) as this solver takes them; made outside of the timing."""
        return problem.design(self.layout), problem.y

    @abstractmethod
    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Solve from zero and return a Fit; this call is what is timed."""


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
            **_sklearn_l1(self.version),
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
        return super().refuses(problem) or _hessian_too_large(problem)


class LiblinearOfficial(Solver):
    """LIBLINEAR's own Python package, newest release, ``-s 6``."""

    key, title, package = "liblinear-official", "LIBLINEAR (official)", "liblinear-official"
    compiles = True  # its CSR conversion is a numba function where numba is installed
    can_free_intercept = False  # its option -R does not exist for -s 6

    def __init__(self):
        self._threads_option = None

    def data(self, problem):
        """CSR in every case: a dense array would be converted row by row in Python."""
        from scipy import sparse

        return sparse.csr_matrix(problem.design("row")), problem.y

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """train(y, X, "-s 6 -c C -e tol"); max_iter is fixed inside the library."""
        from liblinear.liblinearutil import train

        options = f"-s 6 -c {float(C)} -e {float(tol)} -q" + self._threads(n_threads)
        model = train(y, X, options)
        # of the labels -1 and +1 the library puts +1 first, whichever it meets first
        return Fit(np.ctypeslib.as_array(model.w, (X.shape[1],)).copy(), 0.0, -1)

    def _threads(self, n_threads):
        # only the separate "multicore" builds know -m; ask once
        if self._threads_option is None:
            from liblinear.liblinear import parameter

            try:
                parameter("-s 6 -q -m 1")
                self._threads_option = True
            except ValueError:
                self._threads_option = False
        return f" -m {n_threads}" if self._threads_option else ""


class Skglm(Solver):
    """skglm's SparseLogisticRegression: working sets and proximal Newton, compiled by numba."""

    key, title, package = "skglm", "skglm", "skglm"
    layout = "column"
    compiles = True
    ladder = LOOSE_TOLERANCES

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Mean-scaled: alpha = 1 / (n C); tol is absolute on the mean gradient, so scale it alike."""
        from skglm import SparseLogisticRegression

        alpha = 1.0 / (C * X.shape[0])
        model = SparseLogisticRegression(
            alpha=alpha, tol=tol * alpha, max_iter=max_iter, fit_intercept=fit_intercept
        ).fit(X, y)
        return Fit(model.coef_[0], model.intercept_, model.n_iter_)


class Celer(Solver):
    """celer's working sets with proximal Newton; celer_path, since the estimator copies X to CSR."""

    key, title, package = "celer", "celer", "celer"
    layout = "column"
    can_free_intercept = False

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


class Glum(Solver):
    """glum's IRLS with coordinate descent on the Hessian."""

    key, title, package = "glum", "glum", "glum"
    layout = "column"
    multithreaded = True
    ladder = LOOSE_TOLERANCES

    def refuses(self, problem):
        """Too many features for a p x p Hessian."""
        return super().refuses(problem) or _hessian_too_large(problem)

    def data(self, problem):
        """Targets in {0, 1}."""
        return problem.design(self.layout), (problem.y > 0).astype(np.float64)

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Mean-scaled: alpha = 1 / (n C); gradient_tol is absolute on the mean gradient."""
        from glum import GeneralizedLinearRegressor

        alpha = 1.0 / (C * X.shape[0])
        model = GeneralizedLinearRegressor(
            family="binomial",
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

    def missing(self):
        """Never missing in an installed package; the kernels are part of it."""
        return None

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """tol is relative to the gradient at zero."""
        from .. import L1LogisticOBA

        model = L1LogisticOBA(C=C, tol=tol, max_iter=max_iter, fit_intercept=fit_intercept, n_jobs=n_threads)
        model.fit(X, y)
        coef = model.coef_ if len(model.classes_) > 2 else model.coef_[0]
        return Fit(coef, model.intercept_, int(np.max(model.n_iter_)))


def all_solvers():
    """One instance of every adapter, this package first."""
    classes = (Sparsekit, Liblinear, LiblinearOfficial, Skglm, Celer, Glum, Saga, NewtonCD, NewtonCDGram)
    return [cls() for cls in classes]


def _sklearn_logistic_solvers():
    from sklearn.linear_model import LogisticRegression

    names = set()
    for constraint in LogisticRegression._parameter_constraints["solver"]:
        names |= set(getattr(constraint, "options", ()))
    return names


def _sklearn_l1(version):
    # penalty= is deprecated from 1.8 on, where l1_ratio alone says it
    major, minor = (int(part) for part in version.split(".")[:2])
    return {"l1_ratio": 1.0} if (major, minor) >= (1, 8) else {"penalty": "l1"}


def _hessian_too_large(problem):
    n_bytes = 8 * problem.X.shape[1] ** 2
    if n_bytes > MAX_HESSIAN_BYTES:
        return f"would need a dense p x p Hessian of {n_bytes / 2**30:.1f} GiB"
    return None


def numba_threads():
    """Number of threads numba was started with, or None where it is not installed."""
    if importlib.util.find_spec("numba") is None:
        return None
    return importlib.import_module("numba").config.NUMBA_NUM_THREADS
