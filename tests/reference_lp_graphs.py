"""Random graphs of small factors, as `reference_lp_sparsemap` describes them."""

import numpy as np
from reference_lp_sparsemap import BINARY, KINDS, is_feasible, make_factor


def random_factor(rng, kind, n_variables, draw):
    """One small factor over distinct variables out of n_variables, or None where they are too few."""
    params, negated, scored = {}, None, 0
    d = int(rng.integers(2, 6))
    if kind == "budget":
        params = {"budget": int(rng.integers(0, d + 1)), "exactly": bool(rng.integers(2))}
    elif kind == "knapsack":
        costs = rng.integers(0, 4, d).astype(float) if rng.integers(2) else rng.uniform(0.1, 2, d)
        params = {"costs": costs, "budget": float(rng.uniform(0, costs.sum()))}
    elif kind == "pair":
        d, scored = 2, 1
    elif kind == "dense":
        sizes = [int(size) for size in rng.integers(2, 4, rng.integers(1, 4))]
        params, d, scored = {"sizes": sizes}, sum(sizes), int(np.prod(sizes))
    elif kind == "sequence":
        T, K = (int(size) for size in rng.integers(1, 4, 2))
        params, d, scored = {"T": T, "K": K}, T * K, (T - 1) * K * K
    elif kind == "dep_tree":
        n = int(rng.integers(1, 4))
        params = {"n": n, "projective": bool(rng.integers(2)), "single_root": bool(rng.integers(2))}
        d = n * n
    elif kind == "matching":
        m, n = (int(size) for size in rng.integers(1, 4, 2))
        params, d = {"m": m, "n": n}, m * n
    if d > n_variables:
        return None
    if kind in BINARY and rng.integers(2):
        negated = rng.integers(2, size=d).astype(bool)
    variables = rng.permutation(n_variables)[:d]
    return make_factor(kind, variables, draw(scored), negated, **params)


def random_graph(rng, n_variables, n_factors, kinds=KINDS, feasible=False, integer=False, scale=1.0):
    """eta and a list of factors of random kinds. feasible=True: no factor is kept that makes the graph
    infeasible (maybe fewer than n_factors are found then). integer=True: multiples of scale/2, hence ties.
    """

    def draw(size):
        return rng.integers(-3, 4, size) * scale / 2 if integer else rng.normal(size=size) * scale

    eta, factors = draw(n_variables), []
    for _ in range(50 * n_factors):
        f = random_factor(rng, str(rng.choice(kinds)), n_variables, draw)
        if f is not None and (not feasible or is_feasible(n_variables, [*factors, f])):
            factors.append(f)
        if len(factors) == n_factors:
            break
    return eta, factors
