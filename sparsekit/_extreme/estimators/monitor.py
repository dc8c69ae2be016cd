"""Monitor of the epochs of ExtremeSoftmaxSGD: progress bar and objective."""

import sys

import numpy as np

from ..._estimator.monitor import FitMonitor


class EpochMonitor(FitMonitor):
    """FitMonitor of an epoch: a progress bar and estimates of the objective."""

    def __init__(self, estimator, context, data, attributes, tracker=None):
        super().__init__(estimator, context, data, attributes, 1.0)
        self.tracker = tracker
        # time of the epochs so far, and whether a callback ended them
        self.seconds, self.was_stopped = 0.0, False
        self.enough: int | None = None  # epochs that will do

    def __call__(self, intermediate_result):
        result = intermediate_result
        result.x = None  # the hooks' attributes come from the state
        stop, result.fun, result.objective_error = False, np.nan, np.nan
        if self.tracker is not None:
            result.fun, result.objective_error = self.tracker.after_epoch(result.nit)
            stop = self.tracker.has_settled
        self.seconds = result.time
        self.was_stopped = bool(super().__call__(result))
        return self.was_stopped or stop or result.nit == self.enough

    def _print(self, result):
        estimator, out = self.estimator, sys.stdout
        width, total = 20, estimator.max_iter
        bar = ("#" * (width * result.nit // total)).ljust(width, ".")
        line = (
            f"{type(estimator).__name__} [{bar}] epoch {result.nit}/{total}{self._objective(result)}"
            f"  rate {result.learning_rate:.3g}  {result.time:.2f} s"
        )
        # a terminal shows one line that fills, a file one line an epoch
        out.write(f"\r{line}" if out.isatty() and result.nit < total else f"{line}\n")
        out.flush()

    def _objective(self, result):
        if not np.isfinite(result.fun):
            return ""
        fall = self.tracker.fall()
        falls = "" if fall is None else f", falls by {fall[0]:.1e} an epoch"
        return f"  objective {result.fun:.5f} +- {result.objective_error:.5f}{falls}"
