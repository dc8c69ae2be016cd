"""Graphs of coupled logic, and their problem in rows that no code of the package writes.

Each pair's score belongs to a further variable p with max(0, x + y - 1) <= p <= min(x, y); all else is
linear.
"""

import numpy as np
from scipy.optimize import linprog, nnls

import sparsekit as sk

KINDS = (
    *("xor", "at_most_one", "or", "or_out", "and_out", "xor_out", "imply", "budget", "exactly", "knapsack"),
    "pair",
)
FACTORS = {
    **{"xor": sk.Xor, "at_most_one": sk.AtMostOne, "or": sk.Or, "or_out": sk.OrOut, "and_out": sk.AndOut},
    **{"xor_out": sk.XorOut, "imply": sk.Imply},
}


def holds(kind, literals):
    """Whether an assignment satisfies a factor that has no numbers."""
    others, last, count = literals[:-1], literals[-1], literals.sum()
    return {
        "xor": count == 1,
        "at_most_one": count <= 1,
        "or": count >= 1,
        "or_out": last == others.any(),
        "and_out": last == others.all(),
        "xor_out": last == others.sum(),
        "imply": last or not others.all(),
    }[kind]


def random_factors(rng, truth, m, scale):
    """About m factors that an assignment satisfies: (kind, variables, negated, numbers)."""
    found = []
    for _ in range(m):
        kind, size = str(rng.choice(KINDS)), int(rng.integers(2, 6))
        for _ in range(200):
            index = rng.choice(len(truth), 2 if kind == "pair" else size, replace=False)
            negated = rng.random(len(index)) < 0.3
            literals = truth[index] ^ negated
            count = int(literals.sum())
            if kind in FACTORS:
                if not holds(kind, literals):
                    continue
                numbers = ()
            elif kind == "pair":
                numbers = (rng.normal() * scale,)
            elif kind == "knapsack":
                costs = rng.uniform(0.1, 2.0, size)
                numbers = (costs, costs @ literals + rng.uniform(0.0, 0.5))
            else:
                numbers = (count if kind == "exactly" or rng.random() < 0.3 else max(count, 1),)
            found.append((kind, index, negated, numbers))
            break
    return found


def random_graph(seed, n, m, scale=1.0, forbidden=0.0):
    """A feasible graph, its variables, scores and factors; a share of what may be off is forbidden."""
    rng = np.random.default_rng(seed)
    truth, scores = rng.random(n) < 0.5, rng.normal(size=n) * scale
    factors = random_factors(rng, truth, m, scale)
    if forbidden:
        scores[~truth & (rng.random(n) < forbidden)] = -np.inf
    return *build(scores, factors), scores, factors


def build(scores, factors):
    graph = sk.FactorGraph()
    u = graph.variable(scores)
    for kind, index, negated, numbers in factors:
        if kind in FACTORS:
            graph.add(FACTORS[kind](u[index], negated=negated))
        elif kind == "pair":
            graph.add(sk.Pair(u[index], *numbers, negated=negated))
        elif kind == "knapsack":
            graph.add(sk.Knapsack(u[index], *numbers, negated=negated))
        else:
            graph.add(sk.Budget(u[index], *numbers, exactly=kind == "exactly", negated=negated))
    return graph, u


class Rows:
    """G z <= h and A z = b of z = (x, p), bounds in G; linear @ z is maximised, or less |x|^2 / 2."""

    def __init__(self, scores, factors):
        n = len(scores)
        self.n, size = n, n + sum(f[0] == "pair" for f in factors)
        self.size, self.linear, self.found = size, np.r_[scores, np.zeros(size - n)], {False: [], True: []}
        entry = n
        for kind, index, negated, numbers in factors:
            # literals as rows of z and constants
            part, constant = np.zeros((len(index), size)), negated.astype(float)
            part[np.arange(len(index)), index] = np.where(negated, -1.0, 1.0)
            if kind == "pair":
                p = np.eye(size)[entry]
                self.linear[entry] = numbers[0]
                entry += 1
                for k in range(2):
                    self._least(part[k] - p, constant[k], 0.0)
                self._least(p - part.sum(axis=0), -constant.sum(), -1.0)
                self._least(p, 0.0, 0.0)
            else:
                self._factor(kind, part, constant, numbers)
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

    def _factor(self, kind, part, constant, numbers):
        total, shift, (last, end) = part.sum(axis=0), constant.sum(), (part[-1], constant[-1])
        others, rest = total - last, shift - end
        if kind in ("xor", "exactly"):
            self._least(total, shift, numbers[0] if numbers else 1.0, equal=True)
        elif kind in ("at_most_one", "budget"):
            self._least(-total, -shift, -(numbers[0] if numbers else 1.0))
        elif kind == "knapsack":
            self._least(-numbers[0] @ part, -numbers[0] @ constant, -numbers[1])
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
