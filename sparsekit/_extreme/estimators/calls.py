"""`fit` and `partial_fit` of ExtremeSoftmaxSGD, on rows in memory or in blocks."""

from __future__ import annotations

from functools import partial

from ..._arrays import to_host
from ..plan import newton_follows
from ..solver.refine import refine_in_memory
from . import settings
from .block_rows import RowsOfFit
from .fit import run_epochs
from .rate import choose_rate
from .ridge import begin_at_centroids
from .run import Run
from .targets import announced_classes
from .tracking import Tracker


def fit(model, X, y, sample_weight):
    """The fit of ``model``."""
    source = RowsOfFit(model, X, y, sample_weight)
    rng = settings.make_generator(model.random_state)
    counts, n_classes = source.counts(), len(source.targets.classes)
    noise = settings.noise_of(model, counts, source.on_device)
    rows = source.rows
    prior = settings.prior_of(model, source, n_classes)
    options = settings.options_of(model, source.on_device, n_classes, counts, noise, prior)
    options.plan = settings.plan_of(counts, noise, source.dtype, options, rng)

    def start():
        return settings.new_state(model, n_classes, source.like, options, counts)

    run = Run(model, source, options, rng, counts, noise, start)
    options.learning_rate = choose_rate(model, source, options, noise, rng)
    state = start() if prior is None else begin_at_centroids(run)
    tracker = None if model.tol is None else Tracker(run, state)
    if tracker is not None:
        tracker.ridge_was_chosen = run.n_done > 0 and model.decay is None
    refine = None
    if rows is not None and prior is None and newton_follows(options, rows, n_classes):
        refine = partial(refine_in_memory, model, source.X, source.targets, source.use)
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    run_epochs(run, state, {"X": X, "y": y, "metadata": metadata}, tracker, refine=refine)
    model._counts, model._closed = counts, False


def partial_fit(model, X, y, classes, sample_weight):
    """One pass of ``model`` over rows."""
    settings.refuse_prior(model, "partial_fit")
    if hasattr(model, "classes_"):
        model._check_device(X)
    known = to_host(getattr(model, "classes_", None))
    first = known is None
    if classes is not None:
        known = announced_classes(classes, known)
    # after classes were named others are refused, as in scikit-learn
    closed = classes is not None or (not first and getattr(model, "_closed", False))
    source = RowsOfFit(model, X, y, sample_weight, known, reset=first, grow=not closed, relative=False)
    if not first:  # rows are few, weights are many: the rows change their type
        source.cast(settings.weight_dtype(model))
    rng = settings.make_generator(model.random_state if first else model._rng_state)
    counts, n_classes = source.counts(), len(source.targets.classes)
    if not first:
        counts[: len(model._counts)] += model._counts
    noise = settings.noise_of(model, counts, source.on_device)
    options = settings.options_of_pass(model, source.on_device, n_classes, counts, noise)
    options.plan = settings.plan_of(counts, noise, source.dtype, options, rng, in_order=True)
    run = Run(model, source, options, rng, counts, noise)
    if not first and hasattr(model, "learning_rate_") and model.learning_rate == "auto":
        options.learning_rate = model.learning_rate_
    else:
        options.learning_rate = choose_rate(model, source, options, noise, rng)
    if first:
        state = settings.new_state(model, n_classes, source.like, options)
    else:
        state = settings.resume(model, n_classes, source.dtype, options)
    run_epochs(run, state, {"X": X, "y": y, "metadata": None}, passes=True)
    model._counts, model._closed = counts, closed
