"""Weak penalties, cell by cell: a row of numbers for each set, kind of intercept and C."""

from __future__ import annotations

import numpy as np
from _weak_data import role
from _weak_fits import FLOOR, FREE, TIGHTER, enough, liblinear, median, oba, time_to
from scipy import sparse

from sparsekit import L1LogisticOBA

GAP = 1e-6


def measure(case, C, *, repeats, max_time, reference_time=None, bench=None, skip_liblinear=False):
    """A row of the CSV file.

    Parameters
    ----------
    repeats : int
        Least number of runs of LIBLINEAR and of ours, in turn.
    max_time : float
        Seconds of one of our fits, and of LIBLINEAR's beyond which none is repeated.
    reference_time : float, optional
        Seconds of the fit that finds the optimum; default ten times ``max_time``.
    bench : Bench, optional
        Of the other solvers, each in a process of its own.
    skip_liblinear : bool
        It took longer than ``max_time`` at a stronger penalty.
    """
    ours, lower = case.ours, case.lower
    case.refer(C, reference_time or 10 * max_time)
    theirs, plain, watched = [], [], []
    while not enough(plain, repeats):
        if (
            not skip_liblinear
            and not enough(theirs, repeats)
            and (not theirs or theirs[-1].seconds <= max_time)
        ):
            theirs.append(liblinear(case, C))
        plain.append(oba(ours, C, max_time=max_time))
        watched.append(oba(ours, C, watch=True, max_time=max_time))
        lower(ours, C, min(plain[-1].objective, min(value for _, value in watched[-1].steps)))
    row = _identify(case, C)
    row["certified"] = case.certified(C)
    row |= {
        "ours_seconds": median(run.seconds for run in plain),
        "ours_gap": case.gap(ours, C, plain[-1].objective),
        "ours_dual_gap": plain[-1].certified,
        "ours_warned": plain[-1].warned,
    }
    wanted = {"ours_to_gap_seconds": GAP}
    if theirs:
        gap = case.gap(case.liblinears, C, theirs[-1].objective)
        row |= {
            "liblinear_seconds": median(run.seconds for run in theirs),
            "liblinear_gap": gap,
            "liblinear_warned": theirs[-1].warned,
        }
        if case.intercept == FREE:
            # what the penalty on its intercept costs it, on the problem of the free one
            objective = ours.objective(theirs[-1].coef, theirs[-1].bias, C)
            row["liblinear_gap_of_free_problem"] = case.gap(ours, C, objective)
        wanted["ours_to_liblinear_seconds"] = max(gap, FLOOR)
    for name, gap in wanted.items():
        row[name] = _to_gap(case, C, gap, watched, repeats, max_time)
    return row if bench is None else row | _peers(case, C, bench)


def _identify(case, C):
    X = case.X
    stored = X.nnz if sparse.issparse(X) else X.size
    return {
        "data": case.name,
        "role": role(case.name),
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "density": stored / (X.shape[0] * X.shape[1]),
        "intercept": case.intercept,
        "C": C,
        "lambda_ratio": 1.0 / (C * case.ours.lambda_max),
    }


def _to_gap(case, C, gap, watched, repeats, max_time):
    """Median seconds until a gap: by the default tolerance's runs if they get there, else by tighter ones."""
    default = L1LogisticOBA().tol
    for share in TIGHTER:
        runs = list(watched) if share == 1.0 else []
        target = case.best[id(case.ours), C][0] * (1 + gap)
        while share != 1.0 and not enough(runs, repeats):
            runs.append(oba(case.ours, C, watch=True, tol=share * default, max_time=max_time))
            case.lower(case.ours, C, runs[-1].objective)
            if time_to(runs[-1], target) == np.inf:
                break
        seconds = [time_to(run, target) for run in runs]
        if all(np.isfinite(seconds)):
            return median(seconds)
    return np.inf


def _peers(case, C, bench):
    """Seconds to GAP of the other solvers; inf for one that did not get there."""
    cell = bench.measure(case.ours, C, known=case.best[id(case.ours), C][0])
    if cell.interrupted:
        raise KeyboardInterrupt
    return {f"{t.solver.key}_seconds": cell.time_to(t, GAP) for t in cell.tracks if not t.failure}


def ratios(row):
    """How many times faster ours is: at both defaults, to LIBLINEAR's gap, and the fastest peer's to GAP."""
    found = {}
    for name, theirs, mine in (
        ("default", row.get("liblinear_seconds"), row["ours_seconds"]),
        ("to its gap", row.get("liblinear_seconds"), row.get("ours_to_liblinear_seconds")),
        ("peer", fastest(row)[1], row["ours_to_gap_seconds"]),
    ):
        known = theirs is not None and mine is not None and np.isfinite(theirs) and np.isfinite(mine)
        found[name] = theirs / mine if known else np.nan
    return found


def fastest(row):
    """(key, seconds to GAP) of the fastest other peer; (None, inf) where none got there."""
    other = ("ours_", "liblinear_")
    found = {k: v for k, v in row.items() if k.endswith("_seconds") and not k.startswith(other)}
    found = {k.removesuffix("_seconds"): v for k, v in found.items() if v is not None and np.isfinite(v)}
    return min(found.items(), key=lambda item: item[1], default=(None, np.inf))
