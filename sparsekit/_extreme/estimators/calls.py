"""`fit` and `partial_fit` of ExtremeSoftmaxSGD, on rows in memory or in blocks, with checkpoints."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from ..._arrays import to_host
from ..._messages import shown
from ..solver.centroids import block_center, fit_centroids, move_center
from ..solver.checkpoint import Checkpoint, digest
from ..solver.epochs import Progress
from ..solver.refine import newton_follows, refine_in_memory
from . import settings
from .block_rows import RowsOfFit
from .fit import run_epochs
from .rate import choose_rate
from .ridge import choose_ridge, rows_of_examples
from .run import Run
from .targets import announced_classes
from .tracking import tracker_of, tracker_of_pass

# what may differ between the runs before and after a break: it moves no step
_FREE = {
    "callback", "max_iter", "max_time", "n_jobs", "tol", "verbose",
}  # fmt: skip


def fit(model, X, y, sample_weight, checkpoint, interval):
    """The fit of ``model``."""
    _check_arguments(checkpoint, interval)
    source = RowsOfFit(model, X, y, sample_weight)
    rng = settings.make_generator(model.random_state)
    counts, n_classes = source.counts(), len(source.targets.classes)
    noise = settings.noise_of(model, counts, source.on_device)
    keeper = _checkpoint(model, source, checkpoint, interval, "fit")
    found = None if keeper is None else keeper.load()
    rows = source.rows if keeper is None else None
    prior = settings.prior_of(model, rows, n_classes)
    options = settings.options_of(model, source.on_device, n_classes, counts, noise, prior)
    options.plan = settings.plan_of(counts, noise, source.dtype, options, rng)

    def start():
        return settings.new_state(model, n_classes, source.like, options, counts)

    run = Run(model, source, options, rng, Progress(), counts, noise, keeper, start)
    if found is not None:
        state = run.resume(found)
    else:
        options.learning_rate = choose_rate(model, source, options, noise, rng)
        if prior is None or model.alpha is not None:
            state = start()
        else:
            state = choose_ridge(run)
    if prior is not None and model.alpha is not None:
        examples = rows_of_examples(source.X, rows)
        centers, intercepts = fit_centroids(examples, rows.y, n_classes, rng, rows.weight)
        move_center(state, options.plan, block_center(centers, options.plan, source.dtype), intercepts)
    run.track(tracker_of, state)
    if run.tracker is not None and found is None and run.n_done:
        run.tracker.ridge_was_chosen = model.decay is None
        run.tracker.begin_after(run.n_done)
    refine = None
    if rows is not None and prior is None and newton_follows(options, rows, n_classes):
        refine = partial(refine_in_memory, model, source.X, source.targets, source.use)
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    is_over = run_epochs(run, state, {"X": X, "y": y, "metadata": metadata}, refine=refine)
    if keeper is not None and is_over:
        keeper.remove()
    model._counts, model._closed = counts, False


def partial_fit(model, X, y, classes, sample_weight, checkpoint, interval):
    """One pass of ``model`` over rows."""
    _check_arguments(checkpoint, interval)
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
    keeper = _checkpoint(model, source, checkpoint, interval, "partial_fit")
    found = None if keeper is None else keeper.load()
    options = settings.options_of_pass(model, source.on_device, n_classes, counts, noise)
    options.plan = settings.plan_of(counts, noise, source.dtype, options, rng, in_order=True)
    run = Run(model, source, options, rng, Progress(u=None), counts, noise, keeper)
    if found is not None:
        state = run.resume(found)
    else:
        if not first and hasattr(model, "learning_rate_") and model.learning_rate == "auto":
            options.learning_rate = model.learning_rate_
        else:
            options.learning_rate = choose_rate(model, source, options, noise, rng)
        if first:
            state = settings.new_state(model, n_classes, source.like, options)
        else:
            state = settings.resume(model, n_classes, source.dtype, options)
    run.track(tracker_of_pass, state)
    is_over = run_epochs(run, state, {"X": X, "y": y, "metadata": None}, passes=True)
    if keeper is not None and is_over:
        keeper.remove()
    model._counts, model._closed = counts, closed


def _check_arguments(checkpoint, interval):
    if not isinstance(interval, Real) or not interval >= 0:
        raise ValueError(f"checkpoint_interval must be a number of seconds >= 0, got {shown(interval)}.")
    if (
        checkpoint is not None
        and not isinstance(checkpoint, (str, bytes))
        and not hasattr(checkpoint, "__fspath__")
    ):
        raise TypeError(f"checkpoint must be the path of a file, got {type(checkpoint).__name__}.")


def _checkpoint(model, source, path, interval, method):
    if path is None:
        return None
    if source.on_device:
        raise TypeError("checkpoints are for data in main memory: fit without one, or on X.get().")
    parameters = model.get_params(deep=False)
    chosen = {name: _plain(value) for name, value in parameters.items() if name not in _FREE}
    identity: dict[str, dict[str, Any]] = {
        "the method": {"name": method},
        "the parameter": chosen,
        "the data's": source.identity(),
        "the model's": {"rows before": int(getattr(model, "t_", 0)) if method == "partial_fit" else 0},
    }
    return Checkpoint(path, interval, identity)


def _plain(value):
    """A parameter as JSON has it, arrays and generators by a checksum or state."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        # the weights of the rows, which are compared, hold it
        return sorted(str(key) for key in value)
    if isinstance(value, np.random.RandomState):
        return "a RandomState"
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return digest([np.asarray(value)])
