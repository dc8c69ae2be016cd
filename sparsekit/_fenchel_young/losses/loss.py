"""Fenchel-Young losses of linear scores: sparsemax and softmax, for classes or distributions as targets.

The loss is a *mean* over the rows, sum_i w_i L(z_i; q_i) with sum_i w_i = 1 and scores Z = X W + b. The
variables are a table T of shape (p, K), or (p + 1, K) with the intercepts in the last row.

Both maps have the Jacobian c (diag(u) - u u^T) of a distribution u. Softmax has u = p and c = 1. Sparsemax
has the uniform u on its support of c members. So the curvature kernels of the multinomial loss serve both.
"""

import numpy as np

from ..._arrays import kernel_module, thread_arguments
from ..._linalg import class_products as _class_model
from ..._linalg.class_design import design_of
from ..._linalg.dense_design import DenseDesign
from ..._linalg.newton import MAX_SIDE
from ..._linalg.sparse_design import CSCDesign
from .newton_system import NewtonSystem

# multiply-adds of a product with X for each thread
_THREAD_WORK = 4000000


class FenchelYoungLoss:
    """sum_i w_i L(z_i; q_i) with L(z; q) = Omega*(z) + Omega(q) - <z, q>.

    Parameters
    ----------
    transform : {"sparsemax", "softmax"}
        Whose loss: Omega is half the squared norm or the negative entropy, on the simplex.
    X : ndarray of shape (n, p), C or F order, or CSR/CSC matrix
        float32 or float64. CSC, and dense data of mostly zeros, are copied as CSR. A CuPy array or CSR
        matrix keeps the loss on its GPU, and targets and weights must be there as well.
    targets : ndarray of shape (n,) or (n, K)
        Classes 0 .. K - 1, or distributions.
    n_classes : int
        K, at least 1.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0, not all zero; only their ratios matter.
    fit_intercept : bool, default=True
    n_threads : int, default=1

    Attributes
    ----------
    shape : tuple
        Shape of the table of variables.
    """

    def __init__(
        self, transform, X, targets, n_classes, sample_weight=None, *, fit_intercept=True, n_threads=1
    ):
        self.transform = transform
        rows = "fenchel_young._sparsemax" if transform == "sparsemax" else "shared._multinomial"
        self.row_kernels, self.kernels = kernel_module(rows, X), kernel_module("shared._curvature", X)
        self.design = design = _design(X, n_threads)
        n, p = design.shape
        # Threads with little work cost more than they save. BLAS's threads spin, so kernels that alternate
        # with them get one: BLAS multiplies dense data, kernels compressed rows.
        threads = min(n_threads, max(1, int((design.nnz + n + p) * n_classes // _THREAD_WORK)))
        self.threads = thread_arguments(X, 1 if isinstance(design, DenseDesign) else threads)
        if hasattr(design, "n_threads"):  # one in main memory
            design.n_threads = min(design.n_threads, threads)
        # None does not change BLAS, for callers that run several fits at once
        self.blas_threads = threads
        self.xp = xp = getattr(design, "xp", np)
        targets = xp.asarray(targets)
        self.codes = self.q = None
        if targets.ndim == 1:
            self.codes = xp.ascontiguousarray(targets, dtype=np.int64)
            self._codes32 = self.codes.astype(np.int32)
        else:
            self.q = xp.ascontiguousarray(targets, dtype=np.float64)
        self.n_classes, self.fit_intercept = int(n_classes), bool(fit_intercept)
        weight = xp.ones(n) if sample_weight is None else xp.array(sample_weight, dtype=np.float64)
        with np.errstate(over="ignore"):
            if not float(weight.sum()) < np.inf:
                weight = weight / weight.max()
        self.w = weight / weight.sum()
        self.shape = (p + self.fit_intercept, self.n_classes)
        # Omega(q), which makes the loss of distributions zero at p = q
        self._offset = 0.0
        if self.q is not None and transform == "softmax":
            self._offset = float(np.sum(self.w * _negative_entropy(self.q)))
        # size of the terms whose difference is the loss: the scale of its rounding
        self.magnitude = abs(self._offset)
        self._newton = None

    def scores(self, T):
        """Z = X W + b, (n, K)."""
        p = self.design.shape[1]
        Z = _class_model.matmat(self.design, T[:p])
        if self.fit_intercept:
            Z += T[p]
        return Z

    def adjoint(self, R):
        """[X, 1]^T R, a table."""
        return _class_model.class_sums(self.design, R, self.fit_intercept)

    def derivatives(self, Z):
        """Loss and its derivative in Z, with the weights."""
        if self.transform == "sparsemax":
            return self._sparsemax(Z)
        R = np.empty_like(Z)
        if self.q is None:
            value = self.row_kernels.value_and_derivative(Z, self._codes32, self.w, R, *self.threads)
        else:
            value = self.row_kernels.target_value_and_derivative(Z, self.q, self.w, R, *self.threads)
        return value + self._offset, R

    def _sparsemax(self, Z):
        R, loss = np.empty_like(Z), np.empty(len(Z), like=Z)
        self.row_kernels.sparsemax_rows(Z, self.q, self.codes, R, None, None, loss, True, *self.threads)
        R *= self.w[:, None]
        # rows of weight zero may have no label, hence no loss
        return float(np.sum(self.w * np.where(self.w > 0, loss, 0.0))), R

    def distributions(self):
        """The targets as distributions, (n, K)."""
        if self.q is not None:
            return self.q
        Q = np.zeros((len(self.codes), self.n_classes), like=self.w)
        Q[np.arange(len(Q), like=Q), self.codes] = 1.0
        return Q

    def spread(self, R, t):
        """sum_i w_i (Omega(q_i + t d_i) - Omega(q_i)) for residuals R = w d, d = p - q."""
        used = self.w > 0
        weight = self.w[used]
        D = R[used] / weight[:, None]
        Q = self.distributions()[used]
        if self.transform == "sparsemax":
            each = t * (Q * D).sum(axis=1) + 0.5 * t * t * (D * D).sum(axis=1)
        else:
            each = _negative_entropy(np.maximum(Q + t * D, 0.0)) - _negative_entropy(Q)
        return float(np.sum(weight * each))

    def curvature(self, Z):
        """The distributions u without each row's largest entry, 1 - it, its class, and weights w c."""
        if self.transform == "softmax":
            n, K = Z.shape
            parts = np.empty((n, K), like=Z), np.empty(n, like=Z), np.empty(n, dtype=np.int32, like=Z)
            self.row_kernels.model_probabilities(Z, np.empty(0, like=Z), *parts, *self.threads)
            return parts, self.w
        rows = np.arange(len(Z), like=Z)
        P, top = np.empty_like(Z), Z.argmax(axis=1).astype(np.int32)
        self.row_kernels.sparsemax_rows(Z, None, None, P, None, None, None, False, *self.threads)
        members = P > 0
        members[rows, top] = True  # also if scores overflowed
        size = members.sum(axis=1)
        share = 1.0 / size
        P = members * share[:, None]
        P[rows, top] = 0.0
        return (P, 1.0 - share, top), self.w * size

    def newton_step(self, Z, G, alpha, free, products):
        """d with (H + alpha) d = -G by a factorisation, or None where so many products cost less.

        H is the loss's Hessian at scores Z, without curvature that is negligible against alpha; ``free``
        intercepts have none.
        """
        return self._system().step(*self.curvature(Z), G, alpha, free, products)

    def factor_products(self):
        """Products with the Hessian that cost as much as a factorisation of all variables."""
        return self._system().worth()

    def _system(self):
        if self._newton is None:
            self._newton = NewtonSystem(self.design, self.n_classes, self.fit_intercept, MAX_SIDE)
        return self._newton

    def operator(self, Z):
        """The Hessian of the loss; its ``multiply`` takes tables in single precision."""
        make = _class_model.row_operator if self.design.is_sparse else _class_model.dense_operator
        parts, weight = self.curvature(Z)
        return make(self.design, None, parts, weight, self.fit_intercept, 0.0)

    def scale(self):
        """Mean curvature at zero scores of the directions that have any."""
        n, K = self.design.shape[0], self.n_classes
        # sum_i w_i c (1 - |u|^2) |a_i|^2 with u = 1 / K; c is K for sparsemax and 1 for softmax
        each = (K - 1.0) * (1.0 if self.transform == "sparsemax" else 1.0 / K)
        squares = _class_model.squared_norms(self.design) + self.fit_intercept
        trace = each * float(np.sum(self.w * np.where(self.w > 0, squares, 0.0)))
        return trace / max(min(self.shape[0] * K, n * (K - 1)), 1)


def _negative_entropy(Q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(Q > 0, Q * np.log(Q), 0.0).sum(axis=1)


def _design(X, n_threads):
    design = design_of(X, n_threads)
    return design.select(np.arange(design.shape[1])) if isinstance(design, CSCDesign) else design
