"""What steps of softmax with very many classes are given, as far as kernels on a GPU read it.

The classes that hold it are those of the solver, on a floor above.
"""

from __future__ import annotations

from typing import Protocol

from ..._typing import DeviceArray


class Rows(Protocol):
    """The examples."""

    n_features: int
    y: DeviceArray
    weight: DeviceArray | None
    row_of: DeviceArray | None


class State(Protocol):
    """The model without its weights."""

    n_classes: int
    shift: int
    bias: DeviceArray | None
    scale: DeviceArray | None


class Noise(Protocol):
    """A distribution of negatives and its alias table."""

    p: DeviceArray
    log: DeviceArray
    keep: DeviceArray
    alias: DeviceArray


class Work(Protocol):
    """What a run allocates once."""

    examples: DeviceArray
    states: DeviceArray
    u: DeviceArray | None
    beta: DeviceArray | None

    @property
    def noise(self) -> Noise | None: ...


class Options(Protocol):
    """How to step."""

    batch_size: int
    n_negatives: int
    n_threads: int
    alpha: float

    @property
    def method_number(self) -> int: ...
