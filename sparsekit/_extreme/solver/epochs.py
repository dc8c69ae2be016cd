"""Epochs over rows in blocks, the next one read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import OptimizeResult

from ..._solver import outcome
from ..._solver.outcome import Limits
from .sgd import DataRows, Work, epoch
from .state import SamplingOptions, SoftmaxState, settle

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


def minimize_sampled_softmax(
    source: RowSource,
    state: SoftmaxState,
    options: SamplingOptions,
    rng: np.random.Generator,
    make_work: Callable[[DataRows], Work],
    *,
    first_epoch: int = 1,
    callback: Callable[[OptimizeResult], Any] | None = None,
    max_time: float | None = None,
    seconds: float = 0.0,
) -> OptimizeResult:
    """Run epochs ``first_epoch`` to ``options.max_iter`` from ``state``, which is changed.

    Parameters
    ----------
    source : RowSource
    state : SoftmaxState
    options : SamplingOptions
    rng : numpy.random.Generator
    make_work : callable
        Work of a block's rows, which `init_work` gives.
    first_epoch : int, default=1
    callback : callable, default=None
        ``callback(intermediate_result)`` after each epoch, with nit (epochs), nfev (steps), learning_rate and
        time; a true value or StopIteration ends the run.
    max_time : float, default=None
        Seconds after which the run ends, within about a tenth of a second of it.
    seconds : float, default=0.0
        Time before this run, which the callback's ``time`` includes.

    Returns
    -------
    OptimizeResult
        x (W), bias, nit (epochs), nfev (steps), learning_rate (the last), status, success, message.
    """
    limits = Limits(max_time=np.inf if max_time is None else max_time)
    rate, status, number = options.learning_rate, outcome.CONVERGED, first_epoch - 1
    kept: dict[int, Any] = {}  # u of each block; a single epoch does not read it again
    while number < options.max_iter and status == outcome.CONVERGED:
        number += 1
        rate = options.learning_rate * options.decay ** (number - 1)
        status = _run_epoch(source, state, options, rng, make_work, rate, limits, kept)
        settle(state)
        report = OptimizeResult(
            nit=number, nfev=state.steps, learning_rate=rate, time=seconds + limits.seconds
        )
        if status == outcome.CONVERGED and callback is not None and outcome.wants_to_stop(callback, report):
            status = outcome.STOPPED
    return OptimizeResult(
        x=state.W, bias=state.bias, nit=number, nfev=state.steps, learning_rate=rate, status=status,
        success=status == outcome.CONVERGED, message=MESSAGES[status],
    )  # fmt: skip


def _run_epoch(source, state, options, rng, make_work, rate, limits, kept):
    """Every block once; returns a status."""
    order = np.arange(source.n_blocks)
    for number, rows in source.read(rng.permutation(order) if options.shuffle else order):
        if limits.reached() is not None:
            return outcome.MAX_TIME
        if rows is not None:
            work = make_work(rows)
            if options.max_iter > 1 and work.u is not None:
                work.u = kept.setdefault(number, work.u)
            bad, complete = epoch(state, rows, options, work, rate, rng, limits=limits)
            if not complete:
                return outcome.DIVERGED if bad >= 0 else outcome.MAX_TIME
            del work
        del rows  # or two blocks and the next one would be in memory
    return outcome.CONVERGED
