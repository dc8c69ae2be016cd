"""The strength of a ridge to centroids, by the log-loss of rows that are set aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..._solver.outcome import Limits
from ..solver.centroids import fit_weights, start_at
from ..solver.sgd import init_work, minimize_sampled_softmax
from .objective import SampledObjective
from .rate import JUDGING_ROWS, TUNING_SHARE
from .sample import Sample, examples_of
from .settings import CENTROIDS_C, new_state
from .targets import label_counts, make_rows, used_rows

# Decay and epochs of the fits that are compared; on a graph, delicious, ptb and skip-grams their log-loss is
# within .02 of that of 13 epochs at .7.
TRIAL_DECAY, TRIAL_EPOCHS = 0.5, 7


def rows_of_examples(X, rows):
    """The CSR matrix of the examples' rows; the arrays of X where that is possible."""
    return sp.csr_array(X) if rows.row_of is None else sp.csr_array(X)[rows.row_of]


def choose_ridge(model, X, targets, rows, options, noise, rng):
    """C of the ridge and the centroids of ``rows``; their weights are fitted without the rows set aside.

    The ridge gets weaker as long as the log-loss of those rows falls by more than its standard error. All
    fits that are compared take at most ``model.max_time``.
    """
    n_classes = len(targets.classes)
    every = np.arange(X.shape[0]) if rows.row_of is None else np.unique(rows.row_of)
    order = rng.permutation(every)
    n_aside = min(JUDGING_ROWS, int(TUNING_SHARE * len(every)))
    part = make_rows(X, targets, model.label_choice, np.sort(order[n_aside:]))
    counts = label_counts(part, n_classes)
    X_part = rows_of_examples(X, part)
    weights = fit_weights(X_part, part.y, n_classes, rng, part.weight)
    start, best, chosen = weights.centroids(X_part, part.y, n_classes, part.weight), None, CENTROIDS_C[0]
    del X_part
    sample = _rows_aside(model, targets, order[:n_aside], counts)
    if len(sample.codes) > 1:  # the loss of one has no standard error
        judge = SampledObjective(sample, X[sample.rows], 0.0, n_classes)
        limits = Limits(max_time=np.inf if model.max_time is None else model.max_time)
        for C in CENTROIDS_C:
            left = limits.max_time - limits.seconds
            if left <= 0.0:
                break
            trial = replace(
                options, alpha=1.0 / (C * counts.sum()), decay=TRIAL_DECAY,
                max_iter=min(options.max_iter, TRIAL_EPOCHS),
            )  # fmt: skip
            state = new_state(model, n_classes, X, trial, counts)
            start_at(state, trial.plan, *start)
            work = init_work(part, n_classes, trial, rng, counts=counts, noise=noise)
            minimize_sampled_softmax(part, state, trial, work, rng, max_time=left)
            found = judge.evaluate(0, state, trial)
            if model.verbose:
                value, error = judge.value(found)
                print(f"{type(model).__name__} C {C:g}: log-loss {value:.5f} +- {error:.5f}, rows set aside")
            if best is not None:
                fall, error = judge.fall(best, found)
                if not fall > error:
                    break
            best, chosen = found, C
    del start
    return chosen, weights.centroids(rows_of_examples(X, rows), rows.y, n_classes, rows.weight)


def _rows_aside(model, targets, rows, counts):
    """The Sample of the rows' labels that other rows have too."""
    examples = examples_of(targets, model.label_choice, used_rows(targets, rows))
    known = counts[examples.codes] > 0
    weight = np.ones(len(known)) if examples.share is None else examples.share
    weight = weight[known] / max(weight[known].sum(), np.finfo(float).tiny)
    return Sample(examples.rows[known], examples.codes[known], weight, 1.0, np.empty(0, dtype=np.int64))
