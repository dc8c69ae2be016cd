"""A problem whose model takes its Hessian from L-BFGS instead of second derivatives."""

import numpy as np

from ..._linalg import lbfgs
from ..._solver import outcome
from ..losses.problem import Problem


class QuasiNewtonProblem(Problem):
    """Any problem, with an L-BFGS matrix on its working variables as the model's Hessian.

    Parameters
    ----------
    problem : object
        The problem; its ``model`` is never called.
    memory : int
        Largest number of pairs.
    """

    def __init__(self, problem, memory):
        self._inner, self.size, self.like = problem, problem.size, problem.like
        self.pairs = lbfgs.new_pairs(problem.size, memory, problem.like)
        self._x = self._g = None

    @property
    def inner(self):
        return self._inner.inner

    @property
    def l2(self):
        return self._inner.l2

    @property
    def f(self):
        return self._inner.f

    def start(self, x):
        return self._inner.start(x)

    def gradient(self, out=None):
        return self._inner.gradient(out)

    def move_all(self):
        return self._inner.move_all()

    def try_move(self, dz, x):
        return self._inner.try_move(dz, x)

    def accept(self):
        self._inner.accept()

    def bound(self):
        return self._inner.lipschitz()

    def passes(self):
        return self._inner.passes()

    def observe(self, x, g):
        """Learn from the point x (n,) that was reached and the gradient g (n,) of f there."""
        if self._x is None:
            self._x, self._g = x.copy(), g.copy()
            return
        lbfgs.add_pair(self.pairs, self._x, x, self._g, g)
        self._x[:], self._g[:] = x, g

    def model(self, variables, ridge):
        """L-BFGS on sorted ``variables``, and their move."""
        operator = None
        if len(self.pairs):
            try:
                operator = lbfgs.operator(self.pairs, variables, ridge=ridge)
            except np.linalg.LinAlgError:
                # rounding made the pairs useless; the method starts again from none
                self.pairs.clear()
        if operator is None:
            theta = max(self.lipschitz(), 1e-300)
            if not np.isfinite(theta):
                raise outcome.Stop(outcome.NOT_FINITE)
            operator = lbfgs.operator(self.pairs, variables, theta, ridge)
        return operator, Embedded(self.move_all(), variables, self.size)


class Embedded:
    """A step on some variables as the problem's step of all."""

    def __init__(self, move, variables, size):
        self.move, self.variables, self.size = move, variables, size

    def direction(self, dx):
        full = np.zeros(self.size, like=dx)
        full[self.variables] = dx
        return self.move.direction(full)
