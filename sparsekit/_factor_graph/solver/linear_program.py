"""The linear program over a polytope by HiGHS, which SciPy brings.

`scipy.optimize.milp` checks and converts for half as long as the programs of most graphs take. So HiGHS is
asked directly where SciPy's private module is as it is known, and through `milp` elsewhere.
"""

import time
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from ..plan import LINEAR_TOL


def best(gain, p, price, most, deadline):
    """The x of largest gain @ x - price @ excess.

    Parameters
    ----------
    gain : ndarray of shape (n,)
    p : Polytope
    price : ndarray of shape (n_upper,)
        Of what exceeds an inequality; inf where nothing may.
    most : int
        Largest number of simplex iterations.
    deadline : float
        `time.perf_counter` at which it gives up.

    Returns
    -------
    tuple or None
        x (n,), simplex iterations; None if HiGHS did not find an optimum.
    """
    soft, columns = np.flatnonzero(np.isfinite(price)), p.rows.tocsc()
    k, end = len(soft), columns.indptr[-1]
    rows = sp.csc_array(
        (
            np.concatenate([columns.data, -np.ones(k)]),
            np.concatenate([columns.indices, soft.astype(np.int32)]),
            np.concatenate([columns.indptr, np.arange(end + 1, end + k + 1, dtype=np.int32)]),
        ),
        shape=(len(p.right), len(gain) + k),
    )
    cost = np.concatenate([-gain, price[soft]])
    bounds = np.concatenate([p.lower, np.zeros(k)]), np.concatenate([p.upper, np.full(k, np.inf)])
    least = np.where(np.arange(len(p.right)) < p.n_upper, -np.inf, p.right)
    left = max(deadline - time.perf_counter(), 1e-9)
    core = _core()
    if core is not None:
        found = _directly(core, cost, bounds, rows, least, p.right, most, left)
    else:
        limits = {"time_limit": left} if left < np.inf else {}
        x = milp(
            cost, bounds=Bounds(*bounds), constraints=LinearConstraint(rows, least, p.right), options=limits
        ).x
        found = None if x is None else (x, 1)
    return None if found is None else (found[0][: len(gain)], found[1])


@cache
def _core():
    """SciPy's HiGHS, or None where it is not as it is known."""
    try:
        from scipy.optimize._highspy import _core as core

        for name in ("HighsLp", "HighsOptions", "HighsModelStatus", "MatrixFormat", "_Highs"):
            getattr(core, name)
    except (ImportError, AttributeError):
        return None
    return core


def _directly(core, cost, bounds, rows, least, right, most, left):
    lp, options = core.HighsLp(), core.HighsOptions()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.a_matrix_.num_col_ = lp.num_col_
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = bounds
    lp.row_lower_, lp.row_upper_ = least, right
    lp.a_matrix_.format_ = core.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    options.output_flag = options.log_to_console = False
    # without it chains of 1000 to 5000 implications take up to 2.9 times as long. Other graphs, without their
    # forced variables, take 0.5 to 1.2 times as long.
    is_chained = max(np.diff(rows.indptr).max(), np.bincount(rows.indices).max(initial=0)) <= 2
    options.presolve = "on" if is_chained else "off"
    # Devex: with the default, exact steepest edges, sequences take 1.4 to 1.7 times as long, logic as long
    options.simplex_dual_edge_weight_strategy = 1
    options.primal_feasibility_tolerance = options.dual_feasibility_tolerance = LINEAR_TOL
    options.simplex_iteration_limit = min(most, np.iinfo(np.int32).max)
    options.time_limit = left
    highs = core._Highs()
    highs.passOptions(options)
    highs.passModel(lp)
    highs.run()
    if highs.getModelStatus() != core.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value), highs.getInfo().simplex_iteration_count
