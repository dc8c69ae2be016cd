#!/usr/bin/env python
"""Coupled logic and structures: share that `solve` and `map` solve, and their times, against HiGHS alone.

    python benchmarks/coupled_logic.py
    python benchmarks/coupled_logic.py --kinds "logic 400 / 600" --graphs 5

Random graphs of all closed-form factors. One assignment satisfies them, so all have a solution. "logic 200 /
250" has 200 variables in 250 factors; "Sequence 20 x 5 / 60" has a sequence and 60 factors over its
variables. HiGHS solves the linear program of `map`. It gets the rows from the package's own arrays
(`polytope_of`) and runs with its own tolerances; its time, like ours, begins with the compiled graph.
Processor time of one thread (set OMP_NUM_THREADS=1), each graph by one and the other in turn. A `map` counts
as solved if its status is 0 and its value is HiGHS's to 1e-7 of all scores.
"""

from __future__ import annotations

import argparse
import time

import _common
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import sparsekit as sk
from sparsekit._factor_graph.factors.structure_rows import own_indices
from sparsekit._factor_graph.solver.polytope import polytope_of

LOGIC = ("Xor", "AtMostOne", "Or", "OrOut", "AndOut", "XorOut", "Imply")
SUMS = ("Budget", "Exactly", "Knapsack")


def holds(kind, literals):
    """Whether an assignment satisfies a logic factor."""
    others, last, count = literals[:-1], literals[-1], literals.sum()
    return {
        "Xor": count == 1,
        "AtMostOne": count <= 1,
        "Or": count >= 1,
        "OrOut": last == others.any(),
        "AndOut": last == others.all(),
        "XorOut": last == others.sum(),
        "Imply": last or not others.all(),
    }[kind]


def random_graph(rng, n, m, kinds, score, forbidden=0.0):
    """n variables in m factors, each over 2 to 5 of them; a share of those that are off is forbidden."""
    truth, scores = rng.random(n) < 0.5, score(n)
    scores[~truth & (rng.random(n) < forbidden)] = -np.inf
    graph = sk.FactorGraph()
    couple(rng, graph, graph.variable(scores), truth, m, kinds, score)
    return graph


def couple(rng, graph, u, truth, m, kinds, score):
    """m factors over 2 to 5 of the variables u, which `truth` satisfies."""
    n, made = len(truth), 0
    while made < m:
        kind, size = str(rng.choice(kinds)), int(rng.integers(2, 6))
        index = rng.choice(n, 2 if kind == "Pair" else size, replace=False)
        negated = rng.random(len(index)) < 0.3
        literals, view = truth[index] ^ negated, u[index]
        if kind in LOGIC:
            if not holds(kind, literals):
                continue
            graph.add(getattr(sk, kind)(view, negated=negated))
        elif kind == "Pair":
            graph.add(sk.Pair(view, score(1)[0], negated=negated))
        elif kind == "Knapsack":
            costs = rng.uniform(0.1, 2.0, size)
            graph.add(sk.Knapsack(view, costs, costs @ literals + rng.uniform(0.0, 0.5), negated=negated))
        else:
            count = int(literals.sum())
            exactly = kind == "Exactly"
            graph.add(sk.Budget(view, count if exactly else max(count, 1), exactly=exactly, negated=negated))
        made += 1


def normal(scale):
    """Scores by size, normal times the scale; a quarter each of two scales where there are two."""
    return lambda rng: lambda size: rng.standard_normal(size) * rng.choice(np.atleast_1d(scale), size)


def logic(n, m, scale=1.0, kinds=(*LOGIC, *SUMS, "Pair"), forbidden=0.0):
    return lambda rng: random_graph(rng, n, m, kinds, normal(scale)(rng), forbidden)


def coupled(structure, m, scale=1.0, kinds=(*LOGIC, *SUMS, "Pair")):
    """Variables and factors of a structure, then m factors over its variables."""

    def build(rng):
        score, graph = normal(scale)(rng), sk.FactorGraph()
        truth, factors = structure(rng, score)
        u = graph.variable(score(truth.size).reshape(truth.shape))
        for factor in factors(u):
            graph.add(factor)
        couple(rng, graph, graph.all_variables(), truth.ravel(), m, kinds, score)
        return graph

    return build


def sequences(T, K, several=1):
    def structure(rng, score):
        truth = np.eye(K, dtype=bool)[rng.integers(K, size=several * T)]
        parts = [slice(k * T, (k + 1) * T) for k in range(several)]
        return truth, lambda u: [sk.Sequence(u[p], score((T - 1) * K * K).reshape(-1, K, K)) for p in parts]

    return structure


def matching(m, n):
    def structure(rng, score):
        truth, few = np.zeros((m, n), dtype=bool), min(m, n)
        truth[rng.permutation(m)[:few], rng.permutation(n)[:few]] = True
        return truth, lambda u: [sk.Matching(u)]

    return structure


def tables(n, K, axes):
    """n variables of K values, and a table of `axes` of them from each on."""

    def structure(rng, score):
        truth = np.eye(K, dtype=bool)[rng.integers(K, size=n)]
        parts = [[(i + j) % n for j in range(axes)] for i in range(n)]
        return truth, lambda u: [
            sk.Dense([u[i] for i in part], score(K**axes).reshape((K,) * axes)) for part in parts
        ]

    return structure


def implications(n, scale=1.0):
    def build(rng):
        graph = sk.FactorGraph()
        u = graph.variable(normal(scale)(rng)(n + 1))
        graph.add(sk.Imply(u[np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)]))
        return graph

    return build


def assignment(n, scale=1.0):
    def build(rng):
        graph = sk.FactorGraph()
        u = graph.variable(normal(scale)(rng)((n, n)))
        graph.add(sk.Xor(u))
        graph.add(sk.AtMostOne(u.T))
        return graph

    return build


def agreement(n, m, scale=1.0):
    """Pairs alone, with scores of both signs."""
    return lambda rng: random_graph(rng, n, m, ("Pair",), normal(scale)(rng))


KINDS = {
    "logic 50 / 60": logic(50, 60),
    "logic 200 / 250": logic(200, 250),
    "logic 200 / 250, x 1e5": logic(200, 250, 1e5),
    "logic 1000 / 900": logic(1000, 900),
    "Imply 300": implications(300),
    "Imply 300, x 1e5": implications(300, 1e5),
    "Xor, AtMostOne 30 x 30": assignment(30),
    "Xor, AtMostOne 30 x 30, x 1e4": assignment(30, 1e4),
    "Xor, AtMostOne 30 x 30, x 1e5": assignment(30, 1e5),
}
CHECKS = {
    "logic 400 / 600": logic(400, 600),
    "logic 3000 / 2500": logic(3000, 2500),
    "sums 300 / 300": logic(300, 300, kinds=SUMS),
    "sums, Pair 500 / 900": logic(500, 900, kinds=(*SUMS, "Pair", "Pair")),
    "logic 300 / 300, x .01 and 100": logic(300, 300, (0.01, 100.0)),
    "logic 200 / 250, x 1e-3": logic(200, 250, 1e-3),
    "logic 100 / 300": logic(100, 300),
    "Imply 2000": implications(2000),
    "Xor, AtMostOne 50 x 50": assignment(50),
    "Pair 300 / 3000": agreement(300, 3000),
    "logic 6000 / 5000": logic(6000, 5000),
    "logic 200 / 250, a tenth -inf": logic(200, 250, forbidden=0.2),
    "logic 1000 / 900, a tenth -inf": logic(1000, 900, forbidden=0.2),
}
STRUCTURES = {
    "Sequence 10 x 5 / 20": coupled(sequences(10, 5), 20),
    "Sequence 20 x 5 / 60": coupled(sequences(20, 5), 60),
    "Sequence 20 x 5 / 60, x 100": coupled(sequences(20, 5), 60, 100.0),
    "Sequence 30 x 10 / 100": coupled(sequences(30, 10), 100),
    "Matching 15 x 15 / 80": coupled(matching(15, 15), 80),
    "Matching 15 x 15 / 80, x 100": coupled(matching(15, 15), 80, 100.0),
    "Dense 10 x 4, pairs / 20": coupled(tables(10, 4, 2), 20),
    "Sequence 40 x 3 / 120": coupled(sequences(40, 3), 120),
    "five Sequences 8 x 4 / 80": coupled(sequences(8, 4, 5), 80),
    "Sequence 50 x 20 / 200": coupled(sequences(50, 20), 200),
    "Sequence 100 x 5 / 300": coupled(sequences(100, 5), 300),
    "Matching 6 x 11 / 40, x .01": coupled(matching(6, 11), 40, 0.01),
    "Matching 40 x 40 / 400": coupled(matching(40, 40), 400),
    "Dense 15 x 4, triples / 0": coupled(tables(15, 4, 3), 0),
    "Dense 15 x 4, triples / 30, x 100": coupled(tables(15, 4, 3), 30, 100.0),
}
ALL = {**KINDS, **CHECKS, **STRUCTURES}


def program(graph):
    """Rows of a graph and the scores of its variables with what pairs add to them."""
    off, extra = graph.scores == -np.inf, graph.additional_scores
    off_extra = extra == -np.inf
    p = polytope_of(graph._plan(), np.where(off_extra, 0.0, extra), off, off_extra)
    gain = p.linear.copy()
    gain[: len(off)] += np.where(off, 0.0, graph.scores)
    return p, gain


def highs(graph):
    """The best value of the linear program by `scipy.optimize.linprog`."""
    p, gain = program(graph)
    m, soft, equal = p.n_upper, np.flatnonzero(np.isfinite(p.most)), len(p.right) - p.n_upper
    excess = sp.csr_array((-np.ones(len(soft)), (soft, np.arange(len(soft)))), shape=(m, len(soft)))
    ranges = (p.lower, np.zeros(len(soft))), (p.upper, np.full(len(soft), np.inf))
    found = linprog(
        np.concatenate([-gain, p.most[soft]]),
        A_ub=sp.hstack([p.rows[:m], excess], "csr") if m else None,
        b_ub=p.right[:m] if m else None,
        A_eq=sp.hstack([p.rows[m:], sp.csr_array((equal, len(soft)))], "csr") if equal else None,
        b_eq=p.right[m:] if equal else None,
        bounds=np.column_stack([np.concatenate(side) for side in ranges]),
        method="highs",
    )
    assert found.status == 0, found.message
    return -found.fun


def lacks(graph, found, best):
    """By how much marginals violate the rows, or are worse than the best value, relative to the scores."""
    p, gain = program(graph)
    x = np.concatenate([found.x, found.additional[own_indices(graph._plan())]])
    over = p.rows @ x - p.right
    soft = np.isfinite(p.most)
    worth = gain @ x - p.most[soft] @ np.maximum(over[: p.n_upper][soft], 0.0)
    violation = max(over[: p.n_upper][~soft].max(initial=0.0), np.abs(over[p.n_upper :]).max(initial=0.0))
    return max(violation, (best - worth) / (np.abs(gain).sum() + p.most[soft].sum()))


def timed(function, *args, **options):
    start = time.process_time()
    found = function(*args, **options)
    return found, 1e3 * (time.process_time() - start)


def row(kind, args):
    """A line of the table: kind, solved and times of solve and of map, times of HiGHS, ratios."""
    build = ALL[kind]
    times, solved = {"solve": [], "map": [], "HiGHS": []}, {"solve": 0, "map": 0}
    for seed in range(args.seed, args.seed + args.graphs):
        graph = build(np.random.default_rng(seed))
        graph.map(max_iter=1, max_time=1e-3)  # compiles the graph
        graph.map()  # imports
        ours, mine, peers = [], [], []
        for _ in range(args.rounds):
            marginals, spent = timed(graph.solve, max_time=args.max_time)
            found, spent_map = timed(graph.map, max_time=args.max_time)
            best, spent_highs = timed(highs, graph)
            ours.append(spent), mine.append(spent_map), peers.append(spent_highs)
        for name, values in (("solve", ours), ("map", mine), ("HiGHS", peers)):
            times[name].append(np.median(values))
        solved["solve"] += marginals.success
        solved["map"] += found.success and lacks(graph, found, best) <= 1e-7
    ratio = np.array(times["map"]) / times["HiGHS"]
    cells = [kind]
    for name in ("solve", "map"):
        cells += [
            f"{solved[name]} of {args.graphs}",
            f"{np.median(times[name]):.3g}",
            f"{max(times[name]):.3g}",
        ]
    cells += [f"{np.median(times['HiGHS']):.3g}", f"{max(times['HiGHS']):.3g}", f"{np.median(ratio):.2f}"]
    return [*cells, f"{ratio.max():.2f}"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", choices=ALL, help="all")
    parser.add_argument("--graphs", type=int, default=10, help="of a kind (10)")
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many (3)")
    parser.add_argument("--seed", type=int, default=1000, help="of the first graph (1000)")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a solve (20)")
    args = parser.parse_args()
    columns = ["graph", "`solve`: solved", "median, ms", "worst", "`map`: solved", "median, ms", "worst"]
    columns += ["HiGHS: median, ms", "worst", "`map` / HiGHS", "worst"]
    head = _common.markdown_table(columns, [])[:2]
    print(*head, sep="\n")
    for kind in args.kinds or ALL:
        print("| " + " | ".join(row(kind, args)) + " |", flush=True)


if __name__ == "__main__":
    main()
