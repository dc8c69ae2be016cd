"""Newton steps of a penalised multi-class model by a factorised system: of the variables, or of the rows.

A row with two and more classes in play has curvature; the others cost nothing. With few of them the rows'
side of the system is the smaller one, however many variables there are (Woodbury's identity).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from ..._cython.shared import _curvature
from ..._linalg import class_products as _class_model
from ..._linalg.cost import CHEAP, HOST
from ..._linalg.dense_design import DenseDesign
from ..._linalg.positive import positive_solver, solve_positive
from ..._solver.tolerances import ROUNDING

# Ridge of free intercepts, in units of their largest slope.
INTERCEPT_RIDGE = 1e-3
# Curvature that is left out has at most this part of alpha, all together: steps are exact to some 1e-5.
MAX_LEFT_OUT = 0.02


@dataclass
class _Rows:
    """The rows with curvature, and the free dimensions of each.

    A dimension is a class that is not its row's largest: ``row`` (r,) and ``column`` (r,). ``active`` (a,)
    are the rows, ``start`` (a,) the first dimension of each. ``at`` (r,) is the index of a dimension's row in
    active.
    """

    row: np.ndarray
    column: np.ndarray
    active: np.ndarray
    start: np.ndarray
    at: np.ndarray

    @classmethod
    def of(cls, P):
        row, column = np.nonzero(P)
        first = np.ones(len(row), dtype=bool)
        first[1:] = row[1:] != row[:-1]
        start = np.flatnonzero(first)
        return cls(row, column, row[start], start, np.cumsum(first) - 1)


class NewtonSystem:
    """Steps of sum_i w_i L(z_i) + alpha/2 ||T||^2, Z = X W + b, by factors of at most a given side.

    Parameters
    ----------
    design : design
        X, as `FenchelYoungLoss` has it.
    n_classes : int
    intercept : bool
        Whether the last row of a table are intercepts.
    largest : int
        Largest side of a system to factorise.
    """

    def __init__(self, design, n_classes, intercept, largest):
        self.design, self.K, self.intercept, self.largest = design, n_classes, intercept, largest
        self.dense = isinstance(design, DenseDesign)
        self.q = design.shape[1] + intercept
        self.variables = self.q * n_classes
        # entries of rows that are made dense: as many as those of a system, 72 MB
        self.room = float(largest) ** 2
        self._squares = None

    def step(self, parts, weight, G, alpha, free, products):
        """d with (H + alpha) d = -G for the distributions of `FenchelYoungLoss.curvature`, or None.

        None means that so many products with H are cheaper, or that H overflowed. ``free``: the intercepts
        have no alpha.
        """
        if self.design.is_on_device:
            # on a GPU launches dominate: always form the system by products
            every = np.arange(self.variables)
            if self.variables > self.largest or not _class_model.gram_pays(self.design, every, self.K):
                return None
            return self._by_variables(parts, weight, G, alpha, free)
        P, rest, top = parts
        # free intercepts have no alpha to compare curvature with
        least = min(alpha, self._holding(G)) if free else alpha
        large = self._large(P, weight, least)
        most = max(products * _class_model.product_cost(self.design, self.K), CHEAP)
        # the factor alone may cost more, which is known at once
        least = self._factor_cost(np.count_nonzero(large))
        if least > most:
            return None
        P = np.where(large, P, 0.0)
        rows = _Rows.of(P)
        by_rows, by_variables = self._costs(rows, P)
        cost = min(by_rows if alpha > 0.0 else np.inf, by_variables)
        if not np.isfinite(cost) or cost > most:
            return None
        if cost == by_variables:
            return self._by_variables((P, rest, top), weight, G, alpha, free, rows)
        try:
            return self._by_rows(rows, (P, rest, top), weight, G, alpha, free)
        except LinAlgError:  # rounding exceeds alpha
            if not np.isfinite(by_variables):
                return None
            return self._by_variables((P, rest, top), weight, G, alpha, free, rows)

    def _holding(self, G):
        """What stands for alpha in the intercepts where it has none, that they do not run away.

        In proportion to their slopes, it does not slow down the last steps.
        """
        return INTERCEPT_RIDGE * float(np.abs(G[-1]).max())

    def _large(self, P, weight, alpha):
        """Where P has curvature, but for what has less than a part of alpha, all together."""
        if self._squares is None:
            self._squares = _class_model.squared_norms(self.design) + self.intercept
        most = MAX_LEFT_OUT * alpha / max(2.0 * P.size, 1.0)
        with np.errstate(invalid="ignore", over="ignore"):
            return P * (weight * self._squares)[:, None] > most

    def _factor_cost(self, dimensions):
        """Nanoseconds of the smaller factor, of the variables or of the rows' dimensions."""
        side = min((side for side in (self.variables, dimensions) if side <= self.largest), default=np.inf)
        return (float(side) ** 3 / 3.0) * HOST.factor

    def worth(self):
        """Products that cost as much as a step by variables, were all rows and classes in play."""
        m, K = float(self.variables), self.K
        if m > self.largest:
            return np.inf
        form = 0.25 * self.design.shape[0] * K * (K - 1.0) * self.q**2 * HOST.dense
        return (form + (m**3 / 3.0) * HOST.factor) / max(_class_model.product_cost(self.design, K), 1.0)

    def _costs(self, rows, P):
        """Nanoseconds by rows and by variables."""
        p = self.design.shape[1]
        a, r, m, K = float(len(rows.active)), float(len(rows.row)), float(self.variables), self.K
        by_rows = by_variables = np.inf
        if m <= self.largest:
            form = self._pairing(rows)
            if not self.dense:
                form = min(form, self._scattering(rows))
            by_variables = form + (m**3 / 3.0) * HOST.factor + 4.0 * m * m
        if r <= self.largest:
            form = 0.5 * a * a * p * HOST.dense
            if not self.dense:
                form = min(form if a * p <= self.room else np.inf, HOST.class_pair * self._shared(rows))
            by_rows = form + 0.5 * r * r * K * HOST.dense + (r**3 / 3.0) * HOST.factor
        return by_rows, by_variables

    def _pairing(self, rows):
        """Nanoseconds of products for each pair of a row's classes, of rows that are made dense."""
        if not len(rows.row):
            return 0.0
        if not self.dense and len(rows.active) * float(self.q) > self.room:
            return np.inf
        size = np.add.reduceat(np.ones(len(rows.row)), rows.start) + 1.0
        return 0.25 * float(size @ (size - 1.0)) * self.q**2 * HOST.dense

    def _scattering(self, rows):
        """Nanoseconds of pairs of a compressed row's entries, each of them for every class."""
        entries = (np.diff(self.design.indptr)[rows.active] + self.intercept) * float(self.K)
        return 0.5 * HOST.class_pair * float(entries @ entries)

    def _shared(self, rows):
        """Pairs of entries of a column in rows with curvature."""
        live = np.zeros(self.design.shape[0], dtype=bool)
        live[rows.active] = True
        counts = np.bincount(
            self.design.indices[np.repeat(live, np.diff(self.design.indptr))], minlength=1
        ).astype(np.float64)
        return float(counts @ counts)

    def _by_variables(self, parts, weight, G, alpha, free, rows=None):
        m, K, q = self.variables, self.K, self.q
        # variables of a class are adjacent
        turned = rows is not None and (self.dense or self._pairing(rows) <= self._scattering(rows))
        b = -(G.T if turned else G).ravel()
        last = np.arange(q - 1, m, q) if turned else np.arange(m - K, m)
        penalty = np.full(m, alpha)
        ridge = least = None
        while True:
            if turned:
                H = self._paired(parts, weight, rows)
            else:
                all_variables = np.arange(m)
                H = _class_model.gram(self.design, all_variables, parts, weight, self.intercept, exact=True)
            every = np.arange(m, like=H)
            if ridge is None:
                most = (float(H.diagonal().max()) if m else 0.0) or 1.0
                least = 1e-15 * most
                # flat directions need a larger ridge, as does an alpha lost in rounding
                ridge = 0.0 if alpha > least and not free else 100.0 * least
            if free:
                # a common shift of all intercepts has no curvature
                shift = np.asarray(last, like=H)
                H[np.ix_(shift, shift)] += float(H[shift, shift].mean()) / K
                penalty[last] = self._holding(G)
            if not ridge <= most < np.inf:  # it is infinity or NaN where H overflowed
                return None
            H[every, every] += np.asarray(penalty + ridge, like=H)
            try:
                # a C-ordered lower triangle is the upper one of what LAPACK reads
                D = positive_solver(H.T)(b) if turned else solve_positive(H, b)
                break
            except np.linalg.LinAlgError:
                ridge = max(100.0 * ridge, least)  # rounding exceeds the ridge
        return np.ascontiguousarray(D.reshape(K, q).T) if turned else D.reshape(G.shape)

    def _paired(self, parts, weight, rows):
        P, rest, top = parts
        X, active = self.design.X, rows.active
        if not self.dense or len(active) < len(P):
            P, rest, top, weight = P[active], rest[active], top[active], weight[active]
            X = X[active] if self.dense else X[active].toarray()
        X = np.ascontiguousarray(X)
        H = np.empty((self.variables, self.variables))
        _curvature.pair_gram(X, np.ascontiguousarray(_full(P, rest, top).T), weight, self.intercept, H)
        return H

    def _by_rows(self, rows, parts, weight, G, alpha, free):
        P, rest, top = parts
        p, K, active, at = self.design.shape[1], self.K, rows.active, rows.at
        A, gram = self._active(rows)
        if self.intercept and not free:
            gram += 1.0
        C = _factors(rows, _full(P[active], rest[active], top[active]), top[active], weight[active])
        scores = A @ G[:p]
        if self.intercept and not free:
            scores += G[p]
        M = C @ C.T
        M *= gram[at[:, None], at]
        r = np.arange(len(M))
        # a smaller one would be lost in rounding
        alpha = max(alpha, ROUNDING * float(M.diagonal().max(initial=0.0)))
        M[r, r] += alpha
        solve = positive_solver(M.T)
        slopes = np.einsum("rk,rk->r", C, scores[at])
        z = -solve(slopes)
        D = np.empty_like(G)
        if free:
            Q = alpha * solve(C)
            S = C.T @ Q
            S += (np.trace(S) / K or 1.0) / K
            S[np.arange(K), np.arange(K)] += 1e-13 * (np.trace(S) or 1.0) + self._holding(G)
            D[p] = np.linalg.solve(S, -G[p] - C.T @ z)
            z += Q @ D[p]
        sums = np.add.reduceat(C * z[:, None], rows.start) if len(z) else np.zeros((0, K))
        D[:p] = A.T @ sums
        if self.intercept and not free:
            D[p] = sums.sum(axis=0)
        fixed = D if not free else D[:p]
        fixed += G[: len(fixed)]
        fixed /= -alpha
        return D

    def _active(self, rows):
        """The rows with curvature and their Gram matrix."""
        a, p = float(len(rows.active)), self.design.shape[1]
        if self.dense:
            A = self.design.X[rows.active].astype(np.float64, copy=False)
            return A, A @ A.T
        A = self.design.X[rows.active].astype(np.float64)
        if a * p <= self.room and 0.5 * a * a * p * HOST.dense < HOST.class_pair * self._shared(rows):
            A = A.toarray()
            return A, A @ A.T
        return A, (A @ A.T).toarray()


def _full(P, rest, top):
    U = P.copy()
    U[np.arange(len(U)), top] = 1.0 - rest
    return U


def _factors(rows, U, top, weight):
    """C (r, K) of which the rows of a row i have C_i^T C_i = weight_i (s diag(u) - u u^T), s = sum of u.

    That is s D^(1/2) (1 - v v^T) D^(1/2) with D = diag(u) and v = (u / s)^(1/2). A reflection maps the top
    class's axis to -v. All its columns but the top one span the complement of v.
    """
    s = U.sum(axis=1)
    v = np.sqrt(U / s[:, None])
    high = v[np.arange(len(U)), top].copy()
    v[np.arange(len(U)), top] += 1.0
    C = v[rows.at]
    number = np.arange(len(C))
    C *= -(C[number, rows.column] / (1.0 + high[rows.at]))[:, None]
    C[number, rows.column] += 1.0
    C *= np.sqrt(U * (weight * s)[:, None])[rows.at]
    return C
