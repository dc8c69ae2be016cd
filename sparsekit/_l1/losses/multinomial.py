"""The multinomial (softmax) loss of K classes, a score for each.

The loss is a *sum* over the rows, sum_i s_i (log sum_k exp z_ik - z_{i, c_i}) with scores
Z = X W + b. The variables are x = [W.ravel() (p * K), b (K)], W of shape (p, K) in C order. The intercepts
are last and only where ``fit_intercept`` is true. No class is a reference: a penalty makes W unique up to
ties, and intercepts are unique up to a common shift.
"""

import numpy as np

from ..._arrays import kernel_module, namespace, thread_arguments, to_host
from ..._linalg.class_design import design_of
from ..._linalg.class_products import class_sums, dense_operator, gram, gram_pays, matmat, row_operator
from ..._linalg.cost import is_single
from ..._linalg.dense_design import SINGLE_RIDGE, DenseDesign
from ..._linalg.newton import MAX_SIDE
from ..._linalg.sparse_design import CSCDesign
from ..._linalg.special import entropies
from ..._solver.tolerances import ROUNDING
from .class_shift import anchored, centred
from .linear_loss import RowLoss
from .losses import LogisticLoss
from .selection import RowState, Selection


class MultinomialLoss(RowLoss):
    """sum_i s_i (logsumexp(z_i) - z_{i, c_i}), z_i = W^T x_i + b in R^K, of arguments that fit together.

    Parameters
    ----------
    X : ndarray of shape (n, p), C or F order, or CSR/CSC matrix
        float32 or float64; used as it is. A dense X of mostly zeros is copied as CSR. CuPy's arrays and
        matrices are worked on where they are; codes and sample_weight must be there too.
    codes : array-like of shape (n,)
        Classes 0 .. K - 1.
    n_classes : int
        K, at least 2.
    sample_weight : array-like of shape (n,), default=None
        Weights s_i >= 0; None means ones.
    fit_intercept : bool, default=False
        Whether there are intercepts b (K,).
    n_threads : int, default=1
        Threads of the kernels; no result depends on it.
    offset : array-like of shape (n, K), default=None
        What is added to the scores; None means zeros.
    """

    lower_bound = 0.0

    def __init__(
        self, X, codes, n_classes, sample_weight=None, *, fit_intercept=False, n_threads=1, offset=None
    ):
        xp = namespace(X=X, codes=codes, sample_weight=sample_weight, offset=offset)
        self.fit_intercept, self.n_threads, self.n_classes = bool(fit_intercept), n_threads, int(n_classes)
        self._set_design(X)
        self.kernels = kernel_module("shared._multinomial", X)
        self.GramOperator = kernel_module("shared._operators", X).GramOperator
        self.codes = xp.ascontiguousarray(codes, dtype=np.int32)
        self.s = self._nothing = np.empty(0, like=self.codes)
        if sample_weight is not None:
            self.s = xp.ascontiguousarray(sample_weight, dtype=np.float64)
        self.offset = None
        if offset is not None:
            # what all classes of a row have moves no probability, and rounds what they have of their own
            self.offset = xp.ascontiguousarray(offset, dtype=np.float64)
            self.offset = self.offset - self.offset.mean(axis=1)[:, None]
        self.threads = thread_arguments(X, n_threads)
        self.blas_threads = n_threads  # BLAS makes the large Gram matrices

    def _set_design(self, X):
        self.design = design_of(X, self.n_threads)
        self.n_features = self.design.shape[1]
        self.n_variables = (self.n_features + self.fit_intercept) * self.n_classes

    def _product(self, x):
        """X W + b, which is linear in x, (n, K)."""
        p, K = self.n_features, self.n_classes
        x = namespace(X=self.s, x=x).ascontiguousarray(x, dtype=np.float64)
        W = x[: p * K].reshape(p, K)
        Z = matmat(self.design, W) if W.any() else np.zeros((len(self.codes), K), like=self.s)
        if self.fit_intercept:
            Z += x[p * K :]
        return Z

    # the protocol of every loss: value, gradient, Hessian-vector product on a subset
    def value(self, x):
        """f(x)."""
        return self.derivatives(self.predictor(x))[0]

    def derivatives(self, Z, U=None):
        """Value and dl/dZ (n, K) at scores Z."""
        U = np.empty_like(Z) if U is None else U
        return self.kernels.value_and_derivative(Z, self.codes, self.s, U, *self.threads), U

    def behind(self, Z):
        """How far each row's own class is behind the largest score, (n,)."""
        return Z.max(axis=1) - Z[np.arange(len(Z), like=Z), self.codes]

    def probabilities(self, Z, radius=None):
        """Softmax of Z without each row's largest entry, with 1 - it and its class."""
        n, K = Z.shape
        P, rest, top = np.empty((n, K), like=Z), np.empty(n, like=Z), np.empty(n, dtype=np.int32, like=Z)
        radius = self._nothing if radius is None else radius
        self.kernels.model_probabilities(Z, radius, P, rest, top, *self.threads)
        return P, rest, top

    def _curve(self, Z, T):
        """s_i (diag(p_i) - p_i p_i^T) t_i for every row, (n, K), without cancellation."""
        P, _, top = self.probabilities(Z)
        rows = np.arange(len(Z), like=Z)
        T = T - T[rows, top][:, None]
        S = P * (T - np.einsum("ij,ij->i", P, T)[:, None])
        S[rows, top] = -S.sum(axis=1)
        return S * self.s[:, None] if self.s.size else S

    def problem(self):
        """The problem that solvers work on."""
        return MultinomialProblem(self, self.design, self.fit_intercept, RowState(self))

    def curvature_weights(self):
        """Upper bounds of the largest eigenvalue of each row's Hessian in Z, (n,)."""
        return np.full_like(self.s, 0.5, shape=len(self.codes)) * (self.s if self.s.size else 1.0)

    def weights(self):
        """The weight of each row, (n,)."""
        return self.s if self.s.size else np.ones_like(self.s, shape=len(self.codes))

    def dual_value(self, theta):
        """Dual objective at theta = dl/dZ-like (n, K).

        It is sum_i s_i entropy(theta_i / s_i + e_{c_i}) + theta_i . o_i, and -inf outside the domain, where a
        row leaves the simplex by more than rounding.
        """
        s = self.s[:, None] if self.s.size else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            q = np.where(theta == 0, 0.0, theta / s)
        q[np.arange(len(q), like=q), self.codes] += 1.0
        if not (np.all(q >= -ROUNDING) and np.all(np.abs(q.sum(axis=1) - 1.0) <= ROUNDING)):
            return -np.inf
        # added by entry: with large offsets both are large, and nearly cancel
        of_offset = 0.0 if self.offset is None else theta * self.offset
        return float(np.sum(s * entropies(np.maximum(q, 0.0)) + of_offset))


class MultinomialProblem(Selection):
    """The loss; its variables are a table (features, then one row of intercepts; K classes)."""

    several_classes = True

    def __init__(self, loss, design, intercept, state):
        size = (design.shape[1] + bool(intercept)) * loss.n_classes
        super().__init__(loss, design, intercept, state, size)

    def start(self, x):
        self.state.set(self.loss.predictor(x))
        return self.state.f

    def gradient_of(self, theta, out=None):
        """The gradient that rows with derivatives ``theta`` (n, K) would have, (size,)."""
        out = np.empty(self.size, like=theta) if out is None else out
        out[:] = class_sums(self.design, theta, self.intercept).ravel()
        return out

    def _select(self, variables):
        """Design of the features of sorted ``variables``, their indices, and if one is an intercept."""
        K, p = self.loss.n_classes, self.design.shape[1]
        rows, classes = np.divmod(namespace(X=self.like, variables=variables).asarray(variables), K)
        features = np.unique(rows[rows < p])
        has = bool(len(rows)) and bool(rows[-1] == p)
        if len(features) < p or isinstance(self.design, CSCDesign):
            design = self.design.select(features)
        else:
            design = self.design
        # the intercepts' row number p becomes the number of features that stay
        return design, np.searchsorted(features, rows) * K + classes, has

    def model(self, variables, ridge):
        """Operator of the quadratic model on sorted ``variables``, and their move.

        Every row's other scores are first raised towards its largest by the row's `radius`: a saturated row
        gets the curvature that it has within reach.
        """
        design, positions, has = self._select(variables)
        radius = self.radius()
        parts = self.loss.probabilities(self.state.z, radius)
        s, m = self.loss.weights(), len(positions)
        if m <= MAX_SIDE and gram_pays(design, positions, self.loss.n_classes):
            ridge = max(ridge, SINGLE_RIDGE) if is_single(design.shape[0], m) else ridge
            operator = self.loss.GramOperator(gram(design, positions, parts, s, has), ridge)
        else:
            rows = dense_operator if isinstance(design, DenseDesign) else row_operator
            operator = rows(design, positions, parts, s, has, max(ridge, SINGLE_RIDGE))
        return operator, ClassMove(design, positions, has, self.loss.n_classes)

    def hessian(self, variables, radius=None):
        """The Hessian of a `model` on sorted ``variables``, each row's curvature within its ``radius``.

        It is in main memory wherever X is. Its sums are exact to double precision: dual points solve with it.
        """
        design, positions, has = self._select(variables)
        parts = self.loss.probabilities(self.state.z, radius)
        return to_host(gram(design, positions, parts, self.loss.weights(), has, exact=True))

    def anchored(self, variables, x, g, l1):
        """Sorted ``variables`` without one class of each feature of which they hold all: see _class_shift."""
        variables = namespace(X=self.like, variables=variables).asarray(variables)
        return anchored(variables, self.loss.n_classes, x, g, l1)

    def centred(self, x, l1, l2):
        """x with its features shifted to the least penalty, which moves no probability: see _class_shift."""
        return centred(x, self.design.shape[1], self.loss.n_classes, l1, l2)

    def stretch(self, dz):
        """The quadratic form behind ``lipschitz``: over ||dx||^2 it is a lower bound of the same."""
        rows = np.einsum("ij,ij->i", dz, dz)
        return 0.5 * float(np.dot(rows, self.loss.s) if self.loss.s.size else rows.sum())

    def move_all(self):
        every = np.arange(self.size, like=self.like)
        return ClassMove(self.design, every, self.intercept, self.loss.n_classes)

    def free_system(self, free):
        """The Hessian on variables ``free``, in main memory, and a function from steps to theta's changes.

        The change is that of dl/dZ by the step, so that rows stay in the simplex where the step is small.
        """
        design, positions, has = self._select(free)
        move = ClassMove(design, positions, has, self.loss.n_classes)
        return self.hessian(free), lambda step: self.loss._curve(self.state.z, move.direction(step))


class ClassMove:
    """Steps of chosen variables as the change of the scores, (n, K)."""

    def __init__(self, design, positions, intercept, n_classes):
        self.design, self.positions, self.intercept, self.K = design, positions, intercept, n_classes

    def direction(self, dx):
        p = self.design.shape[1]
        table = np.zeros((p + 1, self.K), like=dx)
        table.ravel()[self.positions] = dx
        dz = matmat(self.design, table[:p])
        if self.intercept:
            dz += table[p]
        return dz


def logistic_loss(X, codes, n_classes, sample_weight, fit_intercept, n_threads, offset=None):
    """The sum of logistic losses over the rows: binary for two classes, multinomial for more."""
    if n_classes == 2:
        signs = np.where(codes == 1, 1.0, -1.0)
        return LogisticLoss._of_validated(
            X, signs, sample_weight, fit_intercept=fit_intercept, n_threads=n_threads, offset=offset
        )
    return MultinomialLoss(
        X, codes, n_classes, sample_weight, fit_intercept=fit_intercept, n_threads=n_threads, offset=offset
    )
