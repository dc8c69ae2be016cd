"""Factors over binary variables that one linear constraint describes: exactly one, at most one, budgets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import host_only
from ..._messages import check_nonnegative, numbers, shown
from .factors import Relation, VariablesLike
from .logic_factors import _Logic, factor_doc


class _Linear(_Logic):
    """A box cut by ``a.x <=, =, >= b``: relation, and `_cut` for a and b before negation."""

    _kind = "linear"
    _relation = Relation.EQUAL

    def _cut(self):
        return np.ones(self.index.shape), np.ones(len(self.index))

    def _constraint(self):
        """Coefficients (n, d), bounds (n,): x counts as 1 - x where it is negated."""
        a, b = self._cut()
        if self._negates_none:
            return a, b
        return np.where(self.negated, -a, a), b - np.where(self.negated, a, 0.0).sum(axis=1)


class Xor(_Linear):
    __doc__ = factor_doc(
        "Exactly one variable is on. Alone in a graph it is sparsemax.",
        "Appendix D.2.1",
        """
    >>> from sparsekit import FactorGraph, Xor
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.5, 0.3, -1.0])
    >>> graph.add(Xor(u))
    >>> graph.solve()[u].round(3)
    array([0.6, 0.4, 0. ])
    """,
    )


class AtMostOne(_Linear):
    __doc__ = factor_doc(
        "At most one variable is on.",
        "Appendix D.2.4",
        """
    >>> from sparsekit import FactorGraph, AtMostOne
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.8, -0.2, 0.6])
    >>> graph.add(AtMostOne(u))
    >>> graph.solve()[u].round(3)
    array([0.6, 0. , 0.4])
    """,
    )

    _relation = Relation.AT_MOST


class Or(_Linear):
    __doc__ = factor_doc(
        "At least one variable is on.",
        "Appendix D.2.2",
        """
    >>> from sparsekit import FactorGraph, Or
    >>> graph = FactorGraph()
    >>> u = graph.variable([-0.2, -0.6])
    >>> graph.add(Or(u))
    >>> graph.solve()[u].round(3)
    array([0.7, 0.3])
    """,
    )

    _relation = Relation.AT_LEAST


class XorOut(_Linear):
    __doc__ = factor_doc(
        "The last variable is the sum of the others, of which at most one is on.",
        "`Xor` with the last variable negated, Appendix D.2.5",
        """
    >>> from sparsekit import FactorGraph, XorOut
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.8, 0.4, 0.1])
    >>> graph.add(XorOut(u))
    >>> graph.solve()[u].round(3)
    array([0.433, 0.033, 0.467])
    """,
    )

    _least = 2

    def _cut(self):
        a = np.ones(self.index.shape)
        a[:, -1] = -1.0
        return a, np.zeros(len(a))


class Imply(_Linear):
    __doc__ = factor_doc(
        "If all variables but the last are on, so is the last.",
        "Eqs. (85) and (86)",
        """
    >>> from sparsekit import FactorGraph, Imply
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.9, -0.5])
    >>> graph.add(Imply(u))
    >>> graph.solve()[u].round(3)
    array([0.2, 0.2])
    """,
    )

    _relation = Relation.AT_LEAST
    _least = 2

    def __init__(self, variables: VariablesLike, *, negated: ArrayLike | None = None) -> None:
        super().__init__(variables, negated=negated)
        self.negated = self.negated.copy()
        self.negated[:, :-1] ^= True
        self._negates_none = False


class Budget(_Linear):
    __doc__ = factor_doc(
        "At most ``budget`` variables are on, or exactly so many.",
        "Appendix D.2.4",
        """
    >>> from sparsekit import FactorGraph, Budget
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.9, 0.8, 0.7, 0.1])
    >>> graph.add(Budget(u, 2))
    >>> graph.solve()[u].round(3)
    array([0.767, 0.667, 0.567, 0.   ])
    """,
        more="""
    budget : int, or array-like of int of shape (n,)
        Between 0 and d.
    exactly : bool, default=False
        Whether the budget is to be used up.
    """,
    )

    def __init__(
        self,
        variables: VariablesLike,
        budget: int | ArrayLike,
        *,
        exactly: bool = False,
        negated: ArrayLike | None = None,
    ) -> None:
        super().__init__(variables, negated=negated)
        given, size = np.asarray(budget), self.index.shape[1]
        if given.dtype.kind not in "iu":
            raise TypeError(f"budget must be a whole number; got {shown(budget)}. Knapsack takes real ones")
        if given.size and not 0 <= given.min() <= given.max() <= size:
            raise ValueError(
                f"budget must be between 0 and the number of variables, {size}; got {shown(budget)}"
            )
        self.budget = _for_each(given, len(self.index), "budget")
        self._relation = Relation.EQUAL if exactly else Relation.AT_MOST

    def _cut(self):
        return np.ones(self.index.shape), self.budget


class Knapsack(_Linear):
    __doc__ = factor_doc(
        "The costs of the variables that are on are at most ``budget``, in the linear relaxation.",
        "Appendix D.2.3, eq. (80),",
        """
    >>> from sparsekit import FactorGraph, Knapsack
    >>> graph = FactorGraph()
    >>> u = graph.variable([0.9, 0.8, 0.7])
    >>> graph.add(Knapsack(u, costs=[3.0, 1.0, 2.0], budget=3.0))
    >>> graph.solve()[u].round(3)
    array([0.493, 0.664, 0.429])

    The last one costs 2 where it is off:

    >>> graph = FactorGraph()
    >>> u = graph.variable([0.9, 0.8, 0.2])
    >>> graph.add(Knapsack(u, costs=[3.0, 1.0, 2.0], budget=3.0, negated=[False, False, True]))
    >>> graph.solve()[u].round(3)
    array([0.45, 0.65, 0.5 ])
    """,
        more="""
    costs : array-like of shape (d,) or (n, d)
        Numbers >= 0, paid for a variable that is on; where it is negated, for one that is off.
    budget : float, or array-like of shape (n,)
        Number >= 0, in the unit of the costs.
    """,
    )

    _relation = Relation.AT_MOST

    def __init__(
        self,
        variables: VariablesLike,
        costs: ArrayLike,
        budget: ArrayLike,
        *,
        negated: ArrayLike | None = None,
    ) -> None:
        super().__init__(variables, negated=negated)
        host_only(costs=costs, budget=budget)
        costs = numbers(costs, "costs")
        budget = numbers(budget, "budget")
        check_nonnegative(costs, "costs")
        check_nonnegative(budget, "budget")
        try:
            self.costs = np.broadcast_to(costs, self.index.shape)
        except ValueError:
            raise ValueError(
                f"costs must have the variables' shape {self._shape}; got {costs.shape}"
            ) from None
        self.budget = _for_each(budget, len(self.index), "budget")

    def _cut(self):
        # a common factor changes nothing: scale all knapsacks alike
        size = self.costs.max(axis=1)
        size = np.where(size > 0, size, 1.0)
        return self.costs / size[:, None], self.budget / size


def _for_each(values, n, name):
    """One value a factor."""
    if values.ndim and values.shape != (n,):
        raise ValueError(
            f"{name} must be one number, or one for each of the {n} factors; got shape {values.shape}"
        )
    return np.full(n, values, dtype=np.float64)
