"""What building a factor graph costs against its solve: trees with budgets, by the number of words.

    python benchmarks/graph_building.py

One thread, standard normal scores; medians, in milliseconds.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy

import numpy as np

from sparsekit import Budget, DepTree, FactorGraph


def build(n, together):
    """A tree over n words of which each has at most two others hanging on it, laid out."""
    graph = FactorGraph()
    arcs = graph.variable(np.zeros((n, n)))
    graph.add(DepTree(arcs))
    others = ~np.eye(n, dtype=bool)
    if together:
        graph.add(Budget(arcs.T[others].reshape(n, n - 1), 2))
    else:
        for head in range(n):
            graph.add(Budget(arcs[others[head], head], 2))
    graph._plan()
    return graph


def median(function, rounds):
    """Milliseconds of a call."""
    times = []
    for i in range(rounds):
        start = time.perf_counter()
        function(i)
        times.append(time.perf_counter() - start)
    return 1e3 * np.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, nargs="+", default=[5, 10, 20, 40, 60])
    parser.add_argument("--quick", action="store_true", help="short sentences, few rounds")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    print("| words | a Budget each | one for all | kept: new scores | new scores and solve |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for n in [5] if args.quick else args.words:
        rounds = 3 if args.quick else 25 if n <= 20 else 9
        scores = rng.standard_normal((rounds, n * n))
        graph = build(n, True)
        arcs = graph.all_variables()

        def solve(i, graph=graph, arcs=arcs, scores=scores):
            graph.set_scores(arcs, scores[i])
            graph.solve(n_jobs=1)

        times = [
            median(lambda _, n=n: build(n, False), rounds),
            median(lambda _, n=n: build(n, True), rounds),
            median(lambda i, g=graph, a=arcs, s=scores: g.set_scores(a, s[i]), rounds),
            median(solve, rounds),
        ]
        print(f"| {n} | " + " | ".join(f"{t:.3g}" for t in times) + " |")


if __name__ == "__main__":
    main()
