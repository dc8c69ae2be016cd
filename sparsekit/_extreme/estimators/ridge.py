"""The start of a fit whose ridge shrinks to centroids, and the strength of the ridge."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from ..._solver import outcome
from ..._solver.outcome import Limits
from ..solver.centroids import block_center, fit_weights, move_center
from ..solver.epochs import OneBlock, minimize_sampled_softmax
from .objective import SampledObjective
from .rate import JUDGING_ROWS, TUNING_PART, rows_aside
from .settings import CENTROIDS_C
from .targets import count_labels, take_rows, used_rows

# Epochs for each C. By two C is 3 on fb15k, where 1 is better, as on graphs if C rises within one fit: more
# epochs lower the log-loss as well.
TRIAL_EPOCHS = 3


def begin_at_centroids(run):
    """The state of a `Run` at the centroids, or after its first epochs, which choose C of the ridge.

    These are epochs on all rows but some set aside. By the strongest ridge a row's score of its label has its
    own part in the centroids or not: the lower log-loss of the rows set aside decides. The ridge gets weaker
    as long as this log-loss falls, with own parts by more than its standard error, since more epochs then fit
    to noise. ``run`` goes on with the ridge chosen and the centroids of all rows by the weights of the first
    epochs. These take at most ``max_time``. A callback that stops them leaves ``run`` without epochs.
    """
    model, X, targets, rows = run.model, run.source.X, run.source.targets, run.source.rows
    options, rng, counts, n_classes = run.options, run.rng, run.counts, len(targets.classes)
    every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(rows.row_of)
    n_epochs = 0 if model.alpha is not None else min(TRIAL_EPOCHS, options.max_iter - 1)
    n_aside = min(JUDGING_ROWS, int(TUNING_PART * len(every))) if n_epochs else 0
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
        return block_center(centers, own, options.plan, X.dtype, weights.dense), intercepts

    first = center(weight_kept)

    def start(leave_out=True, loser=None):
        state = run.start()
        if loser is not None:  # clearing costs a third of a new table
            state.W = loser.W
            state.W.fill(0.0)
        move_center(state, options.plan, _scoring(first[0], leave_out), first[1])
        return state

    if model.alpha is not None:
        return start()
    state, loser, chosen, was_stopped = None, None, (CENTROIDS_C[0], True), False
    counts_kept = count_labels(targets, model.label_choice, used_rows(targets, every[kept]))
    sample = rows_aside(model, targets, every[aside], counts_kept)
    if len(sample.codes) > 1:  # the loss of one says nothing
        judge, best = SampledObjective(sample, take_rows(X, sample.rows), 0.0), None
        limits = Limits(max_time=np.inf if model.max_time is None else model.max_time)
        callback = None if model.callback is None else partial(_call, model.callback)
        for number, C in enumerate((CENTROIDS_C[0], *CENTROIDS_C)):
            left = limits.max_time - limits.seconds
            if left <= 0.0:
                break
            leave_out = number == 0 or (number > 1 and chosen[1])
            trial = replace(options, alpha=1.0 / (C * counts.sum()), max_iter=n_epochs)
            other = start(leave_out, loser)
            result = minimize_sampled_softmax(
                OneBlock(rows), other, trial, rng, partial(run.work, order=kept), callback=callback,
                max_time=left, seconds=limits.seconds,
            )  # fmt: skip
            was_stopped = result.status == outcome.STOPPED
            found = judge.evaluate(0, other, trial)
            loss, error = judge.value(found)
            if model.verbose:
                name = f"{type(model).__name__} C {C:g} {'without' if leave_out else 'with'} rows' own parts"
                print(f"{name}: log-loss {loss:.5f} +- {error:.5f}, rows set aside")
            # the first one may be not finite: not a number is no fall
            fall, error = (np.inf - loss, 0.0) if best is None else judge.fall(best, found)
            is_better = fall > (0.0 if leave_out or number < 2 else error)
            loser = state if is_better else other
            if is_better:
                state, best, chosen, run.n_done = other, found, (C, leave_out), result.nit
            if was_stopped or (number > 1 and not is_better):
                break
        run.seconds = limits.seconds
        if was_stopped:
            options.max_iter = run.n_done
    C, leave_out = chosen
    options.alpha = 1.0 / (C * counts.sum())
    state = start() if state is None else state
    move_center(state, options.plan, _scoring(center(weight)[0], leave_out))
    return state


def _scoring(center, leave_out):
    """The `BlockCenter` for steps that leave a row's own part out of its score, or do not."""
    return center if leave_out else replace(center, own=None)


def _call(callback, report):
    """The user's callback after an epoch without an estimate of the objective."""
    report.x, report.fun, report.objective_error = None, np.nan, np.nan
    return callback(report)
