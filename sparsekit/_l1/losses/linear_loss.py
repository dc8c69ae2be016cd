"""What losses of a linear predictor z = X w + b share: the data, the variables, the solvers' protocol.

Each loss is a *sum* over the rows, sum_i s_i l(z_i, y_i). The variables are
x = [w (p), b], the intercept last and only where ``fit_intercept`` is true.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..._arrays import kernel_module, namespace
from ..._docstrings import shares_entries
from ..._linalg.as_design import as_design
from ..._linalg.structure import check_sparse
from ..._messages import check_nonnegative, numbers, shown
from ..._typing import Array, FloatArray, SparseMatrix
from .linear_problem import LinearProblem
from .selection import RowState


@shares_entries()
class RowLoss:
    """A sum over rows of losses of scores that are linear in the variables, with an offset or without."""

    n_classes = 1  # scores of a row
    n_features: int
    n_variables: int
    s: Any  # weights of the rows, or an empty array
    offset: Any
    _product: Any  # the scores without the offset
    problem: Any  # the problem that solvers work on
    _set_design: Any  # sets what depends on X
    _curve: Any  # from scores and a change of them to that of the derivatives, to first order

    def _with_rows(self, X: Any) -> Self:
        """The same loss of another X, with as many rows."""
        other = copy.copy(self)
        other._set_design(X)
        return other

    def predictor(self, x: ArrayLike) -> FloatArray:
        """Predictor z = X w + b, and the offset.

        Parameters
        ----------
        x : array-like of shape (n_variables,)
            Variables [w, b].

        Returns
        -------
        ndarray of shape (n,)
            One number a row.
        """
        z = self._product(x)
        if self.offset is not None:
            z += self.offset
        return z

    def gradient(self, x: ArrayLike) -> FloatArray:
        """Gradient of f at x.

        {Parameters}

        Returns
        -------
        ndarray of shape (n_variables,)
            Derivatives.
        """
        namespace(X=self.s, x=x)
        problem = self.problem()
        problem.start(x)
        return problem.gradient()

    def hessian_product(self, x: ArrayLike, subset: ArrayLike, v: ArrayLike) -> FloatArray:
        """Product of the Hessian at x with a vector, on a subset of the variables.

        Parameters
        ----------
        {x}
        subset : array-like of int of shape (m,)
            Distinct variables.
        v : array-like of shape (m,)
            What is multiplied.

        Returns
        -------
        ndarray of shape (m,)
            ``H[subset][:, subset] @ v``.
        """
        subset = namespace(X=self.s, subset=subset).asarray(subset)
        full = np.zeros(self.n_variables, like=self.s)
        full[subset] = v
        theta = self._curve(self.predictor(x), self._product(full))
        return self.problem().gradient_of(theta)[subset]

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
        l1 = namespace(X=self.s, l1=l1).asarray(l1, dtype=np.float64)
        out, size = np.zeros(self.n_variables, like=self.s), self.n_features * self.n_classes
        out[:size].reshape(-1, self.n_classes)[:] = l1[:, None] if l1.ndim == 1 else l1
        return out


@shares_entries(RowLoss.predictor)
class LinearLoss(RowLoss):
    """sum_i s_i l(x_i.w + b + o_i, y_i), the base of the losses of this file.

    Parameters
    ----------
    X : ndarray of shape (n, p), C or F order, or CSR/CSC matrix
        Rows x_i, float32 or float64; used as it is, never copied whole. CuPy's arrays and matrices are worked
        on where they are; y and sample_weight must be there too.
    y : array-like of shape (n,)
        Targets.
    sample_weight : array-like of shape (n,), default=None
        Weights s_i >= 0; None means ones.
    fit_intercept : bool, default=False
        Whether there is a variable b.
    n_threads : int, default=1
        Threads of the sparse kernels.
    offset : array-like of shape (n,), default=None
        What is added to each row's predictor: a column of X whose coefficient is 1.

    Attributes
    ----------
    n_variables : int
        Length of x.

    Raises
    ------
    ValueError
        If a shape does not fit, a weight is negative or not finite, or a target is not allowed.

    See Also
    --------
    sparsekit.minimize_oba : Minimises it with an L1 penalty.
    """

    curvature: Any = None  # sup l''
    _kernel = ""  # what names the kernels of the value and of the derivatives

    def __init__(
        self,
        X: Array | SparseMatrix,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        fit_intercept: bool = False,
        n_threads: int = 1,
        offset: ArrayLike | None = None,
    ) -> None:
        self._set(check_sparse(X), y, sample_weight, fit_intercept, n_threads, offset)

    @classmethod
    def _of_validated(cls, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Self:
        """The same of an X whose structure the caller has checked, as estimators do."""
        loss = cls.__new__(cls)
        loss._set(X, y, sample_weight, **options)
        return loss

    def _set(self, X, y, sample_weight, fit_intercept=False, n_threads=1, offset=None):
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1; got {shown(n_threads)}")
        xp = namespace(X=X, y=y, sample_weight=sample_weight, offset=offset)
        self.fit_intercept, self.n_threads = bool(fit_intercept), n_threads
        self._set_design(X)
        self.y = xp.ascontiguousarray(numbers(y, "y", xp))
        n = self.design.shape[0]
        if self.y.shape != (n,):
            raise ValueError(f"y must have shape ({n},), one target for each row of X; got {self.y.shape}")
        self.s = np.empty(0, like=self.y)
        if sample_weight is not None:
            self.s = xp.ascontiguousarray(numbers(sample_weight, "sample_weight", xp))
            if self.s.shape != (n,):
                raise ValueError(f"sample_weight must have shape ({n},); got {self.s.shape}")
            check_nonnegative(self.s, "sample_weight")
        self.offset = None if offset is None else xp.ascontiguousarray(numbers(offset, "offset", xp))
        if self.offset is not None and self.offset.shape != (n,):
            raise ValueError(f"offset must have shape ({n},), one number a row; got {self.offset.shape}")
        if self.offset is not None and not np.all(np.isfinite(self.offset)):
            raise ValueError("offset must be finite; it holds NaN or infinity")
        self._check_targets()

    def _set_design(self, X):
        if (sp.issparse(X) or hasattr(X, "nnz")) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()  # a Hessian needs each entry whole
        self.design = as_design(X, self.n_threads)
        self.n_features = self.design.shape[1]
        self.n_variables = self.n_features + self.fit_intercept

    @property
    def _kernels(self) -> Any:
        """The loops over rows; no attribute, since modules can't be pickled."""
        return kernel_module("l1._glm", self.y)

    def _value(self, z, y, s):
        return getattr(self._kernels, f"{self._kernel}_value")(z, y, s)

    def _derivatives(self, z, y, s, u, d):
        """The value; derivatives are written to u and d."""
        return getattr(self._kernels, f"{self._kernel}_derivatives")(z, y, s, u, d)

    def _check_targets(self):
        if not np.all(np.isfinite(self.y)):
            raise ValueError("y must be finite; it holds NaN or infinity")

    def _product(self, x):
        """X w + b, which is linear in x, (n,)."""
        x = namespace(X=self.y, x=x).ascontiguousarray(x, dtype=np.float64)
        if x.shape != (self.n_variables,):
            raise ValueError(f"x must have shape ({self.n_variables},), one value a variable; got {x.shape}")
        w = x[: self.n_features]
        z = self.design.matvec(w) if w.any() else np.zeros_like(self.y)
        if self.fit_intercept and x[-1]:
            z += x[-1]
        return z

    # BLAS has little to do in a solve. Its threads spin for a while after each call and would take the
    # processors from the kernels' own.
    blas_threads = 1

    # the protocol of every loss: value, gradient, Hessian-vector product on a subset
    def value(self, x: ArrayLike) -> float:
        """Value f(x).

        {Parameters}

        Returns
        -------
        float
            Sum over the rows.
        """
        return self._value(self.predictor(x), self.y, self.s)

    def derivatives(
        self, z: FloatArray, u: FloatArray | None = None, d: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray]:
        """Value, dl/dz and d2l/dz2 at a predictor (n,)."""
        u = np.empty_like(z) if u is None else u
        d = np.empty_like(z) if d is None else d
        return self._derivatives(z, self.y, self.s, u, d), u, d

    def _curve(self, z, dz):
        return self.derivatives(z)[2] * dz

    def problem(self) -> LinearProblem:
        """The problem that solvers work on."""
        # scratch space belongs to one solve: the same loss may be minimised by several threads
        return LinearProblem(self, self.design.private(), self.fit_intercept, RowState(self))

    def majorant(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        """Largest second derivative of each row's loss within ``radius`` (n,) of z, (n,)."""
        return self.derivatives(self._steepest(z, radius))[2]

    def behind(self, z: FloatArray) -> FloatArray | None:
        """How far each row is on the wrong side of its loss' bend, (n,); None if no part is straight."""
        return None

    def _steepest(self, z, radius):
        return z

    def slope_range(self) -> FloatArray | None:
        """Bounds of the gradient that hold at every x, (p, 3), or None where there are none.

        Minus the lower bound, the upper bound, and the stored entries of the column.
        """
        return None

    def _curvature_along(self, dz: FloatArray, d: FloatArray) -> float:
        """sum_i dz_i^2 times the largest second derivative of row i, where it is bounded; ``d`` is at z."""
        return self.curvature * float(np.dot(dz, dz * self.s if self.s.size else dz))

    def curvature_weights(self) -> FloatArray:
        """Upper bounds of d2l/dz2 for each row, (n,)."""
        return np.full_like(self.y, self.curvature) * (self.s if self.s.size else 1.0)

    def dual_value(self, theta: FloatArray) -> float | None:
        """Dual objective at theta (n,), like -dl/dz; -inf outside the domain, None without a dual."""
        return None

    def _of_offset(self, theta):
        """What the offset adds to the dual, by row: l(a + o) has the conjugate l*(theta) - theta o."""
        return 0.0 if self.offset is None else theta * self.offset
