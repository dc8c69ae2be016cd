"""The working set of a fit on blocks: columns that are here, or that stay where they are.

Columns that fit into this process are gathered once, and no step over them costs a round. Of others each
point costs one, in which the blocks also make the Hessian, where that is a small matrix: a Newton step, with
as many cycles on its model as it takes, is then one round. A Hessian that is too large for that is only
multiplied, a product a round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..._cython._operators import GramOperator
from ..losses.block_loss import HessianOf, Sparse, dual_value_of_block, model_of_block, product_of_block
from ..losses.class_shift import anchored, centred
from ..losses.free_variables import FreeSystem
from ..losses.user_problem import Expand, ProtocolProblem
from .oba_run import OBAOptions

# variables, of dense and of sparse columns, up to which each point comes with the Hessian of all of them; and
# the largest Hessian
_WHOLE_DENSE, _WHOLE_SPARSE, MOST_VARIABLES = 600, 3000, 3000
# relative distance at which two points are one
_SAME = 1e-15
# part of the gradient at zero from which more is taken off unpenalised variables, and attempts
_LEFT, _ATTEMPTS = 1e-12, 3


class HeldColumns:
    """Features ``columns`` of the problem, in this process."""

    is_here = True

    def __init__(self, problem, columns):
        X = problem.gathered.matrix(columns)
        X = X.tocsr() if sp.issparse(X) else X  # models are made of rows
        self.loss = problem.spec.on(X, problem.values, problem.weight, problem.n_threads, problem.shift)

    def look(self, x, free):
        """Value and gradient at x, and the move that makes theta feasible on ``free``, None if none does.

        theta are the derivatives by row.
        """
        part = self.loss.problem()
        value, self.theta, moved, self.price = part.start(x), part.state.u, np.zeros(0), 0.0
        gradient = part.gradient()
        if free.size:
            self.theta, _, moved, self.price = part.project_free(free, self.theta, gradient, x)
        return value, gradient, moved

    def refine(self, moved, left):
        """The move again, with what is ``left`` of the free variables' gradient; None if that is little."""
        return None

    def dual_value(self, scale, move):
        """Dual objective at the theta of the last `look`, times ``scale``, less the price of its gradient."""
        return self.loss.dual_value(scale * self.theta) - self.price


class RemoteColumns:
    """Features ``columns`` of the problem, where the blocks are; `minimize_oba` takes it as a loss.

    Its variables are those of `BlockProblem.variables`.
    """

    is_here = False

    def __init__(self, problem, columns):
        self.whole, self.variables = problem, problem.variables(columns)
        self.loss, self.n_variables, self.n_features = self, len(self.variables), len(columns)
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

    def _ask(self, x, wanted):
        """A round: value, gradient, and a Hessian or None."""
        message = None
        if wanted is not None:
            message = replace(wanted, variables=self.variables[wanted.variables])
        value, gradient, found = self._round(model_of_block, self._sparse(x), self._bits, message)
        hessian, n_widened = (None, 0) if found is None else found
        return _Point(x.copy(), float(value), gradient, wanted, hessian, n_widened)

    def point(self, x, wanted=None):
        """What is known of x, by a round if it is not one of the last two points.

        That round also makes a Hessian if one is ``wanted``, that of all variables where these are not many.
        """
        for known in self._points:
            if known.is_at(x):
                return known
        if self._base is not None:
            found = self._base.moved_to(x)
        else:
            found = self._ask(x, self._enough(wanted))
            if found.hessian is not None and self.whole.spec.classes is None and found.is_whole:
                self._base = found
        self._points = [*self._points[-1:], found]
        return found

    def _enough(self, wanted):
        # what a round brings along with the gradient
        if wanted is None or not self.with_hessian:
            return None
        return replace(wanted, variables=np.arange(self.n_variables)) if self.takes_whole else wanted

    @property
    def takes_whole(self):
        """Whether a Hessian is always that of all variables."""
        return self.n_variables <= self._whole

    def value(self, x):
        if not x.any() and self.whole.value_at_zero is not None:
            return self.whole.value_at_zero
        return self.point(x).value

    def gradient(self, x):
        return self.point(x).gradient.copy()

    def hessian(self, x, wanted):
        """The Hessian at x that is ``wanted``, a matrix."""
        point = self.point(x, wanted)
        if not point.has(wanted):
            again = self._ask(x, self._enough(wanted) or wanted)
            point.wanted, point.hessian, point.n_widened = again.wanted, again.hessian, again.n_widened
        return point.hessian_on(wanted.variables)

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
            self._base.wanted, self._base.hessian = base.wanted, base.hessian
            self._points = [self._base]
        point = self.point(x)
        self._attempts, moved = 0, np.zeros(0)
        if free.size:
            H = self.hessian(x, HessianOf(free))
            possible = len(H) <= MOST_VARIABLES and np.isfinite(H).all()
            self._system = FreeSystem(H) if possible else None
            moved = self._system.solve(point.gradient[free]) if possible else None
        self._x, self._free, self.price = x.copy(), free, 0.0
        return point.value, point.gradient, moved

    def refine(self, moved, left):
        """As of `HeldColumns`."""
        if not moved.size:
            return None
        self._attempts += 1
        self.price = self._system.price(left, self._x[self._free], moved)
        most = np.abs(left).max(initial=0.0) / self.whole.origin_scale
        if most <= _LEFT or self._attempts > _ATTEMPTS:
            return None
        return moved + self._system.solve(left)

    def dual_value(self, scale, move):
        """As of `HeldColumns`, by a round."""
        moved = Sparse.of(move) if move.any() else None
        return float(self._round(dual_value_of_block, self._sparse(self._x), moved, scale)) - self.price


class _Point:
    """Value and gradient at x, and perhaps the Hessian that was wanted, with curvature added in some rows."""

    def __init__(self, x, value, gradient, wanted, hessian, n_widened):
        self.x, self.value, self.gradient = x, value, gradient
        self.wanted, self.hessian, self.n_widened = wanted, hessian, n_widened

    def is_at(self, x):
        # x + (y - x) is y but for rounding
        return bool(np.abs(x - self.x).max(initial=0.0) <= _SAME * np.abs(x).max(initial=0.0))

    @property
    def is_whole(self):
        return self.hessian is not None and len(self.wanted.variables) == len(self.x)

    def has(self, other):
        """Whether the Hessian ``other`` is a part of this one."""
        if self.hessian is None:
            return False
        # a row that is not behind one bend is behind no later one
        same = other.bend == self.wanted.bend or (self.n_widened == 0 and other.bend > self.wanted.bend)
        return same and bool(np.isin(other.variables, self.wanted.variables, assume_unique=True).all())

    def hessian_on(self, subset):
        at = np.searchsorted(self.wanted.variables, subset)
        return np.ascontiguousarray(self.hessian[np.ix_(at, at)])

    def moved_to(self, x):
        """The point x, by the quadratic model, of all variables, that is exact for least squares."""
        step = x - self.x
        curved = self.hessian @ step
        value = self.value + float(self.gradient @ step) + 0.5 * float(step @ curved)
        return _Point(x.copy(), value, self.gradient + curved, self.wanted, self.hessian, 0)


class RemoteProblem(ProtocolProblem):
    """The loss of `RemoteColumns` as a problem."""

    def __init__(self, loss):
        super().__init__(loss, loss.with_hessian)
        self.n_rows = loss.whole.census.shape[0]
        self.n_classes = loss.whole.spec.n_outputs
        self.several_classes = self.n_classes > 1
        self.origin_scale = loss.origin_scale
        # what the next model will want, if all goes well
        self._next = HessianOf(np.arange(self.size), OBAOptions.bend) if loss.takes_whole else None

    def start(self, x):
        self.loss.point(x, self._next)
        return super().start(x)

    def try_move(self, dz, x):
        # a first step is mostly taken, and brings what the next model needs along; shorter ones are not
        self.loss.point(self.x + dz, self._next)
        self._next = None
        return super().try_move(dz, x)

    def lipschitz(self):
        if self._lipschitz is None:
            # at most the trace: loose, but it takes no round, and most steps never ask
            weight = self.loss.whole.weight
            most = 1.0 if weight is None else np.max(weight, initial=0.0) / max(np.mean(weight), 1e-300)
            self._lipschitz = most * float(self.loss.hessian_diagonal(self.x).sum())
        return self._lipschitz

    def model(self, variables, ridge, bend=np.inf):
        if len(variables) > MOST_VARIABLES:
            return super().model(variables, ridge, bend)
        H = self.loss.hessian(self.x, HessianOf(variables, bend))
        # where models hold the bend moves on
        self._next = HessianOf(variables, bend if bend <= OBAOptions.bend else 2.0 * bend)
        return GramOperator(H, ridge), Expand(variables, self.size)

    def anchored(self, variables, x, g, l1):
        return anchored(variables, self.n_classes, x, g, l1) if self.several_classes else variables

    def centred(self, x, l1):
        K = self.n_classes
        return centred(x, (self.size // K) - self.loss.whole.spec.fit_intercept, K, l1)

    def falls_for_ever(self, x, l1):
        return False  # none of the losses does, and to ask takes rounds
