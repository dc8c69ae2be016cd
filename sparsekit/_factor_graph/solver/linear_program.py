"""The linear program over a polytope by HiGHS, which SciPy brings.

`scipy.optimize.linprog` checks and converts for one to three milliseconds, longer than the programs of most
graphs take. So HiGHS is asked directly where SciPy's private module is as it is known, and through `linprog`
elsewhere. Both return multipliers, by which the caller certifies the result.
"""

import time
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

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
        x (n,), the rows' multipliers (n_rows,), simplex iterations; None if HiGHS did not find an optimum.
    """
    soft = np.flatnonzero(np.isfinite(price))
    left = max(deadline - time.perf_counter(), 1e-9)
    given = np.concatenate([-gain, price[soft]]), p, soft, most, left
    core = _core()
    found = _by_linprog(*given) if core is None else _directly(core, *given)
    return None if found is None else (found[0][: len(gain)], -found[1], found[2])


@cache
def _core():
    """SciPy's HiGHS, or None where it is not as it is known."""
    try:
        from scipy.optimize._highspy import _core as core

        for name in ("HighsLp", "HighsOptions", "HighsModelStatus", "MatrixFormat", "_Highs", "kHighsInf"):
            getattr(core, name)
    except (ImportError, AttributeError):
        return None
    return core


def _directly(core, cost, p, soft, most, left):
    n, k, inf = len(p.lower), len(soft), core.kHighsInf
    columns = p.rows.tocsc()
    lp, options = core.HighsLp(), core.HighsOptions()
    lp.num_col_ = lp.a_matrix_.num_col_ = n + k
    lp.num_row_ = lp.a_matrix_.num_row_ = len(p.right)
    lp.col_cost_ = cost
    lp.col_lower_ = np.concatenate([p.lower, np.zeros(k)])
    lp.col_upper_ = np.concatenate([p.upper, np.full(k, inf)])
    lp.row_lower_ = np.where(np.arange(len(p.right)) < p.n_upper, -inf, p.right)
    lp.row_upper_ = p.right
    end = columns.indptr[-1]
    lp.a_matrix_.format_ = core.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.concatenate([columns.indptr, np.arange(end + 1, end + k + 1, dtype=np.int32)])
    lp.a_matrix_.index_ = np.concatenate([columns.indices, soft.astype(np.int32)])
    lp.a_matrix_.value_ = np.concatenate([columns.data, -np.ones(k)])
    options.output_flag = options.log_to_console = False
    # chains of implications take 1.3 times as long without, logic gates 0.9 times
    options.presolve = "off"
    options.primal_feasibility_tolerance = options.dual_feasibility_tolerance = LINEAR_TOL
    options.simplex_iteration_limit = min(most, np.iinfo(np.int32).max)
    if np.isfinite(left):
        options.time_limit = left
    highs = core._Highs()
    highs.passOptions(options)
    highs.passModel(lp)
    highs.run()
    if highs.getModelStatus() != core.HighsModelStatus.kOptimal:
        return None
    found = highs.getSolution()
    return np.array(found.col_value), np.array(found.row_dual), highs.getInfo().simplex_iteration_count


def _by_linprog(cost, p, soft, most, left):
    m, k, equal = p.n_upper, len(soft), len(p.right) - p.n_upper
    excess = sp.csr_array((-np.ones(k), (soft, np.arange(k))), shape=(m, k))
    ranges = np.concatenate([p.lower, np.zeros(k)]), np.concatenate([p.upper, np.full(k, np.inf)])
    limits = {
        "primal_feasibility_tolerance": LINEAR_TOL,
        "dual_feasibility_tolerance": LINEAR_TOL,
        "maxiter": most,
        "presolve": False,
    }
    if np.isfinite(left):
        limits["time_limit"] = left
    found = linprog(
        cost,
        A_ub=sp.hstack([p.rows[:m], excess], "csr") if m else None,
        b_ub=p.right[:m] if m else None,
        A_eq=sp.hstack([p.rows[m:], sp.csr_array((equal, k))], "csr") if equal else None,
        b_eq=p.right[m:] if equal else None,
        bounds=np.column_stack(ranges),
        method="highs",
        options=limits,
    )
    if found.status != 0:
        return None
    dual = [found.ineqlin.marginals if m else [], found.eqlin.marginals if equal else []]
    return found.x, np.concatenate(dual), int(found.nit)
