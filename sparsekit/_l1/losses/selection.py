"""What the problems of this package's losses share: a loss on a selection of its variables."""

import numpy as np

from ..._linalg.special import largest
from .free_variables import project_free
from .problem import Problem

# Distance on the wrong side of zero from which a row is in the straight part of its loss. With infinity a fit
# whose start has a row at 1000 does not converge. 4 takes 1.05 times as many iterations, 16 up to 159 there.
BEND = 8.0


class Selection(Problem):
    """The loss on a selection of its variables; selections of one problem share one state.

    A subclass has ``start``, ``gradient_of``, ``model``, ``move_all`` and ``stretch``.

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
        self._lipschitz = None

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

    def lipschitz(self):
        if self._lipschitz is None:
            self._lipschitz = self._bound()
        return self._lipschitz

    def _bound(self):
        return self.design.norm_bound(self.loss.curvature_weights(), self.intercept)

    def raise_lipschitz(self):
        self._lipschitz = 2.0 * self.lipschitz()
        return self._lipschitz

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
        """See `free_variables.project_free`."""
        return project_free(self, free, theta, g, x)

    def accept(self):
        self.state.accept()

    def passes(self):
        return self._passes
