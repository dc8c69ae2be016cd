"""Factors over structures of many parts, each with a MAP oracle of its own (trees.h, structures.h)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .factors import DENSE, MATCHING, PROJECTIVE, SEQUENCE, TREE, Factor, VariablesLike, as_index, as_scores
from .mixture import matchings, sequences, trees


class _Structured(Factor):
    """Factors with a MAP oracle of our own."""

    @staticmethod
    def _matrix(variables, what):
        index, graph = as_index(variables)
        if index.ndim != 2:
            raise ValueError(f"{what} takes variables of two dimensions; got shape {index.shape}")
        return index, graph

    def _fill(self, index, additional=None, full_shape=None):
        self._shape = index.shape
        self._set(index.reshape(1, -1))
        if additional is not None:
            self._set_additional(additional, full_shape)


class Dense(_Structured):
    """Variables of several values each, with a score for every joint assignment.

    Parameters
    ----------
    variables : list of views of one dimension
        For each of them indicators of its values, of which exactly one is on.
    scores : array-like of shape (n_1, ..., n_K), default=None
        Additional scores of the joint assignments; -inf forbids, None is 0. Where many are equal, several
        mixtures are best: marginals and derivatives of the scores themselves are then those of one of them.

    Raises
    ------
    TypeError, ValueError
        If the variables are no such views, or the scores have another shape, are NaN or inf.

    See Also
    --------
    Pair : Two variables of two values.

    Examples
    --------
    >>> from sparsekit import Dense, FactorGraph
    >>> graph = FactorGraph()
    >>> a, b = graph.variable((2,)), graph.variable((3,))
    >>> graph.add(Dense([a, b], [[0.0, 0.0, 2.0], [1.5, 0.0, 0.0]]))
    >>> solution = graph.solve()
    >>> solution[a].round(3), solution[b].round(3)
    (array([0.625, 0.375]), array([0.375, 0.   , 0.625]))
    """

    def __init__(self, variables: VariablesLike, scores: ArrayLike | None = None) -> None:
        parts = list(variables) if isinstance(variables, (list, tuple)) else [variables]
        index, self.graph = as_index(parts)
        self.sizes = tuple(as_index(part)[0].size for part in parts)
        if any(as_index(part)[0].ndim != 1 for part in parts) or 0 in self.sizes:
            raise ValueError("Dense takes a list of views of one dimension, of at least one value each")
        scores = np.zeros(self.sizes) if scores is None else as_scores(scores, "scores")
        if scores.shape != self.sizes:
            raise ValueError(f"scores must have the shape {self.sizes}; got {scores.shape}")
        self._fill(index, scores)

    def _structured(self):
        sizes = np.array(self.sizes, dtype=np.intp)
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        K = len(sizes)
        return dict(
            kind=DENSE, rows=K, columns=int(sizes[-1]), n_on=K, n_bonus=1, sizes=sizes, offsets=offsets
        )

    def _mixture(self, x, additional):
        joint = np.flatnonzero(additional)
        ends = np.cumsum(self.sizes) - self.sizes
        structures = np.zeros((len(joint), sum(self.sizes)))
        for offset, values in zip(ends, np.unravel_index(joint, self.sizes)):
            structures[np.arange(len(joint)), offset + values] = 1.0
        return additional[joint], structures, np.eye(len(additional))[joint]


class Sequence(_Structured):
    """A chain: exactly one of K tags at each of T positions, with scores of transitions (Viterbi).

    Parameters
    ----------
    variables : view of shape (T, K)
        Indicators of the tags.
    transitions : array-like of shape (T - 1, K, K) or (K, K), default=None
        Additional scores [position, previous tag, next tag], or the same at all positions; -inf forbids, None
        is 0. Where several mixtures are best, derivatives are those of the least change of the transitions.

    Raises
    ------
    TypeError, ValueError
        If the variables are no such view, or the transitions have another shape, are NaN or inf.

    See Also
    --------
    DepTree : Trees over words.

    Examples
    --------
    >>> from sparsekit import FactorGraph, Sequence
    >>> graph = FactorGraph()
    >>> tags = graph.variable([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]])
    >>> graph.add(Sequence(tags, [[0.0, -1.0], [0.0, 0.0]]))  # from the first tag to the second costs 1
    >>> graph.solve()[tags].round(3)
    array([[0.5 , 0.5 ],
           [0.45, 0.55],
           [0.45, 0.55]])
    """

    def __init__(self, variables: VariablesLike, transitions: ArrayLike | None = None) -> None:
        index, self.graph = self._matrix(variables, "Sequence")
        T, K = index.shape
        full = (max(T - 1, 0), K, K)
        transitions = np.zeros(full) if transitions is None else as_scores(transitions, "transitions")
        if transitions.shape not in (full, (K, K)):
            raise ValueError(f"transitions must have the shape {full} or {(K, K)}; got {transitions.shape}")
        self._fill(index, transitions, full)

    def _structured(self):
        T, K = self._shape
        return dict(kind=SEQUENCE, rows=T, columns=K, n_on=T, n_bonus=T - 1)

    def _mixture(self, x, additional):
        return sequences(x, additional.reshape(self._full_shape))


class DepTree(_Structured):
    """A dependency tree over n words: a head for every word, without cycles.

    Parameters
    ----------
    variables : view of shape (n, n)
        [modifier, head]; the diagonal is for arcs from the root.
    projective : bool, default=False
        Whether arcs may not cross (Eisner); otherwise any tree (maximum arborescence: Chu and Liu, Edmonds).
    single_root : bool, default=False
        Whether just one word hangs on the root.

    Raises
    ------
    TypeError, ValueError
        If the variables are no such view.

    See Also
    --------
    Sequence : A chain of tags.

    Examples
    --------
    >>> from sparsekit import DepTree, FactorGraph
    >>> graph = FactorGraph()
    >>> arcs = graph.variable([[0.1, 0.9, 0.0], [0.8, 0.3, 0.0], [0.0, 0.7, 0.6]])
    >>> graph.add(DepTree(arcs))
    >>> graph.map()[arcs].round(3)  # a row's head is where its 1 is: word 1 hangs on the root
    array([[0., 1., 0.],
           [0., 1., 0.],
           [0., 1., 0.]])
    """

    def __init__(
        self, variables: VariablesLike, *, projective: bool = False, single_root: bool = False
    ) -> None:
        index, self.graph = self._matrix(variables, "DepTree")
        if index.shape[0] != index.shape[1]:
            raise ValueError(f"DepTree takes as many modifiers as heads; got shape {index.shape}")
        self.projective, self.single_root = bool(projective), bool(single_root)
        self._fill(index)

    def _structured(self):
        n = self._shape[0]
        kind = PROJECTIVE if self.projective else TREE
        return dict(kind=kind, flag=int(self.single_root), rows=n, columns=n, n_on=n, n_bonus=0)

    def _mixture(self, x, additional):
        weights, structures = trees(x, self.single_root)
        return weights, structures, np.zeros((len(weights), 0))


class Matching(_Structured):
    """A matching of m rows and n columns: each of the fewer has one partner, each of the others at most one.

    Parameters
    ----------
    variables : view of shape (m, n)
        [row, column].

    Raises
    ------
    TypeError, ValueError
        If the variables are no such view.

    See Also
    --------
    Xor, AtMostOne : A row and a column by themselves; together they relax the same problem, eq. (21) of [1]_.

    References
    ----------
    .. [1] V. Niculae, A. F. T. Martins, "LP-SparseMAP: Differentiable Relaxed Optimization for Sparse
       Structured Prediction", ICML 2020.

    Examples
    --------
    >>> from sparsekit import FactorGraph, Matching
    >>> graph = FactorGraph()
    >>> u = graph.variable([[0.9, 0.8, 0.1], [0.7, 0.2, 0.0]])
    >>> graph.add(Matching(u))
    >>> graph.solve()[u].round(3)
    array([[0.429, 0.571, 0.   ],
           [0.571, 0.314, 0.114]])
    """

    def __init__(self, variables: VariablesLike) -> None:
        index, self.graph = self._matrix(variables, "Matching")
        self._fill(index)

    def _structured(self):
        m, n = self._shape
        return dict(kind=MATCHING, rows=m, columns=n, n_on=min(m, n), n_bonus=0)

    def _mixture(self, x, additional):
        weights, structures = matchings(x)
        return weights, structures, np.zeros((len(weights), 0))
