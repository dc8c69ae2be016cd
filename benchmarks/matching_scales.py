#!/usr/bin/env python
"""Seconds of a `Matching` by the scale of its scores: the weaker they are, the more matchings are mixed.

    python benchmarks/matching_scales.py --sizes 50 100 200

Scores are normal, times the scale; medians of three solves in one thread, without building the graph. A solve
that `max_time` ended is marked.
"""

import argparse
import time

import numpy as np

from sparsekit import FactorGraph, Matching

SCALES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e4)


def milliseconds(n, scale, max_time):
    scores = scale * np.random.default_rng(0).standard_normal((n, n))
    spent, whole = [], True
    while len(spent) < 3 and sum(spent) < 5.0:
        graph = FactorGraph()
        graph.add(Matching(graph.variable(scores)))
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
    parser.add_argument("--max-time", type=float, default=20.0, help="seconds a solve (20)")
    args = parser.parse_args()
    print("| size |", " | ".join(f"x {scale:g}" for scale in SCALES), "|")
    print("| --- |", " | ".join(["---:"] * len(SCALES)), "|")
    for n in args.sizes:
        print(
            f"| {n} x {n} |",
            " | ".join(milliseconds(n, scale, args.max_time) for scale in SCALES),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
