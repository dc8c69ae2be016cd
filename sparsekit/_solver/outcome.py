"""How a run of a solver goes on and ends: statuses with their messages, limits, callbacks, the history.

A status number means the same in every result of the package; solvers differ in which of them they use.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import OptimizeResult

CONVERGED, MAX_ITER, MAX_TIME, STOPPED, NO_PROGRESS = range(5)
MAX_FUN, SMALL_DECREASE, NO_DIRECTION, UNBOUNDED, DIVERGED, INFEASIBLE, NOT_FINITE = range(5, 12)
SUCCESSES = (CONVERGED, SMALL_DECREASE)


def messages(converged, tolerances=" or tol", **others):
    """Message of each status.

    Parameters
    ----------
    converged : str
        What holds at a solution.
    tolerances : str
        The tolerances to raise, as they end a list of options.
    **others : str
        Other messages, by the name of the status in lower case.
    """
    found = {
        CONVERGED: f"Converged: {converged}.",
        MAX_ITER: f"Stopped after max_iter iterations; raise max_iter{tolerances}.",
        MAX_TIME: f"Stopped after max_time seconds; raise max_time{tolerances}.",
        MAX_FUN: f"Stopped after max_fun evaluations; raise max_fun{tolerances}.",
        STOPPED: "Stopped by the callback.",
        NO_PROGRESS: "Stopped where rounding allows no further progress; raise tol or scale the features.",
    }
    return found | {globals()[name.upper()]: text for name, text in others.items()}


class Stop(Exception):
    """Ends a run from within; args[0] is the status."""

    @property
    def status(self):
        return self.args[0]


@dataclass
class Limits:
    """Limits of iterations, evaluations and seconds, the latter from when this is made."""

    max_iter: float = np.inf
    max_time: float = np.inf
    max_fun: float = np.inf
    start: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self):
        """Time since the start."""
        return time.perf_counter() - self.start

    def reached(self, nit=-1, nfev=-1):
        """Status of the limit that is reached, or None."""
        if nit >= self.max_iter:
            return MAX_ITER
        if nfev >= self.max_fun:
            return MAX_FUN
        return MAX_TIME if self.seconds >= self.max_time else None


def wants_to_stop(callback, report):
    """Whether the user's callback, given the report, ends the run: by a true value or by StopIteration."""
    try:
        return bool(callback(report))
    except StopIteration:
        return True


class History:
    """A row of values for each iteration; ``keep`` False keeps none."""

    def __init__(self, names, keep=True):
        self.names = names
        self.rows: list[tuple] | None = [] if keep else None

    def __bool__(self):
        return self.rows is not None

    def add(self, *values):
        if self.rows is not None:
            self.rows.append(values)

    def columns(self):
        """A dict of arrays, or None."""
        if self.rows is None:
            return None
        columns = zip(*self.rows) if self.rows else [()] * len(self.names)
        return {name: np.asarray(column) for name, column in zip(self.names, columns)}


@dataclass
class Progress:
    """Limits, history and callback of a run."""

    limits: Limits
    history: History
    callback: Callable | None

    @classmethod
    def of_call(cls, max_iter, max_time, callback, history):
        """The progress of a call with these arguments; None as ``max_time`` is no limit."""
        limits = Limits(max_iter, np.inf if max_time is None else max_time)
        return cls(limits, History(("time", "fun", "optimality"), history), callback)

    def report(self, x, fun, nit, optimality):
        """Add a line to the history, and hand a copy of x to the callback after a step (nit > 0).

        Whether that stops the run.
        """
        seconds = self.limits.seconds
        self.history.add(seconds, fun, optimality)
        if self.callback is None or not nit:
            return False
        report = OptimizeResult(
            x=x.copy(), fun=fun, nit=nit, optimality=optimality, nnz=int(np.count_nonzero(x)), time=seconds
        )
        return wants_to_stop(self.callback, report)
