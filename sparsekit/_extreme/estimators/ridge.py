"""The start of a fit whose ridge shrinks to centroids, and the strength of the ridge."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from ..._solver import outcome
from ..._solver.outcome import Limits
from ..solver.centroids import block_center, fit_weights, move_center
from ..solver.epochs import minimize_sampled_softmax
from ..solver.state import SoftmaxState
from .objective import Evaluation, SampledObjective
from .rate import JUDGING_ROWS, TUNING_SHARE, rows_aside
from .settings import CENTROIDS_C
from .targets import count_labels, take_rows, used_rows

# Epochs for each C. By two C is 3 on fb15k, where 1 is better, as on graphs if C rises within one fit: more
# epochs lower the log-loss as well.
TRIAL_EPOCHS = 3


def begin_at_centroids(run):
    """The state of a `Run` at the centroids, or after its first epochs, which choose C of the ridge.

    These are epochs on all rows but some set aside. By the strongest ridge a row's score of its label has its
    own part in the centroids or not: the lower log-loss of the rows set aside after one epoch decides. The
    ridge gets weaker as long as this log-loss falls, with own parts by more than its standard error, since
    more epochs then fit to noise. ``run`` goes on with the ridge chosen, whose center moves to the centroids
    of all rows. The weights of the centroids stay those of the first epochs. These take at most
    ``max_time``. A callback that stops them leaves ``run`` without epochs.
    """
    model, X, targets, rows = run.model, run.source.X, run.source.targets, run.source.rows
    options, rng, counts, n_classes = run.options, run.rng, run.counts, len(targets.classes)
    every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(rows.row_of)
    n_epochs = 0 if model.alpha is not None else min(TRIAL_EPOCHS, options.max_iter - 1)
    n_aside = min(JUDGING_ROWS, int(TUNING_SHARE * len(every))) if n_epochs else 0
    order = rng.permutation(len(every)) if n_aside else np.arange(len(every))
    kept, aside = np.sort(order[n_aside:]), order[:n_aside]
    # of each example's row
    Z = sp.csr_array(X) if rows.row_of is None else sp.csr_array(X)[rows.row_of]
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    is_kept = np.ones(len(every))
    is_kept[aside] = 0.0
    weight_kept = weight * (is_kept if rows.first is None else np.repeat(is_kept, np.diff(rows.first)))
    weights = fit_weights(Z, rows.y, n_classes, rng, weight_kept)

    def center(weight):
        centers, intercepts, own = weights.centroids(Z, rows.y, n_classes, weight, model.fit_intercept)
        return block_center(centers, own, options.plan, X.dtype), intercepts

    first = center(weight_kept)

    def start(leave_out=True):
        state = run.start()
        move_center(state, options.plan, _scoring(first[0], leave_out), first[1])
        return state

    if model.alpha is not None:
        return start()
    counts_kept = count_labels(targets, model.label_choice, used_rows(targets, every[kept]))
    sample = rows_aside(model, targets, every[aside], counts_kept)
    judge = SampledObjective(sample, take_rows(X, sample.rows), 0.0)
    limits = Limits(max_time=np.inf if model.max_time is None else model.max_time)
    callback = None if model.callback is None else partial(_call, model.callback)
    was_stopped = False

    def advance(trial, last, best=None):
        """Run epochs of a `_Trial` up to ``last``, if there is time; whether ``best`` has a higher loss."""
        nonlocal was_stopped
        if was_stopped or limits.reached() is not None:
            return False
        own = replace(options, alpha=1.0 / (trial.C * counts.sum()), max_iter=last)
        result = minimize_sampled_softmax(
            run.source, trial.state, own, rng, partial(run.work, order=kept), first_epoch=trial.n_done + 1,
            callback=callback, max_time=limits.max_time - limits.seconds, seconds=limits.seconds,
        )  # fmt: skip
        was_stopped, trial.n_done = result.status == outcome.STOPPED, result.nit
        trial.found = judge.evaluate(result.nit, trial.state, own)
        if model.verbose:
            loss, error = judge.value(trial.found)
            print(f"{type(model).__name__} {trial}: log-loss {loss:.5f} +- {error:.5f}, rows set aside")
        if best is None:
            return True
        fall, error = judge.fall(best.found, trial.found)
        return fall > (error if trial.C > best.C and not trial.leaves_out else 0.0)

    best = _Trial(CENTROIDS_C[0], True, start())
    if len(sample.codes) > 1:  # the loss of one says nothing
        advance(best, 1)
        with_own = _Trial(best.C, False, start(False))
        best = with_own if advance(with_own, 1, best) else best
        advance(best, n_epochs)
        for C in CENTROIDS_C[1:]:
            other = _Trial(C, best.leaves_out, start(best.leaves_out))
            if not advance(other, n_epochs, best):
                break
            best = other
        run.n_done, run.seconds = best.n_done, limits.seconds
        if was_stopped:
            options.max_iter = run.n_done
    options.alpha = 1.0 / (best.C * counts.sum())
    move_center(best.state, options.plan, _scoring(center(weight)[0], best.leaves_out))
    return best.state


@dataclass
class _Trial:
    """Epochs with one ridge: their state, their number and the `Evaluation` after them."""

    C: float
    leaves_out: bool
    state: SoftmaxState = field(repr=False)
    n_done: int = 0
    found: Evaluation | None = field(default=None, repr=False)


def _scoring(center, leave_out):
    """The `BlockCenter` for steps that leave a row's own part out of its score, or do not."""
    return center if leave_out else replace(center, own=None)


def _call(callback, report):
    """The user's callback after an epoch without an estimate of the objective."""
    report.x, report.fun, report.objective_error = None, np.nan, np.nan
    return callback(report)
