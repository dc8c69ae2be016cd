"""Proximal steps of the hinge loss for labels with pairs or factors: Newton's method in a box.

The problem of a step is piecewise quadratic; `MarginalCurvature` computes its curvature. Pair scores at 0
with a positive slope stay there. Systems are solved by Woodbury's identity or by conjugate gradients. The
factor has as many rows as the marginals have free directions, of which there are few near the end.
"""

from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from ..._arrays import to_host
from ..._bounded.solver.proximal_points import MIN_SMOOTHING, balanced
from ..._linalg.class_products import class_sums
from ..._linalg.conjugate_gradients import conjugate_gradients
from ..._linalg.dense_design import DenseDesign
from ..._linalg.newton import MAX_SIDE
from ..._solver import outcome
from ..._solver.line_search import Trial, backtrack
from ..._solver.tolerances import FORCING, ROUNDING
from .label_curvature import MARGINAL_ERROR, MIN_CURVATURE, MarginalCurvature

# Least curvature of scores of pairs: with 1e-4 weak penalties take up to twice as many steps.
MIN_PAIR_CURVATURE = 1e-6
# Largest number of products of a step, and largest cost of a factor in products.
MAX_PRODUCTS = 100
# Factor of sigma from step to step.
SHRINK = 0.65


class CoupledHinge:
    """The problem of all labels at the proximal term that the loss has, for `proximal_points`.

    Parameters
    ----------
    loss : LabelLoss
    x : ndarray of shape (n_variables,)
        Where to begin.
    """

    has_kinks = True

    def __init__(self, loss, x):
        self.loss, self.xp, self.x = loss, loss.xp, x
        self.squares = loss.design.squares(loss.weight)
        self.size = loss.shape[0] * loss.shape[1]
        self.mu = None

    def copy_where(self, x, better):
        if bool(better):
            x[:] = self.x

    def at_zero(self):
        return self.xp.asarray(float(self.loss.shape[1]))

    def primal(self):
        """Objective (), as an array."""
        loss, (table, plus, minus) = self.loss, self.loss.unpack(self.x)
        eta, p = loss.scores(table), loss.design.shape[1]
        smoothing, loss.smoothing = loss.smoothing, 0.0
        rows = loss.hinge_rows(eta, plus, minus, loss.inner_marginals(eta, plus, minus))
        loss.smoothing = smoothing
        if self.mu is not None:  # LP-MAP may end 4e-7 of a row's loss below the maximum
            rows = np.maximum(rows, loss.hinge_rows(eta, plus, minus, self.mu))
        squares = loss.alpha * (table[:p] ** 2).sum() + loss.pair_alpha * (plus @ plus + minus @ minus)
        return loss.weight @ rows + 0.5 * squares

    def dual_variables(self):
        """Marginals (n, K) at the proximal term of the last steps."""
        if self.mu is not None:
            return self.mu
        table, plus, minus = self.loss.unpack(self.x)
        return self.loss.inner_marginals(self.loss.scores(table), plus, minus)

    def recentre(self, mu):
        """The next proximal term."""
        self.loss.centre = mu
        self.loss.smoothing = max(SHRINK * self.loss.smoothing, MIN_SMOOTHING)

    def dual(self, mu):
        """Lower bound () on the optimum, and whether it is certain."""
        loss, xp = self.loss, self.xp
        certain = loss.alpha > 0.0 and (loss.pair_alpha > 0.0 or not loss.n_pairs)
        if certain and loss.fit_intercept:
            mu = means_restored(loss, mu)
        if not certain or mu is None:
            # estimate of the minimum of the proximal step's problem, which is at most that of the loss
            return xp.asarray(self.fun - self.norm * self._reach()), False
        E = (mu - loss.Y) * loss.weight[:, None]
        pulled = class_sums(loss.design, xp.ascontiguousarray(E), False)
        # marginals obey pairs and factors up to their error
        value = (1.0 - MARGINAL_ERROR) * float(abs(E).sum()) - float((pulled**2).sum()) / (2.0 * loss.alpha)
        if loss.n_pairs:
            high, low = loss.labels.pair_sums(xp.ascontiguousarray(mu), loss.weight)
            over, under = (loss.together - high).clip(0.0, None), (low - loss.together).clip(0.0, None)
            value -= float((over**2).sum() + (under**2).sum()) / (2.0 * loss.pair_alpha)
        return xp.asarray(value), True

    def _put(self, x, fun, gradient):
        """Go to x, where the loss was evaluated last."""
        self.x, self.fun, self.gradient, self.mu = x, fun, gradient, self.loss.mu
        self.free = self.xp.ones(len(x), dtype=bool)
        self.free[self.size :] = (x[self.size :] > 0.0) | (gradient[self.size :] < 0.0)
        free = gradient[self.free]
        self.worst = float(abs(free).max()) if len(free) else 0.0
        self.norm = float(np.sqrt((free**2).sum()))

    def _reach(self):
        """About how far away a minimum is: twice as far as zero, or one."""
        return 2.0 * max(float(np.sqrt((self.x**2).sum())), 1.0)

    def _left(self):
        """About how much less than its value here the problem's dual is at these marginals."""
        loss, at = self.loss, self.loss.design.shape[1] * self.loss.shape[1]
        left = 0.0
        for part, alpha in ((slice(at), loss.alpha), (slice(self.size, None), loss.pair_alpha)):
            square = float((self.gradient[part][self.free[part]] ** 2).sum())
            left += square / (2.0 * alpha) if alpha > 0.0 else np.sqrt(square) * self._reach()
        g, b = self.gradient[at : self.size], self.x[at : self.size]
        return left + float((abs(g) * (1.0 + abs(b))).sum())

    def descend(self, enough, steps):
        """Newton steps until what is left of the problem is about ``enough`` (); status."""
        loss, enough = self.loss, float(enough)
        self._put(self.x, *loss.value_and_gradient(self.x))
        steps.nfev += 1
        unit, longest = self.worst, 1.0
        while True:
            if self._left() <= enough or self.worst == 0.0:
                return outcome.CONVERGED
            status = steps.limits.reached(steps.nit)
            if status is not None:
                return status
            d = self._direction(self.norm * min(FORCING, np.sqrt(self.worst / unit)))
            # up to rounding, short steps leave the value unchanged
            rounding = 1e-15 * abs(self.fun)
            found = backtrack(partial(self._trial, steps, d), self.fun, t=longest, rounding=rounding)
            if found is None:
                return outcome.NO_PROGRESS
            # short steps tend to follow each other
            longest = min(1.0, 2.0 * found.t)
            before = self.fun, self.worst
            self._put(*found.point)
            if steps.report(self.x.copy(), self.fun):
                return outcome.STOPPED
            if self.fun >= before[0] and self.worst >= before[1]:
                return outcome.NO_PROGRESS

    def _trial(self, steps, d, t):
        """The problem at x + t d, pair scores cut off at 0."""
        x = self.x + t * d
        x[self.size :] = x[self.size :].clip(0.0, None)
        fun, gradient = self.loss.value_and_gradient(x)
        steps.nfev += 1
        return Trial(t, fun, point=(x, fun, gradient), change=float(self.gradient @ (x - self.x)))

    def _direction(self, enough):
        """Newton's step in the free variables."""
        _, plus, minus = self.loss.unpack(self.x)
        free = to_host(self.free[self.size :])
        curved = MarginalCurvature(
            self.loss.labels, to_host(self.dual_variables()), to_host(plus), to_host(minus), free
        )
        pairs_at = self.size + np.flatnonzero(free)
        weight = to_host(self.loss.weight)[curved.row] / self.loss.smoothing
        if not self.loss.design.is_on_device and self._is_small(curved):
            return self._by_factor(curved, pairs_at, weight)
        return self._by_products(curved, self.xp.asarray(pairs_at), weight, enough)

    def _is_small(self, curved):
        m, (q, K) = len(curved.row), self.loss.shape
        work = m**3 / 3.0 + float(len(np.unique(curved.row))) ** 2 * q
        return m <= MAX_SIDE and work <= MAX_PRODUCTS * 4.0 * len(self.loss.Y) * q * K

    def _by_factor(self, curved, pairs_at, weight):
        loss, (q, K), p = self.loss, self.loss.shape, self.loss.design.shape[1]
        # the system is a diagonal plus a low-rank term with one row for each free direction
        own = np.ones(len(self.x))
        T = own[: self.size].reshape(q, K)
        features = np.append(loss.alpha + MIN_CURVATURE * self.squares, [MIN_CURVATURE] * (q - p))
        features[features <= 0.0] = 1.0  # zero features without a penalty
        T[:] = features[:, None]
        own[pairs_at] = loss.pair_alpha + MIN_PAIR_CURVATURE
        rows, of = np.unique(curved.row, return_inverse=True)
        shift = np.zeros(p)
        if loss.fit_intercept and isinstance(loss.design, DenseDesign):
            # means of columns are moved to the intercept: large ones would cost all digits
            shift = loss.weight @ loss.design.X
        X = self._rows(rows, 1.0 / np.sqrt(features), shift)
        entries, ways = curved.G.tocoo(), np.zeros((len(of), K))
        ways[entries.row, entries.col % K] = entries.data
        ways *= np.sqrt(weight)[:, None]
        M = X @ X.T
        M = (M.toarray() if sp.issparse(M) else M)[np.ix_(of, of)] * (ways @ ways.T)
        pairs = (curved.G @ curved.shares).toarray() * np.sqrt(weight)[:, None] / np.sqrt(own[pairs_at])
        M += pairs @ pairs.T
        M[np.diag_indices_from(M)] += 1.0
        step = np.where(self.free, -self.gradient, 0.0)
        table = step[: self.size].reshape(q, K)
        table[:p] -= shift[:, None] * table[p:].sum(axis=0)
        step /= np.sqrt(own)
        along = ((X @ table)[of] * ways).sum(axis=1) + pairs @ step[pairs_at]
        if len(along):
            along = cho_solve(cho_factor(M, lower=True, check_finite=False), along, check_finite=False)
        spread = np.zeros((len(rows), K))
        np.add.at(spread, of, along[:, None] * ways)
        table -= X.T @ spread
        step[pairs_at] -= pairs.T @ along
        step /= np.sqrt(own)
        table[p:] -= shift @ table[:p]
        return step

    def _rows(self, rows, scale, shift):
        """Rows of [X, 1], of dense X less shift (p,), times scale (q,), dense or compressed."""
        design = self.loss.design
        if isinstance(design, DenseDesign):
            part = np.ones((len(rows), len(scale)))
            part[:, : design.shape[1]] = design.X[rows] - shift
            part *= scale
            return part
        part = sp.csr_array((design.data, design.indices, design.indptr), shape=design.shape)[rows]
        ones = sp.csr_array(np.ones((len(rows), int(self.loss.fit_intercept))))
        return sp.hstack([part.astype(np.float64), ones], format="csr") @ sp.diags_array(scale)

    def _by_products(self, curved, pairs_at, weight, enough):
        """Until the residual is at most ``enough``, with a diagonal."""
        loss, xp, (n, K), p = self.loss, self.xp, self.loss.Y.shape, self.loss.design.shape[1]
        G, shares, w = curved.G, curved.shares, loss.weight[:, None]
        pair_ridge = loss.pair_alpha + MIN_PAIR_CURVATURE

        def product(v):
            V = xp.ascontiguousarray(v[: self.size].reshape(loss.shape))
            eta = loss.scores(V)
            moved = G.T @ (weight * (G @ (to_host(eta).ravel() + shares @ to_host(v[pairs_at]))))
            U = xp.asarray(moved).reshape(n, K) + MIN_CURVATURE * w * eta
            T = class_sums(loss.design, xp.ascontiguousarray(U), loss.fit_intercept)
            T[:p] += loss.alpha * V[:p]
            out = xp.zeros(len(v))
            out[: self.size] = T.ravel()
            out[pairs_at] = xp.asarray(shares.T @ moved) + pair_ridge * v[pairs_at]
            return out

        moves = G.multiply(G).T @ weight
        share = xp.asarray(moves.reshape(n, K).sum(axis=0)) + MIN_CURVATURE
        M = xp.ones(len(self.x))
        T = M[: self.size].reshape(loss.shape)
        T[:p] = self.squares[:, None] * share + loss.alpha
        T[p:] = share
        M[pairs_at] = xp.asarray(shares.multiply(shares).T @ moves) + loss.pair_alpha
        M = np.maximum(M, ROUNDING * float(M.max()) or 1.0)

        def needs_step(r, *_):
            return np.sqrt((r**2).sum()) > enough

        r = xp.where(self.free, -self.gradient, 0.0)
        return conjugate_gradients(product, lambda r: r / M, r, needs_step, MAX_PRODUCTS)[0]


def means_restored(loss, mu):
    """Marginals near mu (n, K) with the means of Y, or None if no mixture has them.

    Labels in no factor are shifted towards Y, each separately. All rows of the others are mixed with one v.
    It lies on the ray from the mean of mu through that of Y, as far as the factors allow.
    """
    xp, w, Y = loss.xp, loss.weight, loss.Y
    moved = Y + balanced((mu - Y) * w[:, None]) / xp.where(w > 0.0, w, 1.0)[:, None]
    if loss.labels.are_free:
        return moved
    held = xp.asarray(~loss.labels.alone)
    middle = w @ Y
    off = xp.where(held, w @ mu - middle, 0.0)
    share = 0.0
    if bool(off.any()):
        reach = loss.labels.longest(middle, -off)
        if not reach > 0.0:
            return None
        share = 1.0 / (1.0 + reach)
    return xp.where(held, (1.0 - share) * (mu - off) + share * middle, moved)
