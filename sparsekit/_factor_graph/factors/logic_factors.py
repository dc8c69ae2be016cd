"""Factors over binary variables, any of which may be negated: gates and pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .factors import Factor, VariablesLike, as_index, as_scores

_DOC = """{what}

    {where} of [1]_.

    Parameters
    ----------
    variables : view of shape (d,) or (n, d), or list of views
        Variables; of two dimensions, each row is a factor.{more}
    negated : array-like of bool, broadcast to the variables' shape, default=None
        Which variables count as 1 - x.

    See Also
    --------
    FactorGraph : Solves the graph that it is added to.

    References
    ----------
    .. [1] V. Niculae, A. F. T. Martins, "LP-SparseMAP: Differentiable Relaxed Optimization for Sparse
       Structured Prediction", ICML 2020.

    Examples
    --------{example}
    """


def factor_doc(what, where, example, more=""):
    """A factor's docstring: what it is, where [1]_ has it, an example, and parameters of its own."""
    return _DOC.format(what=what, where=where, example=example.rstrip(), more=more.rstrip())


class _Logic(Factor):
    """Factors over binary variables, any of which may be negated."""

    def __init__(self, variables: VariablesLike, *, negated: ArrayLike | None = None) -> None:
        index, self.graph = as_index(variables)
        if index.ndim not in (1, 2):
            raise ValueError(
                f"{type(self).__name__} takes variables of one dimension, or of two, a factor a row; "
                f"got shape {index.shape}"
            )
        self._shape = index.shape
        self._set(index if index.ndim == 2 else index[None])
        self.negated = np.zeros(self.index.shape, dtype=bool)
        self._negates_none = negated is None
        if negated is not None:
            given = np.asarray(negated)
            if given.dtype != bool:
                raise TypeError(f"negated must be an array of bool; got {given.dtype}")
            try:
                self.negated = np.broadcast_to(given, self._shape).reshape(self.index.shape)
            except ValueError:
                raise ValueError(
                    f"negated must have the variables' shape {self._shape}; got {given.shape}"
                ) from None


class OrOut(_Logic):
    __doc__ = factor_doc(
        "The last variable is on where any of the others is.",
        "Appendix D.2.6",
        """
    >>> from sparsekit import FactorGraph, OrOut
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.9, 0.1, 0.2])
    >>> graph.add(OrOut(u))
    >>> graph.solve()[u].round(3)
    array([0.55, 0.1 , 0.55])
    """,
    )

    _kind = "orout"
    _least = 2


class AndOut(OrOut):
    __doc__ = factor_doc(
        "The last variable is on where all of the others are.",
        "`OrOut` with all variables negated, Appendix D.2.5",
        """
    >>> from sparsekit import FactorGraph, AndOut
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.7, 0.2, 0.3])
    >>> graph.add(AndOut(u))
    >>> graph.solve()[u].round(3)
    array([0.7 , 0.25, 0.25])
    """,
    )

    def __init__(self, variables: VariablesLike, *, negated: ArrayLike | None = None) -> None:
        super().__init__(variables, negated=negated)
        self.negated = ~self.negated


class Pair(_Logic):
    """Two variables with a score for both being on.

    Proposition 10 of [1]_.

    Parameters
    ----------
    variables : view of shape (2,) or (n, 2), or list of views
        Variables; of two dimensions, each row is a factor.
    score : float, or array-like of shape (n,), default=0
        Additional scores, for both of a pair being on (where negated, off); -inf forbids that.
    negated : array-like of bool, broadcast to the variables' shape, default=None
        Which variables count as 1 - x.

    See Also
    --------
    FactorGraph : Solves the graph that it is added to.

    References
    ----------
    .. [1] V. Niculae, A. F. T. Martins, "LP-SparseMAP: Differentiable Relaxed Optimization for Sparse
       Structured Prediction", ICML 2020.

    Examples
    --------
    >>> from sparsekit import FactorGraph, Pair
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.2, 0.4])
    >>> graph.add(Pair(u, 0.3))
    >>> graph.solve()[u].round(3)
    array([0.45, 0.45])

    A score for the second without the first:

    >>> graph = FactorGraph()
    >>> u = graph.variable([0.2, 0.4])
    >>> graph.add(Pair(u, 0.3, negated=[True, False]))
    >>> graph.solve()[u].round(3)
    array([0.2, 0.7])
    """

    _kind = "pair"

    def __init__(
        self, variables: VariablesLike, score: ArrayLike = 0.0, *, negated: ArrayLike | None = None
    ) -> None:
        super().__init__(variables, negated=negated)
        if self.index.shape[1] != 2:
            raise ValueError(f"Pair takes variables of shape (2,) or (n, 2); got {self._shape}")
        score, shape = as_scores(score, "score"), self._shape[:-1]
        if score.shape != shape:
            if score.ndim:
                raise ValueError(f"score must have the shape {shape}; got {score.shape}")
            score = np.full(shape, score)
        self._set_additional(score)
