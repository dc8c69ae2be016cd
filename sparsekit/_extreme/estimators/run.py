"""A run of ExtremeSoftmaxSGD's epochs over its rows, which goes on from a checkpoint where there is one."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from ..._messages import shown
from ..solver.epochs import Progress, minimize_sampled_softmax
from ..solver.sgd import init_work
from ..solver.state import SoftmaxState, prepare
from .tracking import Tracker


class Run:
    """Epochs over the rows of ``source``, as `run_epochs` takes them, from where a checkpoint stands.

    ``start()`` gives a first state, where a run may start anew.
    """

    def __init__(self, model, source, options, rng, progress, counts, noise, checkpoint=None, start=None):
        self.model, self.source, self.options, self.rng = model, source, options, rng
        self.progress, self.counts, self.noise = progress, counts, noise
        self.checkpoint, self.start = checkpoint, start
        self.codes, self.seconds = source.targets.codes, 0.0
        self.tracker: Tracker | None = None
        self.seen: tuple | None = None  # what a checkpoint has of the objective

    @property
    def n_done(self):
        """Number of epochs that are finished."""
        return self.progress.epoch - 1

    def minimize(self, state, monitor, max_time):
        def after_block(last):
            if self.checkpoint is not None and (last or self.checkpoint.is_due()):
                self.checkpoint.save(*self._snapshot(state))

        return minimize_sampled_softmax(
            self.source, state, self.options, self.rng, self.progress, self.work, callback=monitor,
            max_time=max_time, seconds=self.seconds, after_block=after_block,
        )  # fmt: skip

    def restart(self):
        self.progress = Progress()
        return self.start()

    def work(self, rows, order=None):
        """The `Work` of rows, or of those whose numbers are in ``order``."""
        n_classes = len(self.source.targets.classes)
        return init_work(
            rows, n_classes, self.options, self.rng, counts=self.counts, noise=self.noise, order=order
        )

    def track(self, make, state):
        """Estimate the objective from some of the rows, by the tracker that ``make`` gives."""
        source = self.source
        self.tracker = make(
            self.model, source.targets, source.use, state, self.options, source.stored_rows, source.width,
            self.rng,
        )  # fmt: skip
        if self.tracker is None:
            return
        if self.seen is not None:
            self.tracker.restore(*self.seen)
        if self.tracker.sample is not None:
            source.hold(self.tracker.sample.rows)

    def _snapshot(self, state):
        progress, model, plan = self.progress, self.model, self.options.plan
        values = {one.name: getattr(state, one.name) for one in fields(state)}
        arrays = {f"state.{name}": part for name, part in values.items() if isinstance(part, np.ndarray)}
        arrays["order"] = progress.order
        arrays |= {f"u.{number}": u for number, u in (progress.u or {}).items()}
        if plan is not None:
            arrays["columns"] = plan.order
        # the callback of an epoch that it ended is called again
        seen, more = (None, {}) if self.tracker is None else self.tracker.snapshot(self.n_done)
        arrays |= more
        tried = getattr(model, "learning_rate_losses_", None)
        header = {
            "state": {name: part for name, part in values.items() if isinstance(part, int)},
            "generator": self.rng.bit_generator.state,
            "progress": {name: getattr(progress, name) for name in ("epoch", "done")},
            "objective": seen,
            "learning_rate": float(self.options.learning_rate),
            "learning_rate_losses": None
            if tried is None
            else [[float(a), float(b)] for a, b in tried.items()],
        }
        return header, arrays

    def resume(self, found):
        """Restore progress, generator and options from the checkpoint; returns its state."""
        header, arrays = found
        model, progress = self.model, self.progress
        if header["progress"]["epoch"] > self.options.max_iter:
            raise ValueError(
                f"{shown(str(self.checkpoint.path))} stands in epoch {header['progress']['epoch']}, beyond "
                f"max_iter={self.options.max_iter}: raise max_iter, or remove the file to start anew."
            )
        for name, value in header["progress"].items():
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
