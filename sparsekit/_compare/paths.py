"""Whole paths of penalties to equal accuracy: ``sparsekit compare --path``."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .peers import all_solvers
from .solver import DECADES, MAX_ITER, REFERENCE_TOL, Solver

# largest excess over the optimum, relative to it, of a path that is accurate
ACCURACY = 1e-5
TIMES = f"processor time in seconds at the loosest setting with (F - F*) / F* <= {ACCURACY:g} all along"


@dataclass
class PathRun:
    """What a solver needed for the path of a problem.

    Attributes
    ----------
    problem, solver : str
    seconds : float
        Processor time at the loosest setting that was accurate enough, or at the last one that was tried.
    excess : float
        The largest, relative to the optimum.
    setting : float
        Tolerance, or number of iterations.
    n_penalties : int
        Penalties that were solved, the strongest first.
    failure : str
        Why there is no time that can be compared; empty where there is.
    """

    problem: str
    solver: str
    seconds: float = np.nan
    excess: float = np.nan
    setting: float = np.nan
    n_penalties: int = 0
    failure: str = ""


class PathSolver(Solver):
    """A solver of paths alone."""

    layout = "column"
    ladder = DECADES
    path_form = "{}"


class Pybiglasso(PathSolver):
    """pybiglasso's coordinate descent with screening, for dense X, whose columns it standardises."""

    key, title, package = "pybiglasso", "pybiglasso", "pybiglasso"

    def refuses(self, problem):
        """What it can't state."""
        if problem.is_sparse:
            return "takes no sparse data"
        if not problem.fit_intercept:
            return "always fits an intercept"
        spread = problem.X.std(axis=0)
        return None if np.allclose(spread, 1.0, atol=1e-6) else "standardises columns: --standardize"

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Mean-scaled; ``setting`` is eps."""
        import pybiglasso

        n = len(problem.y)
        found = pybiglasso.biglasso(
            X, (problem.y > 0).astype(np.float64), lambdas=list(1.0 / (n * Cs)),
            eps=setting, n_threads=n_threads, stop_on_saturation=False,
        )  # fmt: skip
        return list(found.coef.toarray().T), list(found.intercept)


class GlmnetRs(PathSolver):
    """glmnet-rs, a rewriting of glmnet in Rust, for dense X."""

    key, title, package = "glmnet-rs", "glmnet-rs", "glmnet-rs"
    families = ("binomial", "gaussian")

    def refuses(self, problem):
        """What it can't state."""
        if problem.is_sparse:
            return "is run on dense data"
        return None if problem.fit_intercept else "is run with an intercept"

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Mean-scaled; ``setting`` is thresh. It ends where the deviance is explained."""
        import glmnetrs

        y = problem.y if self.family == "gaussian" else (problem.y > 0).astype(np.float64)
        found = glmnetrs.glmnet(
            X, y, family=self.family, lambda_=1.0 / (len(y) * Cs), standardize=False,
            thresh=setting,
        )  # fmt: skip
        return list(np.asarray(found.beta).T), list(np.asarray(found.a0))


class Glmnet(PathSolver):
    """glmnet's own Fortran, which python-glmnet calls."""

    key, title, package = "glmnet", "glmnet", "python-glmnet"
    families = ("binomial", "gaussian")

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Mean-scaled; ``setting`` is tol."""
        import glmnet

        is_gaussian, n = self.family == "gaussian", len(problem.y)
        model = (glmnet.ElasticNet if is_gaussian else glmnet.LogitNet)(
            alpha=1.0, lambda_path=1.0 / (n * Cs), standardize=False, fit_intercept=problem.fit_intercept,
            tol=setting, n_splits=0, max_iter=1000 * MAX_ITER, max_features=X.shape[1],
        )  # fmt: skip
        model.fit(X, problem.y if is_gaussian else (problem.y > 0).astype(int))
        coefs = model.coef_path_.reshape(X.shape[1], -1)
        return list(coefs.T), list(np.ravel(model.intercept_path_))


class Adelie(PathSolver):
    """adelie's coordinate descent over groups, here of one column each."""

    key, title, package = "adelie", "adelie", "adelie"
    families = ("binomial", "gaussian")

    def design(self, problem):
        """Its own matrix of sparse columns, which has 32-bit indices."""
        import adelie

        X = super().design(problem)
        if not problem.is_sparse:
            return X
        indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return adelie.matrix.sparse(sparse.csc_matrix((X.data, indices, indptr), shape=X.shape))

    def path(self, X, problem, Cs, setting, n_threads, end):
        """Mean-scaled; ``setting`` is tol, and that of its reweighted squares."""
        import adelie

        if self.family == "gaussian":
            loss, options = adelie.glm.gaussian(problem.y), {}
        else:
            loss, options = adelie.glm.binomial((problem.y > 0).astype(np.float64)), {"irls_tol": setting}
        found = adelie.grpnet(
            X, loss, lmda_path=1.0 / (len(problem.y) * Cs), intercept=problem.fit_intercept, tol=setting,
            adev_tol=1.0, ddev_tol=0.0, early_exit=False, n_threads=n_threads, progress_bar=False, **options,
        )  # fmt: skip
        return list(found.betas.toarray()), list(found.intercepts)


PATH_SOLVERS = (Pybiglasso, Glmnet, GlmnetRs, Adelie)


def all_path_solvers(family):
    """Every solver of paths, this package first."""
    own, *others = all_solvers(family)
    of_paths = [kind(family) for kind in PATH_SOLVERS if family in kind.families]
    return [own, *of_paths, *others]


def compare_paths(problem, solvers, n_penalties, end=1e-3, *, accuracy=ACCURACY, max_time=60.0, n_threads=1):
    """A `PathRun` for each solver, as they end.

    Parameters
    ----------
    problem : Problem
    solvers : list of Solver
        The first one's path at a tight tolerance is the optimum.
    n_penalties : int
    end : float
        The weakest penalty as a part of the largest one, which is left out.
    accuracy : float
        Largest relative excess over the optimum. Each solver is run at ever tighter settings until it gets
        there.
    max_time : float
        Seconds after which a solver gets no tighter setting. One call of it is not interrupted.
    n_threads : int

    Yields
    ------
    PathRun
    """
    Cs = 1.0 / (problem.lambda_max * np.geomspace(1.0, end, n_penalties + 1)[1:])
    best = _objectives(problem, Cs, *_run(solvers[0], problem, Cs, REFERENCE_TOL, n_threads))
    for solver in solvers:
        why = solver.missing() or solver.refuses_path(problem)
        run = PathRun(problem.name, solver.path_title, failure=why or "")
        if not why:
            _measure(run, solver, problem, Cs, best, accuracy, max_time, n_threads)
        yield run


def _measure(run, solver, problem, Cs, best, accuracy, max_time, n_threads):
    """Run the solver at ever tighter settings until its path is accurate."""
    end = time.monotonic() + max_time
    # imports, and code that is compiled at the first call, are not what is compared
    _run(solver, problem.sample(), Cs[:2], solver.warm_up_setting, 1)
    X = solver.design(problem)
    for setting in solver.path_ladder or solver.ladder:
        begin = time.process_time()
        coefs, intercepts = _run(solver, problem, Cs, setting, n_threads, end, X)
        run.seconds, run.setting, run.n_penalties = time.process_time() - begin, setting, len(coefs)
        found = _objectives(problem, Cs, coefs, intercepts)
        run.excess = float((found / best[: len(found)] - 1.0).max()) if len(found) else np.nan
        if run.excess <= accuracy or time.monotonic() > end:
            break
    if not run.excess <= accuracy:
        run.failure = f"not accurate within {max_time:g} s" if time.monotonic() > end else "not accurate"
    elif run.n_penalties < len(Cs):
        run.failure = f"solved {run.n_penalties} of {len(Cs)} penalties"


def _objectives(problem, Cs, coefs, intercepts):
    dense = [np.ravel(coef.toarray() if sparse.issparse(coef) else coef) for coef in coefs]
    return np.array([problem.objective(*one) for one in zip(dense, intercepts, Cs, strict=False)])


def _run(solver, problem, Cs, setting, n_threads, end=np.inf, X=None):
    """A path without warnings: at loose settings most solvers say that they are loose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = solver.design(problem) if X is None else X
        return solver.path(X, problem, Cs, setting, n_threads, end)


def table_line(solvers, run=None, own=None):
    """A line of the table of these solvers: of a run, next to ``own``, or the names of the columns."""
    cells = ["solver", "seconds", "excess", "setting", "ours is faster by"]
    if run is not None:
        numbers = ["-", "-", "-"]
        if not np.isnan(run.seconds):
            numbers = [f"{run.seconds:.3g}", f"{run.excess:.0e}", f"{run.setting:g}"]
        ratio = "" if run is own else f"{run.seconds / own.seconds:.2f}"
        cells = [run.solver, *numbers, run.failure or ratio]
    widths = (max(len(solver.path_title) for solver in solvers), 9, 7, 9)
    return "  ".join([*map(str.ljust, cells, widths), cells[-1]]).rstrip()
