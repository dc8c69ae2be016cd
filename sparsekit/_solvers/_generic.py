"""A user's own smooth loss as a problem that the solvers can work on."""

import numpy as np

from .._cython._operators import CallbackOperator

_NEEDED = ("n_variables", "value", "gradient")


def as_problem(loss, options):
    """The problem of a loss of this package, or of one that follows the protocol."""
    if hasattr(loss, "problem"):
        return loss.problem()
    return _protocol_problem(loss, options.hessian != "lbfgs")


def _protocol_problem(loss, products):
    needed = (*_NEEDED, "hessian_product") if products else _NEEDED
    missing = [name for name in needed if not hasattr(loss, name)]
    if missing:
        raise TypeError(
            f"loss must have {', '.join(needed)}; {type(loss).__name__} lacks {', '.join(missing)}"
        )
    return ProtocolProblem(loss, products)


class ProtocolProblem:
    """Problem over a loss with value(x), gradient(x) and hessian_product(x, subset, v).

    Where ``products`` is false hessian_product is never called: there is no ``model`` then, and
    ``lipschitz`` takes differences of gradients.
    """

    def __init__(self, loss, products=True):
        self.products = products
        self.loss, self.size = loss, int(loss.n_variables)
        self.n_passes = 0
        self.x = self.f = self._trial = self._trial_f = self._variables = None
        self._lipschitz = None

    def start(self, x):
        self.x = x.copy()
        self.f = float(self.loss.value(self.x.copy()))
        return self.f

    def gradient(self, out=None):
        self.n_passes += 1
        g = np.array(self.loss.gradient(self.x.copy()), dtype=np.float64)
        if g.shape != (self.size,):
            raise ValueError(f"loss.gradient must return shape ({self.size},); got {g.shape}")
        return g

    def passes(self):
        return self.n_passes

    def expand(self, x):
        return x.copy()

    def model(self, variables, ridge, damping=0.0, rough=False):
        ridge = ridge + damping  # no majoriser is known here: Levenberg's damping
        x = self.x.copy()
        product = self.loss.hessian_product
        diagonal = np.ones(len(variables))
        if hasattr(self.loss, "hessian_diagonal"):
            diagonal = np.asarray(self.loss.hessian_diagonal(x), dtype=np.float64)[variables]
        operator = CallbackOperator(lambda v: product(x, variables, v), diagonal, ridge)
        return operator, Expand(variables, self.size)

    def move_all(self):
        return Expand(np.arange(self.size), self.size)

    def try_move(self, step):
        self._trial = self.x + step
        self._trial_f = float(self.loss.value(self._trial.copy()))
        # a loss may be undefined at a trial point; such a step is refused
        return self._trial_f if np.isfinite(self._trial_f) else np.inf

    def remember(self, step):
        """Nothing to keep: damping needs no step here."""

    def accept(self):
        self.x, self.f = self._trial, self._trial_f

    def lipschitz(self):
        """Power iterations on the Hessian at the current point, doubled for safety.

        Raised by ``raise_lipschitz`` whenever a step proves it too small.
        """
        if self._lipschitz is None:
            v = np.cos(np.arange(1.0, self.size + 1.0))
            norm = 0.0
            for _ in range(10):
                size = np.linalg.norm(v)
                if size == 0:
                    break
                v = self._product(v / size)
                norm = np.linalg.norm(v)
            self._lipschitz = 2.0 * norm or 1.0
        return self._lipschitz

    def _product(self, v):
        if self.products:
            every = np.arange(self.size)
            return np.asarray(self.loss.hessian_product(self.x.copy(), every, v), dtype=np.float64)
        # a difference of gradients, with the step that balances truncation and rounding
        step = np.cbrt(np.finfo(np.float64).eps) * max(1.0, np.linalg.norm(self.x))
        ahead, behind = self.loss.gradient(self.x + step * v), self.loss.gradient(self.x - step * v)
        self.n_passes += 2
        return (np.asarray(ahead, dtype=np.float64) - behind) / (2.0 * step)

    def raise_lipschitz(self):
        self._lipschitz = 2.0 * self.lipschitz()
        return self._lipschitz


class Expand:
    """A step on some variables as a step of all."""

    def __init__(self, variables, size):
        self.variables, self.size = variables, size

    def direction(self, dx):
        full = np.zeros(self.size)
        full[self.variables] = dx
        return full
