"""Factors: what a factor graph's variables are tied together by.

A factor is made of variables, views of a `FactorGraph`, and is told its graph by `FactorGraph.add`. Logic
factors take views of one dimension, which are one factor, or of two, which are one factor a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import namespace
from ..._messages import numbers, shown
from ..._typing import FloatArray
from .asking import asking
from .variables import Graph, Variable

VariablesLike: TypeAlias = Variable | list[Variable] | tuple[Variable, ...]

DENSE, SEQUENCE, TREE, PROJECTIVE, MATCHING, CUSTOM = range(6)


class Relation(IntEnum):
    """Of a linear factor's sum to its bound; the numbers of ``_scalar/numbers.h``."""

    AT_MOST = -1
    EQUAL = 0
    AT_LEAST = 1


def as_index(variables, name="variables"):
    """Indices of a view, or of views side by side."""
    if getattr(variables, "is_view", False):
        return variables.index, variables.graph
    try:
        if isinstance(variables, str):
            raise TypeError
        parts = [as_index(part, name) for part in variables]
    except TypeError:
        raise TypeError(
            f"{name} must be a view of a graph's variables (u = graph.variable(scores); u, u[0]), or a list "
            f"of views; got {shown(variables)}"
        ) from None
    if not parts:
        raise ValueError(f"{name} must hold at least one variable")
    graphs = {id(graph) for _, graph in parts}
    if len(graphs) > 1:
        raise ValueError(f"{name} must all belong to one graph")
    if any(index.ndim > 1 for index, _ in parts):
        raise ValueError(f"in a list of {name} each must be one variable or a view of one dimension")
    return np.concatenate([np.atleast_1d(index) for index, _ in parts]), parts[0][1]


def as_scores(scores, name):
    """A floating point array of scores, in which -inf forbids."""
    if hasattr(scores, "nnz"):
        raise TypeError(f"{name} must be dense: pass {name}.toarray()")
    try:
        scores = namespace(scores=scores).array(scores)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if scores.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers; got an array of {scores.dtype}")
    scores = scores.astype(np.float32 if scores.dtype == np.float32 else np.float64, copy=False)
    if np.isnan(scores).any():
        raise ValueError(f"{name} must not be NaN")
    if (scores == np.inf).any():
        raise ValueError(f"{name} must be finite, or -inf where something is forbidden; got inf")
    return scores


def repeated(index):
    """A variable that a row of indices (n, d) holds twice, or None."""
    # a graph per sentence has many small factors: check them quickly
    if len(index) == 1 and index.size <= 100 and len(set(index[0].tolist())) == index.shape[1]:
        return None
    ranked = np.sort(index, axis=1)
    twice = ranked[:, 1:] == ranked[:, :-1]
    return int(ranked[:, 1:][twice][0]) if twice.any() else None


class Factor:
    """Base class of factors; subclass it for one of your own.

    A subclass says which structures there are by one method, ``maximize(scores, additional_scores)``, that
    returns the best one. SparseMAP, its Jacobian and LP-MAP come with it, by the active set method.

    Parameters
    ----------
    variables : view, or list of views
        The variables it is about.
    additional_scores : array-like, default=None
        Scores of what a structure has besides its variables; -inf forbids.

    Raises
    ------
    TypeError, ValueError
        If the variables are no views of one graph or repeat, or a score is NaN or inf.

    See Also
    --------
    FactorGraph : Solves the graph that it is added to.

    Examples
    --------
    A factor that allows all of its variables to be on or none:

    >>> import numpy as np
    >>> from sparsekit import Factor, FactorGraph
    >>> class AllOrNone(Factor):
    ...     def maximize(self, scores, additional_scores):
    ...         return np.full(scores.shape, float(scores.sum() > 0))
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.9, -0.3])
    >>> graph.add(AllOrNone(u))
    >>> graph.solve()[u]
    array([0.3, 0.3])
    """

    _kind = "structured"  # which part of the plan it belongs to
    _least = 1
    graph: Graph
    # weights, structures and their additional parts of a factor that was solved without structures
    _mixture: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]

    def __init__(self, variables: VariablesLike, additional_scores: ArrayLike | None = None) -> None:
        index, self.graph = as_index(variables)
        self._shape = index.shape
        self._set(index.reshape(1, -1))
        if additional_scores is not None:
            self._set_additional(as_scores(additional_scores, "additional_scores"))

    def _set(self, index):
        if index.shape[1] < self._least:
            raise ValueError(
                f"{type(self).__name__} needs at least {self._least} variables a factor; got {index.shape[1]}"
            )
        twice = repeated(index)
        if twice is not None:
            raise ValueError(f"{type(self).__name__} holds variable {twice} twice")
        self.index = np.ascontiguousarray(index)
        self._given_shape = self._full_shape = (0,)
        self._additional = np.zeros(0)

    def _set_additional(self, scores, full_shape=None):
        self._given_shape = scores.shape
        self._full_shape = scores.shape if full_shape is None else full_shape
        self._additional = scores

    def __repr__(self) -> str:
        many, size = self.index.shape
        return f"{type(self).__name__}({'' if many == 1 else f'{many} x '}{size} variables)"

    def _all_additional(self):
        """Its additional scores, (n_additional,)."""
        given = self._additional
        # broadcasting is slow for small graphs
        given = given if given.shape == self._full_shape else np.broadcast_to(given, self._full_shape)
        return given.ravel()

    @property
    def n_additional(self) -> int:
        """Number of its additional scores."""
        return math.prod(self._full_shape)

    def _gradient(self, full):
        """What belongs to the scores as given, of the flat array for all additional ones."""
        full = full.reshape(self._full_shape)
        return full.sum(axis=tuple(range(full.ndim - len(self._given_shape))))

    def maximize(
        self, scores: FloatArray, additional_scores: FloatArray
    ) -> ArrayLike | tuple[ArrayLike, ArrayLike]:
        """The best structure.

        Parameters
        ----------
        scores : ndarray of the variables' shape
            Score of each variable that is on.
        additional_scores : ndarray of the additional scores' shape
            Score of each additional part that the structure has.

        Returns
        -------
        m : ndarray of the variables' shape
            What each variable is in the structure: 0 or 1, or between.
        n : ndarray of the additional scores' shape
            How often the structure has each of them; not returned where there are none.

        Notes
        -----
        The graph that the factor is part of waits for the answer: solving it from here is a RuntimeError.
        """
        raise NotImplementedError(f"{type(self).__name__} has no maximize(scores, additional_scores)")

    def _structured(self):
        """fg_spec's fields (factor_graph.h) that do not depend on the position in the graph."""
        d = self.index.shape[1]
        return dict(kind=CUSTOM, rows=1, columns=d, n_on=d, n_bonus=self.n_additional, oracle=_Oracle(self))


class _Oracle:
    """Stands between a user's factor and the kernels: shapes, checks, and what went wrong."""

    def __init__(self, factor):
        self.factor, self.errors = factor, []
        self.solving = ()  # layouts that are being solved while it is asked

    def ask(self, scores, additional):
        factor = self.factor
        with asking(self.solving):
            got = factor.maximize(scores.reshape(factor._shape), additional.reshape(factor._full_shape))
        parts = got if isinstance(got, tuple) else (got, np.zeros(0))
        if len(parts) != 2:
            raise ValueError(f"{type(factor).__name__}.maximize must return m, or m and n")
        for part, shape in zip(parts, (factor._shape, factor._full_shape)):
            # of one dimension it is taken in C order
            if np.shape(part) != shape and np.shape(part) != (int(np.prod(shape)),):
                raise ValueError(
                    f"{type(factor).__name__}.maximize must return {factor.index.shape[1]} + "
                    f"{factor.n_additional} parts, of the shapes {factor._shape} and {factor._full_shape}; "
                    f"got {np.shape(part)} for {shape}"
                )
        flat = np.concatenate([numbers(part, "what maximize returns").ravel() for part in parts])
        if not np.isfinite(flat).all():
            raise ValueError(f"{type(factor).__name__}.maximize returned a structure that is not finite")
        m = flat[: factor.index.shape[1]]
        if m.size and not (m.min() >= 0.0 and m.max() <= 1.0):
            k = int(np.flatnonzero((m < 0.0) | (m > 1.0))[0])
            raise ValueError(
                f"{type(factor).__name__}.maximize returned {m[k]:g} for its variable {k}; in a structure a "
                "variable is 0 or 1 (or between, where a structure may share it)"
            )
        return flat


def check_factor(factor):
    """Refuse what is no factor, or a user's one without what the base class makes."""
    if not isinstance(factor, Factor):
        got = f"the class {factor.__name__}" if isinstance(factor, type) else type(factor).__name__
        raise TypeError(f"factor must be a Factor over variables, such as Xor(u); got {got}")
    if not hasattr(factor, "graph"):
        raise TypeError(f"{type(factor).__name__}.__init__ must call super().__init__(variables)")


def listed(factors, most=6):
    """Factors in words, the first few of many."""
    more = [f"{len(factors) - most} more"] if len(factors) > most else []
    return ", ".join([*map(repr, factors[:most]), *more]) or "no factors"
