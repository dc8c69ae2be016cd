"""One penalty of a session: its limits, callback, history and counter."""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from .oba_run import HISTORY


class SessionRun:
    """Limits, callback, history and counter of one penalty, and the algorithms that ran."""

    def __init__(self, *, tol, max_iter, max_time=None, predicted_tol=0.0, callback=None, history=False):
        self.tol, self.predicted_tol, self.callback = tol, predicted_tol, callback
        self.limits = outcome.Limits(max_iter, np.inf if max_time is None else max_time)
        self.nit, self.status, self.least_reduction = 0, None, 0.0
        self.history, self.solver = outcome.History(HISTORY, history), []
        self.l1 = self.l2 = None  # penalties, (n_variables,)

    def check_limits(self):
        """Set the status where a limit is reached."""
        if self.status is None:
            self.status = self.limits.reached(self.nit)

    def add(self, result, seconds):
        """Count the iterations of a solver that began at the last point, after so many seconds."""
        self.nit += result.nit
        if self.history:
            more = {**result.history, "time": result.history["time"] + seconds}
            self.history.rows[-1:] = zip(*(more[name] for name in self.history.names))


def counting_from(nit, seconds, callback):
    """The callback of a run that follows one of ``nit`` iterations and so many seconds."""

    def counted(intermediate_result):
        one = OptimizeResult(intermediate_result)
        one.nit, one.time = one.nit + nit, one.time + seconds
        return callback(one)

    return counted
