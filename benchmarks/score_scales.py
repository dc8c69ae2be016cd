#!/usr/bin/env python
"""Milliseconds of one factor of each kind, and of coupled logic, by the scale of all scores.

    python benchmarks/score_scales.py
    python benchmarks/score_scales.py --kinds "Matching 200 x 200" "Sequence 500 x 50" --scales 0.01 1
    python benchmarks/score_scales.py --measure first --kinds "DepTree 20, projective" --scales 0 0.01 1

Scores are normal, times the scale, with `--tied` rounded to a tenth of it. Medians of three solves by one
thread (set OMP_NUM_THREADS=1), in processor time, which other programs disturb less; graphs are built and
compiled before. Weak scores mix many structures, of which strong ones need few. The last column is the
slowest time against that at scale 1; a solve that found no solution within `--max-time` is marked. `--measure
first` and `later` have the first and the second derivative (`vjp`) after a solve, instead of the solve.
"""

import argparse
import time

import numpy as np

from sparsekit import (
    AtMostOne,
    Budget,
    Dense,
    DepTree,
    FactorGraph,
    Imply,
    Knapsack,
    Matching,
    Pair,
    Sequence,
    Xor,
)

SCALES = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 10.0, 100.0, 1e4)


def alone(factor, *shape):
    """Graphs of one factor, which `factor` makes of a view and a random generator's normal scores."""

    def build(normal):
        graph = FactorGraph()
        graph.add(factor(graph.variable(normal(shape)), normal))
        return graph

    return build


def assignment(n):
    """Xor on rows and AtMostOne on columns."""

    def build(normal):
        graph = FactorGraph()
        u = graph.variable(normal((n, n)))
        graph.add(Xor(u))
        graph.add(AtMostOne(u.T))
        return graph

    return build


def implications(n):
    def build(normal):
        graph = FactorGraph()
        u = graph.variable(normal((n,)))
        graph.add(Imply(u[np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)]))
        return graph

    return build


def all_pairs(n):
    def build(normal):
        graph = FactorGraph()
        u = graph.variable(normal((n,)))
        index = np.stack(np.triu_indices(n, 1), axis=1)
        graph.add(Pair(u[index], normal((len(index),))))
        return graph

    return build


def dense(n):
    def build(normal):
        graph = FactorGraph()
        parts = [graph.variable(normal((n,))) for _ in range(3)]
        graph.add(Dense(parts, normal((n, n, n))))
        return graph

    return build


def sequence(T, K):
    return alone(lambda u, normal: Sequence(u, normal((T - 1, K, K))), T, K)


def tagged(T, K):
    """A sequence of which two tags have a budget."""

    def build(normal):
        graph = FactorGraph()
        u = graph.variable(normal((T, K)))
        graph.add(Sequence(u, normal((T - 1, K, K))))
        for tag in range(2):
            graph.add(Budget(u[:, tag], max(2, T // K // 2)))
        return graph

    return build


KINDS = {
    "Xor 1000": alone(lambda u, normal: Xor(u), 1000),
    "AtMostOne 1000": alone(lambda u, normal: AtMostOne(u), 1000),
    "Budget 1000": alone(lambda u, normal: Budget(u, 20), 1000),
    "Knapsack 1000": alone(lambda u, normal: Knapsack(u, 0.1 + np.arange(1000) % 7, 50.0), 1000),
    "Pair 60, all": all_pairs(60),
    "Dense 8 x 8 x 8": dense(8),
    "Sequence 20 x 5": sequence(20, 5),
    "Sequence 50 x 10": sequence(50, 10),
    "Sequence 100 x 20": sequence(100, 20),
    "Sequence 30 x 50": sequence(30, 50),
    "Sequence 500 x 50": sequence(500, 50),
    "Sequence 50 x 10, Budget": tagged(50, 10),
    "DepTree 20": alone(lambda u, normal: DepTree(u), 20, 20),
    "DepTree 60": alone(lambda u, normal: DepTree(u), 60, 60),
    "DepTree 20, projective": alone(lambda u, normal: DepTree(u, projective=True), 20, 20),
    "DepTree 60, projective": alone(lambda u, normal: DepTree(u, projective=True), 60, 60),
    "Matching 50 x 50": alone(lambda u, normal: Matching(u), 50, 50),
    "Matching 100 x 100": alone(lambda u, normal: Matching(u), 100, 100),
    "Matching 200 x 200": alone(lambda u, normal: Matching(u), 200, 200),
    "Xor, AtMostOne 30 x 30": assignment(30),
    "Imply 300": implications(300),
}
MEASURES = ("solve", "first", "later")
# left out unless they are asked for
LONG = ("Sequence 500 x 50", "Matching 200 x 200")


def milliseconds(build, scale, args):
    rng = np.random.default_rng(args.seed)

    def normal(shape):
        scores = rng.standard_normal(shape)
        return scale * (np.round(10 * scores) / 10 if args.tied else scores)

    spent, whole = [], True
    while len(spent) < 3 and sum(spent) < 2.0:
        graph = build(normal)
        graph.map(max_iter=1, max_time=1e-3)  # compiles the graph
        direction, times = rng.standard_normal(graph.n_variables), [time.process_time()]
        solution = graph.solve(max_time=args.max_time)
        whole &= solution.success
        times.append(time.process_time())
        for _ in range(MEASURES.index(args.measure)):
            solution.vjp(direction)
            times.append(time.process_time())
        spent.append(times[-1] - times[-2])
    return 1e3 * np.median(spent), whole


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[k for k in KINDS if k not in LONG])
    parser.add_argument("--scales", type=float, nargs="+", default=list(SCALES), help="1 is always there")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a solve (20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--measure", choices=MEASURES, default="solve")
    parser.add_argument("--tied", action="store_true", help="round scores to a tenth of the scale")
    args = parser.parse_args()
    scales = sorted({1.0, *args.scales})
    print("| kind |", " | ".join(f"x {scale:g}" for scale in scales), "| slowest / x 1 |")
    print("| --- |", " | ".join(["---:"] * (len(scales) + 1)), "|")
    for kind in args.kinds:
        found = {scale: milliseconds(KINDS[kind], scale, args) for scale in scales}
        cells = [f"{ms:.3g}" + ("" if whole else " (not solved)") for ms, whole in found.values()]
        ratio = max(ms for ms, _ in found.values()) / found[1.0][0]
        print(f"| {kind} |", " | ".join(cells), f"| {ratio:.2g} |", flush=True)


if __name__ == "__main__":
    main()
