"""From the reference's descriptions of factors (reference_lp_sparsemap) to sparsekit's factors, and
Algorithm 1 in plain NumPy."""

from itertools import pairwise

import numpy as np
import reference_lp_graphs
import reference_lp_sparsemap as ref

import sparsekit as sk

LOGICAL = {
    "xor": sk.Xor,
    "at_most_one": sk.AtMostOne,
    "or": sk.Or,
    "or_out": sk.OrOut,
    "and_out": sk.AndOut,
    "xor_out": sk.XorOut,
    "imply": sk.Imply,
}

# kind, number of variables, number of additional scores, parameters: one of each, and the corners of some
EXAMPLES = {
    **{kind: (kind, 4, 0, {}) for kind in LOGICAL},
    "budget": ("budget", 5, 0, {"budget": 2, "exactly": False}),
    "budget-exactly": ("budget", 5, 0, {"budget": 3, "exactly": True}),
    "budget-none": ("budget", 3, 0, {"budget": 0, "exactly": False}),
    "budget-all": ("budget", 3, 0, {"budget": 3, "exactly": True}),
    "knapsack": ("knapsack", 4, 0, {"costs": [0.5, 1.25, 0.0, 2.0], "budget": 1.5}),
    "pair": ("pair", 2, 1, {}),
    "dense-1": ("dense", 3, 3, {"sizes": [3]}),
    "dense-2": ("dense", 5, 6, {"sizes": [2, 3]}),
    "dense-3": ("dense", 7, 12, {"sizes": [2, 3, 2]}),
    "sequence": ("sequence", 9, 18, {"T": 3, "K": 3}),
    "sequence-1": ("sequence", 3, 0, {"T": 1, "K": 3}),
    "tree": ("dep_tree", 9, 0, {"n": 3, "projective": False, "single_root": False}),
    "tree-single": ("dep_tree", 16, 0, {"n": 4, "projective": False, "single_root": True}),
    "projective": ("dep_tree", 16, 0, {"n": 4, "projective": True, "single_root": False}),
    "projective-single": ("dep_tree", 9, 0, {"n": 3, "projective": True, "single_root": True}),
    "matching": ("matching", 6, 0, {"m": 2, "n": 3}),
    "matching-tall": ("matching", 6, 0, {"m": 3, "n": 2}),
    "matching-square": ("matching", 9, 0, {"m": 3, "n": 3}),
}


class Enumerated(sk.Factor):
    """A user's factor that knows its structures, as columns of M and N."""

    def __init__(self, variables, M, N, scores=None):
        super().__init__(variables, scores)
        self.M, self.N = M, N

    def maximize(self, scores, additional_scores):
        best = np.argmax(self.M.T @ scores.ravel() + self.N.T @ additional_scores.ravel())
        m, n = self.M[:, best].reshape(scores.shape), self.N[:, best].reshape(additional_scores.shape)
        return (m, n) if n.size else m


def example(name, rng, scale=1.0, integer=False, negate=True):
    """Scores and one factor, over its variables in random order among one more than it needs."""

    def draw(size):
        return rng.integers(-3, 4, size) * scale / 2 if integer else rng.normal(size=size) * scale

    kind, d, scored, params = EXAMPLES[name]
    negated = rng.integers(2, size=d).astype(bool) if negate and kind in ref.BINARY else None
    factor = ref.make_factor(kind, rng.permutation(d + 1)[:d], draw(scored), negated, **params)
    return draw(d + 1), factor


def random_graph(seed, n_variables=9, most=6, **options):
    """The reference's random graphs: feasible ones, of different scales, each third one with ties."""
    rng = np.random.default_rng(seed)
    given = {"feasible": True, "integer": seed % 3 == 0, "scale": float(rng.choice([0.3, 1, 5]))}
    n, n_factors = int(rng.integers(4, n_variables)), int(rng.integers(1, most))
    return reference_lp_graphs.random_graph(rng, n, n_factors, **(given | options))


def as_generic(view, f):
    return Enumerated(view, f.M, f.N, f.scores if len(f.scores) else None)


def as_factor(view, f):
    """sparsekit's factor for a described one; view: its variables in flat order."""
    kind, p = f.kind, f.params
    if kind in LOGICAL:
        return LOGICAL[kind](view, negated=f.negated)
    if kind == "budget":
        return sk.Budget(view, p["budget"], exactly=p["exactly"], negated=f.negated)
    if kind == "knapsack":
        return sk.Knapsack(view, p["costs"], p["budget"], negated=f.negated)
    if kind == "pair":
        return sk.Pair(view, f.scores[0], negated=f.negated)
    if kind == "dense":
        ends = np.cumsum([0, *p["sizes"]])
        return sk.Dense([view[a:b] for a, b in pairwise(ends)], f.scores.reshape(p["sizes"]))
    if kind == "sequence":
        T, K = p["T"], p["K"]
        return sk.Sequence(view.reshape(T, K), f.scores.reshape(T - 1, K, K))
    if kind == "dep_tree":
        n = p["n"]
        return sk.DepTree(view.reshape(n, n), projective=p["projective"], single_root=p["single_root"])
    return sk.Matching(view.reshape(p["m"], p["n"]))


def build(eta, factors, generic=False):
    """Graph, view of all variables, and the factors; generic: True, or a flag for every factor."""
    graph = sk.FactorGraph()
    u = graph.variable(np.asarray(eta))
    flags = np.broadcast_to(generic, len(factors))
    made = [(as_generic if flag else as_factor)(u[f.variables], f) for f, flag in zip(factors, flags)]
    for factor in made:
        graph.add(factor)
    return graph, u, made


def forbid(eta, factors):
    """The same problem without -inf: structures that have what is forbidden are left out."""
    eta, found = np.array(eta, dtype=float), []
    for f in factors:
        low = np.isneginf(f.scores)
        keep = ~(f.N[low] > 0).any(axis=0)
        scores = np.where(low, 0.0, f.scores)
        found.append(ref.Factor(f.kind, f.params, f.negated, f.variables, f.M[:, keep], f.N[:, keep], scores))
    for j in np.flatnonzero(np.isneginf(eta)):
        found.append(ref.make_factor("budget", [j], budget=0, exactly=True))
        eta[j] = 0.0
    return eta, found


def algorithm_1(eta, factors, gamma, mu, iterations):
    """Algorithm 1 as printed, in degree-corrected coordinates, with +lambda in line 6 (NOTES.md).

    Yields mu (n,) and each factor's x after every iteration.
    """
    degree = np.zeros(len(eta))
    for f in factors:
        degree[f.variables] += 1
    delta = [np.sqrt(degree[f.variables]) for f in factors]
    multipliers, mu = [np.zeros(len(f.variables)) for f in factors], np.array(mu, dtype=float)
    for _ in range(iterations):
        corrected, total = [], np.zeros(len(eta))
        for f, d, l in zip(factors, delta, multipliers):
            j = f.variables
            scores = (eta[j] / d + l + gamma * mu[j] / d) / (gamma + 1)
            x, _ = ref.local_exact(d * scores, 1 / d**2, f.scores / (gamma + 1), f.M, f.N)
            corrected.append(x / d)
            total[j] += x / d / d
        mu = np.where(degree > 0, total, np.clip(eta, 0, 1))
        for f, d, l, x in zip(factors, delta, multipliers, corrected):
            l += gamma * (mu[f.variables] / d - x)
        yield mu, [x * d for x, d in zip(corrected, delta)]
