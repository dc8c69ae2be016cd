"""What users of Fenchel-Young classifiers are told where a fit ended before its certificate was good."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._estimator.base import SCALERS, warn_if_unconverged
from ..._messages import listed
from ..._solver import outcome
from ..._solver.tolerances import GAP_FACTOR


def ended_early(result, tol):
    """Whether a run neither converged nor has a small gap, nor was stopped by the user's callback."""
    if result.status in (outcome.CONVERGED, outcome.STOPPED):
        return False
    # NaN (no penalty) counts as large
    return not result.dual_gap <= GAP_FACTOR * tol * result.fun


def warn_if_ended_early(result, options, *, who, stacklevel):
    """`warn_if_unconverged` of runs whose gap is not small; it says how large it is."""
    if not ended_early(result, options["tol"]):
        return
    how_far = ""
    if np.isfinite(result.dual_gap) and result.fun > 0.0:
        how_far = f" The objective may be {100.0 * result.dual_gap / result.fun:.3g} % too high."
    warn_if_unconverged(result, options, who=who, stacklevel=stacklevel + 1, how_far=how_far)


def warn_of_path(results, alphas, options, *, who, names=None, stacklevel):
    """One warning for all the runs of paths that ended early.

    ``results`` has one list for each path, of runs for the first of ``alphas``; ``names`` are the paths' own.
    """
    early = [
        [(alpha, run) for alpha, run in zip(alphas, runs) if ended_early(run, options["tol"])]
        for runs in results
    ]
    number, total = sum(map(len, early)), sum(map(len, results))
    if not number:
        return
    ended = [", ".join(f"{alpha:g}" for alpha, _ in runs) for runs in early]
    if names is None:
        values = f"alpha {ended[0]}"
    else:
        named = [f"{name} (alpha {which})" for name, which in zip(names, ended) if which]
        values = listed(named, "; ")
    worst = max(run.optimality for runs in early for _, run in runs)
    warnings.warn(
        f"{who}: {number} of {total} fits did not converge to tol={options['tol']:.2e} (worst optimality "
        f"{worst:.2e}): {values}. Increase max_iter or max_time, loosen tol, leave out the smallest alphas, "
        f"or bring the columns of X to similar scales ({SCALERS}).",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
