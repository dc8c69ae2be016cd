"""Views of a factor graph's variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._typing import EitherArray


class Graph(Protocol):
    """Reference of views, factors and solutions to the `FactorGraph` that made them."""

    _scores: EitherArray

    @property
    def additional_scores(self) -> EitherArray: ...

    @property
    def n_variables(self) -> int: ...


class Variable:
    """A view of a graph's variables that slices, transposes and reshapes like an array.

    Attributes
    ----------
    graph : FactorGraph
        The one that made it.
    index : ndarray of int
        Numbers of its variables in the graph; its shape is the view's.
    """

    is_view = True

    def __init__(self, graph: Graph, index: NDArray[np.integer[Any]]) -> None:
        self.graph, self.index = graph, index

    @property
    def shape(self) -> tuple[int, ...]:
        """The view's shape."""
        return self.index.shape

    @property
    def ndim(self) -> int:
        """Number of its dimensions."""
        return self.index.ndim

    @property
    def size(self) -> int:
        """Number of its variables."""
        return self.index.size

    @property
    def T(self) -> Variable:
        """The same variables, transposed."""
        return Variable(self.graph, self.index.T)

    def __getitem__(self, key: Any) -> Variable:
        return Variable(self.graph, np.asarray(self.index[key]))

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any) -> Variable:
        """The same variables in another shape.

        Parameters
        ----------
        *shape : int
            As in ``numpy.ndarray.reshape``.

        Returns
        -------
        Variable
            A view.
        """
        return Variable(self.graph, self.index.reshape(*shape))

    def ravel(self) -> Variable:
        """The same variables in one dimension.

        Returns
        -------
        Variable
            A view of shape (size,).
        """
        return self.reshape(-1)

    def __repr__(self) -> str:
        return f"Variable(shape={self.shape})"
