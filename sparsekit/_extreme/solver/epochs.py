"""Epochs over rows in blocks, the next one read ahead, and the progress from which a run can continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from ..._solver.outcome import Limits
from .sgd import DataRows, Work, epoch
from .state import SamplingOptions, SoftmaxState

MESSAGES = outcome.messages("all epochs were run", diverged="Stopped at a step that was not finite.")


class RowSource(Protocol):
    """Rows in blocks; a block may have none that count (None)."""

    @property
    def n_blocks(self) -> int: ...

    def read(self, numbers: np.ndarray) -> Iterator[tuple[int, DataRows | None]]: ...


@dataclass
class OneBlock:
    """Rows in memory, or on a GPU."""

    rows: DataRows
    n_blocks: int = 1

    def read(self, numbers: np.ndarray) -> Iterator[tuple[int, DataRows | None]]:
        """The rows for each of the numbers, which are 0."""
        for i in numbers:
            yield int(i), self.rows


@dataclass
class Progress:
    """State of a run over blocks: what the next step needs besides data, options, weights and generator.

    epoch : the current one, from 1.
    order : its order of the blocks, or None before it has begun.
    done : number of blocks of ``order`` that are finished.
    u : of each block read so far, or None if rows are read once and u is not stored.
    """

    u: dict[int, Any] | None = field(default_factory=dict)
    epoch: int = 1
    order: np.ndarray | None = None
    done: int = 0

    def next_epoch(self) -> None:
        """Begin the next epoch."""
        self.epoch += 1
        self.order, self.done = None, 0


def minimize_sampled_softmax(
    source: RowSource,
    state: SoftmaxState,
    options: SamplingOptions,
    rng: np.random.Generator,
    progress: Progress,
    make_work: Callable[[DataRows], Work],
    *,
    callback: Callable[[OptimizeResult], Any] | None = None,
    max_time: float | None = None,
    seconds: float = 0.0,
    after_block: Callable[[bool], Any] = lambda last: None,
) -> OptimizeResult:
    """Run epochs ``progress.epoch`` to ``options.max_iter`` from ``state``, which is changed.

    Parameters
    ----------
    source : RowSource
    state : SoftmaxState
    options : SamplingOptions
    rng : numpy.random.Generator
    progress : Progress
        Where to begin; kept up to date. A block begins with nothing but this, the state and ``rng``. So a run
        that goes on from copies of the three takes the steps of one that was never broken off.
    make_work : callable
        Work of a block's rows, which `init_work` gives.
    callback : callable, default=None
        ``callback(intermediate_result)`` after each epoch, with nit (epochs), nfev (steps), learning_rate and
        time; a true value or StopIteration ends the run.
    max_time : float, default=None
        Seconds after which the run ends, within about a tenth of a second of it.
    seconds : float, default=0.0
        Time before this run, which the callback's ``time`` includes.
    after_block : callable
        Called with False after each block, and with True where the run ends before all epochs are done.

    Returns
    -------
    OptimizeResult
        x (W), bias, nit (epochs), nfev (steps), learning_rate (the last), status, success, message.
    """
    limits = Limits(max_time=np.inf if max_time is None else max_time)
    rate, status = options.learning_rate, outcome.CONVERGED
    while progress.epoch <= options.max_iter and status == outcome.CONVERGED:
        rate = options.learning_rate * options.decay ** (progress.epoch - 1)
        status = _finish_epoch(source, state, options, rng, progress, make_work, rate, limits, after_block)
        if status != outcome.CONVERGED:
            break
        report = OptimizeResult(
            nit=progress.epoch, nfev=state.steps, learning_rate=rate, time=seconds + limits.seconds
        )
        if callback is not None and outcome.wants_to_stop(callback, report):
            status = outcome.STOPPED
            after_block(True)
        else:
            progress.next_epoch()
    return OptimizeResult(
        x=state.W, bias=state.bias, nit=min(progress.epoch, options.max_iter), nfev=state.steps,
        learning_rate=rate, status=status, success=status == outcome.CONVERGED, message=MESSAGES[status],
    )  # fmt: skip


def _finish_epoch(source, state, options, rng, progress, make_work, rate, limits, after_block):
    """The blocks that are left of an epoch; returns a status."""
    if progress.order is None:
        every = np.arange(source.n_blocks)
        progress.order = rng.permutation(every) if options.shuffle else every
    for number, rows in source.read(progress.order[progress.done :]):
        if limits.reached() is not None:
            after_block(True)
            return outcome.MAX_TIME
        if rows is not None:
            work = make_work(rows)
            if progress.u is not None and work.u is not None:
                work.u = progress.u.setdefault(number, work.u)
            bad, complete = epoch(state, rows, options, work, rate, rng, limits=limits)
            if not complete:
                return outcome.DIVERGED if bad >= 0 else outcome.MAX_TIME
            del work
        progress.done += 1
        after_block(False)
        del rows  # or two blocks and the next one would be in memory
    return outcome.CONVERGED
