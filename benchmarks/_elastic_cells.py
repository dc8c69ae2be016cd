"""Solvers and problems of the elastic net, and the time each solver takes to a gap, each fit in a child."""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

TOLERANCES = tuple(float(f"{10.0**-d:.0e}") for d in range(2, 13))
EPOCHS = (10, 30, 100, 300, 1000, 3000, 10000)
# the reference, whose gap is certified
EXACT = 1e-11
# short fits are repeated in their child process until they sum to this many seconds
_TOTAL_SECONDS = 0.2
# largest number of repetitions
_MAX_REPEATS = 7


@dataclass(eq=False)
class Problem:
    """min loss + lambda (ratio |w| + (1 - ratio) / 2 w^2), the intercept free.

    kind : "logistic", a sum over the rows of y = -1 or 1, or "squares", half the sum of squares.
    lam : on the scale of the sum.
    """

    name: str
    kind: str
    X: object
    y: np.ndarray
    strength: float
    ratio: float
    best: float = np.inf
    certified: float = np.nan

    @property
    def n_rows(self):
        """Rows of X."""
        return self.X.shape[0]

    @property
    def lam(self):
        """``strength`` times what keeps all coefficients at zero if the ratio is 1."""
        slopes = self.y - self.y.mean()
        scale = 0.5 if self.kind == "logistic" else 1.0
        return self.strength * scale * float(np.abs(self.X.T @ slopes).max())

    def objective(self, w, b):
        """In double precision."""
        z = self.X @ np.asarray(w, dtype=np.float64) + b
        if self.kind == "logistic":
            m = -self.y * z
            loss = float(np.sum(np.maximum(m, 0.0) + np.log1p(np.exp(-np.abs(m)))))
        else:
            loss = 0.5 * float(np.sum((self.y - z) ** 2))
        penalty = self.ratio * np.abs(w).sum() + 0.5 * (1.0 - self.ratio) * float(np.dot(w, w))
        return loss + self.lam * float(penalty)


@dataclass
class Solver:
    """``fit(X, y, lam, ratio, knob)`` returns coefficients and intercept; ``ladder`` are its knobs."""

    name: str
    fit: object
    package: str = "sklearn"
    layout: str = "row"
    ladder: tuple = TOLERANCES
    fits: object = field(default=lambda problem: True)

    @property
    def ridge_only(self):
        """Whether it has no L1 part."""
        return self.fits is _is_ridge or "newton" in self.name

    @property
    def missing(self):
        """Whether its package is not there."""
        return importlib.util.find_spec(self.package) is None


def _small(problem):
    # a p x p matrix of 5000 columns takes 200 MB
    return problem.X.shape[1] <= 5000


def _ours(kind):
    def fit(X, y, lam, ratio, tol):
        from sparsekit import L1LogisticOBA, LassoOBA

        if kind == "logistic":
            model = L1LogisticOBA(1.0 / lam, l1_ratio=ratio, tol=tol, max_iter=2000).fit(X, y)
        else:
            model = LassoOBA(lam / len(y), l1_ratio=ratio, tol=tol, max_iter=2000).fit(X, y)
        fit.certified = model.dual_gap_ / model.objective_
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    return fit


def _sklearn(solver, knob="tol"):
    def fit(X, y, lam, ratio, value):
        from sklearn.linear_model import LogisticRegression

        how = {"tol": value, "max_iter": 10**5} if knob == "tol" else {"tol": 0.0, "max_iter": value}
        model = LogisticRegression(C=1.0 / lam, l1_ratio=ratio, solver=solver, random_state=0, **how)
        model.fit(X, y)
        return model.coef_[0], float(model.intercept_[0])

    return fit


def _glum(family):
    def fit(X, y, lam, ratio, tol):
        from glum import GeneralizedLinearRegressor

        target = (y > 0).astype(np.float64) if family == "binomial" else y
        alpha = lam / len(y)
        model = GeneralizedLinearRegressor(
            family=family, alpha=alpha, l1_ratio=ratio, gradient_tol=tol * alpha, max_iter=1000
        )
        model.fit(X, target)
        return model.coef_, float(model.intercept_)

    return fit


def _squares(make):
    def fit(X, y, lam, ratio, tol):
        model = make(lam / len(y), ratio, tol).fit(X, y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    return fit


def _elastic(precompute):
    def make(alpha, ratio, tol):
        from sklearn.linear_model import ElasticNet

        return ElasticNet(alpha, l1_ratio=ratio, tol=tol, max_iter=10**6, precompute=precompute)

    return make


def _celer(alpha, ratio, tol):
    from celer import ElasticNet

    return ElasticNet(alpha, l1_ratio=ratio, tol=tol, max_iter=1000)


def _skglm(alpha, ratio, tol):
    from skglm import ElasticNet

    return ElasticNet(alpha, l1_ratio=ratio, tol=tol * alpha, max_iter=1000)


def _ridge(solver):
    def fit(X, y, lam, ratio, tol):
        from sklearn.linear_model import Ridge

        model = Ridge(lam, solver=solver, tol=tol, max_iter=10**5).fit(X, y)
        return model.coef_, float(model.intercept_)

    return fit


def _is_ridge(problem):
    return problem.ratio == 0.0


def _is_mixed(problem):
    return problem.ratio > 0.0


def solvers(kind):
    """Of one kind of problem, ours first."""
    ours = Solver("ours", _ours(kind), "sparsekit")
    if kind == "logistic":
        return [
            ours,
            Solver("saga", _sklearn("saga", "epochs"), ladder=EPOCHS),
            Solver("glum", _glum("binomial"), "glum", "column", fits=_small),
            Solver("lbfgs", _sklearn("lbfgs"), fits=_is_ridge),
            Solver("newton-cg", _sklearn("newton-cg"), fits=_is_ridge),
            Solver("newton-cholesky", _sklearn("newton-cholesky"),
                   fits=lambda p: _is_ridge(p) and _small(p)),
        ]  # fmt: skip
    return [
        ours,
        Solver("ElasticNet", _squares(_elastic(False)), layout="column", fits=_is_mixed),
        Solver("ElasticNet, Gram", _squares(_elastic(True)), layout="column",
               fits=lambda p: _is_mixed(p) and _small(p) and not sparse.issparse(p.X)),
        Solver("celer", _squares(_celer), "celer", "column", (1.0, 0.1, *TOLERANCES), fits=_is_mixed),
        Solver("skglm", _squares(_skglm), "skglm", "column", fits=_is_mixed),
        Solver("glum", _glum("normal"), "glum", "column", fits=_small),
        Solver("Ridge", _ridge("auto"), fits=_is_ridge),
        Solver("Ridge, lsqr", _ridge("lsqr"), fits=_is_ridge),
    ]  # fmt: skip


def design(X, layout):
    """X as its solver likes it."""
    if sparse.issparse(X):
        return X.tocsr() if layout == "row" else X.tocsc()
    return np.ascontiguousarray(X) if layout == "row" else np.asfortranarray(X)


def warm(chosen):
    """Import all packages and compile what is compiled, so that no child has to."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for solver in chosen:
            for data in (X, sparse.csr_matrix(X)):
                solver.fit(
                    design(data, solver.layout), y, 1.0, 0.0 if solver.ridge_only else 0.5, solver.ladder[1]
                )


def timed(solver, problem, knob, limit):
    """Median processor seconds, coefficients, intercept and certified gap of a fit in a child.

    None where it takes longer than ``limit`` seconds.
    """
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(solver, problem, knob, there))
    child.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else None
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()
        here.close()


def _run(solver, problem, knob, pipe):
    X, seconds = design(problem.X, solver.layout), []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        while len(seconds) < _MAX_REPEATS and sum(seconds) < _TOTAL_SECONDS:
            # of the process and not of the clock: it has one thread, and others may be busy
            start = time.process_time()
            w, b = solver.fit(X, problem.y, problem.lam, problem.ratio, knob)
            seconds.append(time.process_time() - start)
    pipe.send((float(np.median(seconds)), w, b, getattr(solver.fit, "certified", np.nan)))


def measure(problem, chosen, *, gap, limit, rounds):
    """Seconds of each solver to a relative ``gap``, inf where it takes more than ``limit``; ours first.

    The loosest knob that leads to the gap is found first, then those are timed in turn.
    """
    exact = timed(chosen[0], problem, EXACT, 10 * limit)
    if exact is None:
        raise SystemExit(f"{problem.name}: no reference within {10 * limit} seconds")
    problem.best, problem.certified = problem.objective(*exact[1:3]), exact[3]
    knobs, seconds = {}, {}
    for solver in chosen:
        if not solver.fits(problem):
            continue
        seconds[solver.name] = []
        for knob in solver.ladder:
            found = timed(solver, problem, knob, limit)
            if found is None:
                break
            value = problem.objective(*found[1:3])
            if value < problem.best:
                problem.best = value
            if value - problem.best <= gap * problem.best:
                knobs[solver.name] = knob
                seconds[solver.name].append(found[0])
                break
    for _ in range(rounds - 1):
        for solver in chosen:
            if solver.name in knobs:
                found = timed(solver, problem, knobs[solver.name], 2 * limit)
                seconds[solver.name].append(np.inf if found is None else found[0])
    row = {name: float(np.median(values)) if values else np.inf for name, values in seconds.items()}
    default = timed(chosen[0], problem, 1e-5, limit)
    row["default"] = np.inf if default is None else default[0]
    row["default gap"] = np.nan if default is None else problem.objective(*default[1:3]) / problem.best - 1.0
    return row
