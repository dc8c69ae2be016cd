"""What a fit of ExtremeSoftmaxSGD runs its epochs with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..solver.noise import Noise
from ..solver.sgd import init_work
from ..solver.state import SamplingOptions, SoftmaxState
from .block_rows import RowsOfFit


@dataclass
class Run:
    """Rows, options and generators of a run; ``start()`` gives a first state, where a run may start anew."""

    model: Any
    source: RowsOfFit
    options: SamplingOptions
    rng: np.random.Generator
    counts: np.ndarray
    noise: Noise | None
    start: Callable[[], SoftmaxState] | None = None
    n_done: int = 0  # epochs before the first one of `run_epochs`
    seconds: float = 0.0  # time of these

    def work(self, rows, order=None):
        """The `Work` of rows, or of those whose numbers are in ``order``."""
        n_classes = len(self.source.targets.classes)
        return init_work(
            rows, n_classes, self.options, self.rng, counts=self.counts, noise=self.noise, order=order
        )
