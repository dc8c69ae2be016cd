"""What users of Fenchel-Young classifiers are told where a fit ended before its certificate was good."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._messages import listed
from ..._solver import outcome
from ..._solver.tolerances import GAP_FACTOR

# ratio of the columns' norms above which scales may cause many steps
_RATIO = 1e4
_SCALES = ", or bring the columns of X to similar scales (sklearn.preprocessing.MaxAbsScaler keeps X sparse)"
_WHY = {
    outcome.MAX_ITER: "it reached max_iter={max_iter}. Increase max_iter, or loosen tol",
    outcome.MAX_TIME: "it reached max_time={max_time} seconds. Increase max_time, or loosen tol",
    outcome.NO_PROGRESS: "rounding errors allow no further progress. Pass float64 data, or loosen tol",
}
# relative duality gap below which a fit that ended early gets no warning
_GOOD = 1e-4


def ended_early(result, tol):
    """Whether a run neither converged nor has a small gap, nor was stopped by the user's callback."""
    if result.status not in _WHY:
        return False
    # NaN (no penalty) counts as large
    return not result.dual_gap <= max(_GOOD, GAP_FACTOR * tol) * result.fun


def warn_if_ended_early(loss):
    """A function instead of ``warn_if_unconverged`` for fits of ``loss``."""

    def warn(result, options, *, who, stacklevel):
        if not ended_early(result, options["tol"]):
            return
        high = ""
        if np.isfinite(result.dual_gap) and result.fun > 0.0:
            high = f" The objective may be {100.0 * result.dual_gap / result.fun:.3g} % too high."
        warnings.warn(
            f"{who} did not converge: {_WHY[result.status].format(**options)}{_advice(loss)}.{high} "
            f"Optimality {result.optimality:.2e}, tol {options['tol']:.2e}, {result.nit} iterations.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )

    return warn


def warn_of_path(results, alphas, loss, options, *, who, names=None, stacklevel):
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
        f"{worst:.2e}): {values}. Increase max_iter or max_time, loosen tol, leave out the smallest alphas"
        f"{_advice(loss)}.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def _advice(loss):
    norms = loss.column_norms()
    norms = norms[norms > 0.0]
    return _SCALES if norms.size and norms.max() > _RATIO * norms.min() else ""
