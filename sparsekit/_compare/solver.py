"""What every compared solver declares, and how it is called.

The problem is stated in scikit-learn's scale, ``||w||_1 + C * sum_i log(1 + exp(-y_i z_i))``; an adapter
(in ``peers``) converts to its solver's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import metadata

import numpy as np

# half decades: fine enough that no solver is charged for accuracy far beyond the one asked for
TOLERANCES = tuple(float(f"{10.0 ** (-k / 2):.2g}") for k in range(1, 31))
# for tolerances relative to lambda: at 1e-5 lambda_max the loosest useful one is far above lambda
LOOSE_TOLERANCES = (1000.0, 320.0, 100.0, 32.0, 10.0, 3.2, 1.0, *TOLERANCES)
ITERATIONS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10000, 30000, 100000)
# Tolerance of this package at which its objective stands for the optimum.
REFERENCE_TOL = 1e-10
# Iterations of solvers whose knob is a tolerance: the limit of time ends them.
MAX_ITER = 10_000


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
    package : str
        Distribution that provides it.
    layout : {"row", "column"}
        Memory layout of X that it likes best; the conversion is not timed.
    can_free_intercept, multinomial : bool
    compiles : bool
        Whether its first fit compiles code at run time.
    knob : {"tol", "max_iter"}
        What the rungs of the accuracy ladder set.
    """

    key = title = package = ""
    layout = "row"
    can_free_intercept = True
    multinomial = False
    compiles = False
    knob = "tol"
    ladder = TOLERANCES

    @property
    def warm_up_setting(self):
        """The setting of a first fit, in which every part of the solver runs: the middle of the ladder."""
        return self.ladder[len(self.ladder) // 2]

    @property
    def version(self):
        """Version of the installed distribution, or None."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

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

    def data(self, problem):
        """Arguments (X, y) as this solver takes them; made outside of the timing."""
        return problem.design(self.layout), problem.y

    @abstractmethod
    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """Solve from zero and return a Fit; this call is what is timed."""


def hessian_too_large(problem):
    n_bytes = 8 * problem.X.shape[1] ** 2
    if n_bytes > 2**30:
        return f"would need a dense p x p Hessian of {n_bytes / 2**30:.1f} GiB"
    return None
