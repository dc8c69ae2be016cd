"""What the solver OBA asks of the smooth function that it minimises."""

from abc import ABC, abstractmethod

import numpy as np


class Problem(ABC):
    """A smooth function f of ``size`` variables, at a current point and at a trial point.

    Vectors are float64 arrays (size,), in main memory or on a GPU as ``like`` is. A problem without second
    derivatives by row or a dual keeps the defaults, which stand below ``passes``.

    Attributes
    ----------
    size : int
        Number of variables.
    f : float
        Value at the current point.
    like : array
        An array, of whatever size, where vectors live.
    """

    size: int
    f: float
    like: np.ndarray

    n_rows = 0  # rows of the data, 0 where there are none
    several_classes = False  # whether features may be shifted across classes, see ``anchored``
    l2 = None  # weight of half of each variable's square in f, (size,), where a ridge was added to a loss
    blas_threads = None  # threads of BLAS while the problem is solved; None leaves them as they are
    _lipschitz = None
    state = None  # value and derivatives by row, where there are any

    # what every problem has

    @abstractmethod
    def start(self, x):
        """Go to x, and return f there."""

    @abstractmethod
    def gradient(self, out=None):
        """Gradient at the current point, written to ``out`` where that is given."""

    @abstractmethod
    def model(self, variables, ridge):
        """Operator of the quadratic model on sorted ``variables``, and their move.

        A move has ``direction(dx)``, what `try_move` takes for a step of these variables. ``ridge`` times its
        diagonal is added to the Hessian.
        """

    @abstractmethod
    def move_all(self):
        """The move of all variables."""

    @abstractmethod
    def try_move(self, dz, x):
        """Make the current point plus a move's direction, that is x, the trial point, and return f there."""

    @abstractmethod
    def accept(self):
        """Make the trial point the current one."""

    @abstractmethod
    def bound(self):
        """First upper bound, or an estimate of it, of the gradient's Lipschitz constant."""

    @abstractmethod
    def passes(self):
        """Passes over the data so far."""

    def lipschitz(self):
        """The bound of the gradient's Lipschitz constant so far."""
        if self._lipschitz is None:
            self._lipschitz = self.bound()
        return self._lipschitz

    def raise_lipschitz(self):
        """Double the bound, where a step has proved it too small."""
        self._lipschitz = 2.0 * self.lipschitz()
        return self._lipschitz

    # what some problems override; a default that raises is called only where a problem says it has it: by a
    # dual and unpenalised variables

    @property
    def inner(self):
        """The problem that has the data: this one, or the one that it wraps."""
        return self

    def observe(self, x, g):  # noqa: B027 (nothing to learn is a good default)
        """Use a point that was reached and its gradient for later models."""

    def screened(self, l1, most):
        """The problem without variables that every solution has at zero, and sorted numbers of the others.

        The numbers are None where this is the problem itself: a copy has at most the part ``most`` of columns
        and entries.
        """
        return self, None

    def anchored(self, variables, x, g, l1):
        """``variables`` without those that only repeat what the others can do."""
        return variables

    def centred(self, x, l1, l2):
        """A point with the same loss and a penalty of l1 . |x| + l2 / 2 . x^2 that is no larger."""
        return x

    def falls_for_ever(self, x, l1):
        """Whether f + l1 . |x| falls without bound beyond x."""
        return False

    def face_system(self, variables, products):
        """The Hessian on sorted ``variables``, in main memory, and a function from steps to changes by row.

        None where there is none, or where it costs more than ``products`` with X.
        """
        return None

    def stretch(self, dz):
        """Over ||dx||^2 a lower bound of the Lipschitz constant; 0 where there is none."""
        return 0.0

    def project_free(self, free, theta, g, x):
        """A dual point near ``theta``, whose gradient is ``g`` and point x, with next to none on ``free``.

        Returns it, its gradient and the move of the free variables, whose change of the derivatives by row
        was taken from theta. The last value is what a gap has to be raised by for the gradient that is left.
        The first three are None, and the last is infinite, where no such point was found.
        """
        return None, None, None, np.inf
