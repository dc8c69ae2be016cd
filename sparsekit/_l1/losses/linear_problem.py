"""The problem of a linear model's loss that solvers work on: its state, its selections, its moves."""

import numpy as np

from ..._arrays import namespace, to_host
from ..._linalg.matrix import Columns
from ..._linalg.newton import MAX_SIDE
from ..._solver.tolerances import ROUNDING
from .selection import RowState, Selection


class LinearProblem(Selection):
    """The loss on a selection of its variables; selections share one RowState.

    ``gradient`` costs one pass over the selection's non-zeros; ``model`` copies the columns of
    the working variables and answers with their operator and compact design.
    """

    def __init__(self, loss, design, intercept, state):
        super().__init__(loss, design, intercept, state, design.shape[1] + bool(intercept))
        self.n_rows = design.shape[0]

    def start(self, x):
        moved, offset = bool(x.any()), self.loss.offset
        z = self.move_all().direction(x) if moved else np.zeros_like(self.loss.y)
        self.state.set(z if offset is None else z + offset)
        return self.state.f

    def _split(self, variables):
        # the intercept is the last variable, so in a sorted selection it comes last too
        has = bool(self.intercept and len(variables) > 0 and variables[-1] == self.size - 1)
        return (variables[:-1] if has else variables), has

    def screened(self, l1, most):
        """The problem without variables that every solution has at zero, and sorted numbers of the others.

        A penalty that no gradient can reach, wherever x is, keeps its variable at zero. The numbers are None
        where this is the problem itself: a copy has at most the part ``most`` of columns and entries.
        """
        slopes = self.loss.slope_range()
        if slopes is None:
            return self, None
        self._passes += 1
        reach = (1.0 + ROUNDING) * np.maximum(slopes[:, 0], slopes[:, 1])
        stay = ~(reach <= l1[: len(slopes)])  # a NaN stays, and is seen
        if stay.sum() >= most * len(stay) or slopes[stay, 2].sum() > most * self.design.nnz:
            return self, None
        part = LinearProblem(
            self.loss, self.design.select(np.flatnonzero(stay)), self.intercept, RowState(self.loss)
        )
        return part, np.flatnonzero(np.append(stay, True) if self.intercept else stay)

    def model(self, variables, ridge):
        """Operator of the quadratic model on sorted ``variables``, and their move.

        Each row's second derivative is the largest within its `radius`.
        """
        return self._model(variables, ridge, self._curvature(self.radius()))

    def _model(self, variables, ridge, d):
        cols, has = self._split(variables)
        operator, design = self.design.model(cols, d, has, ridge)
        return operator, Move(design, has)

    def hessian(self, variables, radius=None):
        """The Hessian of a `model` on sorted ``variables``, each row's curvature within its ``radius``.

        X is in single precision where it is sparse.
        """
        cols, has = self._split(variables)
        return self.design.gram(cols, self._curvature(radius), has)

    def _curvature(self, radius):
        return self.state.d if radius is None else self.loss.majorant(self.state.z, radius)

    def stretch(self, dz):
        """The quadratic form behind ``lipschitz``: over ||dx||^2 it is a lower bound of the same."""
        return self.loss._curvature_along(dz, self.state.d)

    def move_all(self):
        return Move(self.design, self.intercept)

    def gradient_of(self, theta, out=None):
        """X^T theta, with an intercept its sum too."""
        out = np.empty(self.size, like=theta) if out is None else out
        self.design.rmatvec(theta, out[: self.design.shape[1]])
        if self.intercept:
            out[-1] = theta.sum()
        return out

    def face_system(self, variables, products):
        cols, has = self._split(variables)
        if not self.design.gram_pays(cols, has, products):
            return None
        move = Move(Columns(self.design, cols), has)
        return to_host(self.hessian(variables)), lambda step: self.state.d * move.direction(step)

    def free_system(self, free):
        """The Hessian on variables ``free``, in main memory, and a function from steps to theta's changes.

        The change D A step is small where the loss is flat: theta can't leave the dual's box by much.
        """
        if len(free) == 1 and self.intercept and int(free[0]) == self.size - 1:
            return np.array([[float(self.state.d.sum())]]), lambda step: self.state.d * step[0]
        if len(free) > MAX_SIDE:
            return None, None
        cols, has = self._split(free)
        # sums in double precision, whatever models have: what is left of a gradient has a price
        H = self.design.sandwich(self.state.d, cols, intercept=has)
        move = Move(Columns(self.design, cols), has)
        return to_host(H), lambda step: self.state.d * move.direction(step)


class Move:
    """Steps along a selection of columns, as the change of the predictor."""

    def __init__(self, design, intercept):
        self.design, self.intercept = design, intercept

    def direction(self, dx):
        p = self.design.shape[1]
        dz = self.design.matvec(namespace(dx=dx).ascontiguousarray(dx[:p]))
        if self.intercept:
            dz = dz + dx[-1]
        return dz
