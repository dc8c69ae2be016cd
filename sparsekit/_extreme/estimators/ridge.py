"""The strength of a ridge to centroids, by the log-loss of rows that are set aside."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from ..._solver import outcome
from ..._solver.outcome import Limits
from ..solver.centroids import fit_weights, move_center
from ..solver.sgd import init_work, minimize_sampled_softmax
from .objective import SampledObjective
from .rate import JUDGING_ROWS, TUNING_SHARE
from .sample import Sample, examples_of
from .settings import CENTROIDS_C
from .targets import label_counts, make_rows, used_rows

# Epochs for each C; all but the first begin at the rate of the second one. On bibtex, delicious, sector, ptb
# and fb15k P@1 and hits@10 are not below those after a fit for each C by more than .002 (delicious: .004).
TRIAL_EPOCHS = 2


def rows_of_examples(X, rows):
    """The CSR matrix of the examples' rows; the arrays of X where that is possible."""
    return sp.csr_array(X) if rows.row_of is None else sp.csr_array(X)[rows.row_of]


def choose_ridge(model, X, targets, run, state, counts, noise):
    """Choose C of the ridge while ``state``, of zeros, makes its first steps on all rows but some set aside.

    The ridge gets weaker as long as the log-loss of the rows set aside falls by more than its standard error.
    ``run`` goes on with the ridge chosen, whose center moves to the centroids of all rows. The weights of the
    centroids stay those of the first steps. These take at most ``model.max_time``. A callback that stops them
    leaves ``run`` without epochs.
    """
    rows, options, rng, n_classes = run.rows, run.options, run.rng, len(targets.classes)
    every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(rows.row_of)
    order = rng.permutation(len(every))
    n_aside = min(JUDGING_ROWS, int(TUNING_SHARE * len(every)))
    kept = np.sort(order[n_aside:])
    part = make_rows(X, targets, model.label_choice, every[kept])
    X_part = rows_of_examples(X, part)
    weights = fit_weights(X_part, part.y, n_classes, rng, part.weight)
    centroids = weights.centroids(X_part, part.y, n_classes, part.weight)
    del X_part
    move_center(state, options.plan, *centroids)
    del centroids
    chosen = CENTROIDS_C[0]
    sample = _rows_aside(model, targets, every[order[:n_aside]], label_counts(part, n_classes))
    if len(sample.codes) > 1:  # the loss of one has no standard error
        judge, best = SampledObjective(sample, X[sample.rows], 0.0, n_classes), None
        limits = Limits(max_time=np.inf if model.max_time is None else model.max_time)
        callback = None if model.callback is None else partial(_call, model.callback)
        work = init_work(rows, n_classes, options, rng, counts=counts, noise=noise, order=kept)
        begin, last = 0, min(TRIAL_EPOCHS, options.max_iter - 1)
        for C in CENTROIDS_C:
            left = limits.max_time - limits.seconds
            if left <= 0.0 or not last:
                break
            trial = replace(options, alpha=1.0 / (C * counts.sum()), max_iter=begin + last)
            result = minimize_sampled_softmax(
                rows, state, trial, work, rng, callback=callback, max_time=left, begin=begin
            )
            if result.status == outcome.STOPPED:
                options.max_iter = last = result.nit
                break
            begin = 1
            found = judge.evaluate(0, state, trial)
            if model.verbose:
                value, error = judge.value(found)
                print(f"{type(model).__name__} C {C:g}: log-loss {value:.5f} +- {error:.5f}, rows set aside")
            if best is not None:
                fall, error = judge.fall(best, found)
                if not fall > error:
                    break
            best, chosen = found, C
        run.n_done, run.work.hard = last, work.hard
    options.alpha = 1.0 / (chosen * counts.sum())
    center, _ = weights.centroids(rows_of_examples(X, rows), rows.y, n_classes, rows.weight)
    move_center(state, options.plan, center)


def _call(callback, report):
    """The user's callback after an epoch without an estimate of the objective."""
    report.x, report.fun, report.objective_error = None, np.nan, np.nan
    return callback(report)


def _rows_aside(model, targets, rows, counts):
    """The Sample of the rows' labels that other rows have too."""
    examples = examples_of(targets, model.label_choice, used_rows(targets, rows))
    known = counts[examples.codes] > 0
    weight = np.ones(len(known)) if examples.share is None else examples.share
    weight = weight[known] / max(weight[known].sum(), np.finfo(float).tiny)
    return Sample(examples.rows[known], examples.codes[known], weight, 1.0, np.empty(0, dtype=np.int64))
