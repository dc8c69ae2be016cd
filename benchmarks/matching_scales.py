#!/usr/bin/env python
"""Seconds of a `Matching` or `DepTree` by the scale of its scores: weaker ones mix more structures.

    python benchmarks/matching_scales.py --sizes 50 100 200
    python benchmarks/matching_scales.py --factor tree --sizes 20 60 100 150

Scores are normal, times the scale; medians of three solves in one thread, without building the graph. A solve
that `max_time` ended is marked.
"""

import argparse
import time

import numpy as np

from sparsekit import DepTree, FactorGraph, Matching

FACTORS = {
    "matching": Matching,
    "tree": DepTree,
    "single_root": lambda u: DepTree(u, single_root=True),
    "projective": lambda u: DepTree(u, projective=True),
}
SCALES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e4)


def milliseconds(factor, n, scale, max_time):
    scores = scale * np.random.default_rng(0).standard_normal((n, n))
    spent, whole = [], True
    while len(spent) < 3 and sum(spent) < 5.0:
        graph = FactorGraph()
        graph.add(FACTORS[factor](graph.variable(scores)))
        graph.map()  # compiles the graph
        start = time.perf_counter()
        whole &= graph.solve(max_time=max_time).success
        spent.append(time.perf_counter() - start)
    return f"{1e3 * np.median(spent):.3g}" + ("" if whole else " (not solved)")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--factor", choices=FACTORS, default="matching")
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a solve (20)")
    args = parser.parse_args()
    print("| size |", " | ".join(f"x {scale:g}" for scale in SCALES), "|")
    print("| --- |", " | ".join(["---:"] * len(SCALES)), "|")
    for n in args.sizes:
        print(
            f"| {n} x {n} |",
            " | ".join(milliseconds(args.factor, n, scale, args.max_time) for scale in SCALES),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
