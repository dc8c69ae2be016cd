"""Losses of label sets with scores that are linear in the rows, and scores of pairs of labels.

The loss is a *mean* over the rows, sum_i w_i l(eta_i, s; y_i) with sum_i w_i = 1. The scores are eta = X W +
b, and each pair has one score s for all rows. The variables are one vector: the table (p + 1, K) of W and b,
or (p, K), then s+ and s- >= 0 of the pairs. s = s+ - s-. s+ and s- have separate factors. The loss is then as
smooth in them as in the scores. It is at least that of s, so with a penalty one of each two ends at 0.
"""

from dataclasses import asdict, replace
from functools import cached_property

import numpy as np

from ..._arrays import namespace, to_host
from ..._cython.factor_graph._label_graph import LabelGraph
from ..._linalg import class_products as _class_model
from ..._linalg.class_design import design_of
from ..._linalg.matrix import BUFFER
from ..._linalg.sparse_design import CSCDesign
from ..._linalg.threads import blas_threads
from ..._solver import outcome
from ..factors.factors import Relation
from ..plan import LINEAR_TOL
from ..solver.layout import GraphOptions, Layout
from ..solver.polytope import polytope_of
from . import device_labels


class Labels:
    """Pairs of labels and factors over labels: inference for many rows of scores.

    Parameters
    ----------
    n_labels : int
        K.
    pairs : ndarray of int of shape (P, 2)
        Pairs of different labels, none twice.
    factors : list of Factor
        Logic factors over a graph's K first variables.
    """

    def __init__(self, n_labels, pairs, factors=()):
        self.n_labels, self.pairs = n_labels, np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        P = len(self.pairs)
        ends = self.pairs.T.ravel()
        order = np.argsort(ends, kind="stable")
        linear = [factor for factor in factors if factor._kind == "linear"]
        orout = [factor for factor in factors if factor._kind == "orout"]
        rows = [(factor, *row) for factor in linear for row in zip(factor.index, *factor._constraint())]
        outs = [(factor, *row, None) for factor in orout for row in zip(factor.index, factor.negated)]
        self._checks = rows + outs
        count = np.bincount(ends, minlength=n_labels)

        def padded(values):
            return np.append(values, 0).astype(np.int32)

        self.are_free = not self._checks  # of factors
        self.factors = [*linear, *orout]
        self._layout = Layout(n_labels, self.factors)
        var, arrays = self._layout.var, self._layout.arrays
        self.alone = np.bincount(var, minlength=n_labels) == 0  # labels in no factor
        relation = np.repeat(arrays["relation"][:-1], np.diff(arrays["linear"]))
        push = arrays["a"][:-1] * np.append(relation, np.zeros(self._layout.n_orout_slots))
        # decreasing a term violates no upper limit of its sum, increasing it no lower limit
        fall, rise = np.ones(n_labels, dtype=bool), np.ones(n_labels, dtype=bool)
        fall[var[~(push < 0)]] = rise[var[~(push > 0)]] = False
        self._pairs = {
            "start": np.concatenate([[0], np.cumsum(count)]).astype(np.intp),
            "other": padded(self.pairs[:, ::-1].T.ravel()[order]),
            "pair": padded(np.tile(np.arange(P), 2)[order]),
        }
        flags = {"alone": self.alone, "may_fall": fall, "may_rise": rise}
        self._graph = LabelGraph(
            self._layout.plan, P, self._pairs | {name: padded(v) for name, v in flags.items()}
        )

    def violated(self, Y):
        """(row, factor) of a row of an indicator that a factor forbids, or None."""
        Y = to_host(Y) if self._checks else Y
        for factor, wrong in self._forbids(Y):
            if wrong.any():
                return int(wrong.argmax()), factor
        return None

    def breaking(self, Y):
        """Which rows of an indicator in main memory a factor forbids, (n,)."""
        return np.logical_or.reduce([np.zeros(len(Y), dtype=bool), *(wrong for _, wrong in self._forbids(Y))])

    def _forbids(self, Y):
        for factor, index, c, limit in self._checks:
            if limit is None:
                x = Y[:, index] != c
                wrong = x[:, -1] != x[:, :-1].any(axis=1)
            else:
                excess = Y[:, index] @ c - limit
                wrong = excess > 1e-9 if factor._relation == Relation.AT_MOST else excess < -1e-9
                if factor._relation == Relation.EQUAL:
                    wrong = np.abs(excess) > 1e-9
            yield factor, wrong

    @cached_property
    def polytope(self):
        """Rows of the relaxed factors."""
        none = np.zeros(0)
        return polytope_of(self._layout, none, np.zeros(self.n_labels, dtype=bool), none.astype(bool))

    def longest(self, start, step):
        """Largest t, at most 1e300, at which start + t step (K,) obeys the relaxed factors; start does."""
        start, step, p = to_host(start), to_host(step), self.polytope
        slack, rise, m = p.right - p.rows @ start, p.rows @ step, p.n_upper
        if (abs(rise[m:]) > 1e-7 * abs(p.rows[m:]).max(axis=1).toarray().ravel()).any():
            return 0.0
        slack, rise = np.concatenate([start, 1.0 - start, slack[:m]]), np.concatenate([-step, step, rise[:m]])
        limits = slack[rise > 0.0] / rise[rise > 0.0]
        return float(limits.min(initial=1e300).clip(0.0, 1e300))

    def marginals(self, eta, plus, minus, options, n_threads=1):
        """Marginals (n, K) of scores eta (n, K) and of pair scores plus - minus, and the rows' statuses."""
        if namespace(eta=eta) is not np:
            mu, statuses = device_labels.marginals(self.pairs, self.factors, eta, plus, minus, options)
            _refuse_infeasible(statuses)
            return mu, statuses
        mu = np.zeros(eta.shape)
        # most pairs have no score and couple nothing
        live = np.append(((plus > 0) | (minus > 0))[self._pairs["pair"][:-1]], False)
        before = np.concatenate([[0], np.cumsum(live)])
        start = before[self._pairs["start"]].astype(np.intp)
        other, pair = (np.append(self._pairs[name][live], 0).astype(np.int32) for name in ("other", "pair"))
        gain, loss = (
            np.bincount(self.pairs.T.ravel(), np.tile(side, 2), minlength=self.n_labels)
            for side in (plus, minus)
        )
        statuses, _ = self._graph.marginals(
            np.ascontiguousarray(eta, dtype=np.float64), start, other, pair, np.append(plus, 0.0),
            np.append(minus, 0.0), np.append(gain, 0.0), np.append(loss, 0.0), asdict(options), mu, n_threads,
        )  # fmt: skip
        _refuse_infeasible(statuses)
        return mu, statuses

    def pair_blocks(self, which, mu):
        """Pairs in blocks: numbers, labels (2, m), where mu (n, K) is, and the marginals of these."""
        step = max(1, BUFFER // max(1, len(mu)))
        for at in range(0, len(which), step):
            e = np.asarray(which[at : at + step], like=mu)
            first, second = ends = np.asarray(self.pairs[which[at : at + step]].T, like=mu)
            yield e, ends, mu[:, first], mu[:, second]

    def pair_sums(self, mu, weight):
        """Sums over the rows, (P,) each, of weight times the most and the least that both can be on."""
        high, low = (np.zeros(len(self.pairs) + 1, like=mu) for _ in range(2))
        if namespace(mu=mu) is not np:
            for e, _, a, b in self.pair_blocks(np.arange(len(self.pairs)), mu):
                high[e], low[e] = weight @ np.minimum(a, b), weight @ np.maximum(a + b - 1.0, 0.0)
            return high[:-1], low[:-1]
        # signals are handled between calls
        step = max(1, BUFFER // len(high))
        for at in range(0, len(mu), step):
            self._graph.pair_sums(mu[at : at + step], weight[at : at + step], high, low)
        return high[:-1], low[:-1]


def _refuse_infeasible(statuses):
    if (statuses == outcome.INFEASIBLE).any():
        raise ValueError("factors: no set of labels satisfies all of them")


class LabelLoss:
    """Mean loss of label sets, and its gradient unless it is the logistic one.

    Parameters
    ----------
    loss : {"sparsemap", "hinge", "logistic"}
        Eq. (16); the structured hinge loss with a cost of 1 a label and LP-MAP; independent logistic losses,
        which have no pairs and are minimised elsewhere (`minimize_independent`).
    labels : Labels
    X : ndarray or sparse matrix of shape (n, p)
        A CuPy array or CSR matrix keeps the loss on its GPU, and Y and weight must be there as well.
    Y : ndarray of shape (n, K)
        Indicator.
    weight : ndarray of shape (n,)
        Weights of the rows, of sum 1.
    fit_intercept : bool
    alpha, pair_alpha : float
        Strengths of the L2 penalties alpha / 2 ||W||^2 and pair_alpha / 2 (||s+||^2 + ||s-||^2). b is free.
    n_threads : int
    """

    def __init__(
        self, loss, labels, X, Y, weight, *, fit_intercept=True, alpha=0.0, pair_alpha=0.0, n_threads=1
    ):
        self.loss, self.labels = loss, labels
        self.xp, self.n_threads = namespace(X=X, Y=Y, weight=weight), n_threads
        design = design_of(X, n_threads)
        if isinstance(design, CSCDesign):
            design = design.select(np.arange(design.shape[1]))
        self.design = design
        self.Y, self.weight = self.xp.ascontiguousarray(Y, dtype=np.float64), weight
        self.fit_intercept, self.alpha, self.pair_alpha = fit_intercept, alpha, pair_alpha
        self.shape = (design.shape[1] + fit_intercept, labels.n_labels)
        self.n_pairs = len(labels.pairs)
        self.n_variables = self.shape[0] * self.shape[1] + 2 * self.n_pairs
        self.options = GraphOptions(tol_primal=1e-8, tol_dual=1e-8)
        self.together = self._count_together(*labels.pairs.T) if self.n_pairs else self.xp.zeros(0)
        self.unsolved = 0
        self.mu = None  # marginals of the last value and gradient
        # hinge: a term -smoothing / 2 ||mu - centre||^2 in its inner maximum
        self.smoothing, self.centre = 0.0, 0.0

    def _count_together(self, first, second):
        """Weights of the rows that have both labels of a pair, (P,)."""
        with blas_threads(self.n_threads):
            table = (self.Y * self.weight[:, None]).T @ self.Y
        return table[self.xp.asarray(first), self.xp.asarray(second)]

    def unpack(self, x):
        """Table, s+ and s- of the variables."""
        size = self.shape[0] * self.shape[1]
        return x[:size].reshape(self.shape), x[size : size + self.n_pairs], x[size + self.n_pairs :]

    def scores(self, table):
        """eta = X W + b, (n, K)."""
        p = self.design.shape[1]
        eta = _class_model.matmat(self.design, self.xp.ascontiguousarray(table[:p]))
        return eta + table[p] if self.fit_intercept else eta

    def bounds(self):
        """Lower and upper bounds of the variables."""
        lower = self.xp.full(self.n_variables, -np.inf)
        lower[self.n_variables - 2 * self.n_pairs :] = 0.0
        return lower, self.xp.full(self.n_variables, np.inf)

    def value_and_gradient(self, x):
        """Objective and its gradient (n_variables,)."""
        table, plus, minus = self.unpack(x)
        p = self.design.shape[1]
        with blas_threads(self.n_threads):
            value, residual, to_plus, to_minus = self._mean(self.scores(table), plus, minus)
            residual *= self.weight[:, None]
            pulled = _class_model.class_sums(self.design, residual, self.fit_intercept)
        pulled[:p] += self.alpha * table[:p]
        value += 0.5 * self.alpha * np.vdot(table[:p], table[:p])
        value += 0.5 * self.pair_alpha * (plus @ plus + minus @ minus)
        return float(value), np.concatenate(
            [pulled.ravel(), to_plus + self.pair_alpha * plus, to_minus + self.pair_alpha * minus]
        )

    def inner_marginals(self, eta, plus, minus):
        """Marginals (n, K) at which the loss of rows with scores eta is the largest of its inner problem."""
        smooth, unit = self.loss == "sparsemap", self.smoothing or 1.0
        inner = eta if smooth else (eta + 1.0 - 2.0 * self.Y) / unit
        if self.smoothing:
            inner += self.centre
        options = self.options
        if not smooth and not self.smoothing:
            options = replace(options, quadratic=False, tol_primal=LINEAR_TOL, tol_dual=LINEAR_TOL)
        mu, statuses = self.labels.marginals(inner, plus / unit, minus / unit, options, self.n_threads)
        self.unsolved = int(np.count_nonzero(statuses))
        return mu

    def hinge_rows(self, eta, plus, minus, mu):
        """Hinge losses (n,) of rows with scores eta, were mu (n, K) their worst marginals."""
        Y = self.Y
        rows = (mu * (eta + 1.0 - 2.0 * Y) + Y - Y * eta).sum(axis=1)
        live = np.flatnonzero(to_host((plus > 0.0) | (minus > 0.0)))
        for e, (first, second), a, b in self.labels.pair_blocks(live, mu):
            rows += np.minimum(a, b) @ plus[e] - (a + b - 1.0).clip(0.0, None) @ minus[e]
            rows -= (Y[:, first] * Y[:, second]) @ (plus[e] - minus[e])
        return rows

    def _mean(self, eta, plus, minus):
        """The mean loss, its derivatives in the scores, by row, and those in s+ and s-."""
        smooth = self.loss == "sparsemap"
        cost = 0.0 if smooth else 1.0 - 2.0 * self.Y
        mu = self.mu = self.inner_marginals(eta, plus, minus)
        high, low = self.labels.pair_sums(mu, self.weight)
        inner = (mu * (eta + cost) - self.Y * eta).sum(axis=1)
        inner += 0.5 * (self.Y - mu**2).sum(axis=1) if smooth else self.Y.sum(axis=1)
        if not smooth:
            inner -= 0.5 * self.smoothing * ((mu - self.centre) ** 2).sum(axis=1)
        value = self.weight @ inner + plus @ (high - self.together) - minus @ (low - self.together)
        return value, mu - self.Y, high - self.together, self.together - low
