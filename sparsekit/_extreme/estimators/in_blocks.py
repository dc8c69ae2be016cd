"""ExtremeSoftmaxSGD on rows in blocks, with checkpoints."""

from __future__ import annotations

from dataclasses import fields, replace
from numbers import Real
from typing import Any

import numpy as np

from ..._messages import shown
from ..solver.block_solver import Progress, minimize_over_blocks
from ..solver.checkpoint import Checkpoint, digest
from ..solver.sgd import init_work
from ..solver.state import SoftmaxState, prepare
from . import settings
from .block_rows import StreamedRows
from .fit import run_epochs
from .in_memory import named_classes, reuses_rate
from .rate import choose_rate
from .tracking import Tracker, tracker_of, tracker_of_pass

# what may differ between the runs before and after a break: it moves no step
_FREE = {
    "callback", "max_iter", "max_time", "n_jobs", "tol", "verbose",
}  # fmt: skip


class BlocksRun:
    """Epochs over blocks, as `run_epochs` takes them; with a checkpoint, from where it stands."""

    def __init__(self, model, source, options, rng, progress, counts, noise, checkpoint=None, start=None):
        self.model, self.source, self.options, self.rng = model, source, options, rng
        self.progress, self.counts, self.noise = progress, counts, noise
        self.checkpoint, self.start = checkpoint, start
        self.codes = source.targets.codes
        self.tracker: Tracker | None = None
        self.seen: tuple | None = None  # what a checkpoint has of the objective

    def minimize(self, state, monitor, max_time):
        def after_block(last):
            if self.checkpoint is not None and (last or self.checkpoint.is_due()):
                self.checkpoint.save(*self._snapshot(state))

        return minimize_over_blocks(
            self.source, state, self.options, self.rng, self.progress, self._work,
            callback=monitor, max_time=max_time, after_block=after_block,
        )  # fmt: skip

    def restart(self):
        self.progress = Progress()
        return self.start()

    def track(self, make, state):
        """Estimate the objective from rows of blocks, by the tracker that ``make`` gives."""
        source = self.source
        # the width of rows in blocks is not known before they are read
        self.tracker = make(
            self.model, source.targets, source.use, state, self.options, source.stored_rows, 1.0, self.rng
        )
        if self.tracker is None:
            return
        if self.seen is not None:
            self.tracker.restore(*self.seen)
        if self.tracker.sample is not None:
            source.hold(self.tracker.sample.rows)

    def _work(self, rows):
        n_classes = len(self.source.targets.classes)
        return init_work(rows, n_classes, self.options, self.rng, counts=self.counts, noise=self.noise)

    def _snapshot(self, state):
        progress, model, plan = self.progress, self.model, self.options.plan
        values = {one.name: getattr(state, one.name) for one in fields(state)}
        arrays = {f"state.{name}": part for name, part in values.items() if isinstance(part, np.ndarray)}
        arrays["order"] = progress.order
        arrays |= {f"u.{number}": u for number, u in (progress.u or {}).items()}
        if plan is not None:
            arrays["columns"] = plan.order
        # the callback of an epoch that it ended is called again
        seen, more = (None, {}) if self.tracker is None else self.tracker.snapshot(progress.epoch - 1)
        arrays |= more
        tried = getattr(model, "learning_rate_losses_", None)
        header = {
            "state": {name: part for name, part in values.items() if isinstance(part, int)},
            "generator": self.rng.bit_generator.state,
            "course": {name: getattr(progress, name) for name in ("epoch", "done", "total", "n_values")},
            "objective": seen,
            "learning_rate": float(self.options.learning_rate),
            "learning_rate_losses": None
            if tried is None
            else [[float(a), float(b)] for a, b in tried.items()],
        }
        return header, arrays

    def resume(self, found, state_type=SoftmaxState):
        """Restore progress, generator and options from the checkpoint; returns its state."""
        header, arrays = found
        model, progress = self.model, self.progress
        if header["course"]["epoch"] > self.options.max_iter:
            raise ValueError(
                f"{shown(str(self.checkpoint.path))} stands in epoch {header['course']['epoch']}, beyond "
                f"max_iter={self.options.max_iter}: raise max_iter, or remove the file to start anew."
            )
        for name, value in header["course"].items():
            setattr(progress, name, value)
        progress.order = arrays.pop("order")
        if progress.u is not None:
            progress.u = {int(key[2:]): u for key, u in arrays.items() if key.startswith("u.")}
        if self.options.plan is not None:
            order = arrays["columns"]
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            self.options.plan = replace(self.options.plan, order=order, place=place)
        self.rng.bit_generator.state = header["generator"]
        self.options.learning_rate = model.learning_rate_ = header["learning_rate"]
        if header["learning_rate_losses"] is not None:
            model.learning_rate_losses_ = dict(map(tuple, header["learning_rate_losses"]))
        self.seen = (header["objective"], arrays)
        parts = {key[6:]: value for key, value in arrays.items() if key.startswith("state.")}
        return prepare(SoftmaxState(**{"bias": None, **parts, **header["state"]}), self.options)


def fit_blocks(model, X, y, sample_weight, checkpoint, interval):
    """The fit of ``model`` to blocks of rows."""
    _check_arguments(checkpoint, interval)
    settings.refuse_prior(model, "blocks of rows or checkpoints")
    source = StreamedRows(model, X, y, sample_weight)
    rng = settings.make_generator(model.random_state)
    counts, targets = source.counts(), source.targets
    noise = settings.noise_of(model, counts)
    keeper = _checkpoint(model, source, checkpoint, interval, "fit")
    found = None if keeper is None else keeper.load()
    options = settings.options_of(model, source, len(targets.classes), counts, noise)
    options.plan = settings.plan_of(model, counts, noise, source.dtype, options, rng)
    like = np.empty((0, source.n_features), dtype=source.dtype)

    def start():
        return settings.new_state(model, len(targets.classes), like, options, counts)

    run = BlocksRun(model, source, options, rng, Progress(), counts, noise, keeper, start)
    if found is None:
        options.learning_rate = _choose_rate(model, source, options, noise, rng)
        state = start()
    else:
        state = run.resume(found)
    run.track(tracker_of, state)
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    _finish(model, run, state, {"X": X, "y": y, "metadata": metadata})
    model._counts, model._closed = counts, False


def partial_fit_blocks(model, X, y, classes, sample_weight, checkpoint, interval):
    """One pass of ``model`` over blocks of rows."""
    _check_arguments(checkpoint, interval)
    settings.refuse_prior(model, "blocks of rows or checkpoints")
    first, known, closed = named_classes(model, classes)
    source = StreamedRows(model, X, y, sample_weight, known, reset=first, grow=not closed, relative=False)
    if not first:
        source.dtype = settings.weight_dtype(model)
    rng = settings.make_generator(model.random_state if first else model._rng_state)
    counts, targets = source.counts(), source.targets
    if not first:
        counts[: len(model._counts)] += model._counts
    noise = settings.noise_of(model, counts)
    n_classes = len(targets.classes)
    keeper = _checkpoint(model, source, checkpoint, interval, "partial_fit")
    found = None if keeper is None else keeper.load()
    options = settings.options_of_pass(model, source, n_classes, counts, noise)
    if options.adaptive:
        options.plan = settings.plan_of(model, counts, noise, source.dtype, options, rng, in_order=True)
    run = BlocksRun(model, source, options, rng, Progress(u=None), counts, noise, keeper)
    if found is not None:
        state = run.resume(found)
    else:
        options.learning_rate = (
            model.learning_rate_
            if reuses_rate(model, first)
            else _choose_rate(model, source, options, noise, rng)
        )
        like = np.empty((0, source.n_features), dtype=source.dtype)
        state = (
            settings.new_state(model, n_classes, like, options)
            if first
            else settings.resume(model, n_classes, source.dtype, options)
        )
    run.track(tracker_of_pass, state)
    _finish(model, run, state, {"X": X, "y": y, "metadata": None}, passes=True)
    model._counts, model._closed = counts, closed


def _finish(model, run, state, data, passes=False):
    over = run_epochs(
        model,
        run,
        state,
        run.options,
        run.rng,
        data,
        run.source.targets,
        tracker=run.tracker,
        passes=passes,
        stacklevel=6,
    )
    if run.checkpoint is not None and over:
        run.checkpoint.remove()


def _choose_rate(model, source, options, noise, rng):
    if options.adaptive or model.learning_rate != "auto":
        return choose_rate(model, None, None, None, options, noise, rng)
    X, part, rows = source.sample(rng)
    return choose_rate(model, X, part, rows, options, noise, rng, n_rows=int(source.use.sum()))


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
