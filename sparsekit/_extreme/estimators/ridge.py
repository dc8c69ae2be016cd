"""The strength of a ridge to centroids, by the log-loss of rows that are set aside."""

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
from .rate import JUDGING_ROWS, TUNING_SHARE, rows_aside
from .settings import CENTROIDS_C
from .targets import count_labels, make_rows, take_rows, used_rows

# Epochs for each C. By two C is 3 on fb15k, where 1 is better, as on graphs if C rises within one fit: more
# epochs lower the log-loss as well.
TRIAL_EPOCHS = 3


def rows_of_examples(X, rows):
    """The CSR matrix of the examples' rows; the arrays of X where that is possible."""
    return sp.csr_array(X) if rows.row_of is None else sp.csr_array(X)[rows.row_of]


def choose_ridge(run):
    """Choose C of the ridge by the first epochs on all rows but some set aside; returns the state after them.

    The ridge gets weaker as long as the log-loss of the rows set aside falls by more than its standard error.
    ``run`` goes on with the ridge chosen, whose center moves to the centroids of all rows. The weights of the
    centroids stay those of the first epochs. These take at most ``max_time``. A callback that stops them
    leaves ``run`` without epochs.
    """
    model, X, targets, rows = run.model, run.source.X, run.source.targets, run.source.rows
    options, rng, counts, n_classes = run.options, run.rng, run.counts, len(targets.classes)
    every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(rows.row_of)
    order = rng.permutation(len(every))
    n_aside = min(JUDGING_ROWS, int(TUNING_SHARE * len(every)))
    kept = np.sort(order[n_aside:])
    part = make_rows(X, targets, model.label_choice, every[kept])
    X_part = rows_of_examples(X, part)
    weights = fit_weights(X_part, part.y, n_classes, rng, part.weight)
    centers, intercepts = weights.centroids(X_part, part.y, n_classes, part.weight)
    first = block_center(centers, options.plan, X.dtype)
    del X_part, centers

    def start():
        state = run.start()
        move_center(state, options.plan, first, intercepts)
        return state

    state, chosen, was_stopped = None, CENTROIDS_C[0], False
    counts_kept = count_labels(targets, model.label_choice, used_rows(targets, every[kept]))
    sample = rows_aside(model, targets, every[order[:n_aside]], counts_kept)
    n_epochs = min(TRIAL_EPOCHS, options.max_iter - 1)
    if len(sample.codes) > 1 and n_epochs:  # the loss of one has no standard error
        judge, best = SampledObjective(sample, take_rows(X, sample.rows), 0.0), None
        limits = Limits(max_time=np.inf if model.max_time is None else model.max_time)
        callback = None if model.callback is None else partial(_call, model.callback)
        for C in CENTROIDS_C:
            left = limits.max_time - limits.seconds
            if left <= 0.0:
                break
            trial, other = replace(options, alpha=1.0 / (C * counts.sum()), max_iter=n_epochs), start()
            result = minimize_sampled_softmax(
                OneBlock(rows), other, trial, rng, partial(run.work, order=kept),
                callback=callback, max_time=left, seconds=limits.seconds,
            )  # fmt: skip
            was_stopped = result.status == outcome.STOPPED
            found = judge.evaluate(0, other, trial)
            if model.verbose:
                value, error = judge.value(found)
                print(f"{type(model).__name__} C {C:g}: log-loss {value:.5f} +- {error:.5f}, rows set aside")
            if best is None or np.greater(*judge.fall(best, found)):
                state, best, chosen, run.n_done = other, found, C, result.nit
            else:
                break
            if was_stopped:
                break
        run.seconds = limits.seconds
        if was_stopped:
            options.max_iter = run.n_done
    options.alpha = 1.0 / (chosen * counts.sum())
    state = start() if state is None else state
    centers, _ = weights.centroids(rows_of_examples(X, rows), rows.y, n_classes, rows.weight)
    move_center(state, options.plan, block_center(centers, options.plan, X.dtype))
    return state


def _call(callback, report):
    """The user's callback after an epoch without an estimate of the objective."""
    report.x, report.fun, report.objective_error = None, np.nan, np.nan
    return callback(report)
