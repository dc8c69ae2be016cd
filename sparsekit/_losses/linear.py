"""Losses of a linear predictor z = X w + b: logistic, least squares, probit.

Each loss is a *sum* over the rows, sum_i s_i l(z_i, y_i). The variables are
x = [w (p), b], the intercept last and only where ``fit_intercept`` is true.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .._cython import _glm
from .._linalg.design import as_design
from .._typing import Array, FloatArray, SparseMatrix
from . import _documentation
from ._selection import Selection

_EMPTY = np.empty(0)
# rounding of sums that decide whether a variable can be left out
_SLACK = 1e-9
# largest share of the non-zeros, and of the columns, that a copy without the others may keep
_KEPT = 0.8


class LinearLoss:
    """sum_i s_i l(x_i.w + b, y_i), the base of the losses of this file.

    Parameters
    ----------
    X : ndarray of shape (n, p), C or F order, or CSR/CSC matrix
        float32 or float64; used as it is, never copied whole.
    y : array-like of shape (n,)
        Targets; for the two-class losses -1 or +1.
    sample_weight : array-like of shape (n,), default=None
        Weights s_i >= 0; None means ones.
    fit_intercept : bool, default=False
        Whether there is a variable b.
    n_threads : int, default=1
        Threads of the sparse kernels.
    """

    curvature: Any = None  # sup l''
    _value: Any = None
    _derivatives: Any = None

    def __init__(
        self,
        X: Array | SparseMatrix,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        fit_intercept: bool = False,
        n_threads: int = 1,
    ) -> None:
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1; got {n_threads!r}")
        matrix: Any = X
        if sp.issparse(matrix) and not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()  # a Hessian needs each entry whole
        self.design = as_design(matrix, n_threads)
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        n, p = self.design.shape
        if self.y.shape != (n,):
            raise ValueError(f"y must have shape ({n},), one target for each row of X; got {self.y.shape}")
        self.s = _EMPTY
        if sample_weight is not None:
            self.s = np.ascontiguousarray(sample_weight, dtype=np.float64)
            if self.s.shape != (n,):
                raise ValueError(f"sample_weight must have shape ({n},); got {self.s.shape}")
            if not np.all((self.s >= 0) & np.isfinite(self.s)):
                raise ValueError("sample_weight must be finite and at least 0 in every entry")
        self._check_targets()
        self.fit_intercept = bool(fit_intercept)
        self.n_threads = n_threads
        self.n_features = p
        self.n_variables = p + self.fit_intercept
        self._slopes: FloatArray | None = None
        self.origin_scale: float | None = None

    def _check_targets(self):
        if not np.all(np.isfinite(self.y)):
            raise ValueError("y must be finite; it holds NaN or infinity")

    def l1_vector(self, l1: ArrayLike) -> FloatArray:
        """Penalty of each variable from a scalar or one value per feature; 0 for the intercept.

        Parameters
        ----------
        l1 : float or array-like of shape (p,)
            Penalties of the features.

        Returns
        -------
        ndarray of shape (n_variables,)
            What :func:`~sparsekit.minimize_oba` takes as ``l1``.
        """
        out = np.zeros(self.n_variables)
        out[: self.n_features] = l1
        return out

    def predictor(self, x: ArrayLike) -> FloatArray:
        """Predictor z = X w + b.

        Parameters
        ----------
        x : array-like of shape (n_variables,)
            Variables [w, b].

        Returns
        -------
        ndarray of shape (n,)
            One number a row.
        """
        x = np.ascontiguousarray(x, dtype=np.float64)
        if x.shape != (self.n_variables,):
            raise ValueError(f"x must have shape ({self.n_variables},), one value a variable; got {x.shape}")
        w = x[: self.n_features]
        z = self.design.matvec(w) if w.any() else np.zeros(len(self.y))
        if self.fit_intercept and x[-1]:
            z += x[-1]
        return z

    # BLAS has little to do in a solve, and its threads, which spin for a while after each call,
    # would take the processors from the kernels' own
    blas_threads = 1

    # the protocol of every loss: value, gradient, Hessian-vector product on a subset
    def value(self, x: ArrayLike) -> float:
        """Value f(x).

        Parameters
        ----------
        x : array-like of shape (n_variables,)
            Variables [w, b].

        Returns
        -------
        float
            Sum over the rows.
        """
        return self._value(self.predictor(x), self.y, self.s)

    def gradient(self, x: ArrayLike) -> FloatArray:
        """Gradient of f at x.

        Parameters
        ----------
        x : array-like of shape (n_variables,)
            Variables [w, b].

        Returns
        -------
        ndarray of shape (n_variables,)
            Derivatives.
        """
        problem = self.problem()
        problem.start(x)
        return problem.gradient()

    def hessian_product(self, x: ArrayLike, subset: ArrayLike, v: ArrayLike) -> FloatArray:
        """Product of the Hessian at x with a vector, on a subset of the variables.

        Parameters
        ----------
        x : array-like of shape (n_variables,)
            Variables [w, b].
        subset : array-like of int of shape (m,)
            Distinct variables.
        v : array-like of shape (m,)
            What is multiplied.

        Returns
        -------
        ndarray of shape (m,)
            ``H[subset][:, subset] @ v``.
        """
        subset = np.asarray(subset)
        full = np.zeros(self.n_variables)
        full[subset] = v
        _, _, d = self.derivatives(self.predictor(x))
        z = d * self.predictor(full)
        out = np.empty(self.n_variables)
        self.design.private().rmatvec(z, out[: self.n_features])
        if self.fit_intercept:
            out[-1] = z.sum()
        return out[subset]

    def derivatives(
        self, z: FloatArray, u: FloatArray | None = None, d: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray]:
        """Value, dl/dz and d2l/dz2 at a predictor (n,)."""
        u = np.empty_like(z) if u is None else u
        d = np.empty_like(z) if d is None else d
        return self._derivatives(z, self.y, self.s, u, d), u, d

    def problem(self) -> LinearProblem:
        """The problem that solvers work on."""
        # scratch space belongs to one solve: the same loss may be minimised by several threads
        return LinearProblem(self, self.design.private(), self.fit_intercept, State(self))

    def majorant(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        """Largest second derivative of each row's loss within ``radius`` (n,) of z, (n,)."""
        return self.derivatives(self._steepest(z, radius))[2]

    def _steepest(self, z, radius):
        return z

    def slope_range(self) -> FloatArray | None:
        """Bounds of the gradient that hold at every x, (p, 3), or None where there are none.

        Minus the lower bound, the upper bound, and the stored entries of the column.
        """
        return None

    def curvature_weights(self) -> FloatArray:
        """Upper bounds of d2l/dz2 for each row, (n,)."""
        return np.full(len(self.y), self.curvature) * (self.s if self.s.size else 1.0)

    def dual_value(self, theta: FloatArray) -> float | None:
        """Dual objective at theta (n,), like -dl/dz; -inf outside the domain, None without a dual."""
        return None


class LogisticLoss(LinearLoss):
    __doc__ = _documentation.LOGISTIC

    curvature = 0.25
    _value = staticmethod(_glm.logistic_value)
    _derivatives = staticmethod(_glm.logistic_derivatives)

    def _check_targets(self):
        _check_signs(self.y)

    def _steepest(self, z, radius):
        return np.sign(z) * np.maximum(np.abs(z) - radius, 0.0)

    def slope_range(self) -> FloatArray | None:
        # dl/dz_i lies between 0 and -s_i y_i; at the origin it is half of that
        if self._slopes is None and hasattr(self.design, "slope_range"):
            c = -self.y * self.s if self.s.size else -self.y
            slopes = self.design.slope_range(c)
            if self.origin_scale is None:
                g0 = 0.5 * (slopes[:, 1] - slopes[:, 0])
                intercept = 0.5 * abs(c.sum()) if self.fit_intercept else 0.0
                self.origin_scale = float(max(np.max(np.abs(g0), initial=0.0), intercept)) or 1.0
            self._slopes = slopes  # last: another thread that finds it needs the scale as well
        return self._slopes

    def dual_value(self, theta: FloatArray) -> float:
        s = self.s if self.s.size else 1.0
        t = -theta * self.y
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(t == 0, 0.0, t / s)
        if not np.all((t >= 0) & (t <= 1)):
            return -np.inf
        from scipy.special import entr

        return float(np.sum(s * (entr(t) + entr(1 - t))))


class LeastSquaresLoss(LinearLoss):
    __doc__ = _documentation.LEAST_SQUARES

    curvature = 1.0
    _value = staticmethod(_glm.squared_value)
    _derivatives = staticmethod(_glm.squared_derivatives)

    def dual_value(self, theta: FloatArray) -> float:
        if self.s.size:
            if np.any((self.s == 0) & (theta != 0)):
                return -np.inf
            square = np.divide(theta**2, self.s, out=np.zeros_like(theta), where=self.s > 0)
        else:
            square = theta**2
        return float(-np.dot(theta, self.y) - 0.5 * square.sum())


class ProbitLoss(LinearLoss):
    __doc__ = _documentation.PROBIT

    curvature = 1.0
    _value = staticmethod(_glm.probit_value)
    _derivatives = staticmethod(_glm.probit_derivatives)

    def _check_targets(self):
        _check_signs(self.y)

    def _steepest(self, z, radius):
        return z - self.y * radius


def _check_signs(y):
    wrong = np.flatnonzero(np.abs(y) != 1)
    if wrong.size:
        raise ValueError(f"y must be -1 or +1 in every row; row {wrong[0]} has {y[wrong[0]]!r}")


class State:
    """Predictor, value and derivatives at the current point and at a trial point."""

    def __init__(self, loss):
        self.loss = loss
        n = len(loss.y)
        self.z, self.u, self.d = np.zeros(n), np.empty(n), np.empty(n)
        self.trial_z, self.trial_u, self.trial_d = np.empty(n), np.empty(n), np.empty(n)
        self.f = self.trial_f = self.last_dz = None
        self.at_origin = False

    def set(self, z):
        self.z = z
        self.f, self.u, self.d = self.loss.derivatives(z, self.u, self.d)

    def try_step(self, dz, step=1.0):
        _glm.axpy_rows(self.z, step, dz, self.trial_z)
        self.trial_f, _, _ = self.loss.derivatives(self.trial_z, self.trial_u, self.trial_d)
        return self.trial_f

    def accept(self):
        self.z, self.trial_z = self.trial_z, self.z
        self.u, self.trial_u = self.trial_u, self.u
        self.d, self.trial_d = self.trial_d, self.d
        self.f = self.trial_f
        self.at_origin = False


class LinearProblem(Selection):
    """The loss on a selection of its variables; selections share one State.

    ``gradient`` costs one pass over the selection's non-zeros; ``model`` copies the columns of
    the working variables and answers with their operator and compact design.
    """

    def __init__(self, loss, design, intercept, state):
        super().__init__(loss, design, intercept, state, design.shape[1] + bool(intercept))
        self.n_rows = design.shape[0]
        self._slopes = None

    def start(self, x):
        moved = x.any()
        self.state.set(self.move_all().direction(x) if moved else np.zeros(self.n_rows))
        self.state.at_origin = not moved
        return self.state.f

    def gradient(self, out=None):
        out = np.empty(self.size) if out is None else out
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
        has = self.intercept and len(variables) > 0 and variables[-1] == self.size - 1
        return (variables[:-1] if has else variables), bool(has)

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
        self.base = np.zeros(self.size)
        return part

    def restrict(self, variables):
        """The problem on sorted ``variables``, its columns copied."""
        cols, has = self._split(variables)
        self.design._rows = None  # the selection makes its own, in less memory
        return self.adopt(LinearProblem(self.loss, self.design.select(cols), has, self.state), variables)

    def restriction_pays(self, size):
        """Whether iterations on ``size`` of the variables repay the copy of their columns."""
        return self.design.selection_pays(size)

    def model(self, variables, ridge, damping=0.0, rough=False):
        """Operator of the quadratic model on sorted ``variables``, and their move.

        With ``damping`` r > 0 each row's second derivative is the largest within r |dz_i| of
        its predictor, dz the last full step that was tried: rows that were moved into a
        region of more curvature than the model knew get that curvature, the others keep
        theirs. A ``rough`` model may see only some of the rows.
        """
        cols, has = self._split(variables)
        d = self.state.d
        if damping > 0 and self.state.last_dz is not None:
            d = self.loss.majorant(self.state.z, damping * self.state.last_dz)
        operator, design = self.design.model(cols, d, has, ridge, rough)
        return operator, Move(design, has)

    def _bound(self):
        if self._slopes is None:
            return super()._bound()
        # ||A||_2^2 <= ||A||_1 ||A||_inf, and the slopes hold the weighted sums of the columns
        columns = self.loss.curvature * np.max(self._slopes[:, 0] + self._slopes[:, 1], initial=0.0)
        if self.intercept:
            columns = max(columns, self.loss.curvature_weights().sum())
        return columns * (self.design.largest_row() + self.intercept)

    def stretch(self, dz):
        """The quadratic form behind ``lipschitz``: over ||dx||^2 it is a lower bound of the same."""
        return self.loss.curvature * float(np.dot(dz, dz * self.loss.s if self.loss.s.size else dz))

    def spread(self, dz):
        """Size of a step in each row, (n,)."""
        return np.abs(dz)

    def move_all(self):
        return Move(self.design, self.intercept)


class Move:
    """Steps along a selection of columns, as the change of the predictor."""

    def __init__(self, design, intercept):
        self.design, self.intercept = design, intercept

    def direction(self, dx):
        p = self.design.shape[1]
        dz = self.design.matvec(np.ascontiguousarray(dx[:p]))
        if self.intercept:
            dz = dz + dx[-1]
        return dz
