"""Generalised linear models against five packages, each to an equal objective: peers' times over ours.

A peer without offsets (scikit-learn) gets the equal problem: a target divided by its exposure e, of weight
e ** (2 - power). Binomial targets have no offset here. Each solver runs with tighter and tighter tolerances
until its objective is at most --accuracy of itself above the certified optimum. "missed": none is. ">": a fit
took more than LONG seconds before, this many times ours. Times are of the processor, medians of fits in turn.
"""

import argparse
import time
import warnings
from types import SimpleNamespace

import _common
import numpy as np
import skein_glm as skein
import statsmodels.api as sm
from _glm_data import tables, targets
from glmnetrs import glmnet
from glum import GeneralizedLinearRegressor, TweedieDistribution
from sklearn.linear_model import LogisticRegression, TweedieRegressor
from sklearn.metrics import mean_tweedie_deviance
from threadpoolctl import threadpool_limits

from sparsekit import GLMOBA

POWER = {"poisson": 1, "gamma": 2, "tweedie": 1.5, "binomial": 1}
TOLERANCES = 10.0 ** np.arange(-2, -13, -1)
PACKAGES = "scikit-learn", "glum", "statsmodels", "glmnet-rs", "skein-glm"
COLUMNS = ["data", "family", "l1_ratio", "ours, CPU s", *PACKAGES, "best peer"]
# Seconds: no tighter tolerance after a longer fit, and no repeats of a fit that is not shorter.
LONG = 5.0
SHORT = 0.5


class Case:
    """Data, family and penalty; alpha is a share of the strongest useful L1 penalty."""

    def __init__(self, X, exposure, mean, family, share, l1_ratio):
        exposure = None if family == "binomial" else exposure
        self.X, self.family, self.l1_ratio, self.power = X, family, l1_ratio, POWER[family]
        self.share = share
        self.y, self.e = targets(family, mean, exposure), exposure
        e = np.ones(len(mean)) if exposure is None else exposure
        self.offset = None if exposure is None else np.log(e)
        level = np.sum(self.y * e ** (1 - self.power)) / np.sum(e ** (2 - self.power))
        residual = (e * level - self.y) * (e * level) ** (1 - self.power)
        self.alpha = share * np.abs(X.T @ residual).max() / len(mean)

    def objective(self, coef, intercept):
        coef = np.ravel(coef)
        z = self.X @ coef + intercept + (0 if self.offset is None else self.offset)
        if self.family == "binomial":
            loss = np.mean(np.logaddexp(0, z) - self.y * z)
        else:
            loss = 0.5 * mean_tweedie_deviance(self.y, np.exp(z), power=self.power)
        half_squares = 0.5 * coef @ coef
        return loss + self.alpha * (self.l1_ratio * np.abs(coef).sum() + (1 - self.l1_ratio) * half_squares)


def ours(case, tol):
    model = GLMOBA(case.family, alpha=case.alpha, l1_ratio=case.l1_ratio, tol=tol, max_iter=1000)
    model.fit(case.X, case.y, offset=case.offset)
    return model.coef_, model.intercept_


def glum(case, tol):
    family = TweedieDistribution(case.power) if case.family == "tweedie" else case.family
    X = case.X.tocsc() if hasattr(case.X, "tocsc") else case.X
    model = GeneralizedLinearRegressor(
        family=family, link="logit" if case.family == "binomial" else "log", alpha=case.alpha,
        l1_ratio=case.l1_ratio, gradient_tol=tol, max_iter=300,
    )  # fmt: skip
    model.fit(X, case.y, offset=case.offset)
    return model.coef_, model.intercept_


def scikit_learn(case, tol):
    n = len(case.y)
    if case.family == "binomial":
        model = LogisticRegression(C=1 / (n * case.alpha), tol=tol, max_iter=10_000).fit(case.X, case.y)
        return model.coef_, model.intercept_[0]
    e = np.ones(n) if case.e is None else case.e
    weight = e ** (2 - case.power)
    alpha = case.alpha * n / weight.sum()
    model = TweedieRegressor(power=case.power, link="log", alpha=alpha, tol=tol, max_iter=10_000)
    model.fit(case.X, case.y / e, sample_weight=weight)
    return model.coef_, model.intercept_


def statsmodels(case, tol):
    families = {"poisson": sm.families.Poisson(), "binomial": sm.families.Binomial()}
    families["gamma"] = sm.families.Gamma(sm.families.links.Log())
    model = sm.GLM(case.y, sm.add_constant(case.X), family=families[case.family], offset=case.offset)
    alpha = np.r_[0, np.full(case.X.shape[1], case.alpha)]
    found = model.fit_regularized(alpha=alpha, L1_wt=case.l1_ratio, cnvrg_tol=tol, maxiter=500).params
    return found[1:], found[0]


def glmnet_rs(case, tol):
    # to one penalty alone it takes 50 times as long as down a path (wide, Poisson)
    lambdas = np.geomspace(1.0 / case.share, 1.0, 20) * case.alpha
    path = glmnet(
        case.X, case.y, family=case.family, alpha=case.l1_ratio, lambda_=lambdas, standardize=False,
        thresh=tol, maxit=10**6,
    )  # fmt: skip
    return path.beta[:, -1], path.a0[-1]


def skein_glm(case, tol):
    options = dict(alpha=case.l1_ratio, tol=tol, outer_tol=tol, max_iter=10_000, max_outer=300)
    X = case.X.tocsc() if hasattr(case.X, "tocsc") else case.X
    if case.family == "binomial":
        model = skein.LogisticElasticNetRegressor(case.alpha, **options)
    else:
        model = skein.PoissonElasticNetRegressor(case.alpha, offset=case.offset, **options)
    model.fit(X, case.y)
    return model.coef_, model.intercept_


def peers_of(case, name):
    """Solvers that this problem fits, ours first.

    statsmodels goes over columns in Python, and needs dense ones. glmnet-rs has two families here, of dense
    columns, and no offset. skein-glm has the same two; a ridge of text takes it minutes. On the wide table
    neither brings a ridge near.
    """
    is_tall = name in ("tall", "small")
    yield ours
    if case.family in ("poisson", "binomial"):
        if is_tall or (name == "wide" and case.l1_ratio):
            yield glmnet_rs
        if is_tall or case.l1_ratio:
            yield skein_glm
    if name != "wide" or case.l1_ratio:
        yield glum
    if case.l1_ratio == 0:
        yield scikit_learn
    if is_tall and case.family != "tweedie":
        yield statsmodels


def seconds_of(case, solver, tol):
    """(seconds of the processor, objective) of one fit."""
    start = time.process_time()
    found = solver(case, tol)
    return time.process_time() - start, case.objective(*found)


def first_accurate(case, solver, best, accuracy):
    """(tolerance, relative excess, seconds): the loosest tolerance that is accurate enough, or the last."""
    for tol in TOLERANCES:
        seconds, value = seconds_of(case, solver, tol)
        if value / best - 1 <= accuracy or seconds > LONG:
            break
    return tol, value / best - 1, seconds


def measure(case, solvers, repeat, accuracy):
    """{name: (relative excess, median seconds)}; short fits are repeated in turn, as cores change speed."""
    best = case.objective(*ours(case, 1e-10))
    found = [(solver, *first_accurate(case, solver, best, accuracy)) for solver in solvers]
    times = [[seconds] for *_, seconds in found]
    for _ in range(repeat - 1):
        for (solver, tol, excess, seconds), own in zip(found, times):
            if seconds < SHORT and excess <= accuracy:
                own.append(seconds_of(case, solver, tol)[0])
    return {
        solver.__name__.replace("_", "-"): (excess, float(np.median(own)))
        for (solver, _, excess, _), own in zip(found, times)
    }


def cells(args):
    """(data set, whether X is sparse, family, l1_ratio, what `measure` found) of all cells."""
    known, wanted = tables(args.rows), ("ours", *args.peers.split(","))
    for name in args.sets.split(","):
        data = known[name]()
        for family in known_families(name) if args.families == "all" else args.families.split(","):
            for l1_ratio in map(float, args.l1_ratios.split(",")):
                case = Case(*data, family, args.share, l1_ratio)
                solvers = [
                    one for one in peers_of(case, name)
                    if args.peers == "all" or one.__name__.replace("_", "-") in wanted
                ]  # fmt: skip
                yield (
                    name,
                    hasattr(case.X, "nnz"),
                    family,
                    l1_ratio,
                    measure(case, solvers, args.repeat, args.accuracy),
                )


def known_families(name):
    """Families of a data set: policies take long, and have counts as their table does."""
    return ("poisson",) if name == "policies" else tuple(POWER)


def shown(excess, seconds, base, accuracy):
    """A peer's time over ours, as a word of the table."""
    if excess <= accuracy:
        return f"{seconds / base:.3g}"
    return f">{seconds / base:.3g}" if seconds > LONG else "missed"


def report(found, accuracy):
    """Lines of the table, and of the geometric means of the best peer's time over ours."""
    rows, means = [], {}
    for name, is_sparse, family, l1_ratio, results in found:
        excess, base = results.pop("ours")
        reached = {peer: seconds / base for peer, (own, seconds) in results.items() if own <= accuracy}
        others = [shown(*results[peer], base, accuracy) if peer in results else "" for peer in PACKAGES]
        best = min(reached.values(), default=None)
        mark = "" if excess <= accuracy else " (missed)"
        rows.append(
            [name, family, f"{l1_ratio:g}", f"{base:.3g}{mark}", *others, f"{best:.3g}" if reached else ""]
        )
        print(*[one or "-" for one in rows[-1]], flush=True)
        if reached:
            means.setdefault(("dense", "sparse")[is_sparse], []).append((l1_ratio, best))
    lines = _common.markdown_table(COLUMNS, rows) + [""]
    for kind, values in means.items():
        ratios, best = np.transpose(values)
        parts = {"all": best, "L1": best[ratios > 0], "ridge": best[ratios == 0]}
        text = ", ".join(f"{key} {np.exp(np.log(r).mean()):.2f}" for key, r in parts.items() if r.size)
        slower = f"slower in {np.count_nonzero(best < 1)} of {best.size} cells"
        lines.append(f"- {kind}: best peer's time / ours, geometric mean: {text}; {slower}")
    return lines


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default="claims,policies,text,tall,wide", help="or small, 1000 x 20")
    parser.add_argument("--families", default="all", help="as poisson,gamma,binomial,tweedie")
    parser.add_argument("--l1-ratios", default="1,0", help="1: L1, 0: ridge")
    parser.add_argument("--peers", default="all", help="as glum,glmnet-rs,skein-glm,scikit-learn,statsmodels")
    parser.add_argument("--rows", type=int, default=100_000, help="of claims; policies have 678,013")
    parser.add_argument("--accuracy", type=float, default=1e-8, help="relative excess of the objective")
    parser.add_argument("--share", type=float, default=0.05, help="alpha over the strongest useful one")
    parser.add_argument("--repeat", type=int, default=5, help="runs of short fits")
    parser.add_argument("--markdown", metavar="FILE", help="write the table")
    args = parser.parse_args(argv)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tolerances that were missed: the objectives are compared
        lines = report(cells(args), args.accuracy)
    used = [SimpleNamespace(package=name) for name in PACKAGES]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, _common.environment(used) + lines)


if __name__ == "__main__":
    main()
