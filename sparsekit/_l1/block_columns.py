"""The working set of a fit on blocks: columns that are here, or that stay where they are.

Columns that fit into this process are gathered once, and no step over them costs a round. Of others each
point costs one, in which the blocks also make the Hessian, where that is a small matrix: a Newton step, with
as many cycles on its model as it takes, is then one round. A Hessian that is too large for that is only
multiplied, a product a round.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._cython._operators import GramOperator
from .block_loss import Sparse, dual_value_of_block, model_of_block, product_of_block
from .class_shift import anchored, centred
from .user_problem import Expand, ProtocolProblem

# variables, of dense and of sparse columns, up to which each point comes with the Hessian of all of them; and
# the largest Hessian
_WHOLE_DENSE, _WHOLE_SPARSE, _SIDE = 600, 1500, 3000
# relative distance at which two points are one
_SAME = 1e-15
# part of the gradient at zero that may be left on unpenalised variables, and attempts
_LEFT, _ATTEMPTS = 1e-12, 3


class HeldColumns:
    """Features ``columns`` of the problem, in this process."""

    is_here = True

    def __init__(self, problem, columns):
        X = problem.gathered.matrix(columns)
        X = X.tocsr() if sp.issparse(X) else X  # models are made of rows
        self.loss = problem.spec.on(X, problem.values, problem.weight, problem.n_threads)

    def look(self, x, free):
        """Value and gradient at x, and the move that makes theta feasible on ``free``, None if none does.

        theta are the derivatives by row.
        """
        part = self.loss.problem()
        value, self.theta, moved = part.start(x), part.state.u, np.zeros(0)
        gradient = part.gradient()
        if free.size:
            self.theta, _, moved = part.project_free(free, self.theta, gradient)
        return value, gradient, moved

    def refine(self, moved, left):
        """The move again, with what is ``left`` of the free variables' gradient; None if that is little."""
        return None

    def dual_value(self, scale, move):
        """Dual objective at the feasible theta of the last `look`, times ``scale``."""
        return self.loss.dual_value(scale * self.theta)


class RemoteColumns:
    """Features ``columns`` of the problem, where the blocks are; `minimize_oba` takes it as a loss.

    Its variables are those of `BlockProblem.variables`.
    """

    is_here = False

    def __init__(self, problem, columns):
        self.whole, self.variables = problem, problem.variables(columns)
        self.loss, self.n_variables = self, len(self.variables)
        self.origin_scale = None
        self.with_hessian = True
        mask = np.zeros(problem.n_variables, dtype=bool)
        mask[self.variables] = True
        self._bits = np.packbits(mask)
        self._whole = _WHOLE_SPARSE if problem.census.is_sparse else _WHOLE_DENSE
        # of least squares the Hessian is the same everywhere, and so one model is the loss itself
        self._base: _Point | None = None
        self._points: list[_Point] = []
        self._attempts = 0

    def _sparse(self, x):
        full = np.zeros(self.whole.n_variables)
        full[self.variables] = x
        return Sparse.of(full)

    def _round(self, kernel, *arguments):
        return self.whole.blocks.map_reduce(kernel, self.whole.spec, self.whole.fold, *arguments)

    def _ask(self, x, hessian_of):
        """A round: value, gradient, and the Hessian of some variables or None."""
        chosen = None if hessian_of is None else self.variables[hessian_of]
        value, gradient, H = self._round(model_of_block, self._sparse(x), self._bits, chosen)
        return _Point(x.copy(), float(value), gradient, hessian_of, H)

    def point(self, x, hessian_of=None):
        """What is known of x, by a round if it is not one of the last two points.

        That round also makes the Hessian of all variables, or of ``hessian_of`` where these are too many.
        """
        for known in self._points:
            if known.is_at(x):
                return known
        if self._base is not None:
            found = self._base.moved_to(x)
        else:
            if not self.with_hessian:
                hessian_of = None
            elif hessian_of is not None and self.n_variables <= self._whole:
                hessian_of = np.arange(self.n_variables)
            found = self._ask(x, hessian_of)
            if found.hessian is not None and self.whole.spec.classes is None and found.is_whole:
                self._base = found
        self._points = [*self._points[-1:], found]
        return found

    def value(self, x):
        if not x.any() and self.whole.value_at_zero is not None:
            return self.whole.value_at_zero
        return self.point(x).value

    def gradient(self, x):
        return self.point(x).gradient.copy()

    def hessian(self, x, subset):
        """The Hessian at x of sorted variables ``subset``, a matrix."""
        point = self.point(x, subset)
        if not point.has(subset):
            again = self._ask(x, subset)
            point.of, point.hessian = subset, again.hessian
        return point.hessian_on(subset)

    def hessian_product(self, x, subset, v):
        full = np.zeros(self.n_variables)
        full[subset] = v
        return self._round(product_of_block, self._sparse(x), self._sparse(full), self._bits)[subset]

    def hessian_diagonal(self, x):
        """About the largest that it can be: what products without a matrix are preconditioned by."""
        problem, K = self.whole, self.whole.spec.n_outputs
        total = float(len(problem.values) if problem.weight is None else np.sum(problem.weight))
        squares = problem.census.squares * (total / max(len(problem.values), 1))
        every = np.append(np.repeat(squares, K), np.full(K if problem.spec.fit_intercept else 0, total))
        return np.maximum(every[self.variables] * (1.0 if problem.spec.classes is None else 0.25), 1e-300)

    def problem(self):
        """The problem that solvers work on."""
        return RemoteProblem(self)

    # the certificate

    def look(self, x, free):
        """As of `HeldColumns`."""
        base = self._base
        if base is not None:
            # the model of least squares is made anew where the solver ended, without its rounding
            self._base = self._ask(x, None)
            self._base.of, self._base.hessian = base.of, base.hessian
            self._points = [self._base]
        point = self.point(x)
        self._attempts, moved = 0, np.zeros(0)
        if free.size:
            self._system = self.hessian(x, free)
            moved = self._step(point.gradient[free])
        self._x = x.copy()
        return point.value, point.gradient, moved

    def _step(self, gradient):
        if len(self._system) > _SIDE or not np.isfinite(self._system).all():
            return None
        return np.linalg.lstsq(self._system, gradient, rcond=1e-13)[0]

    def refine(self, moved, left):
        """As of `HeldColumns`."""
        self._attempts += 1
        if np.abs(left).max(initial=0.0) <= _LEFT * self.whole.origin_scale or self._attempts > _ATTEMPTS:
            return None
        return moved + self._step(left)

    def dual_value(self, scale, move):
        """As of `HeldColumns`, by a round."""
        moved = Sparse.of(move) if move.any() else None
        return float(self._round(dual_value_of_block, self._sparse(self._x), moved, scale))


class _Point:
    """Value, gradient and perhaps the Hessian of variables ``of`` at x."""

    def __init__(self, x, value, gradient, of, hessian):
        self.x, self.value, self.gradient, self.of, self.hessian = x, value, gradient, of, hessian

    def is_at(self, x):
        # x + (y - x) is y but for rounding
        return bool(np.abs(x - self.x).max(initial=0.0) <= _SAME * np.abs(x).max(initial=0.0))

    @property
    def is_whole(self):
        return self.hessian is not None and len(self.of) == len(self.x)

    def has(self, subset):
        return self.hessian is not None and bool(np.isin(subset, self.of, assume_unique=True).all())

    def hessian_on(self, subset):
        at = np.searchsorted(self.of, subset)
        return np.ascontiguousarray(self.hessian[np.ix_(at, at)])

    def moved_to(self, x):
        """The point x, by the quadratic model, of all variables, that is exact for least squares."""
        step = x - self.x
        curved = self.hessian @ step
        value = self.value + float(self.gradient @ step) + 0.5 * float(step @ curved)
        return _Point(x.copy(), value, self.gradient + curved, self.of, self.hessian)


class RemoteProblem(ProtocolProblem):
    """The loss of `RemoteColumns` as a problem."""

    def __init__(self, loss):
        super().__init__(loss, loss.with_hessian)
        self.n_rows = loss.whole.census.shape[0]
        self.n_classes = loss.whole.spec.n_outputs
        self.several_classes = self.n_classes > 1
        self.origin_scale = loss.origin_scale
        self._next = np.arange(self.size) if self.size <= _WHOLE_SPARSE else None

    def start(self, x):
        self.loss.point(x, self._next)
        return super().start(x)

    def try_move(self, dz):
        # a first step is mostly taken, and brings what the next model needs along; shorter ones are not
        self.loss.point(self.x + dz, self._next)
        self._next = None
        return super().try_move(dz)

    def _product(self, v):
        point = self.loss.point(self.x)
        if point.hessian is None:
            return super()._product(v)
        # of the variables that matter now
        out = np.zeros(self.size)
        out[point.of] = point.hessian @ v[point.of]
        return out

    def model(self, variables, ridge, damping=0.0, rough=False, bend=np.inf):
        if len(variables) > _SIDE:
            return super().model(variables, ridge, damping, rough, bend)
        self._next = variables
        H = self.loss.hessian(self.x, variables)
        return GramOperator(H, ridge + damping), Expand(variables, self.size)

    def anchored(self, variables, x, g, l1):
        return anchored(variables, variables, self.n_classes, x, g, l1) if self.several_classes else variables

    def centred(self, x, l1):
        K = self.n_classes
        return centred(x, None, (self.size // K) - self.loss.whole.spec.fit_intercept, K, l1)

    def falls_for_ever(self, x, l1):
        return False  # none of the losses does, and to ask takes rounds
