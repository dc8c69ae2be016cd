"""Fits of `LabelLoss` without pairs and factors: Newton's method for all labels at once.

Each label is then a problem of its own, sum_i w_i l(x_i w + b, y_i) + alpha / 2 |w|^2, smooth (logistic) or
piecewise quadratic (sparsemap, whose rows with 0 <= eta <= 1 have the curvature 1). The labels' systems are
solved together by conjugate gradients, so that a product with X serves all of them, and labels that are done
drop out; small ones by a factor.
"""

import numpy as np
from scipy.optimize import OptimizeResult

from ..._bounded.solver import nqn
from ..._linalg.class_products import class_sums
from ..._linalg.special import expit
from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..._solver.outcome import History, Limits

# Least curvature of a row: the intercept of a label all of whose rows are decided has a system that is not
# singular, and steps near the end are short of Newton's by this part only.
_CURVATURE = 1e-4
# products of a step at most; residual of a system, relative to its gradient, at most
_PRODUCTS, _FORCING = 60, 0.1
# Variables of a label, and entries of X, up to which systems are solved by a factor: there the rounding of
# conjugate gradients, which small alphas make large, is not in the way of steps. Up to more variables they
# are where that costs less than the products of the step before: near the end of a fit whose labels are
# almost separable, few rows have a curvature, and small alphas make for many products.
_DIRECT, _DENSE, _FACTORS = 64, 2**21, 512
# part of the promised decrease that a step must bring, and halvings at most
_ARMIJO, _HALVINGS = 1e-4, 40


def are_apart(loss):
    """Whether labels have nothing to do with each other, and losses have a gradient."""
    return loss.loss == "logistic" or (loss.loss == "sparsemap" and not loss.n_pairs and loss.labels.are_free)


class ApartLabels:
    """Values, gradients and curvature products of chosen labels."""

    def __init__(self, loss):
        self.loss, self.xp, self.p = loss, loss.xp, loss.design.shape[1]
        self.squares = loss.design.squares(loss.weight)
        q, n = loss.shape[0], loss.design.shape[0]
        self.factors = self.xp is np and q <= _FACTORS and n * q <= _DENSE
        self.rows = self.gram = None  # [X, 1], and its products with itself
        self.work = np.inf if q <= _DIRECT else 0.0  # multiplications of the last step's products

    def scores(self, table):
        return self.loss.scores(table)

    def _inner(self, eta, at):
        """What is clipped to [0, 1] for the marginals; of the hinge the proximal term's."""
        if self.loss.loss == "sparsemap":
            return eta
        return (eta + 1.0 - 2.0 * self.loss.Y[:, at]) / self.loss.smoothing + self.loss.centre[:, at]

    def marginals(self, eta, at):
        return expit(eta) if self.loss.loss == "logistic" else self._inner(eta, at).clip(0.0, 1.0)

    def ridge(self, table):
        return 0.5 * self.loss.alpha * (table[: self.p] ** 2).sum(axis=0)

    def values(self, eta, ridge, at):
        """Objectives (k,) of the labels ``at`` at their scores; ridge (k,) is the penalty's part."""
        Y = self.loss.Y[:, at]
        if self.loss.loss == "logistic":
            rows = np.logaddexp(0.0, eta) - eta * Y
        elif self.loss.loss == "sparsemap":
            mu = eta.clip(0.0, 1.0)
            rows = mu * (eta - 0.5 * mu) - Y * (eta - 0.5)
        else:
            mu = self.marginals(eta, at)
            rows = (mu - Y) * eta + abs(mu - Y)
            rows -= 0.5 * self.loss.smoothing * (mu - self.loss.centre[:, at]) ** 2
        return self.loss.weight @ rows + ridge

    def gradient(self, eta, table, at):
        U = (self.marginals(eta, at) - self.loss.Y[:, at]) * self.loss.weight[:, None]
        G = class_sums(self.loss.design, self.xp.ascontiguousarray(U), self.loss.fit_intercept)
        G[: self.p] += self.loss.alpha * table[: self.p]
        return G

    def curvature(self, eta, at):
        if self.loss.loss == "logistic":
            mu = expit(eta)
            own = mu * (1.0 - mu)
        else:
            z = self._inner(eta, at)
            own = ((z >= 0.0) & (z <= 1.0)).astype(np.float64)
            if self.loss.loss == "hinge":
                own /= self.loss.smoothing
        return np.maximum(own, _CURVATURE) * self.loss.weight[:, None]

    def product(self, V, D):
        out = class_sums(
            self.loss.design, self.xp.ascontiguousarray(D * self.scores(V)), self.loss.fit_intercept
        )
        out[: self.p] += self.loss.alpha * V[: self.p]
        return out

    def _newton(self, G, D):
        """The same, to rounding."""
        if self.rows is None:
            self.rows = self.scores(np.eye(len(G)))
            self.gram = (self.rows.T * (_CURVATURE * self.loss.weight)) @ self.rows
        d, floor = np.empty_like(G), _CURVATURE * self.loss.weight
        for j, weight in enumerate(D.T):
            at = np.flatnonzero(weight > floor)
            H = (self.rows[at].T * (weight - floor)[at]) @ self.rows[at] + self.gram
            on = np.arange(len(H))
            H[on[: self.p], on[: self.p]] += self.loss.alpha
            H[on, on] += 1e-14 * np.trace(H)  # columns that are the same, and no penalty
            d[:, j] = np.linalg.solve(H, -G[:, j]) if H.any() else 0.0
        return d

    def direction(self, G, D, enough):
        """Steps (q, k) with residuals of at most enough (k,), by conjugate gradients with a diagonal."""
        xp, k = self.xp, G.shape[1]
        if self.factors:
            curved = np.count_nonzero(self.loss.weight[:, None] * _CURVATURE < D)
            if len(G) ** 2 * (curved + k * len(G) / 3.0) <= self.work:
                return self._newton(G, D)
            if self.work < np.inf:
                self.work = 0.0
        share = D.sum(axis=0)
        M = xp.empty(G.shape)
        M[: self.p] = self.squares[:, None] * share + self.loss.alpha
        M[self.p :] = share
        M = np.maximum(M, 1e-12 * float(M.max()) or 1.0)
        d, r = xp.zeros(G.shape), -G
        p = r / M
        size = (r * p).sum(axis=0)
        open_ = xp.arange(k)
        for _ in range(_PRODUCTS):
            left = np.sqrt((r**2).sum(axis=0)) > enough[open_]
            if not bool(left.any()):
                break
            if float(left.sum()) < 0.7 * len(open_):  # the others are good enough
                open_, size = open_[left], size[left]
                r, p, M, D = r[:, left], p[:, left], M[:, left], D[:, left]
            H = self.product(xp.ascontiguousarray(p), D)
            self.work += 2.0 * len(D) * p.size
            curve = (p * H).sum(axis=0)
            step = xp.where(curve > 0.0, size / xp.where(curve > 0.0, curve, 1.0), 0.0)
            d[:, open_] += step * p
            r = r - step * H
            new = (r * r / M).sum(axis=0)
            p = r / M + xp.where(size > 0.0, new / xp.where(size > 0.0, size, 1.0), 0.0) * p
            size = new
        return d


def minimize_apart(loss, x0, *, tol, max_iter, max_time=None, callback=None, history=False):
    """Minimise a `LabelLoss` whose labels `are_apart`; parameters and result as of `minimize_labels`."""
    limits = Limits(max_iter=max_iter, max_time=np.inf if max_time is None else max_time)
    lines = History(("time", "fun", "optimality"), history)
    with blas_threads(loss.n_threads), np.errstate(over="ignore", invalid="ignore"):
        return _run(loss, x0, tol, limits, callback, lines)


def _run(loss, x0, tol, limits, callback, lines):
    xp, labels = loss.xp, ApartLabels(loss)
    K = loss.shape[1]
    zero = xp.zeros(loss.shape)
    # all scores are 0: no product
    G = labels.gradient(xp.zeros((loss.design.shape[0], K)), zero, xp.arange(K))
    unit = float(abs(G).max()) if G.size else 0.0
    unit = unit or 1.0

    def report(point):
        optimality = float(point.worst.max()) / unit
        lines.add(limits.seconds, float(point.f.sum()), optimality)
        return callback is not None and callback(
            OptimizeResult(
                x=point.table.ravel().copy(), fun=float(point.f.sum()), nit=point.nit, optimality=optimality,
                time=limits.seconds, nnz=int(np.count_nonzero(point.table)),
            )
        )  # fmt: skip

    table = zero if x0 is None else xp.array(x0, dtype=np.float64).reshape(loss.shape)
    point = Point(labels, table, G if x0 is None else None)
    status = point.descend(tol * unit + xp.zeros(K), unit, limits, report)
    gap = np.nan
    if not loss.fit_intercept and loss.alpha > 0.0:
        gap = float((point.G**2).sum()) / (2.0 * loss.alpha)
    return OptimizeResult(
        x=point.table.ravel(), fun=float(point.f.sum()), nit=point.nit, nfev=point.nfev, status=status,
        message=nqn.MESSAGES[status], optimality=(float(point.worst.max()) if K else 0.0) / unit,
        dual_gap=gap, time=limits.seconds, history=lines.columns(),
    )  # fmt: skip


class Point:
    """A table with its scores, objectives and gradients, and the descent from there."""

    def __init__(self, labels, table, G=None):
        self.labels, self.table, self.nit, self.nfev = labels, table, 0, 0
        self.eta = labels.scores(table)
        self.look(G)

    def look(self, G=None):
        """Objectives (K,), gradients (of which G may be known) and their largest entries (K,) here."""
        labels, table = self.labels, self.table
        every = labels.xp.arange(table.shape[1])
        self.f = labels.values(self.eta, labels.ridge(table), every)
        self.G = labels.gradient(self.eta, table, every) if G is None else G
        self.worst = abs(self.G).max(axis=0) if self.G.size else labels.xp.zeros(len(every))
        self.nfev += 1

    def descend(self, limit, unit, limits, report):
        """Newton steps until no entry of a label's gradient is above its limit (K,); a status."""
        xp = self.labels.xp
        stuck = xp.zeros(len(limit), dtype=bool)
        while True:
            at = xp.flatnonzero((self.worst > limit) & ~stuck)
            if not len(at):
                return outcome.NO_PROGRESS if bool((self.worst > limit).any()) else outcome.CONVERGED
            status = limits.reached(self.nit)
            if status is not None:
                return status
            stuck[at] = self._step(at, limit[at], unit)
            self.nit += 1
            if report(self):
                return outcome.STOPPED

    def _step(self, at, limit, unit):
        """One step of the labels ``at``; which of them it did not change."""
        labels, xp, f, worst = self.labels, self.labels.xp, self.f, self.worst
        g, T, e = self.G[:, at], self.table[:, at], self.eta[:, at]
        norm = np.sqrt((g**2).sum(axis=0))
        # fast at the end, and no better than it needs to be
        enough = norm * np.minimum(_FORCING, np.sqrt(worst[at] / unit))
        d = labels.direction(g, labels.curvature(e, at), np.maximum(enough, 0.3 * limit))
        along, slope = labels.scores(xp.ascontiguousarray(d)), (g * d).sum(axis=0)
        t, value, fell = xp.ones(len(at)), f[at], f[at]
        todo = xp.arange(len(at))
        for _ in range(_HALVINGS):
            some = at[todo]
            new = labels.values(
                e[:, todo] + t[todo] * along[:, todo], labels.ridge(T[:, todo] + t[todo] * d[:, todo]), some
            )
            self.nfev += 1
            # to rounding the values of a step that is short enough are the same
            good = new <= f[some] + _ARMIJO * t[todo] * slope[todo] + 1e-15 * abs(f[some])
            value[todo[good]] = new[good]
            todo = todo[~good]
            if not len(todo):
                break
            t[todo] *= 0.5
        t[todo] = 0.0
        self.table[:, at], self.eta[:, at], f[at] = T + t * d, e + t * along, value
        self.G[:, at] = labels.gradient(self.eta[:, at], self.table[:, at], at)
        now, before = abs(self.G[:, at]).max(axis=0), worst[at]
        worst[at] = now
        # rounding: neither the value nor the gradient falls
        return (t == 0.0) | ~((value < fell) | (now < before))
