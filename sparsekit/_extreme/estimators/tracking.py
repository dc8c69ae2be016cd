"""The objective over the epochs: when a fit has converged, and whether it ended too early."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._arrays import to_host
from ..._solver import outcome
from ..solver.blocks import BLOCK
from .model_view import codes
from .objective import Evaluation, SampledObjective
from .sample import (
    FREE_CALL,
    LEAST,
    MOST,
    Schedule,
    allowance,
    draw,
    examples_of,
    plan_estimates,
    spawn_generator,
)  # fmt: skip
from .settings import epochs_until_spent

# falls of tol an epoch that are not worth their time: an objective that is no more itself can't fall by more
WORTHLESS = 50.0
# Epochs over which a fall of the objective is judged.
N_ITER_NO_CHANGE = 5
# standard errors by which a difference must be on one side of tol
SURE = 2.0
ATTRIBUTES = ("objective_curve_", "objective_error_curve_", "objective_", "objective_error_", "optimality_")


def forget(model):
    """Remove the attributes of an earlier fit."""
    for name in ATTRIBUTES:
        if hasattr(model, name):
            delattr(model, name)


class Tracker:
    """Evaluates the model after epochs.

    Parameters
    ----------
    sample : Sample or None
        None where the schedule has no rows.
    schedule : Schedule
    rows_of : callable
        Gives the matrix of the sample's rows; called once, after an epoch.
    state : SoftmaxState
    options : SamplingOptions
    tol : float
        Fall an epoch, in parts of log K, below which a fit has settled; 0: it never has.
    n_wait : int
        Epochs over which a fall is judged.
    """

    def __init__(self, sample, schedule, rows_of, state, options, tol, n_wait):
        self.sample, self.schedule, self.rows_of = sample, schedule, rows_of
        self.state, self.options, self.n_wait = state, options, n_wait
        self.limit = tol * np.log(max(2, state.n_classes))
        self.estimate: SampledObjective | None = None
        self.starts_at_zeros = False
        self.ridge_was_chosen = False
        self.exact: float | None = None  # where all rows and classes were evaluated in the end
        self.restart()

    def restart(self):
        """Remove the epochs so far."""
        self.curve: list[float] = []
        self.errors: list[float] = []
        self.evaluations: list[Evaluation] = []
        self.has_settled = False
        if self.starts_at_zeros:
            self.begin_at_zeros()

    def begin_at_zeros(self):
        """Note the objective before the first epoch, of a model without weights but for intercepts."""
        if self.sample is None or self.state.center is not None:
            return
        self.starts_at_zeros = True
        K, bias = self.state.n_classes, self.state.bias
        losses = np.full(len(self.sample.codes), np.log(K))
        norms = np.zeros(len(self.sample.classes) if self.options.alpha > 0 else 0)
        if self.options.method == "nce" and bias is not None:
            # its intercepts start at the logarithms of frequencies
            start = to_host(bias).astype(np.float64)[codes(np.arange(K), self.options)]
            losses = np.logaddexp.reduce(start) - start[self.sample.codes]
            norms = start[self.sample.classes][: len(norms)] ** 2
        self.evaluations = [Evaluation(0, losses, norms)]

    def begin_after(self, epoch):
        """Evaluate the state that epochs before the first tracked one left."""
        if self.sample is not None:
            self.evaluations = [self._evaluate(epoch, self.state, self.options)]

    def after_epoch(self, epoch):
        """(estimate, standard error) of the objective: the newest ones, NaN where there are none yet."""
        self._start_curves_at(epoch)
        value = error = np.nan
        self.has_settled = False
        if self.schedule.is_due(epoch, self.options.max_iter):
            found = self._evaluate(epoch, self.state, self.options)
            value, error = self.estimate.value(found)
            self.evaluations = [*(one for one in self.evaluations if one.epoch < epoch), found]
            while len(self.evaluations) > 3 and self.evaluations[1].epoch <= epoch - self.n_wait:
                del self.evaluations[0]
            self.has_settled = self._is_settled()
        self.curve.append(value)
        self.errors.append(error)
        known = [(v, e) for v, e in zip(self.curve, self.errors) if not np.isnan(v)]
        return known[-1] if known else (np.nan, np.nan)

    def _start_curves_at(self, epoch):
        """Cut what epochs from this one on left; those before that have no estimate get NaN."""
        for curve in (self.curve, self.errors):
            del curve[epoch - 1 :]
            curve += [np.nan] * (epoch - 1 - len(curve))

    def fall(self, latest=False):
        """(mean fall an epoch over the last ones, its standard error), or None where it is not known.

        ``latest`` is that since the last estimate.
        """
        if len(self.evaluations) < 2:
            return None
        before, after = self._base(), self.evaluations[-1]
        before = self.evaluations[-2 if latest else 0] if latest or before is None else before
        value, error = self.estimate.fall(before, after)
        n = after.epoch - before.epoch
        return value / n, error / n

    def end(self, model, result, keep=False):
        """Set the attributes of ``model``; with ``keep`` an older estimate stays if there is no new one."""
        known = (getattr(model, "objective_", np.nan), getattr(model, "objective_error_", np.nan))
        forget(model)
        state, options = self.state, self.options
        if not self.curve:
            self._start_curves_at(result.nit + 1)
        model.objective_curve_, model.objective_error_curve_ = np.array(self.curve), np.array(self.errors)
        model.objective_ = model.objective_error_ = model.optimality_ = np.nan
        if self.sample is None:
            if keep:
                model.objective_, model.objective_error_ = known
            return
        found = self.evaluations[-1] if self.evaluations else None
        in_between = result.status in (outcome.MAX_TIME, outcome.DIVERGED)
        if self.exact is not None or in_between or found is None or found.epoch != result.nit:
            found = self._evaluate(result.nit, state, options)
        model.objective_, model.objective_error_ = self.estimate.value(found)
        if self.exact is not None:
            model.objective_, model.objective_error_ = self.exact, 0.0
        if self.schedule.gradient:
            model.optimality_ = self.estimate.gradient_norm(found, state, options)

    def warn_if_it_falls(self, name, result, stacklevel):
        """ConvergenceWarning where all epochs were run and the objective surely fell by more than tol."""
        if result.status != outcome.CONVERGED or self.has_settled or self.exact is not None or not self.limit:
            return
        decay, spent = self.options.decay, self.options.max_iter >= epochs_until_spent(self.options)
        fall, limit = self.fall(latest=spent), self.limit
        if spent and self.ridge_was_chosen:  # by new rows, whose log-loss comes to rest before
            return
        if spent:  # at a rate that went on to decay, all of what is left would come to this
            limit *= WORTHLESS * (1.0 - decay) / decay
        if fall is None or not fall[0] - SURE * fall[1] > limit:
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

    def _evaluate(self, epoch, state, options):
        if self.estimate is None:
            self.estimate = SampledObjective(
                self.sample, self.rows_of(self.sample.rows), options.alpha, state.n_classes
            )
        return self.estimate.evaluate(epoch, state, options)

    def _base(self):
        """The newest evaluation that lies ``n_wait`` epochs back, with another one in between, or None."""
        old = [one for one in self.evaluations[:-2] if one.epoch <= self.evaluations[-1].epoch - self.n_wait]
        return old[-1] if old else None

    def _is_settled(self):
        base, last = self._base(), self.evaluations[-1]
        if not self.limit:
            return False
        value, error = self.estimate.value(last)
        if value + SURE * error <= WORTHLESS * self.limit:
            return True
        if base is None:
            return False
        window = last.epoch - base.epoch
        # neither falling nor, by steps that are too long, rising in between
        limit = self.limit * window
        for one in self.evaluations[:-1]:
            if one.epoch >= base.epoch:
                value, error = self.estimate.fall(one, last)
                if not abs(value) + SURE * error <= limit:
                    return False
        return True


def tracker_of(model, targets, use, state, options, rows_of, width, rng):
    """The Tracker of a fit, or None with ``tol=None``.

    Parameters
    ----------
    model : ExtremeSoftmaxSGD
    targets : ExtremeTargets
    use : ndarray of bool
        The rows that the fit steps on.
    state : SoftmaxState
    options : SamplingOptions
    rows_of : callable
        See `Tracker`.
    width : float
        Mean number of a row's entries.
    rng : numpy.random.Generator
        Of the steps; it is left as it is.
    """
    if model.tol is None:
        return None
    examples, K = examples_of(targets, model.label_choice, use), state.n_classes
    n, n_rows = len(examples.codes), int(np.count_nonzero(use))
    schedule = plan_estimates(n, n_rows, K, _classes_a_step(options, K), options.max_iter)
    sample = _draw(examples, schedule.n_rows, state, options, width, rng)
    tracker = Tracker(sample, schedule, rows_of, state, options, model.tol, N_ITER_NO_CHANGE)
    tracker.begin_at_zeros()
    return tracker


def tracker_of_pass(model, targets, use, state, options, rows_of, width, rng):
    """The same for a call of partial_fit: an estimate from its own rows, once calls have paid for it."""
    if model.tol is None:
        return None
    examples, K = examples_of(targets, model.label_choice, use), state.n_classes
    credit = getattr(model, "_score_credit", 0.0)
    credit += allowance(int(np.count_nonzero(use)), _classes_a_step(options, K), 1, FREE_CALL)
    size = min(len(examples.codes), MOST, int(credit / K))
    if size < min(len(examples.codes), LEAST):
        size = 0
    # what many calls saved up is not kept for one
    model._score_credit = min(credit - size * K, float(MOST) * K)
    sample = _draw(examples, size, state, options, width, rng)
    return Tracker(sample, Schedule(size, 1, False), rows_of, state, options, 0.0, 1)


def _classes_a_step(options, n_classes):
    plan = options.plan
    taken = options.n_negatives + 1 if plan is None else plan.n_drawn * BLOCK
    return min(n_classes, taken)


def _draw(examples, size, state, options, width, rng):
    if not size:
        return None
    K = state.n_classes
    n_norms = 0
    if options.alpha > 0:
        # of those as much as of the scores
        n_features = state.W.shape[0 if options.plan is not None else 1]
        n_norms = max(LEAST, int(size * K * width / max(1, n_features)))
    return draw(examples, size, K, n_norms, spawn_generator(rng))
