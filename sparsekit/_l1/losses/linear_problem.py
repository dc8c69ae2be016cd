"""The problem of a linear model's loss that solvers work on: its state, its selections, its moves."""

import numpy as np

from ..._arrays import namespace, to_host
from ..._cython._factor import Factor
from ..._cython._single_factor import SingleFactor
from ..._linalg.special import largest
from .selection import Selection

# rounding of sums that decide whether a variable can be left out
_SLACK = 1e-9
# side up to which a factor is in double precision, where it costs little and better systems cost fewer steps
_SMALL_FACTOR = 1200
# a factorisation, per cube of its side, in multiply-adds of a sparse product
_FACTOR_FLOP = 0.01
# unpenalised variables up to which their dense system is solved for a certificate
_MOST_FREE = 500
# largest share of the non-zeros, and of the columns, that a copy without the others may keep
_KEPT = 0.8


class RowState:
    """Predictor, value and derivatives at the current point and at a trial point."""

    def __init__(self, loss):
        self.loss = loss
        y = loss.y
        self.z, self.u, self.d = np.zeros_like(y), np.empty_like(y), np.empty_like(y)
        self.trial_z, self.trial_u, self.trial_d = np.empty_like(y), np.empty_like(y), np.empty_like(y)
        self.f = self.trial_f = self.last_dz = self.factored = None
        self.at_origin = False

    def set(self, z):
        self.z = z
        self.f, self.u, self.d = self.loss.derivatives(z, self.u, self.d)

    def try_step(self, dz, step=1.0):
        self.loss.axpy_rows(self.z, step, dz, self.trial_z)
        self.trial_f, _, _ = self.loss.derivatives(self.trial_z, self.trial_u, self.trial_d)
        return self.trial_f

    def accept(self):
        self.z, self.trial_z = self.trial_z, self.z
        self.u, self.trial_u = self.trial_u, self.u
        self.d, self.trial_d = self.trial_d, self.d
        self.f = self.trial_f
        self.at_origin = False


class LinearProblem(Selection):
    """The loss on a selection of its variables; selections share one RowState.

    ``gradient`` costs one pass over the selection's non-zeros; ``model`` copies the columns of
    the working variables and answers with their operator and compact design.
    """

    def __init__(self, loss, design, intercept, state):
        super().__init__(loss, design, intercept, state, design.shape[1] + bool(intercept))
        self.n_rows = design.shape[0]
        self._slopes = None

    def start(self, x):
        moved, offset = bool(x.any()), self.loss.offset
        z = self.move_all().direction(x) if moved else np.zeros_like(self.state.z)
        self.state.set(z if offset is None else z + offset)
        self.state.at_origin = not moved and offset is None
        return self.state.f

    def gradient(self, out=None):
        out = np.empty(self.size, like=self.state.u) if out is None else out
        p = self.design.shape[1]
        if self.state.at_origin and self._slopes is not None:
            np.subtract(self._slopes[:, 1], self._slopes[:, 0], out=out[:p])
            out[:p] *= 0.5
        else:
            self._passes += 1
            self.design.rmatvec(self.state.u, out[:p])
        if self.intercept:
            out[-1] = self.state.u.sum()
        return out

    def _split(self, variables):
        # the intercept is the last variable, so in a sorted selection it comes last too
        has = bool(self.intercept and len(variables) > 0 and variables[-1] == self.size - 1)
        return (variables[:-1] if has else variables), has

    def screened(self, l1):
        """The problem without variables that some solution has at zero for sure, or itself.

        A penalty that no gradient can reach, wherever x is, keeps its variable at zero.
        """
        slopes = self._slopes = self.loss.slope_range()
        if slopes is None:
            return self
        self.design._counts = slopes[:, 2]
        self._passes += 1
        reach = (1.0 + _SLACK) * np.maximum(slopes[:, 0], slopes[:, 1])
        # a NaN stays, and is seen
        stay = ~(reach <= l1[: len(slopes)])
        # what is left out must repay the copy
        if stay.sum() >= _KEPT * len(stay) or slopes[stay, 2].sum() > _KEPT * self.design.nnz:
            return self
        part = self.restrict(np.flatnonzero(np.append(stay, True) if self.intercept else stay))
        part._slopes = slopes[stay]
        part.working = False
        self.base = np.zeros(self.size, like=l1)
        return part

    def restrict(self, variables):
        """The problem on sorted ``variables``, its columns copied."""
        cols, has = self._split(variables)
        self.design._rows = None  # the selection makes its own, in less memory
        return self.adopt(LinearProblem(self.loss, self.design.select(cols), has, self.state), variables)

    def restriction_pays(self, variables):
        """Whether iterations on sorted ``variables`` repay the copy of their columns."""
        return self.design.selection_pays(self._split(variables)[0])

    def model(self, variables, ridge, damping=0.0, bend=np.inf):
        """Operator of the quadratic model on sorted ``variables``, and their move.

        Each row's second derivative is the largest within its `radius`.
        """
        cols, has = self._split(variables)
        d = self._curvature(self.radius(damping, bend))
        operator, design = self.design.model(cols, d, has, ridge)
        return operator, Move(design, has)

    def factor_cost(self, variables):
        """Work of `factor` in multiply-adds of a product, and that of a product; inf where there is none."""
        if not hasattr(self.design, "gram_cost"):
            return np.inf, np.inf
        cols, has = self._split(variables)
        size = len(cols) + has
        work = self.design.gram_cost(cols) + _FACTOR_FLOP * size**3
        return work, 2.0 * float(self.design.counts()[cols].sum()) + self.n_rows

    def factor(self, variables, ridge, l2=None):
        """Cholesky factor of the Hessian on sorted ``variables``, and their places in it.

        It is made in the memory of models: the next one must be made after it.
        """
        cols, has = self._split(variables)
        # columns with many entries first: what they add up to lies close together
        order = np.argsort(-self.design.counts()[cols], kind="stable")
        matrix = self.design.gram(cols[order], self.state.d, has)
        if l2 is not None:
            matrix[np.diag_indices(len(matrix))] += np.append(l2[: len(cols)][order], l2[len(cols) :])
        kind = Factor if len(cols) <= _SMALL_FACTOR else SingleFactor
        factor = kind(matrix, ridge)
        place = np.empty(len(variables), dtype=np.int32)
        place[order] = np.arange(len(cols), dtype=np.int32)
        place[len(cols) :] = len(cols)
        self.state.factored = self.state.d.copy()
        return factor, place

    def hessian(self, variables, radius=None):
        """The Hessian of a `model` on sorted ``variables``, each row's curvature within its ``radius``.

        X is in single precision where it is sparse.
        """
        cols, has = self._split(variables)
        return self.design.gram(cols, self._curvature(radius), has)

    def _curvature(self, radius):
        return self.state.d if radius is None else self.loss.majorant(self.state.z, radius)

    def drift(self):
        """How far the rows' second derivatives are from those of the last factor, as a part of their sum."""
        was = self.state.factored
        return float(np.abs(self.state.d - was).sum()) / max(float(was.sum()), 1e-300)

    def _bound(self):
        if self._slopes is None:
            return super()._bound()
        # ||A||_2^2 <= ||A||_1 ||A||_inf, and the slopes hold the weighted sums of the columns
        columns = self.loss.curvature * largest(self._slopes[:, 0] + self._slopes[:, 1])
        if self.intercept:
            columns = max(columns, float(self.loss.curvature_weights().sum()))
        return columns * (self.design.largest_row() + self.intercept)

    def stretch(self, dz):
        """The quadratic form behind ``lipschitz``: over ||dx||^2 it is a lower bound of the same."""
        return self.loss.curvature * float(np.dot(dz, dz * self.loss.s if self.loss.s.size else dz))

    def spread(self, dz):
        """Size of a step in each row, (n,)."""
        return np.abs(dz)

    def move_all(self):
        return Move(self.design, self.intercept)

    def gradient_of(self, theta):
        """X^T theta, with an intercept its sum too."""
        p = self.design.shape[1]
        grad = np.empty(self.size, like=theta)
        self.design.rmatvec(theta, grad[:p])
        if self.intercept:
            grad[-1] = theta.sum()
        return grad

    def free_system(self, free):
        """The Hessian on variables ``free``, in main memory, and a function from steps to theta's changes.

        The change D A step is small where the loss is flat: theta can't leave the dual's box by much.
        """
        if len(free) == 1 and self.intercept and int(free[0]) == self.size - 1:
            return np.array([[float(self.state.d.sum())]]), lambda step: self.state.d * step[0]
        if len(free) > min(_MOST_FREE, self.n_rows):
            return None, None
        operator, move = self.model(free, 0.0)
        H = np.column_stack([operator.matvec(e) for e in namespace(X=self.like).eye(len(free))])
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
