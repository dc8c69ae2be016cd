"""What the problems of this package's losses share: a loss on a selection of its variables."""

import numpy as np

from ..._arrays import kernel_module, to_host
from ..._linalg.special import largest
from ..._solver.tolerances import ROUNDING
from .free_variables import correct
from .problem import Problem

# Distance on the wrong side of zero from which a row is in the straight part of its loss. With infinity a fit
# whose start has a row at 1000 does not converge. 4 takes 1.05 times as many iterations, 16 up to 159 there.
BEND = 8.0


class RowState:
    """Predictor, value and derivatives by row at the current point and at a trial point.

    Derivatives are what ``loss.derivatives`` returns after the value: first and, for some, second ones.
    """

    def __init__(self, loss):
        self.loss, self.kernels = loss, kernel_module("l1._glm", loss.s)
        self.z = self.f = self.parts = self.trial_z = self.trial_f = self.trial_parts = None

    @property
    def u(self):
        return self.parts[0]

    @property
    def d(self):
        return self.parts[1]

    def set(self, z):
        self.z = z
        self.f, *self.parts = self.loss.derivatives(z)
        self.trial_z = np.empty_like(z, order="C")  # `try_step` writes to a view
        self.trial_parts = [np.empty_like(part) for part in self.parts]

    def try_step(self, dz, step=1.0):
        self.kernels.axpy_rows(self.z.ravel(), step, dz.ravel(), self.trial_z.ravel())
        self.trial_f, *_ = self.loss.derivatives(self.trial_z, *self.trial_parts)
        return self.trial_f

    def accept(self):
        self.z, self.trial_z = self.trial_z, self.z
        self.parts, self.trial_parts = self.trial_parts, self.parts
        self.f = self.trial_f


class Selection(Problem):
    """The loss on a selection of its variables; selections of one problem share one state.

    A subclass has ``start``, ``gradient_of``, ``model``, ``move_all``, ``stretch`` and ``free_system``. The
    last is the Hessian on variables, or None, and a function from steps to changes of derivatives by row.

    Parameters
    ----------
    loss : object
    design : object
        Columns of the selection.
    intercept : bool
        Whether the last variables are intercepts.
    state : object
        Predictor and derivatives at the current point and at a trial point.
    size : int
        Number of variables.
    """

    def __init__(self, loss, design, intercept, state, size):
        self.loss, self.design, self.intercept, self.state = loss, design, bool(intercept), state
        self.size = size
        self._passes = 0

    @property
    def f(self):
        return self.state.f

    @property
    def like(self):
        return self.loss.s

    @property
    def blas_threads(self):
        return self.loss.blas_threads

    def gradient(self, out=None):
        self._passes += 1
        return self.gradient_of(self.state.u, out)

    def bound(self):
        return self.design.norm_bound(self.loss.curvature_weights(), self.intercept)

    def try_move(self, dz, x):
        return self.state.try_step(dz)

    def radius(self):
        """How far around its predictor the model takes each row's largest curvature, (n,), or None: nowhere.

        A row far on the wrong side of zero is in the straight part of its loss, where the second derivative
        is nearly zero. The model's step would be as long as the ridge allows. Its radius reaches so far that
        the slope would be used up at the bend: at a distance r the curvature is 1 / (r + 2).
        """
        behind = self.loss.behind(self.state.z)
        if behind is None or not largest(behind) > BEND:
            return None
        behind = np.maximum(behind, 0.0)
        return np.where(behind > BEND, behind - np.log1p(behind), 0.0)

    def project_free(self, free, theta, g, x):
        moved = np.zeros(len(free), like=g)
        if largest(np.abs(g[free])) == 0.0:
            return theta, g, moved, 0.0
        H, change = self.free_system(free)
        if H is None or not np.isfinite(H).all():
            return None, None, None, np.inf

        def evaluate(moved):
            corrected = theta - change(np.asarray(moved, like=g))
            return corrected, self.gradient_of(corrected)

        moved, price, found = correct(H, free, g, to_host(x[free]), evaluate, ROUNDING * abs(self.f))
        return *(found or (theta, g)), np.asarray(moved, like=g), price

    def accept(self):
        self.state.accept()

    def passes(self):
        return self._passes
