"""The objective over the epochs: when a fit has converged, and whether it ended too early."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._solver import outcome
from ..plan import DECISION_ROWS
from .objective import SampledObjective, draw, examples_of
from .settings import epochs_until_spent

# Scores of an estimate after each epoch, in units of those of its steps: a twentieth of the time. A step's
# score is read at a random index, written back and comes with other work. It takes 2 to 60 times as long as
# one of many rows at once; sparse rows and few classes are at the lower end.
EVALUATED_PART = 0.2
# Scores that an estimate may take in any case: half a millisecond.
FREE_SCORES = 2**16
# Most rows of an estimate: more say nothing new.
MAX_ROWS = 20000
# Epochs over which a fall of the objective is judged. Long fits have an estimate after so many, of more rows.
# Newton's method goes on after so many: 24 fits end at the same objectives with 2 to 8 epochs before it, and
# with up to 3 steps more or fewer.
WINDOW = 5
# Falls of tol an epoch that are not worth their time: an objective that is no more itself can't fall by more.
NEGLIGIBLE_DECREASE = 50.0
# Standard errors by which a difference must be on one side of tol.
STANDARD_ERRORS = 2.0
ATTRIBUTES = ("objective_curve_", "objective_error_curve_", "objective_", "objective_error_")


def forget(model):
    """Remove the attributes of an earlier fit, by an earlier version too."""
    for name in (*ATTRIBUTES, "optimality_", "_score_credit"):
        if hasattr(model, name):
            delattr(model, name)


class Tracker:
    """Evaluates the model of a `Run` after epochs, on rows that are drawn once.

    The generator of the steps is left as it is.
    """

    def __init__(self, run, state):
        model, source, options = run.model, run.source, run.options
        self.state, self.options, n_classes = state, options, state.n_classes
        self.limit = model.tol * np.log(max(2, n_classes))
        self.every = WINDOW if options.max_iter >= 3 * WINDOW else 1
        examples = examples_of(source.targets, model.label_choice, source.use)
        size = _sample_size(source.use.sum(), options, n_classes, self.every)
        n = len(examples.codes)
        self.estimate = None
        if size >= min(n, DECISION_ROWS):
            size = min(size, MAX_ROWS)
            # all rows are X itself, where a copy of most would take as much memory
            sample = draw(examples, n if 2 * size > n else size, _spawn(run.rng))
            self.estimate = SampledObjective(sample, source.matrix_of(sample.rows), options.alpha)
        self.first = run.n_done
        self.ridge_was_chosen = False
        self.exact: float | None = None  # where all rows and classes were evaluated in the end
        self.begin()

    def begin(self):
        """Evaluate the first state."""
        self.has_settled = False
        self.curve, self.errors = [np.nan] * self.first, [np.nan] * self.first
        self.evaluations = [] if self.estimate is None else [self._evaluate(self.first)]

    def after_epoch(self, epoch):
        """(estimate, standard error) of the objective: the newest ones, NaN where there are none."""
        value = error = np.nan
        if self.estimate is not None and (epoch % self.every == 0 or epoch == self.options.max_iter):
            self.evaluations = [one for one in self.evaluations if one.epoch >= epoch - 2 * WINDOW]
            self.evaluations.append(self._evaluate(epoch))
            value, error = self.estimate.value(self.evaluations[-1])
            self.has_settled = self._is_settled(value + STANDARD_ERRORS * error)
        self.curve.append(value)
        self.errors.append(error)
        return (np.nan, np.nan) if self.estimate is None else self.estimate.value(self.evaluations[-1])

    def fall(self, latest=False):
        """(mean fall an epoch over the last ones, its standard error), or None where it is not known.

        ``latest`` is that since the last estimate.
        """
        if len(self.evaluations) < 2:
            return None
        before, after = self.evaluations[-2] if latest else self._base(), self.evaluations[-1]
        value, error = self.estimate.fall(before, after)
        n = after.epoch - before.epoch
        return value / n, error / n

    def end(self, model, result):
        """Set the attributes of ``model``."""
        forget(model)
        model.objective_ = model.objective_error_ = np.nan
        if self.exact is not None:
            model.objective_, model.objective_error_ = self.exact, 0.0
        elif self.estimate is not None:
            last = self.evaluations[-1]
            last = last if last.epoch == result.nit else self._evaluate(result.nit)
            model.objective_, model.objective_error_ = self.estimate.value(last)
        missing = [np.nan] * (result.nit - len(self.curve))  # an epoch that had no time to end
        model.objective_curve_ = np.array(self.curve + missing)
        model.objective_error_curve_ = np.array(self.errors + missing)

    def warn_if_it_falls(self, name, result, stacklevel):
        """ConvergenceWarning where all epochs were run and the objective surely fell by more than tol."""
        if result.status != outcome.CONVERGED or self.has_settled or self.exact is not None or not self.limit:
            return
        decay, spent = self.options.decay, self.options.max_iter >= epochs_until_spent(self.options)
        fall, limit = self.fall(latest=spent), self.limit
        if spent and self.ridge_was_chosen:  # by new rows, whose log-loss comes to rest before
            return
        if spent:  # at a rate that went on to decay, all of what is left would come to this
            limit *= NEGLIGIBLE_DECREASE * (1.0 - decay) / decay
        if fall is None or not fall[0] - STANDARD_ERRORS * fall[1] > limit:
            return
        scale = np.log(max(2, self.state.n_classes))
        more = (
            "Raise decay, with which a fit has more epochs," if spent else "Raise max_iter, or decay with it,"
        )
        warnings.warn(
            f"{name} did not converge: its objective still fell by {fall[0]:.2g} an epoch, that is "
            f"{fall[0] / scale:.2g} log(n_classes) and more than tol={self.limit / scale:.2g}, when "
            f"{self.options.max_iter} epochs were over. {more} or loosen tol.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )

    def _evaluate(self, epoch):
        return self.estimate.evaluate(epoch, self.state, self.options)

    def _base(self):
        """The newest evaluation that lies WINDOW epochs back, or else the oldest."""
        old = [one for one in self.evaluations if one.epoch <= self.evaluations[-1].epoch - WINDOW]
        return old[-1] if old else self.evaluations[0]

    def _is_settled(self, most):
        """Whether the objective, at ``most`` this, is low, or moved little from its base on."""
        if not self.limit:
            return False
        base, last = self._base(), self.evaluations[-1]
        window = last.epoch - base.epoch
        if most <= NEGLIGIBLE_DECREASE * self.limit:
            return True
        if window < WINDOW:
            return False
        # neither falling nor, by steps that are too long, rising in between
        falls = [self.estimate.fall(one, last) for one in self.evaluations[:-1] if one.epoch >= base.epoch]
        return all(abs(value) + STANDARD_ERRORS * error <= self.limit * window for value, error in falls)


def _sample_size(n_rows, options, n_classes, every):
    """Rows with EVALUATED_PART of the scores of so many epochs."""
    taken = min(n_classes, options.classes_of_step)
    return int(every * max(FREE_SCORES, EVALUATED_PART * n_rows * taken) / n_classes)


def _spawn(rng):
    """Another generator, for the same seed always the same, that leaves ``rng``'s numbers as they are."""
    return np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0])
