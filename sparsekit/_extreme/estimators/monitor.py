"""What watches a fit of ExtremeSoftmaxSGD: progress bar, the objective, early stopping on held-out rows."""

import sys

import numpy as np

from ..._estimator.monitor import FitMonitor
from .scores import log_losses
from .targets import make_rows


class EpochMonitor(FitMonitor):
    """FitMonitor of an epoch: a progress bar, estimates of the objective, early stopping on held-out rows."""

    def __init__(self, estimator, context, data, attributes, held_out=None, tracker=None):
        super().__init__(estimator, context, data, attributes, 1.0)
        self.held_out, self.tracker = held_out, tracker
        # time of the epochs so far, and whether a callback ended them
        self.seconds, self.was_stopped = 0.0, False
        self.enough: int | None = None  # epochs that will do
        self.forget()

    def forget(self):
        """Forget what was seen of held-out rows."""
        self.validation = []
        self.best, self.since_best = np.inf, 0

    def restart(self):
        """Forget the epochs so far."""
        self.forget()
        if self.tracker is not None:
            self.tracker.restart()

    def __call__(self, intermediate_result):
        result = intermediate_result
        result.x = None  # the hooks' attributes come from the state
        stop, result.fun, result.objective_error = False, np.nan, np.nan
        if self.tracker is not None:
            result.fun, result.objective_error = self.tracker.after_epoch(result.nit)
            stop = self.tracker.has_settled
        if self.held_out is not None:
            result.validation_loss = self.held_out.loss()
            self.validation.append(result.validation_loss)
            self.since_best += 1
            if result.validation_loss < self.best - (self.estimator.tol or 0.0):
                self.since_best = 0
            if result.validation_loss < self.best:
                self.best = result.validation_loss
                self.held_out.keep()
            stop = self.since_best >= self.estimator.n_iter_no_change
        self.seconds = result.time
        self.was_stopped = bool(super().__call__(result))
        return self.was_stopped or stop or result.nit == self.enough

    def _print(self, result):
        estimator, out = self.estimator, sys.stdout
        width, total = 20, estimator.max_iter
        bar = ("#" * (width * result.nit // total)).ljust(width, ".")
        held_out = f"  held out {self.validation[-1]:.5f}" if self.validation else ""
        line = (
            f"{type(estimator).__name__} [{bar}] epoch {result.nit}/{total}{self._objective(result)}"
            f"{held_out}  rate {result.learning_rate:.3g}  {result.time:.2f} s"
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


class Judge:
    """Log-loss of a model on some rows.

    ``scores(W, bias)`` gives the object that computes its scores.
    """

    def __init__(self, X, targets, rows, scores):
        picked = make_rows(X, targets, "first", rows)
        self.X = X if picked.row_of is None else X[picked.row_of]
        self.codes, self.weight, self.scores = picked.y, picked.weight, scores

    def loss(self, W, bias):
        """Weighted mean; inf for weights that are not finite, or nearly not."""
        with np.errstate(all="ignore"):
            each = log_losses(self.scores(W, bias), self.X, self.codes)
            value = float(np.average(each, weights=self.weight))
        return value if np.isfinite(value) else np.inf


class HeldOut:
    """What an early stop looks at, and the best model so far; ``model()`` gives the present (W, bias)."""

    def __init__(self, judge, model):
        self.judge, self.model = judge, model
        self.best, self.is_kept = (
            tuple(None if part is None else np.empty_like(part) for part in model()),
            False,
        )

    def loss(self):
        return self.judge.loss(*self.model())

    def keep(self):
        self.is_kept = True
        for best, part in zip(self.best, self.model()):
            if best is not None:
                np.copyto(best, part)

    def kept(self):
        """(W, bias) of the best model, or None before the first epoch has ended."""
        return self.best if self.is_kept else None
