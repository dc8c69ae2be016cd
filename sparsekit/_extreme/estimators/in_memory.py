"""ExtremeSoftmaxSGD on rows in memory, or on a GPU."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._arrays import is_device, is_sparse, to_host
from ..._estimator.checks import in_units
from ..solver.centroids import block_center, fit_centroids, move_center
from ..solver.refine import newton_follows, refine_in_memory
from ..solver.sgd import init_work, minimize_sampled_softmax
from . import settings
from .fit import run_epochs
from .rate import choose_rate
from .ridge import choose_ridge, rows_of_examples
from .targets import announced_classes, label_counts, make_rows, used_rows
from .tracking import tracker_of, tracker_of_pass


class RowsRun:
    """Epochs over rows that are all at hand; ``start()`` gives a first state, where a run may start anew."""

    def __init__(self, rows, options, rng, make_work, start=None):
        self.rows, self.options, self.rng, self.start = rows, options, rng, start
        self.make_work, self.work = make_work, make_work()
        self.codes, self.n_done, self.seconds = rows.y, 0, 0.0

    def minimize(self, state, monitor, max_time):
        return minimize_sampled_softmax(
            self.rows, state, self.options, self.work, self.rng, callback=monitor, max_time=max_time,
            begin=self.n_done, seconds=self.seconds,
        )  # fmt: skip

    def restart(self):
        state = self.start()
        self.work = self.make_work()
        return state


def fit_rows(model, X, y, sample_weight):
    """The fit of ``model`` to a matrix."""
    given = sample_weight
    X, targets = settings.check_data(model, X, y, sample_weight, None)
    targets.weight, _ = in_units(targets.weight)
    rng = settings.make_generator(model.random_state)
    rows = make_rows(X, targets, model.label_choice)
    n_classes = len(targets.classes)
    counts = label_counts(rows, n_classes)
    noise = settings.noise_of(model, counts, is_device(rows.data))
    prior = settings.prior_of(model, rows, n_classes)
    options = settings.options_of(model, rows, n_classes, counts, noise, prior)
    options.plan = settings.plan_of(model, counts, noise, X.dtype, options, rng)
    options.learning_rate = choose_rate(model, X, targets, rows, options, noise, rng)

    def start():
        return settings.new_state(model, n_classes, X, options, counts)

    centroids = None
    if prior is not None and model.alpha is not None:
        centroids = fit_centroids(rows_of_examples(X, rows), rows.y, n_classes, rng, rows.weight)
    run = RowsRun(
        rows, options, rng,
        lambda: init_work(rows, n_classes, options, rng, counts=counts, noise=noise), start,
    )  # fmt: skip
    if prior is not None and model.alpha is None:
        state = choose_ridge(model, X, targets, run, counts, noise)
    else:
        state = start()
    if centroids is not None:
        centers, intercepts = centroids
        move_center(state, options.plan, block_center(centers, options.plan, X.dtype), intercepts)
    metadata = None if given is None else {"sample_weight": given}
    use = used_rows(targets)
    tracker = tracker_of(
        model, targets, use, state, options, lambda chosen: _take(X, chosen), rows.width, rng
    )
    if tracker is not None and run.n_done:
        tracker.ridge_was_chosen = model.decay is None
        tracker.begin_after(run.n_done)
    data = {"X": X, "y": y, "metadata": metadata}
    refine = None
    if prior is None and newton_follows(options, rows, n_classes):
        refine = partial(refine_in_memory, model, X, targets, use)
    run_epochs(model, run, state, options, rng, data, targets, tracker, refine=refine)
    model._counts, model._closed = counts, False


def _take(X, chosen):
    """The rows of X with these numbers."""
    return X[np.asarray(chosen, like=X.data if is_sparse(X) else X)]


def named_classes(model, classes):
    """(whether nothing was fitted before, classes known or None, whether others are refused)."""
    known = to_host(getattr(model, "classes_", None))
    first = known is None
    if classes is not None:
        known = announced_classes(classes, known)
    # after classes were named others are refused, as in scikit-learn
    return first, known, classes is not None or (not first and getattr(model, "_closed", False))


def partial_fit_rows(model, X, y, classes, sample_weight):
    """One pass of ``model`` over the rows of a matrix."""
    settings.refuse_prior(model, "partial_fit")
    if hasattr(model, "classes_"):
        model._check_device(X)
    first, known, closed = named_classes(model, classes)
    X, targets = settings.check_data(model, X, y, sample_weight, known, reset=first, grow=not closed)
    if not first:  # rows are few, weights are many: the rows change their type
        dtype = settings.weight_dtype(model)
        X = X if X.dtype == dtype else X.astype(dtype)
    rng = settings.make_generator(model.random_state if first else model._rng_state)
    # of batches that come one by one the mean weight is not known
    rows = make_rows(X, targets, model.label_choice, relative=False)
    n_classes = len(targets.classes)
    counts = label_counts(rows, n_classes)
    if not first:
        counts[: len(model._counts)] += model._counts
    noise = settings.noise_of(model, counts, is_device(rows.data))
    options = settings.options_of_pass(model, rows, n_classes, counts, noise)
    if options.adaptive:
        options.plan = settings.plan_of(model, counts, noise, X.dtype, options, rng, in_order=True)
    if reuses_rate(model, first):
        options.learning_rate = model.learning_rate_
    else:
        options.learning_rate = choose_rate(model, X, targets, rows, options, noise, rng)
    state = (
        settings.new_state(model, n_classes, X, options)
        if first
        else settings.resume(model, n_classes, X.dtype, options)
    )
    run = RowsRun(
        rows, options, rng, lambda: init_work(rows, n_classes, options, rng, counts=counts, noise=noise)
    )
    use = used_rows(targets)
    tracker = tracker_of_pass(
        model, targets, use, state, options, lambda chosen: _take(X, chosen), rows.width, rng
    )
    data = {"X": X, "y": y, "metadata": None}
    run_epochs(model, run, state, options, rng, data, targets, tracker, passes=True)
    model._counts, model._closed = counts, closed


def reuses_rate(model, first):
    """Whether a call of `partial_fit` steps at the rate that an earlier one found."""
    return not first and hasattr(model, "learning_rate_") and model.learning_rate == "auto"
