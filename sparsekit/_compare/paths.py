"""Whole paths of penalties to equal accuracy: ``sparsekit compare --path``."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .lasso_problem import LassoProblem
from .solver import MAX_ITER, REFERENCE_TOL, Solver

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
    """A solver with a path of its own."""

    ladder = tuple(float(f"1e-{k}") for k in range(1, 16))

    def fit(self, X, y, C, tol, max_iter, fit_intercept=False, n_threads=1):
        """One penalty as a path."""
        raise NotImplementedError(f"{self.title} is called by ``path``")

    @abstractmethod
    def path(self, problem, Cs, setting, n_threads, end):
        """Coefficients, one (p,) or (K, p) a penalty, and their intercepts; fewer where it ends early.

        ``Cs`` rise; ``end`` is the time of ``time.monotonic`` after which no fit begins.
        """


class OwnPath(PathSolver):
    """This package's l1_logistic_path and lasso_path."""

    key, package = "sparsekit", "sparsekit"
    multinomial = True

    def __init__(self, is_lasso):
        self.title = "lasso_path" if is_lasso else "l1_logistic_path"

    def path(self, problem, Cs, setting, n_threads, end):
        """``setting`` is tol."""
        from .. import l1_logistic_path, lasso_path

        options: Any = dict(fit_intercept=problem.fit_intercept, tol=setting, n_jobs=n_threads)
        if isinstance(problem, LassoProblem):
            found = lasso_path(problem.X, problem.y, alphas=[problem.alpha(C) for C in Cs], **options)
        else:
            found = l1_logistic_path(problem.X, problem.y, Cs=Cs, **options)
        return [found.coef(k) for k in range(len(Cs))], list(found.intercepts.T)


class Pybiglasso(PathSolver):
    """pybiglasso's coordinate descent with screening, for dense X, whose columns it standardises."""

    key, title, package = "pybiglasso", "pybiglasso", "pybiglasso"
    layout = "column"

    def refuses(self, problem):
        """What it can't state."""
        if problem.is_sparse:
            return "takes no sparse data"
        if not problem.fit_intercept:
            return "always fits an intercept"
        spread = problem.X.std(axis=0)
        return None if np.allclose(spread, 1.0, atol=1e-6) else "standardises columns: --standardize"

    def path(self, problem, Cs, setting, n_threads, end):
        """Mean-scaled; ``setting`` is eps."""
        import pybiglasso

        n = len(problem.y)
        found = pybiglasso.biglasso(
            problem.design("column"), (problem.y > 0).astype(np.float64), lambdas=list(1.0 / (n * Cs)),
            eps=setting, n_threads=n_threads, stop_on_saturation=False,
        )  # fmt: skip
        return list(found.coef.toarray().T), list(found.intercept)


class GlmnetRs(PathSolver):
    """glmnet-rs, a rewriting of glmnet in Rust, for dense X."""

    key, title, package = "glmnet-rs", "glmnet-rs", "glmnet-rs"
    layout = "column"

    def __init__(self, is_lasso):
        self.family = "gaussian" if is_lasso else "binomial"

    def refuses(self, problem):
        """What it can't state."""
        if problem.is_sparse:
            return "is run on dense data"
        return None if problem.fit_intercept else "is run with an intercept"

    def path(self, problem, Cs, setting, n_threads, end):
        """Mean-scaled; ``setting`` is thresh. It ends where the deviance is explained."""
        import glmnetrs

        y = problem.y if self.family == "gaussian" else (problem.y > 0).astype(np.float64)
        found = glmnetrs.glmnet(
            problem.design("column"), y, family=self.family, lambda_=1.0 / (len(y) * Cs), standardize=False,
            thresh=setting,
        )  # fmt: skip
        return list(np.asarray(found.beta).T), list(np.asarray(found.a0))


class SklearnLassoPath(PathSolver):
    """scikit-learn's lasso_path, of centred data where there is an intercept."""

    key, title, package = "lasso-path", "lasso_path (scikit-learn)", "scikit-learn"
    layout = "column"

    def refuses(self, problem):
        """Sparse X with an intercept: centring would fill it."""
        return "can't centre sparse data" if problem.is_sparse and problem.fit_intercept else None

    def path(self, problem, Cs, setting, n_threads, end):
        """``setting`` is tol, relative to the squares of y."""
        from sklearn.linear_model import lasso_path

        X, y = problem.design("column"), problem.y
        means, mean = np.zeros(X.shape[1]), 0.0
        if problem.fit_intercept:
            means, mean = X.mean(axis=0), float(y.mean())
            X = np.asfortranarray(X - means)
        _, coefs, _ = lasso_path(
            X, y - mean, alphas=[problem.alpha(C) for C in Cs], tol=setting, max_iter=MAX_ITER
        )
        return list(coefs.T), list(mean - means @ coefs)


class EachPenalty(PathSolver):
    """A solver of single problems, fitted at each penalty."""

    form = "{}, each alone"

    def __init__(self, solver):
        self.solver = solver
        self.key, self.title = solver.key, self.form.format(solver.title)
        self.package, self.layout, self.ladder = solver.package, solver.layout, solver.ladder
        self.multinomial, self.compiles = solver.multinomial, solver.compiles

    def missing(self):
        """As the solver."""
        return self.solver.missing()

    def refuses(self, problem):
        """As the solver."""
        return self.solver.refuses(problem)

    def path(self, problem, Cs, setting, n_threads, end):
        """``setting`` is the solver's knob."""
        X, y = self.solver.data(problem)
        by_iterations = self.solver.knob == "max_iter"
        tol, max_iter = (1e-12, setting) if by_iterations else (setting, MAX_ITER)
        fits = []
        for C in Cs:
            if time.monotonic() > end:
                break
            fits.append(
                self.solver.fit(
                    X, y, C, tol, max_iter, fit_intercept=problem.fit_intercept, n_threads=n_threads
                )
            )
        return [fit.coef for fit in fits], [fit.intercept for fit in fits]


class SkglmPath(EachPenalty):
    """skglm's estimators, each penalty from the last one's solution."""

    form = "{}, warm starts"

    def path(self, problem, Cs, setting, n_threads, end):
        """``setting`` is tol as a part of the penalty."""
        import skglm

        model = getattr(skglm, self.solver.estimator)(
            fit_intercept=problem.fit_intercept, warm_start=True, max_iter=MAX_ITER
        )
        X, y = self.solver.data(problem)
        coefs, intercepts = [], []
        for alpha in 1.0 / (len(y) * Cs):
            if time.monotonic() > end:
                break
            model.set_params(alpha=alpha, tol=setting * alpha).fit(X, y)
            coefs.append(np.ravel(model.coef_).copy())
            intercepts.append(float(np.ravel(model.intercept_)[0]))
        return coefs, intercepts


class CelerPath(EachPenalty):
    """celer_path."""

    form = "{}_path"

    def refuses(self, problem):
        """Intercepts, which it leaves to its estimators."""
        return "fits no intercept along paths" if problem.fit_intercept else None

    def path(self, problem, Cs, setting, n_threads, end):
        """``setting`` is tol."""
        from celer import celer_path

        X, y = self.solver.data(problem)
        is_lasso = isinstance(problem, LassoProblem)
        alphas = np.array([problem.alpha(C) for C in Cs]) if is_lasso else 1.0 / Cs
        options: Any = {} if is_lasso else {"use_PN": True}
        _, coefs, _ = celer_path(
            X, y, "lasso" if is_lasso else "logreg", alphas=alphas, tol=setting, max_iter=MAX_ITER, **options
        )
        return list(coefs.T), [0.0] * len(Cs)


def all_path_solvers(is_lasso, single):
    """Every solver of paths, this package first; ``single`` are the solvers of one penalty."""
    with_paths = {"skglm": SkglmPath, "celer": CelerPath}
    others = [
        with_paths.get(solver.key, EachPenalty)(solver) for solver in single if solver.key != "sparsekit"
    ]
    return [OwnPath(is_lasso), SklearnLassoPath() if is_lasso else Pybiglasso(), GlmnetRs(is_lasso), *others]


def compare_paths(problem, solvers, n_penalties, end=1e-3, *, accuracy=ACCURACY, max_time=60.0, n_threads=1):
    """A `PathRun` for each solver, as they end.

    Parameters
    ----------
    problem : Problem
    solvers : list of PathSolver
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
    best = _objectives(problem, Cs, *_quietly(solvers[0].path, problem, Cs, REFERENCE_TOL, n_threads, np.inf))
    for solver in solvers:
        why = solver.missing() or solver.refuses(problem)
        if len(problem.labels) > 2 and not solver.multinomial and not isinstance(problem, LassoProblem):
            why = why or "has two classes only"
        run = PathRun(problem.name, solver.title, failure=why or "")
        if not why:
            _measure(run, solver, problem, Cs, best, accuracy, max_time, n_threads)
        yield run


def _measure(run, solver, problem, Cs, best, accuracy, max_time, n_threads):
    """Run the solver at ever tighter settings until its path is accurate."""
    end = time.monotonic() + max_time
    # imports, and code that is compiled at the first call, are not what is compared
    _quietly(solver.path, problem.sample(), Cs[:2], solver.warm_up_setting, 1, np.inf)
    for setting in solver.ladder:
        begin = time.process_time()
        coefs, intercepts = _quietly(solver.path, problem, Cs, setting, n_threads, end)
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
    dense = [coef.toarray() if sparse.issparse(coef) else np.asarray(coef) for coef in coefs]
    return np.array([problem.objective(*one) for one in zip(dense, intercepts, Cs, strict=False)])


def _quietly(call, *arguments):
    """The call without warnings: at loose settings most solvers say that they are loose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


def table_line(solvers, run=None, own=None):
    """A line of the table of these solvers: of a run, next to ``own``, or the names of the columns."""
    if run is None:
        cells = ("solver", "seconds", "excess", "setting", "ours is faster by")
    else:
        numbers = ("-", "-", "-")
        if not np.isnan(run.seconds):
            numbers = (f"{run.seconds:.3g}", f"{run.excess:.0e}", f"{run.setting:g}")
        ratio = "" if run is own else f"{run.seconds / own.seconds:.2f}"
        cells = (run.solver, *numbers, run.failure or ratio)
    widths = (max(len(solver.title) for solver in solvers), 9, 7, 9)
    return "  ".join([*map(str.ljust, cells, widths), cells[-1]]).rstrip()
