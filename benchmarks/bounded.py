"""BoundedRegressor and BoundedClassifier against what else solves the same problems.

    python benchmarks/bounded.py --kinks      # quantile regression: QuantileRegressor and linprog (HiGHS)
    python benchmarks/bounded.py --smooth     # smooth losses in a box: scipy.optimize.minimize(L-BFGS-B)
    python benchmarks/bounded.py --peers      # without an intercept: LinearSVC, LinearSVR, Ridge, Lasso, ...

One thread each, in turn, in one process; medians of --repeat runs. With --smooth the seconds end when the
objective is within 1e-6, relatively, of the best value in both histories. Otherwise they are those of the
whole fit. L-BFGS-B gets this package's compiled objective, its best case.
"""

from __future__ import annotations

import argparse
import time
import warnings
from types import SimpleNamespace

import _common
import numpy as np
import scipy.sparse as sp
from _data import data_folder, read
from scipy import optimize
from sklearn.linear_model import Lasso, QuantileRegressor, Ridge
from sklearn.svm import LinearSVC, LinearSVR
from threadpoolctl import threadpool_limits

from sparsekit import BoundedClassifier, BoundedRegressor
from sparsekit._bounded.losses.losses import LossRows, classification_loss, regression_loss
from sparsekit._bounded.losses.problem import BoundedProblem

ACCURACY = 1e-6
KINKS = [(5000, 50), (5000, 200), (20000, 50)]
COLUMNS_KINKS = ["problem", "peer", "objective", "ours above it", "seconds, ours", "peer", "ratio"]
COLUMNS_SMOOTH = [
    "data", "loss", "bounds", "objective", "iterations, ours", "evaluations, L-BFGS-B", "seconds, ours",
    "L-BFGS-B", "ratio",
]  # fmt: skip


def regression(n, p, heavy=False, seed=0):
    """Correlated columns, half of them without effect; normal or t(2) noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    w = rng.standard_normal(p) * (rng.random(p) < 0.5)
    noise = rng.standard_t(2, n) if heavy else rng.standard_normal(n)
    return X, X @ w + 1 + 2 * noise


def timed(repeat, fit, *args, **options):
    """Median seconds of ``fit(*args, **options)``, and its last result."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = fit(*args, **options)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), result


def pinball(q, r):
    return float(np.mean(np.maximum(q * r, (q - 1) * r)))


def kinks(args):
    rows = []
    for n, p in KINKS:
        for heavy in (False, True):
            X, y = regression(n, p, heavy)
            for q in (0.5, 0.9) if (n, p) == KINKS[0] else (0.5,):
                ours, model = timed(args.repeat, BoundedRegressor("quantile", quantile=q).fit, X, y)
                theirs, peer = timed(1, QuantileRegressor(quantile=q, alpha=0).fit, X, y)
                value = pinball(q, y - peer.predict(X))
                name = f"{n} x {p}, {'t(2)' if heavy else 'normal'}, quantile {q}"
                rows.append(_row(name, "QuantileRegressor", value, model.objective_, ours, theirs))
                print(rows[-1], flush=True)
    for n, p in KINKS[:2]:
        X, y = regression(n, p)
        ours, model = timed(args.repeat, BoundedRegressor("quantile", bounds=(0, 0.5)).fit, X, y)
        theirs, value = timed(1, _linprog, X, y, 0.5, 0.0, 0.5)
        rows.append(
            _row(f"{n} x {p}, normal, 0 <= w <= 0.5", "linprog", value, model.objective_, ours, theirs)
        )
        print(rows[-1], flush=True)
    return _common.markdown_table(COLUMNS_KINKS, rows)


def _row(name, peer, value, objective, ours, theirs):
    return [name, peer, f"{value:.8g}", f"{objective / value - 1:.1e}", f"{ours:.3g}", f"{theirs:.3g}",
            f"{theirs / ours:.3g}"]  # fmt: skip


def _linprog(X, y, q, lower, upper):
    """The linear program of quantile regression in a box: w, b, and both parts of the residuals."""
    n, p = X.shape
    cost = np.concatenate([np.zeros(p + 1), np.full(n, q / n), np.full(n, (1 - q) / n)])
    A = sp.hstack([sp.csr_matrix(X), np.ones((n, 1)), sp.eye(n), -sp.eye(n)], format="csc")
    bounds = [(lower, upper)] * p + [(None, None)] + [(0, None)] * (2 * n)
    return float(optimize.linprog(cost, A_eq=A, b_eq=y, bounds=bounds, method="highs").fun)


class Watched:
    """The compiled objective in (w, b), with the time and the best value after each evaluation."""

    def __init__(self, X, y, loss, l2):
        n, p = X.shape
        weight = np.full(n, 1.0 / n)
        classes = loss in ("log_loss", "squared_hinge", "modified_huber")
        rows = (
            classification_loss(loss, y, weight)
            if classes
            else regression_loss(loss, y, weight, quantile=0.5, epsilon=1.0)
        )
        free = np.full(p, np.inf)
        self.problem = BoundedProblem(X, rows, -free, free, 0.0, l2, fit_intercept=True)
        self.rows, self.seen, self.start = LossRows.empty(n), [], time.perf_counter()

    def __call__(self, x):
        w, problem = x[:-1], self.problem
        rows = problem.loss.evaluate(problem.predictor(w, x[-1]), self.rows)
        f = rows.f + problem.penalty(w)
        g = np.append(problem.transposed(rows.u) + problem.l2 * w, rows.u.sum())
        self.seen.append((time.perf_counter() - self.start, f))
        return f, g


def reached(seen, best):
    """Seconds and evaluations to ``best`` within ACCURACY; inf if never."""
    for k, (seconds, f) in enumerate(seen):
        if f <= best * (1 + ACCURACY):
            return seconds, k + 1
    return np.inf, np.inf


def real_sets():
    """(name, X, labels -1 and 1) of the real sets that are here."""
    for name in ("a9a", "rcv1_binary"):
        try:
            data = read(data_folder(), name)
        except (SystemExit, FileNotFoundError) as error:
            print(f"skipped: {name}: {error}")
            continue
        y = np.asarray(data["y_train"])
        yield name, data["X_train"], np.where(y == y.max(), 1.0, -1.0)


def smooth_cases():
    X, y = regression(20000, 100)
    scales = 10.0 ** np.random.default_rng(1).uniform(-2, 2, 100)
    for name, data in (("20000 x 100", X), ("the same, columns in other units", X * scales)):
        for loss in ("squared", "huber"):
            yield name, data, y, loss
        for loss in ("log_loss", "squared_hinge", "modified_huber"):
            yield name, data, np.where(y > 1, 1.0, -1.0), loss
    for name, X, y in real_sets():
        for loss in ("log_loss", "squared_hinge", "modified_huber"):
            yield name, X, y, loss


def smooth(args):
    rows, ratios = [], []
    for name, X, y, loss in smooth_cases():
        estimator = BoundedRegressor if loss in ("squared", "huber") else BoundedClassifier
        for lower, upper in ((0.0, None), (-0.1, 0.1)):
            seconds, counts, values = ([], []), ([], []), []
            for _ in range(args.repeat):
                model = estimator(loss, bounds=(lower, upper), alpha=1e-4, tol=ACCURACY, history=True)
                model.set_params(**({"epsilon": 1.0} if loss == "huber" else {})).fit(X, y)
                ours = list(zip(model.history_["time"], model.history_["fun"]))
                fun = Watched(X, y, loss, 1e-4)
                p = X.shape[1]
                box = optimize.Bounds([lower] * p + [-np.inf], [upper or np.inf] * p + [np.inf])
                optimize.minimize(
                    fun, np.zeros(X.shape[1] + 1), jac=True, bounds=box, method="L-BFGS-B",
                    options=dict(maxcor=20, ftol=0, gtol=1e-12, maxiter=args.max_iter, maxfun=args.max_iter),
                )  # fmt: skip
                best = min(ours[-1][1], min(f for _, f in fun.seen))
                for k, seen in enumerate((ours, fun.seen)):
                    at, count = reached(seen, best)
                    seconds[k].append(at)
                    counts[k].append(count)
                values.append(best)
            t = [float(np.median(s)) for s in seconds]
            ratios.append(t[1] / t[0])
            box = f"{lower:g} .. {'inf' if upper is None else f'{upper:g}'}"
            rows.append(
                [name, loss, box, f"{values[-1]:.8g}", np.median(counts[0]), np.median(counts[1]),
                 f"{t[0]:.3g}", f"{t[1]:.3g}" if np.isfinite(t[1]) else f"> {fun.seen[-1][0]:.3g}",
                 f"{ratios[-1]:.3g}"]
            )  # fmt: skip
            print(rows[-1], flush=True)
    ratios = np.array(ratios)
    median = np.median(ratios)
    slower = f"Slower than L-BFGS-B in {np.sum(ratios < 1)} of {len(ratios)}; median ratio {median:.3g}."
    return [*_common.markdown_table(COLUMNS_SMOOTH, rows), slower, ""]


def peers(args):
    X, y = regression(20000, 100)
    n, signs = len(y), np.where(y > 1, 1.0, -1.0)
    C, none = 1e-2, {"fit_intercept": False}
    cases = [
        ("Ridge, w >= 0", X, y, BoundedRegressor("squared", bounds=(0, None), alpha=1e-2, **none),
         Ridge(alpha=1e-2 * n, positive=True, tol=1e-9, **none)),
        ("Lasso, w >= 0", X, y, BoundedRegressor("squared", bounds=(0, None), alpha=1e-2, l1_ratio=1, **none),
         Lasso(alpha=1e-2, positive=True, tol=1e-6, **none)),
        ("LinearSVR", X, y, BoundedRegressor("epsilon_insensitive", alpha=1 / (C * n), epsilon=0.5, **none),
         LinearSVR(C=C, epsilon=0.5, tol=1e-6, max_iter=10**5, **none)),
        ("LinearSVC, hinge", X, signs, BoundedClassifier("hinge", alpha=1 / (C * n), **none),
         LinearSVC(loss="hinge", C=C, tol=1e-6, max_iter=10**5, **none)),
        ("LinearSVC, squared", X, signs, BoundedClassifier("squared_hinge", alpha=1 / (C * n), **none),
         LinearSVC(loss="squared_hinge", C=C, tol=1e-6, max_iter=10**5, **none)),
    ]  # fmt: skip
    for name, A, z in real_sets():
        for loss in ("hinge", "squared_hinge"):
            svc = LinearSVC(loss=loss, C=1e4 / len(z), tol=1e-6, max_iter=10**5, **none)
            cases.append((f"{name}, {loss}", A, z, BoundedClassifier(loss, alpha=1e-4, **none), svc))
    cases += hinge_cases(X, signs)
    rows = []
    for name, A, target, ours, peer in cases:
        t_ours, _ = timed(args.repeat, ours.fit, A, target)
        t_peer, _ = timed(args.repeat, peer.fit, A, target)
        value = _objective(ours, A, target, np.ravel(peer.coef_))
        rows.append(_row(name, type(peer).__name__, value, np.ravel(ours.objective_)[0], t_ours, t_peer))
        print(rows[-1], flush=True)
    t_ours, ours = timed(args.repeat, BoundedRegressor("squared", bounds=(-0.5, 0.5), **none).fit, X, y)
    t_peer, found = timed(args.repeat, optimize.lsq_linear, X, y, (-0.5, 0.5), tol=1e-10)
    rows.append(_row("-0.5 <= w <= 0.5", "lsq_linear", found.cost / n, ours.objective_, t_ours, t_peer))
    return _common.markdown_table(COLUMNS_KINKS, rows)


def hinge_cases(X, signs):
    """Hinges of dense, wide and sparse X beside rehline if it is installed; wide ones beside LinearSVC."""
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((500, 5000))
    others = np.where(wide @ rng.standard_normal(5000) > 20.0 * rng.standard_normal(500), 1.0, -1.0)
    problems = [
        (f"{A.shape[0]} x {A.shape[1]}", A, y, C)
        for A, y in ((X, signs), (wide, others))
        for C in (1e-2, 1.0)
    ]
    problems += [(name, A, y, 1e4 / len(y)) for name, A, y in real_sets()]
    try:
        from rehline import plqERM_Ridge
    except ImportError:
        print("skipped: rehline is not installed")
        plqERM_Ridge = None
    cases = []
    for name, A, y, C in problems:
        name = f"{name}, hinge, C = {C:.2g}"
        ours = BoundedClassifier("hinge", alpha=1 / (C * len(y)), fit_intercept=False)
        if A is wide:
            svc = LinearSVC(loss="hinge", C=C, tol=1e-6, max_iter=10**5, fit_intercept=False)
            cases.append((name, A, y, ours, svc))
        if plqERM_Ridge is not None:
            cases.append((name, A, y, ours, plqERM_Ridge({"name": "svm"}, C=C, tol=1e-5, max_iter=10**5)))
    return cases


def _objective(model, X, y, w):
    """The model's objective at w, without an intercept."""
    n = X.shape[0]
    weight = np.full(n, 1.0 / n)
    if isinstance(model, BoundedClassifier):
        loss = classification_loss(model.loss, y, weight)
    else:
        loss = regression_loss(model.loss, y, weight, quantile=model.quantile, epsilon=model.epsilon)
    value = loss.evaluate(X @ w.astype(float), LossRows.empty(n)).f
    return value + model.alpha * (
        model.l1_ratio * np.abs(w).sum() + 0.5 * (1 - model.l1_ratio) * float(w @ w)
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("kinks", "smooth", "peers"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--repeat", type=int, default=3, help="runs; the median counts (default: 3)")
    parser.add_argument("--max-iter", type=int, default=5000, help="of L-BFGS-B")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables")
    args = parser.parse_args(argv)
    lines = []
    with threadpool_limits(1), warnings.catch_warnings():
        # peers warn of tolerances that they miss; here the objectives are compared
        warnings.simplefilter("ignore")
        for run in (kinks, smooth, peers):
            if getattr(args, run.__name__):
                lines += run(args)
    lines = _common.environment([SimpleNamespace(package="scikit-learn")]) + lines
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
