"""A user's own smooth loss as a problem that the solvers can work on."""

import numpy as np

from ..._arrays import as_like, kernel_module, namespace
from ..._messages import numbers
from ..._solver import outcome
from ..._solver.outcome import Stop
from ..._solver.user_values import as_number, as_vector
from .problem import Problem

_PRODUCT = "what loss.hessian_product returns"
# Norms of x up to which f is evaluated where a run has ended early. f falls for ever where at least this part
# of its slope is left there.
_RAY, _PART = (1e15, 1e30), 0.1
# Factor of the norm between two power iterations that ends them: a bound that is too small is doubled later.
# Ten iterations always take 1.17 times the evaluations of 16 fits of taggers with an L1 part.
SETTLED = 1.1


def as_problem(loss, options, x0=None):
    """The problem of a loss of this package, or of one that follows the protocol, where x0 is."""
    if hasattr(loss, "problem"):
        return loss.problem()
    products = options.hessian != "lbfgs"
    needed = ("n_variables", "value", "gradient", *(("hessian_product",) if products else ()))
    missing = [name for name in needed if not hasattr(loss, name)]
    if missing:
        raise TypeError(
            f"loss must be an object with {', '.join(needed)}, such as sparsekit.optimize.LogisticLoss; "
            f"{type(loss).__name__} lacks {', '.join(missing)}. For a function alone take minimize_nqn."
        )
    return ProtocolProblem(loss, products, x0)


class ProtocolProblem(Problem):
    """Problem over a loss with value(x), gradient(x) and hessian_product(x, subset, v).

    Where ``products`` is false hessian_product is never called: there is no ``model`` then, and
    ``bound`` takes differences of gradients. A start ``x0`` on a GPU makes all vectors live there, also
    those that the loss gets and gives.
    """

    def __init__(self, loss, products=True, x0=None):
        self.products = products
        self.like = as_like(np.empty(0), x0)
        self._operator = kernel_module("shared._operators", self.like).CallbackOperator
        self.loss, self.size = loss, int(loss.n_variables)
        self.n_passes = 0
        self._before = None
        self.x = self.f = self._trial = self._trial_f = None

    def start(self, x):
        self.x = x.copy()
        self.f = self._value(self.x)
        return self.f

    def _value(self, x):
        return as_number(self.loss.value(x.copy()), "loss.value")

    def gradient(self, out=None):
        self.n_passes += 1
        g = as_vector(self.loss.gradient(self.x.copy()), self.x, "what loss.gradient returns")
        if self._before is not None and not np.isfinite(g).all():
            # back to where there is one, as there is nothing to do without
            (self.x, self.f), self._before = self._before, None
            raise Stop(outcome.NOT_FINITE)
        return g

    def _vector(self, values, name):
        return numbers(values, name, namespace(x0=self.like, values=values))

    def passes(self):
        return self.n_passes

    def model(self, variables, ridge):
        x = self.x.copy()
        product = self.loss.hessian_product
        diagonal = np.ones_like(x, shape=len(variables))
        if hasattr(self.loss, "hessian_diagonal"):
            diagonal = as_vector(self.loss.hessian_diagonal(x), x, "what loss.hessian_diagonal returns")
            diagonal = diagonal[variables]
        operator = self._operator(lambda v: self._vector(product(x, variables, v), _PRODUCT), diagonal, ridge)
        return operator, Expand(variables, self.size)

    def move_all(self):
        return Expand(np.arange(self.size, like=self.like), self.size)

    def try_move(self, dz, x):
        self._trial = x.copy()
        self._trial_f = self._value(self._trial)
        if self._trial_f == -np.inf:
            raise Stop(outcome.UNBOUNDED)
        # a loss may be undefined at a trial point; such a step is refused
        return self._trial_f if np.isfinite(self._trial_f) else np.inf

    def accept(self):
        self._before = self.x, self.f
        self.x, self.f = self._trial, self._trial_f

    def bound(self):
        """Power iterations on the Hessian at the current point until they settle, doubled for safety."""
        v = np.cos(np.arange(1.0, self.size + 1.0, like=self.like))
        norm = 0.0
        for _ in range(10):
            size, before = float(np.linalg.norm(v)), norm
            if size == 0:
                break
            v = self._product(v / size)
            norm = float(np.linalg.norm(v))
            if norm <= SETTLED * before:
                break
        return 2.0 * norm or 1.0

    def _product(self, v):
        if self.products:
            every = np.arange(self.size, like=self.like)
            return self._vector(self.loss.hessian_product(self.x.copy(), every, v), _PRODUCT)
        # a difference of gradients, with the step that balances truncation and rounding
        step = np.cbrt(np.finfo(np.float64).eps) * max(1.0, float(np.linalg.norm(self.x)))
        ahead, behind = (
            as_vector(self.loss.gradient(self.x + side * step * v), v, "what loss.gradient returns")
            for side in (1.0, -1.0)
        )
        self.n_passes += 2
        return (ahead - behind) / (2.0 * step)

    def falls_for_ever(self, x, l1):
        length = float(np.linalg.norm(x))
        if not 0.0 < length < _RAY[0]:
            return length > 0.0

        def phi(factor):
            return self._value(factor * x) + factor * float(l1 @ np.abs(x))

        try:
            # the slope of a convex function rises: it must not rise to zero
            first, slope = phi(1.0), phi(2.0) - phi(1.0)
            ends = [reach / length for reach in _RAY]
            return slope < 0.0 and all(phi(end) <= first + _PART * slope * (end - 1.0) for end in ends)
        except (ArithmeticError, ValueError):
            return False  # a function that cannot be asked so far out is not known to fall there


class Expand:
    """A step on some variables as a step of all."""

    def __init__(self, variables, size):
        self.variables, self.size = variables, size

    def direction(self, dx):
        full = np.zeros(self.size, like=dx)
        full[self.variables] = dx
        return full
