"""The variables and factors of a graph, as a user builds it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import namespace
from ..._typing import FloatArray
from ..factors.factors import Factor, as_scores, check_factor, listed
from ..factors.variables import Variable
from ..solver.layout import Layout


class GraphBuilder:
    """Variables, factors and scores of a `FactorGraph`, without its solutions."""

    def __init__(self) -> None:
        self._scores: FloatArray = np.zeros(0)
        self._shapes: list[tuple[int, ...]] = []
        self._factors: list[Factor] = []
        self._known: set[int] = set()  # the factors' ids
        self._layout: Layout | None = None
        self._n_variables = self._n_additional = 0

    def __getstate__(self):
        # a layout holds memory of the kernels; it is made again when needed
        return self.__dict__ | {"_layout": None, "_known": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._known = set(map(id, self._factors))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_variables} variables: {listed(self._factors)})"

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self._n_variables

    @property
    def n_additional(self) -> int:
        """Number of additional scores, of all factors."""
        return self._n_additional

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors, in the order in which they were added."""
        return tuple(self._factors)

    @property
    def scores(self) -> FloatArray:
        """Scores of all variables, (n_variables,)."""
        return self._scores.copy()

    @property
    def additional_scores(self) -> FloatArray:
        """Additional scores of all factors, one factor after the other, (n_additional,)."""
        parts = [f._all_additional() for f in self._factors if f._full_shape != (0,)]
        one_of_each_type = {type(part): part for part in parts}.values()
        theirs = [part for part in one_of_each_type if namespace(part=part) is not np]
        if theirs:
            xp = namespace(**{"a factor's additional scores": theirs[0], "the graph's scores": self._scores})
            return xp.concatenate([xp.asarray(part) for part in parts])
        return np.concatenate([*parts, np.zeros(0)])

    def variable(self, scores: ArrayLike | tuple[int, ...]) -> Variable:
        """New variables.

        Parameters
        ----------
        scores : array-like of floats, or tuple of int
            Their scores, -inf where a variable must be off; or a shape, for scores of 0. A list of whole
            numbers counts as scores; only a tuple is a shape. CuPy arrays: the graph is solved on the GPU.

        Returns
        -------
        Variable
            A view of them, which slices, transposes and reshapes like an array.

        Raises
        ------
        TypeError, ValueError
            If the scores are no numbers, NaN or inf, or a size is negative.

        Examples
        --------
        >>> from sparsekit import FactorGraph
        >>> graph = FactorGraph()
        >>> u = graph.variable([0.5, -1.0])
        >>> v = graph.variable((2, 3))
        >>> v[:, 0], v.T, graph.n_variables
        (Variable(shape=(2,)), Variable(shape=(3, 2)), 8)
        """
        if isinstance(scores, tuple) and all(
            isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in scores
        ):
            if any(size < 0 for size in scores):
                raise ValueError(f"sizes must be at least 0; got {scores}")
            scores = np.zeros(scores, like=self._scores)
        scores = as_scores(scores, "scores")
        first = self.n_variables
        if first:
            namespace(**{"the graph's scores": self._scores, "scores": scores})
        self._scores = np.concatenate([self._scores, scores.ravel()]) if first else scores.ravel().copy()
        self._n_variables = first + scores.size
        self._shapes.append(scores.shape)
        self._layout = None
        return Variable(self, np.arange(first, self._n_variables).reshape(scores.shape))

    def all_variables(self) -> Variable:
        """A view of all variables, in the order in which they were made.

        Returns
        -------
        Variable
            Of shape (n_variables,).
        """
        return Variable(self, np.arange(self.n_variables))

    def add(self, factor: Factor) -> None:
        """Add a factor over variables of this graph.

        Parameters
        ----------
        factor : Factor
            A logic factor over a view of two dimensions is one factor a row.

        Raises
        ------
        TypeError, ValueError
            If it is no factor, in the graph already, or about another graph's variables.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Imply, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable([[0.5, 0.3], [0.9, 0.2]])
        >>> graph.add(Xor(u))  # each row
        >>> graph.add(Imply([u[0, 0], u[1, 1]]))  # single variables, side by side
        >>> len(graph.factors)
        2
        """
        check_factor(factor)
        if factor.graph is not self:
            raise ValueError("the factor's variables belong to another graph")
        if id(factor) in self._known:
            raise ValueError("the factor is in the graph already")
        self._factors.append(factor)
        self._known.add(id(factor))
        self._n_additional += factor.n_additional
        self._layout = None

    def set_scores(self, where: Variable | Factor, scores: ArrayLike) -> None:
        """New scores for a view's variables, or new additional scores for a factor.

        Parameters
        ----------
        where : Variable or Factor
            A view of this graph's variables, or one of its factors.
        scores : array-like of the view's shape, or of the shape of the factor's additional scores
            The scores; -inf forbids.

        Raises
        ------
        TypeError, ValueError
            If ``where`` is neither, or the scores have another shape, are NaN or inf.

        Examples
        --------
        >>> from sparsekit import FactorGraph, Xor
        >>> graph = FactorGraph()
        >>> u = graph.variable((2,))
        >>> graph.add(Xor(u))
        >>> graph.set_scores(u, [0.5, 0.1])
        >>> graph.solve()[u].round(3)
        array([0.7, 0.3])
        """
        scores = as_scores(scores, "scores")
        if isinstance(where, Factor) and id(where) in self._known:
            if scores.shape != where._given_shape:
                raise ValueError(f"scores must have the shape {where._given_shape}; got {scores.shape}")
            where._additional = scores
        elif isinstance(where, Variable) and where.graph is self:
            if scores.shape != where.shape:
                raise ValueError(f"scores must have the shape {where.shape}; got {scores.shape}")
            xp = namespace(**{"the graph's scores": self._scores, "scores": scores})
            self._scores = self._scores.astype(np.result_type(self._scores.dtype, scores.dtype))
            self._scores[xp.asarray(where.index)] = scores
        else:
            raise TypeError("where must be a view of this graph's variables or one of its factors")

    def _plan(self) -> Layout:
        if self._layout is None:
            self._layout = Layout(self.n_variables, self._factors)
        return self._layout
