"""LP-SparseMAP of batches on a GPU against the same batches on the CPU's cores.

    python benchmarks/gpu_lp_sparsemap.py --markdown gpu_lp_sparsemap.md

"pairs s": 159 variables and all 12561 pairs of them, standard normal scores, the pairs' times s. "matching":
a factor Xor a row and AtMostOne a column. "labels": rows of 159 labels most of which are decided beforehand,
as LPSparseMAPClassifier solves them, a tenth of the pairs with a score. No other library has these on a GPU.

The floor is the memory traffic of the passes at the bandwidth of a copy: each slot's state and coefficients
once a pass (80 bytes). For states in shared memory only scores and marginals count. The CPU solves
--cpu-batch graphs of the same batch, by --jobs threads; its time is scaled to the whole batch.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import _common
import _gpu
import numpy as np

from sparsekit import AtMostOne, FactorGraph, Pair, Xor
from sparsekit._factor_graph.labels.label_loss import Labels
from sparsekit._factor_graph.solver.layout import GraphOptions

SLOT_BYTES = 80  # z, x, v, two variables, w, coefficients, indices: read, or read and written
KINDS = ("pairs 0.01", "pairs 0.1", "pairs 1", "matching 10x20", "matching 50x50", "labels")
SOLVES = {"exact": {}, "10 iterations": {"exact": False, "max_iter": 10, "step_size": 0.5}}

parser = _common.make_parser(__doc__)
parser.add_argument("--batch", type=int, default=1024, help="graphs in a batch")
parser.add_argument("--cpu-batch", type=int, default=64, help="of them for the CPU")
parser.add_argument("--jobs", type=int, default=2, help="the CPU's threads")
parser.add_argument("--labels", type=int, default=159)
parser.add_argument("--only", nargs="+", default=KINDS, choices=KINDS)
parser.add_argument("--repeats", type=int, default=10)


def factor_graph(kind, args):
    """The graph, scores of the batch, and additional ones."""
    rng, graph = np.random.default_rng(0), FactorGraph()
    what, size = kind.split()
    if what == "pairs":
        u = graph.variable((args.labels,))
        graph.add(Pair(u[np.column_stack(np.triu_indices(args.labels, 1))]))
    else:
        u = graph.variable(tuple(int(side) for side in size.split("x")))
        graph.add(Xor(u))
        graph.add(AtMostOne(u.T))
    scores = rng.standard_normal((args.batch, graph.n_variables))
    more = rng.standard_normal((args.batch, graph.n_additional)) * (float(size) if what == "pairs" else 1.0)
    return graph, scores, more


def wall(call, repeats=3):
    """Median seconds of a call in main memory."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def graph_rows(cupy, kind, args, bandwidth):
    graph, scores, more = factor_graph(kind, args)
    few = slice(0, args.cpu_batch)
    scale = args.batch / len(scores[few])
    there = [cupy.asarray(scores), cupy.asarray(more)]
    direction = np.random.default_rng(1).standard_normal(scores.shape)
    d = cupy.asarray(direction)
    for name, options in SOLVES.items():
        found, here = (
            graph.solve_batch(*there, **options),
            graph.solve_batch(scores[few], more[few], **options),
        )
        error = float(abs(found.x[few].get() - here.x).max())
        plan = found._run.states.plan
        passes = int(found.nit.sum())
        moved = plan.n_slot * SLOT_BYTES * passes if not plan.n_shared else 16 * scores.size + 8 * more.size
        # what is kept between calls is larger than the L2 cache, or is written anew by every one
        calls = {
            "solve": (partial(graph.solve_batch, *there, **options), moved),
            "vjp": (partial(found.vjp, d), 16 * scores.size + 8 * more.size),
        }
        cpu = {
            "solve": wall(partial(graph.solve_batch, scores[few], more[few], n_jobs=args.jobs, **options)),
            "vjp": wall(partial(here.vjp, direction[few], n_jobs=args.jobs)),
        }
        for what, (call, nbytes) in calls.items():
            seconds = _gpu.seconds(cupy, call, [()], repeats=args.repeats)
            cells = _gpu.row(f"{kind}, {name}: {what}", seconds, nbytes, bandwidth)
            yield [*cells, f"{1e6 * cpu[what] * scale:.0f} us", f"{cpu[what] * scale / seconds:.1f}",
                   f"{passes / args.batch:.0f}", f"{error:.1e}"]  # fmt: skip


def label_rows(cupy, args, bandwidth):
    rng, K = np.random.default_rng(0), args.labels
    labels = Labels(K, np.column_stack(np.triu_indices(K, 1)))
    eta = rng.standard_normal((args.batch, K)) * 1.5 - 1.5
    score = rng.standard_normal(len(labels.pairs)) * (rng.random(len(labels.pairs)) < 0.1)
    given = eta, np.maximum(score, 0.0), np.maximum(-score, 0.0)
    there, few = [cupy.asarray(part) for part in given], (eta[: args.cpu_batch], *given[1:])
    scale = args.batch / len(few[0])
    for name, quadratic in (("LP-SparseMAP", True), ("LP-MAP", False)):
        options = GraphOptions(tol_primal=1e-8, tol_dual=1e-8, quadratic=quadratic)
        found, here = labels.marginals(*there, options)[0], labels.marginals(*few, options, args.jobs)[0]
        seconds = _gpu.seconds(cupy, partial(labels.marginals, *there, options), [()], repeats=args.repeats)
        cpu = wall(partial(labels.marginals, *few, options, args.jobs)) * scale
        cells = _gpu.row(f"labels: {name}", seconds, 16 * eta.size, bandwidth)
        error = float(abs(found[: args.cpu_batch].get() - here).max())
        yield [*cells, f"{1e6 * cpu:.0f} us", f"{cpu / seconds:.1f}", "", f"{error:.1e}"]


def rows(cupy, bandwidth, args):
    """Rows of the table."""
    for kind in args.only:
        if kind == "labels":
            yield from label_rows(cupy, args, bandwidth)
        else:
            yield from graph_rows(cupy, kind, args, bandwidth)


def main():
    args = parser.parse_args()
    titles = ["problem", "GPU", "floor", "bytes/s", "of copy", f"CPU, {args.jobs} threads", "CPU / GPU",
              "passes a graph", "difference"]  # fmt: skip
    title = f"LP-SparseMAP of batches of {args.batch}"
    return _gpu.report(title, args, [(titles, rows)])


if __name__ == "__main__":
    sys.exit(main())
