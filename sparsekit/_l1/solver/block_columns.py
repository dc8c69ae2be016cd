"""Working sets of a fit over blocks: columns gathered in this process, or columns that stay with the blocks.

Columns that fit into memory are gathered once, and the solver of main memory needs no round. For others each
point of the solver costs a round, in which the blocks also sum the Hessian: a Newton step is one round. A
Hessian of more than `MAX_SIDE` variables is multiplied instead, a product a round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..._cython.shared._operators import GramOperator
from ..._linalg.newton import MAX_SIDE
from ..losses.block_loss import as_message, model_of_block, product_of_block
from ..losses.user_problem import Expand, ProtocolProblem


def max_columns(problem):
    """Largest number of features of a `BlockProblem` that one Hessian has, with the intercepts."""
    return MAX_SIDE // problem.spec.n_outputs - 1


def working_set(problem, columns, has_hessian):
    """Sorted features ``columns`` of a `BlockProblem`, in this process where they fit into its memory.

    With ``has_hessian`` the solver uses second derivatives.
    """
    found = problem.working_set
    if found is None or not np.array_equal(found.columns, columns):
        problem.working_set = None  # or two copies would be in memory
        if problem.gathered.fits(columns):
            found = HeldColumns(problem, columns)
        else:
            found = RemoteColumns(problem, columns, has_hessian)
        problem.working_set = found
    return found


class HeldColumns:
    """Features ``columns`` of the `BlockProblem` ``whole``, in this process.

    Attributes
    ----------
    variables : ndarray of int
        The variables of the columns, and the intercepts.
    loss : object
        What the solver of main memory minimises.
    """

    def __init__(self, whole, columns):
        self.columns, self.variables = columns, whole.variables(columns)
        X = whole.gathered.matrix(columns)
        X = X.tocsr() if sp.issparse(X) else X  # models are made of rows
        self.loss = whole.spec.on(X, whole.values, whole.weight, whole.n_threads, whole.shift)

    def evaluate(self, x, free):
        """Gradient at x, and the Hessian of the variables ``free``; None where these are none or too many."""
        problem = self.loss.problem()
        problem.start(x)
        return problem.gradient(), problem.free_system(free)[0] if len(free) else None


class RemoteColumns:
    """Features ``columns`` of the `BlockProblem` ``whole``, which stay with the blocks.

    Parameters
    ----------
    has_hessian : bool
        Whether the solver uses second derivatives.
    """

    def __init__(self, whole, columns, has_hessian=True):
        self.columns, self.variables = columns, whole.variables(columns)
        self.whole, self.loss = whole, self
        self.n_variables, self.n_features = len(self.variables), len(columns)
        self.has_hessian = has_hessian and self.n_variables <= MAX_SIDE
        self._points: list[_Point] = []
        # one model of least squares is the loss itself
        self._quadratic: _Point | None = None

    def problem(self):
        """The problem that solvers work on."""
        return RemoteProblem(self)

    def value(self, x):
        return self._at(x).value if x.any() else self.whole.value_at_zero

    def gradient(self, x):
        return self._at(x).gradient.copy()

    def hessian(self, x, subset):
        """The Hessian at x of sorted variables ``subset``, a matrix."""
        point = self._at(x)
        if point.hessian is None:
            return self._ask(x, True, subset).hessian
        return np.ascontiguousarray(point.hessian[np.ix_(subset, subset)])

    def hessian_product(self, x, subset, v):
        full = np.zeros(self.n_variables)
        full[subset] = v
        message = self._message(x), self._message(full), self.variables[subset]
        return self.whole.round(product_of_block, *message)

    def hessian_diagonal(self, x):
        """An upper bound of the Hessian's diagonal wherever x is; of families, one at zero."""
        problem, K = self.whole, self.whole.spec.n_outputs
        squares = np.append(np.repeat(problem.census.squares, K), np.full(K, problem.census.shape[0]))
        if problem.spec.classes is None:
            curvature = problem.rows.curvature_weights().max()
        else:
            curvature = 0.25 * (1.0 if problem.weight is None else np.max(problem.weight))
        return np.maximum(curvature * squares[self.variables], 1e-300)

    def evaluate(self, x, free):
        """As of `HeldColumns`."""
        if self._quadratic is not None:
            # made again at x: the Hessian of sparse rows is in single precision
            hessian, self._quadratic = self._quadratic.hessian, self._ask(x, False)
            self._quadratic.hessian = hessian
            self._points = [self._quadratic]
        H = self.hessian(x, free) if 0 < len(free) <= MAX_SIDE else None
        return self.gradient(x), H

    def _at(self, x):
        """The point x, by a round if it is not one of the last two."""
        for point in self._points:
            if np.array_equal(point.x, x):
                return point
        if self._quadratic is not None:
            point = self._quadratic.moved_to(x)
        else:
            point = self._ask(x, self.has_hessian)
            if point.hessian is not None and self.whole.spec.is_quadratic:
                self._quadratic = point
        self._points = [*self._points[-1:], point]
        return point

    def _ask(self, x, has_hessian, subset=slice(None)):
        found = self.whole.round(model_of_block, self._message(x), self.variables[subset], has_hessian)
        return _Point(x.copy(), *found)

    def _message(self, x):
        full = np.zeros(self.whole.n_variables)
        full[self.variables] = x
        return as_message(full)


@dataclass
class _Point:
    """Value, gradient and Hessian or None at x."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: np.ndarray | None

    def moved_to(self, x):
        """The point x by the quadratic model."""
        step = x - self.x
        curved = self.hessian @ step
        value = self.value + float(self.gradient @ step) + 0.5 * float(step @ curved)
        return _Point(x.copy(), value, self.gradient + curved, self.hessian)


class RemoteProblem(ProtocolProblem):
    """The loss of `RemoteColumns` as a problem."""

    def __init__(self, loss):
        super().__init__(loss)
        self.n_rows = loss.whole.census.shape[0]

    def lipschitz(self):
        if self._lipschitz is None:
            # the trace is loose, but costs no round, and few steps need it
            self._lipschitz = float(self.loss.hessian_diagonal(self.x).sum())
        return self._lipschitz

    def model(self, variables, ridge):
        if len(variables) > MAX_SIDE:
            return super().model(variables, ridge)
        return GramOperator(self.loss.hessian(self.x, variables), ridge), Expand(variables, self.size)

    def falls_for_ever(self, x, l1):
        return False  # all losses over blocks are bounded below
