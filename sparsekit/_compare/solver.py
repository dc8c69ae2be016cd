"""What every compared solver declares, and how it is called.

The strength of a penalty is ``C``, the inverse of lambda: see `Problem`. An adapter (in ``peers``) converts
to its solver's own scale.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .show_versions import versions


def _half_decades(first):
    return tuple(float(f"{10.0 ** (-k / 2):.2g}") for k in range(first, 31))


# half decades: fine enough that no solver is charged for accuracy far beyond the one asked for
TOLERANCES = _half_decades(1)
# for tolerances relative to lambda: at 1e-5 lambda_max the loosest useful one is far above lambda
LOOSE_TOLERANCES = _half_decades(-6)
DECADES = tuple(float(f"1e-{k}") for k in range(1, 16))
# Tolerance of this package at which its objective stands for the optimum.
REFERENCE_TOL = 1e-10
# Iterations of each solver: the limit of time ends them.
MAX_ITER = 10_000


@dataclass
class Fit:
    """One answer: coefficients (p,) or (K, p), intercept (scalar or (K,)), and the solver's own count."""

    coef: np.ndarray
    intercept: float | np.ndarray
    n_iter: int

    @classmethod
    def of(cls, model):
        """Those of a fitted estimator."""
        coef, intercept = np.array(model.coef_), np.ravel(model.intercept_)
        if coef.ndim == 1 or len(coef) == 1:
            coef, intercept = coef.ravel(), float(intercept[0])
        return cls(coef, intercept, int(np.max(model.n_iter_)))


class Solver:
    """What a compared solver declares, and how it is called: by ``fit`` at one penalty, by ``path`` at many.

    ``fit(X, problem, C, tol, n_threads=1)`` solves from zero and returns a `Fit`; this call is what
    is timed. X is that of ``design``. Solvers of paths alone have none.

    Parameters
    ----------
    family : str
        That of the problems.

    Attributes
    ----------
    key, title : str
        Name on the command line and in tables.
    package : str
        Distribution that provides it.
    families : tuple of str
        Of the problems that it can solve.
    layout : {"row", "column"}
        Memory layout of X that it likes best; the conversion is not timed.
    can_free_intercept : bool
    compiles : bool
        Whether its first fit compiles code at run time.
    ladder : tuple of float
        Tolerances, loose ones first.
    path_form : str
        What becomes of the title where whole paths are compared.
    path_ladder : tuple or None
        Settings of whole paths; None: ``ladder``.
    """

    key = title = package = ""
    families: tuple[str, ...] = ("binomial",)
    layout = "row"
    can_free_intercept = True
    compiles = False
    ladder: tuple[float, ...] = TOLERANCES
    path_form = "{}, each alone"
    path_ladder: tuple[float, ...] | None = None

    def __init__(self, family="binomial"):
        self.family = family

    @property
    def warm_up_setting(self):
        """The setting of a first fit, in which every part of the solver runs: the middle of the ladder."""
        return self.ladder[len(self.ladder) // 2]

    @property
    def version(self):
        """Version of the installed distribution, or None."""
        return versions([self.package])[self.package]

    def missing(self):
        """Why it cannot be used here, with the command that changes that; None if it can."""
        if self.version is None and self.package != "sparsekit":  # which may be on the path alone
            return f"not installed: pip install {self.package}"
        return None

    def refuses(self, problem):
        """Why it cannot solve this problem; None if it can."""
        if problem.fit_intercept and not self.can_free_intercept:
            return "cannot fit an unpenalised intercept"
        return None

    def design(self, problem):
        """X as this solver takes it; made outside of the timing."""
        if problem.is_sparse:
            # csr_matrix and not csr_array: liblinear-official accepts the former only
            X = (sparse.csr_matrix if self.layout == "row" else sparse.csc_matrix)(problem.X)
            X.sort_indices()
            return X
        return np.require(problem.X, requirements=["C" if self.layout == "row" else "F"])

    @property
    def path_title(self):
        """Its name in tables of paths."""
        return self.path_form.format(self.title)

    def refuses_path(self, problem):
        """Why it cannot solve this problem for a path of penalties; None if it can."""
        return self.refuses(problem)

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Coefficients, one (p,) a penalty, and their intercepts; fewer where it ends early.

        ``Cs`` rise; ``end`` is the time of ``time.monotonic`` after which no fit begins.
        """
        fits = []
        for C in Cs:
            if time.monotonic() > end:
                break
            fits.append(self.fit(X, problem, C, setting, n_threads))
        return [fit.coef for fit in fits], [fit.intercept for fit in fits]


def hessian_too_large(problem):
    """Why a solver with a dense Hessian cannot solve it, or None."""
    n_bytes = 8 * problem.X.shape[1] ** 2
    if n_bytes > 2**30:
        return f"would need a dense p x p Hessian of {n_bytes / 2**30:.1f} GiB"
    return None
