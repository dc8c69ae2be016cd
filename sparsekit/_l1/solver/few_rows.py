"""A ridge without an L1 penalty where X has few rows: the same problem in as many variables as rows.

Its solution lies in the span of the rows, w = V^-1 X^T a for the weights V of the squares. Take the pivoted
Cholesky factor L L^T of X V^-1 X^T. The variables v = L^T a have X w = L v and w^T V w = |v|^2. So the loss
of the rows of L with a plain ridge is the same problem, and its Hessians are small.
"""

import time
from dataclasses import replace

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.optimize import OptimizeResult

from ..._linalg.special import largest
from ..._linalg.threads import blas_threads
from ..._solver.tolerances import ROUNDING
from .. import plan
from ..losses.rounding import VALUE_ROUNDING
from .duality import tightened


def few_rows(loss, l1, l2, known=None):
    """The `FewRows` of a loss and the scale of their weights, where they pay, or None.

    ``l2`` (n_variables,) are the weights of half of each square. ``known`` is a `FewRows` of the same loss,
    reused where its weights are in proportion to these.
    """
    design = getattr(loss, "design", None)
    if design is None or not hasattr(loss, "_with_rows") or not design.factors_rows or l1.any():
        return None
    n, p = design.shape
    K = loss.n_variables // (p + loss.fit_intercept)
    table = l2[: p * K].reshape(p, K)
    weights = table[:, 0]
    size = n + np.count_nonzero(weights == 0)
    if not plan.few_rows_fit(n, size, design.nnz, design.is_sparse):
        return None
    if bool(l2[p * K :].any()) or bool((table != weights[:, None]).any()):
        return None
    scale = float(weights.max())
    held = weights > 0
    # what is nearly free would fill the factor with its rounding
    if not weights[held].min() >= ROUNDING * scale:
        return None
    V = weights / scale
    if known is None or not np.allclose(known.V, V, rtol=1e-14, atol=0.0):
        known = FewRows(loss, V)
    return (known, scale) if known.size else None


class FewRows:
    """The rows of ``loss`` in the basis of the weights V (n_features,), some of which may be 0."""

    def __init__(self, loss, V):
        self.V, self.held, self.bare = V, np.flatnonzero(V), np.flatnonzero(V == 0)
        with blas_threads(loss.n_threads):
            inverse = np.divide(1.0, V, out=np.zeros_like(V), where=V > 0)
            with np.errstate(over="ignore", invalid="ignore"):
                kernel = loss.design.row_gram(inverse)
            if not np.isfinite(kernel).all():
                self.size = 0  # squares that overflow
                return
            factor, pivots, self.rank, _ = lapack.dpstrf(kernel, lower=1)
        order = pivots - 1
        factor = np.tril(factor[:, : self.rank])
        self.chosen, self.triangle = order[: self.rank], factor[: self.rank]
        basis = np.empty((len(order), self.rank + self.bare.size))
        basis[order, : self.rank] = factor
        basis[:, self.rank :] = loss.design.dense_part(slice(None), self.bare)
        self.loss = loss._with_rows(basis)
        self.size = basis.shape[1]

    def l2(self, scale):
        """Weights of the small problem's squares for those ``scale`` * V."""
        out = np.zeros(self.loss.n_variables)
        out.reshape(-1, self.n_outputs)[: self.rank] = scale
        return out

    @property
    def n_outputs(self):
        """Columns of the coefficients' table: one a class, or one."""
        return self.loss.n_variables // (self.size + self.loss.fit_intercept)

    def expand(self, v, design):
        """Variables (n_variables,) of all features from the small problem's ones."""
        table = v.reshape(-1, self.n_outputs)
        dual = np.zeros((design.shape[0], table.shape[1]))
        dual[self.chosen] = solve_triangular(self.triangle, table[: self.rank], lower=True, trans=1)
        p = design.shape[1]
        out = np.empty((p + self.loss.fit_intercept, table.shape[1]))
        for k in range(table.shape[1]):
            out[:p, k] = design.rmatvec(np.ascontiguousarray(dual[:, k]))
        out[self.held] /= self.V[self.held, None]
        out[self.bare] = table[self.rank : self.size]
        out[p:] = table[self.size :]
        return out.ravel()

    def shrink(self, x, design):
        """The small problem's variables (n,) whose predictor is that of x, as nearly as they can."""
        table = x.reshape(-1, self.n_outputs)
        out = np.empty((self.size + self.loss.fit_intercept, table.shape[1]))
        for k in range(table.shape[1]):
            z = design.matvec(np.where(self.V > 0, table[: len(self.V), k], 0.0))
            out[: self.rank, k] = solve_triangular(self.triangle, z[self.chosen], lower=True)
        out[self.rank : self.size] = table[self.bare]
        out[self.size :] = table[len(self.V) :]
        return out.ravel()


def start_from_few_rows(basis, scale, problem, x, unit, opts, minimize, callback, history):
    """A nearly optimal start of ``problem``, and the result of its way there in fewer variables.

    ``unit`` is that of the tolerance. ``minimize(loss, x0, l2, options, callback, history)`` is the solver;
    the callback sees all variables.
    """
    design, l2, begun, results = problem.inner.design, basis.l2(scale), time.perf_counter(), []
    v, tol = basis.shrink(x, design), opts.tol

    def report(intermediate_result):
        one = OptimizeResult(intermediate_result)
        one.x, one.nit = basis.expand(one.x, design), one.nit + sum(r.nit for r in results)
        one.nnz = int(np.count_nonzero(one.x))
        return callback(one)

    while True:
        used = time.perf_counter() - begun
        left = replace(opts, tol=tol, max_iter=opts.max_iter - sum(r.nit for r in results),
                       max_time=max(opts.max_time - used, 0.0))  # fmt: skip
        found = minimize(basis.loss, v, l2, left, None if callback is None else report, history)
        results.append(found)
        v, x = found.x, basis.expand(found.x, design)
        problem.start(x)
        violation, goal = largest(np.abs(problem.gradient())), opts.tol * unit
        if not found.success or violation <= goal or tol <= VALUE_ROUNDING:
            break
        tol = tightened(tol, goal, violation)
    return x, results
