"""Small problems and options for the tests of `sparsekit compare`."""

import warnings

import numpy as np
from scipy import sparse

from sparsekit import GLMOBA, L1LogisticOBA, LassoOBA
from sparsekit._compare.problem import Problem
from sparsekit._compare.worker import timed_fit

GAP = 1e-6

# options of comparisons that are soon over
FAST = ["--peers", "liblinear", "--max-time", "2"]


class InThisProcess:
    """Runs a solver as `worker.Isolated` does, without a process and without limits of time."""

    def __init__(self, solver):
        self.solver, self.problem, self.warm = solver, None, set()

    def load(self, problem):
        self.problem, self.X = problem, self.solver.design(problem)

    def fit(self, C, tol, n_threads, timeout):
        return timed_fit(self.solver, self.X, self.problem, C, tol, n_threads)

    def close(self):
        pass


def climb(solver, problem, C, best):
    """Relative gaps of a solver's fits, from its loosest setting to the first that is accurate."""
    X, gaps = solver.design(problem), []
    for tol in solver.ladder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tolerances that were missed
            fit = solver.fit(X, problem, C, tol)
        assert fit.coef.shape == (problem.X.shape[1],)
        assert problem.fit_intercept or fit.intercept == 0
        gaps.append(problem.objective(fit.coef, fit.intercept, C) / best - 1)
        if gaps[-1] <= GAP:
            break
    assert -1e-10 < gaps[-1] <= GAP, gaps
    return gaps


def make_problem(
    kind="dense", fit_intercept=False, *, n=120, p=15, model="logistic", first_label=1.0, standardize=False
):
    """Rows with zeros and a sparse model, with labels of which the first is ``first_label``, or numbers."""
    rng = np.random.default_rng(0)
    is_lasso = model == "lasso"
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6) + (0.2 if is_lasso else 0.0)
    if standardize:
        X = (X - (0.0 if kind == "sparse" else X.mean(axis=0))) / X.std(axis=0)
    score = X @ np.where(np.arange(p) % 3 == 0, 1.5, 0.0) + 0.7
    if is_lasso:
        y = score + 6.3 + rng.standard_normal(n)
    else:
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
        first = np.flatnonzero(y == first_label)[0]  # which LIBLINEAR takes for the positive class
        X[[0, first]], y[[0, first]] = X[[first, 0]], y[[first, 0]]
    X = sparse.csr_matrix(X) if kind == "sparse" else X
    return Problem("small", X, y, fit_intercept, family="gaussian" if is_lasso else "binomial")


def make_family_problem(family, kind="dense", fit_intercept=True, l1_ratio=1.0):
    """The same for a generalised linear model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8)) * (rng.random((150, 8)) < 0.7)
    mean = np.exp(X @ np.where(np.arange(8) % 3 == 0, 0.5, 0.0) + 0.2)
    y = rng.gamma(2.0, mean / 2.0) if family == "gamma" else rng.poisson(mean).astype(float)
    X = sparse.csr_matrix(X) if kind == "sparse" else X
    return Problem("small", X, y, fit_intercept, family=family, l1_ratio=l1_ratio)


def exact_fit(problem, C):
    """Our estimator of the problem, to a small gap."""
    options = dict(fit_intercept=problem.fit_intercept, tol=1e-11)
    if problem.family == "binomial":
        model = L1LogisticOBA(C=C, **options)
    elif problem.family == "gaussian":
        model = LassoOBA(problem.alpha(C), **options)
    else:
        options |= dict(alpha=problem.alpha(C), l1_ratio=problem.l1_ratio)
        model = GLMOBA(problem.family, **options)
    return model.fit(problem.X, problem.y)
