"""A ridge added to any problem: f(x) + 1/2 sum_j l2_j x_j^2, the smooth part of an elastic net.

It is added here, once, and not in the losses: to the value, the gradient, and the diagonal of every model
(`QuadOperator.add_diagonal`), factor and bound. The problem below need not know.
"""

import numpy as np

from ..._linalg.special import largest
from .problem import Problem


class RidgeProblem(Problem):
    """``problem`` with weights l2 (size,) >= 0 of half of each variable's square.

    A square has a dual of its own, so that the gap needs no more than `duality.duality_gap` does with them.
    """

    def __init__(self, problem, l2, x=None):
        self.below, self.l2, self.size, self.like = problem, l2, problem.size, problem.like
        self.several_classes = problem.several_classes
        self.n_rows = problem.n_rows
        self.blas_threads = problem.blas_threads
        self.x, self._trial = x, None

    def _half(self, x):
        return 0.5 * float(self.l2 @ np.square(x))

    @property
    def inner(self):
        return self.below.inner

    @property
    def f(self):
        return self.below.f + self._half(self.x)

    @property
    def state(self):
        return self.below.state

    def start(self, x):
        self.x = x.copy()
        return self.below.start(x) + self._half(x)

    def gradient(self, out=None):
        out = self.below.gradient(out)
        out += self.l2 * self.x
        return out

    def model(self, variables, ridge):
        operator, move = self.below.model(variables, ridge)
        operator.add_diagonal(self.l2[variables])
        return operator, move

    def move_all(self):
        return self.below.move_all()

    def try_move(self, dz, x):
        self._trial = x.copy()
        return self.below.try_move(dz, x) + self._half(x)

    def accept(self):
        self.below.accept()
        self.x = self._trial

    def bound(self):
        return self.below.lipschitz() + largest(self.l2)

    def passes(self):
        return self.below.passes()

    def observe(self, x, g):
        self.below.observe(x, g)

    def screened(self, l1, most):
        # at zero the ridge has no slope: what l1 keeps there it keeps there still
        part, kept = self.below.screened(l1, most)
        return (self, None) if kept is None else (RidgeProblem(part, self.l2[kept]), kept)

    def anchored(self, variables, x, g, l1):
        # the ridge bends the shifts of a feature's classes, and it is the bare directions that have to go
        bare = self.l2[variables] == 0.0
        if not bool(bare.any()):
            return variables
        kept = self.below.anchored(variables[bare], x, g, l1)
        return np.sort(np.concatenate([kept, variables[~bare]]))

    def centred(self, x, l1, l2):
        self.x = self.below.centred(x, l1, l2 + self.l2)
        return self.x.copy()

    def falls_for_ever(self, x, l1):
        return self._half(x) == 0.0 and self.below.falls_for_ever(x, l1)

    def face_system(self, variables, products):
        return self.below.face_system(variables, products)

    def stretch(self, dz):
        return self.below.stretch(dz)
