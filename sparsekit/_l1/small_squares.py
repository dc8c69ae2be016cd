"""Least squares of few columns, or of few sparse rows, whose fits would mostly be preparations elsewhere."""

import time

import numpy as np
import scipy.sparse as sp

from .._arrays import is_device
from .._solver import outcome
from .losses import LeastSquaresLoss
from .oba import minimize_oba
from .squares import minimize_squares, squares_solver

# Columns, sparse rows (fewer than columns) and entries of X up to which this is the way. Times beside OBA's
# of made problems: 0.67 for columns in float32, 0.70 for sparse columns, 0.47 for sparse rows up to 128 and
# 0.53 up to 400. With 300 columns they are 1.5, with 500 to 700 sparse rows 0.1 to 2, over few dense rows 1
# to 80.
_SIDE, _ROWS, _ENTRIES = 128, 400, 200_000
# Sweeps of a round, after which the columns count as too dependent. With 200, 3 of 14 problems of sparse rows
# were left to OBA, which did not solve them; with 5000 none was.
_SWEEPS = 5000


def small_squares(X, target, weight, fit_intercept, n_threads, kinks=True):
    """`SmallSquares` of the data, whose target is centred already; None where they are not small.

    ``kinks``: whether there is an L1 penalty.
    """
    if is_device(X) or not (isinstance(X, np.ndarray) or sp.issparse(X)):  # blocks of rows are neither
        return None
    n, p = X.shape
    few_columns = 0 < p <= min(_SIDE, n) and n * p <= _ENTRIES
    few_rows = kinks and sp.issparse(X) and 0 < n <= min(_ROWS, p) and X.nnz <= _ENTRIES
    if not few_columns and not few_rows:
        return None
    solver = squares_solver(X, target, weight, fit_intercept, most_sweeps=_SWEEPS)
    if solver is None:
        return None
    return SmallSquares(solver, X, target, weight, fit_intercept, n_threads)


class SmallSquares:
    """Descent over sums of rows, and what that does not solve by OBA."""

    def __init__(self, solver, *data):
        self.solver, self._data = solver, data
        self.value_at_zero = solver.value_at_zero
        self.l1_vector, self.n_variables = solver.l1_vector, solver.n_variables

    def minimizer(self, loss, l1, x0=None, *, max_time=None, **options):
        """What `OBAEstimatorMixin` asks a loss for; ``loss`` is this."""
        begin = time.perf_counter()
        result = minimize_squares(self.solver, l1, x0, max_time=max_time, **options)
        ended = result.status in (outcome.STOPPED, outcome.MAX_TIME)
        if ended or self.solver.proves(result, options["tol"]):
            return result
        X, target, weight, fit_intercept, n_threads = self._data
        left = None if max_time is None else max(max_time - (time.perf_counter() - begin), 1e-9)
        loss = LeastSquaresLoss._of_sound(X, target, weight, fit_intercept=fit_intercept, n_threads=n_threads)
        return minimize_oba(loss, l1, result.x, max_time=left, **options)
