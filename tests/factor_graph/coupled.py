"""Graphs of coupled logic, and their problem in rows that no code of the package writes.

Each pair's score belongs to a further variable p with max(0, x + y - 1) <= p <= min(x, y); all else is
linear.
"""

import numpy as np
import reference_lp_sparsemap as ref
from reference_factor_graph import build
from scipy.optimize import linprog, nnls

KINDS = (*ref.LOGICAL, "budget", "exactly", "knapsack", "pair")


def random_factors(rng, truth, m, scale):
    """About m factors of logic that an assignment satisfies, as the reference describes them."""
    found = []
    for _ in range(m):
        kind, size = str(rng.choice(KINDS)), int(rng.integers(2, 6))
        for _ in range(200):
            index = rng.choice(len(truth), 2 if kind == "pair" else size, replace=False)
            negated = rng.random(len(index)) < 0.3
            literals = truth[index] ^ negated
            count = int(literals.sum())
            params, scores = {}, ()
            if kind == "pair":
                scores = [rng.normal() * scale]
            elif kind == "knapsack":
                costs = rng.uniform(0.1, 2.0, size)
                params = {"costs": costs, "budget": costs @ literals + rng.uniform(0.0, 0.5)}
            elif kind == "exactly":
                params = {"budget": count, "exactly": True}
            elif kind == "budget":
                params = {"budget": count if rng.random() < 0.3 else max(count, 1), "exactly": False}
            described = "budget" if kind == "exactly" else kind
            factor = ref.make_factor(described, index, scores, negated, **params)
            if (truth[index] == factor.M.T).all(axis=1).any():
                found.append(factor)
                break
    return found


def random_graph(seed, n, m, scale=1.0, forbidden=0.0):
    """A feasible graph, its variables, scores and factors; a share of what may be off is forbidden."""
    rng = np.random.default_rng(seed)
    truth, scores = rng.random(n) < 0.5, rng.normal(size=n) * scale
    factors = random_factors(rng, truth, m, scale)
    if forbidden:
        scores[~truth & (rng.random(n) < forbidden)] = -np.inf
    return *build(scores, factors)[:2], scores, factors


class Rows:
    """G z <= h and A z = b of z = (x, p), bounds in G; linear @ z is maximised, or less |x|^2 / 2."""

    def __init__(self, scores, factors):
        n = len(scores)
        self.n, size = n, n + sum(f.kind == "pair" for f in factors)
        self.size, self.linear, self.found = size, np.r_[scores, np.zeros(size - n)], {False: [], True: []}
        entry = n
        for f in factors:
            # literals as rows of z and constants
            part, constant = np.zeros((len(f.variables), size)), f.negated.astype(float)
            part[np.arange(len(f.variables)), f.variables] = np.where(f.negated, -1.0, 1.0)
            if f.kind == "pair":
                p = np.eye(size)[entry]
                self.linear[entry] = f.scores[0]
                entry += 1
                for k in range(2):
                    self._least(part[k] - p, constant[k], 0.0)
                self._least(p - part.sum(axis=0), -constant.sum(), -1.0)
                self._least(p, 0.0, 0.0)
            else:
                self._factor(f.kind, part, constant, **f.params)
        forbidden = scores == -np.inf
        self.linear[:n][forbidden] = 0.0
        for k in range(n):
            self._least(np.eye(size)[k], 0.0, 0.0)
            self._least(-np.eye(size)[k], 0.0 if forbidden[k] else 1.0, 0.0)
        self.G, self.h = self._arrays(False)
        self.A, self.b = self._arrays(True)

    def _least(self, row, constant, least, equal=False):
        """row @ z + constant >= least."""
        self.found[equal].append((-row, constant - least))

    def _arrays(self, equal):
        found = self.found[equal]
        return np.reshape([row for row, _ in found], (-1, self.size)), np.array([right for _, right in found])

    def _factor(self, kind, part, constant, budget=1.0, exactly=False, costs=None):
        total, shift, (last, end) = part.sum(axis=0), constant.sum(), (part[-1], constant[-1])
        others, rest = total - last, shift - end
        if kind == "xor" or exactly:
            self._least(total, shift, budget, equal=True)
        elif kind in ("at_most_one", "budget"):
            self._least(-total, -shift, -budget)
        elif kind == "knapsack":
            self._least(-costs @ part, -costs @ constant, -budget)
        elif kind == "or":
            self._least(total, shift, 1.0)
        elif kind == "imply":
            self._least(last - others, end - rest, 1.0 - (len(part) - 1))
        elif kind == "xor_out":
            self._least(last - others, end - rest, 0.0, equal=True)
        else:
            sign = 1.0 if kind == "or_out" else -1.0
            for row, one in zip(part[:-1], constant[:-1]):
                self._least(sign * (last - row), sign * (end - one), 0.0)
            self._least(sign * (others - last), sign * (rest - end), 0.0 if sign > 0 else -(len(part) - 2.0))

    def complete(self, x):
        """z with the best p of marginals x."""
        z = np.r_[x, np.zeros(self.size - self.n)]
        for p in range(self.n, self.size):
            here = self.G[:, p] != 0
            over = self.h[here] - self.G[here] @ z
            above, below = self.G[here, p] > 0, self.G[here, p] < 0
            z[p] = over[above].min() if self.linear[p] > 0 else (-over[below]).max()
        return z

    def violation(self, z):
        return max(np.max(self.G @ z - self.h), np.abs(self.A @ z - self.b).max(initial=0.0))

    def stationarity(self, x, near=1e-8):
        """How far the gradient at x is from the cone of the rows that hold, which bounds the error."""
        z = self.complete(x)
        assert self.violation(z) < 1e-9
        slope = self.linear - np.r_[x, np.zeros(self.size - self.n)]
        active = self.G[self.G @ z > self.h - near]
        size = np.abs(slope).max()
        return nnls(np.vstack([active, self.A, -self.A]).T, slope / size, maxiter=10**5)[1] * size

    def best(self):
        """The value of the linear program, by HiGHS on these rows."""
        found = linprog(-self.linear, self.G, self.h, self.A, self.b, bounds=(None, None), method="highs")
        assert found.status == 0
        return -found.fun
