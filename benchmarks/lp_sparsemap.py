"""LP-SparseMAP against the library lp-sparsemap at equal error: forward, backward and batches.

    python benchmarks/lp_sparsemap.py --peer ~/lpsmap/bin/python --peer-path ~/lpsmap/mended

Errors are max |mu - exact|. The exact solution and gradients come from a quadratic program without factors
(arborescences are flows). A sparse interior-point method solves it, finished on its active set. --peer is an
interpreter that can import lpsmap and torch, --peer-path its PYTHONPATH; without it its columns are absent.
Unpatched lp-sparsemap 1.0 is wrong where trees share variables. Ours is `FactorGraph.solve` on a built graph
(the call makes the states). The peer's core is its C++ solver on a built graph. Both on one thread, in turn;
a figure is the median of the rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

for _key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_key] = "1"  # before NumPy; batches say n_jobs

import _common  # noqa: E402
import numpy as np  # noqa: E402
from _lp_sparsemap_exact import BUDGET, make, solve_exactly  # noqa: E402

from sparsekit import AtMostOne, Budget, DepTree, FactorGraph, Pair, Xor  # noqa: E402

# kind -> (what, goal: how many times as fast as the peer at equal error)
KINDS = {
    "pairs0.01": ("159 variables, 12561 Pair, scores x 0.01", 20),
    "pairs0.1": ("159 variables, 12561 Pair, scores x 0.1", 20),
    "pairs1": ("159 variables, 12561 Pair, scores x 1", 20),
    "matching50x50": ("Xor rows, AtMostOne columns", 5),
    "matching10x20": ("Xor rows, AtMostOne columns", 5),
    "tree": ("non-projective DepTree, 20 words", 3),
    "tree+budget": ("the same, Budget(2) on each head", 3),
}
BATCH_GOAL = 1.8
# iterations of the peer
MAX_ITERS = (10, 30, 100, 300, 1000)
# step sizes of the peer, its default first
STEPS = (0.1, 1.0, 3.0, 10.0)
# tolerance of the peer, its default
TOL = 1e-6
LOOSE = {"exact": False, "tol_primal": 1e-13, "tol_dual": 1e-13}
# errors at which times are compared
LEVELS = (1e-4, 1e-8)
# largest number of the peer's iterations to such an error
LIMIT = 1024
OWN = (
    "problem|seed|values of mu|ms|error|passes|backward, ms|error|exact=False, ms|error|passes (at most 100)"
)
FIXED = (
    "problem|ours, ms|error|peer, ms|error|/ ours|ours backward, ms|error|peer, ms|error|/ ours|"
    "public call of the peer, ms|its backward, ms"
)
EQUAL = (
    "problem|error at most|ours, ms|by|peer, iterations|ms|/ ours|best step|iterations|ms|/ ours|goal|"
    "met|its backward, ms|error|/ ours"
)
BATCH = "problem|n_jobs=1, ms a graph|n_jobs=2|ratio|goal|not converged"
# seconds of a call above which there are few rounds
LONG = 0.5
# their number
FEW = 3
NOTE = f"""Medians over the seeds (the worst in brackets), the largest of the errors. The peer makes the
fewest iterations (within 6 %) that reach the error (tol=1e-12, at most {LIMIT}). It uses its default step
size, and the best of {STEPS}; a number for each seed. Ours is the faster of the default, which is exact, and
exact=False with the fewest passes."""


def our_graph(p):
    """The problem as a graph with its plan, so that a solve finds both."""
    graph = FactorGraph()
    u = graph.variable(p["eta"])
    if len(p["w"]):
        graph.add(Pair(u[np.column_stack([p["i"], p["j"]])], p["w"]))
    elif p["kind"].startswith("matching"):
        graph.add(Xor(u))
        graph.add(AtMostOne(u.T))
    else:
        graph.add(DepTree(u))
        if "budget" in p["kind"]:
            n = len(p["eta"])
            for head in range(n):
                graph.add(Budget(u[np.arange(n) != head, head], BUDGET))
    graph._plan()
    return graph


class Peer:
    """The peer's process, which waits while ours is timed."""

    def __init__(self, args):
        env = os.environ | ({"PYTHONPATH": args.peer_path} if args.peer_path else {})
        script = Path(__file__).resolve().with_name("_lp_sparsemap_peer.py")
        self.process = subprocess.Popen([args.peer, "-W", "ignore", str(script)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the peer's process has ended")
        return json.loads(line)

    def run(self, max_iter, step_size, tol=TOL, api=False):
        return self.ask(max_iter=max_iter, step_size=step_size, tol=tol, api=api)

    def settings(self, p, folder):
        """Name -> settings to time: the grid, and the fewest iterations to each of the LEVELS."""
        np.savez(Path(folder) / "problem.npz", **p)
        self.ask(problem=str(Path(folder) / "problem.npz"))
        found = {}
        for size in STEPS:
            for max_iter in MAX_ITERS:
                done = self.run(max_iter, size)["status"] != "unsolved"
                api = size == STEPS[0] and (max_iter == 100 or (done and max_iter < 100))
                found[size, max_iter] = {"max_iter": max_iter, "step_size": size, "api": api}
                if done:
                    break
            for level, n in fewest(lambda n, size=size: self.run(n, size, 1e-12)["error"]):
                found["peer", level, size] = {"max_iter": n, "step_size": size, "tol": 1e-12}
        return found


def fewest(error):
    """Pairs of a level and the fewest iterations (within 6 %) that come to it, if any do."""
    low, high = 0, 8
    for level in LEVELS:
        while high <= LIMIT and error(high) > level:
            low, high = high, 2 * high
        if high > LIMIT:
            return
        while high - low > max(1, low // 16):
            middle = (low + high) // 2
            low, high = (low, middle) if error(middle) <= level else (middle, high)
        yield level, high


def our_times(graph, p, **options):
    """Seconds forward and backward, errors, passes."""
    times, start = [], time.perf_counter()
    while not times or (len(times) < 5 and time.perf_counter() - start < 0.03):
        before = time.perf_counter()
        solution = graph.solve(**options)
        between = time.perf_counter()
        got = solution.vjp(p["direction"])
        times.append((between - before, time.perf_counter() - between))
    wrong = np.append(got.scores - p["gradient"].ravel(), got.additional_scores - p["gradient_w"])
    return {"times": times, "error": np.abs(solution.x - p["mu"].ravel()).max(), "passes": solution.nit,
            "gradient_error": np.abs(wrong).max(), "status": solution.status}  # fmt: skip


def measure(p, args, peer, folder):
    """Name -> run, with milliseconds: ours, "plain" (Algorithm 1) and the peer's settings."""
    graph, runs = our_graph(p), {}
    settings = peer.settings(p, folder) if peer else {}
    calls = {"ours": lambda: our_times(graph, p)}
    calls["plain"] = lambda: our_times(graph, p, exact=False, max_iter=100)
    for level, n in fewest(lambda n: our_times(graph, p, **LOOSE, max_iter=n)["error"]) if peer else ():
        calls["ours", level] = lambda n=n: our_times(graph, p, **LOOSE, max_iter=n)
    calls |= {name: lambda setting=setting: peer.run(**setting) for name, setting in settings.items()}
    for done in range(args.rounds):
        for name, call in calls.items():
            if done >= FEW and sum(runs[name]["times"][0]) > LONG:
                continue
            now = call()
            run = runs.setdefault(name, now | {"times": [], "api": []})
            run["times"] += now["times"]
            run["api"] += [now["api"]] if "api" in now else []
    for name, run in runs.items():
        run["ms"] = 1e3 * np.median(run["times"], axis=0)
        run["api_ms"] = 1e3 * np.median(run["api"], axis=0) if run["api"] else None
        run["n"] = settings[name]["max_iter"] if name in settings else run["passes"]
    for size in STEPS if peer else ():  # a run that had converged is the same for a larger max_iter
        for few, many in pairwise(MAX_ITERS):
            runs.setdefault((size, many), runs[size, few])
    return runs


def batch(kind, args):
    """Milliseconds a graph with one and two threads, and how many graphs did not converge."""
    problems = [make(kind, seed) for seed in range(args.batch)]
    graph = our_graph(problems[0])
    scores, more = (np.stack([p[key].ravel() for p in problems]) for key in ("eta", "w"))
    times, failed = {1: [], 2: []}, 0
    for _ in range(args.rounds):
        for n_jobs in times:
            start = time.perf_counter()
            solution = graph.solve_batch(scores, more, n_jobs=n_jobs)
            times[n_jobs].append(1e3 * (time.perf_counter() - start) / args.batch)
            failed = max(failed, int((solution.status != 0).sum()))
    return *(np.median(t) for t in times.values()), failed


def table(columns, rows):
    return _common.markdown_table(columns.split("|"), rows)


def middle(values):
    return f"{np.median(values):.3g}"


def largest(runs, key="error"):
    return f"{max(run[key] for run in runs):.0e}"


def ratio(runs, ours, part):
    """Median over the seeds, and the worst of them."""
    found = [r["ms"][part] / o["ms"][part] for r, o in zip(runs, ours)]
    return f"{np.median(found):.1f} ({min(found):.1f})"


def fixed_row(kind, found):
    """Ours and the peer at 100 iterations, from the runs of all seeds."""
    ours, peer, cells = [r["ours"] for r in found], [r[STEPS[0], 100] for r in found], [kind]
    for part, key in enumerate(("error", "gradient_error")):
        for runs in (ours, peer):
            cells += [middle([r["ms"][part] for r in runs]), largest(runs, key)]
        cells.append(ratio(peer, ours, part))
    return cells + [middle([r["api_ms"][part] for r in peer]) for part in (0, 1)]


def equal_row(kind, found, level):
    """Ours and the peer where they come to the same error."""
    ours = [min((r["ours"], r.get(("ours", level), r["ours"])), key=lambda run: run["ms"][0]) for r in found]
    how = ["exact" if run is r["ours"] else str(run["n"]) for run, r in zip(ours, found)]
    cells = [kind, f"{level:g}", middle([r["ms"][0] for r in ours]), ", ".join(how)]
    reached = [{size: r["peer", level, size] for size in STEPS if ("peer", level, size) in r} for r in found]
    for sizes in (STEPS[:1], STEPS):
        if not all(any(size in r for size in sizes) for r in reached):
            cells += ["-"] * (3 if sizes != STEPS else 9)
            continue
        best = [min((size for size in sizes if size in r), key=lambda k: r[k]["ms"][0]) for r in reached]
        runs = [r[size] for r, size in zip(reached, best)]
        cells += [", ".join(f"{size:g}" for size in best)] if sizes == STEPS else []
        cells += [
            ", ".join(str(r["n"]) for r in runs),
            middle([r["ms"][0] for r in runs]),
            ratio(runs, ours, 0),
        ]
    if len(cells) < 16:
        met = all(r["ms"][0] >= KINDS[kind][1] * o["ms"][0] for r, o in zip(runs, ours))
        cells += [KINDS[kind][1], "yes" if met else "no"]
        cells += [middle([r["ms"][1] for r in runs]), largest(runs, "gradient_error"), ratio(runs, ours, 1)]
    return cells


def peer_rows(kind, found):
    """All settings of the peer."""
    for size in STEPS:
        cells = [[r[size, n] for r in found] for n in MAX_ITERS]
        cells = [f"{middle([r['ms'][0] for r in runs])} / {largest(runs)}" for runs in cells]
        yield [f"{kind}, step {size:g}", *cells]


def main(args):
    load = [os.getloadavg()[0]]
    peer = Peer(args) if args.peer else None
    own, fixed, equal, grid, batches, exactness = [], [], [], [], [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.only:
            found = []
            for seed in range(args.seeds):
                p = make(kind, seed)
                exactness = max(exactness, solve_exactly(p))
                runs = measure(p, args, peer, folder)
                found.append(runs)
                cells = [kind, seed, len(np.unique(p["mu"].round(9)))]
                for name in ("ours", "plain"):
                    r = runs[name]
                    cells += [f"{r['ms'][0]:.3g}", f"{r['error']:.0e}", r["passes"]]
                    cells += [f"{r['ms'][1]:.3g}", f"{r['gradient_error']:.0e}"] if name == "ours" else []
                own.append(cells)
                print(*cells, file=sys.stderr, flush=True)
            if peer:
                fixed.append(fixed_row(kind, found))
                equal += [equal_row(kind, found, level) for level in LEVELS]
                grid += peer_rows(kind, found)
                print(*equal[-2], "\n", *equal[-1], file=sys.stderr, flush=True)
        for kind in args.only if args.batch else ():
            one, two, failed = batch(kind, args)
            cells = [kind, f"{one:.3g}", f"{two:.3g}", f"{one / two:.2f}", BATCH_GOAL, failed]
            batches.append(cells)
            print(*cells, file=sys.stderr, flush=True)
    load.append(os.getloadavg()[0])
    lines = ["# LP-SparseMAP: milliseconds a graph", "", *_common.environment(())]
    lines += [f"- {kind}: {KINDS[kind][0]}" for kind in args.only]
    lines.append(f"- Load average {load[0]:.1f} at the start, {load[1]:.1f} at the end")
    lines.append(f"- KKT residuals of the exact solutions and gradients: at most {exactness:.0e}")
    lines += ["", "## Ours", "", *table(OWN, own)]
    if peer:
        lines += ["## The peer at 100 iterations, its default step size", "", *table(FIXED, fixed)]
        lines += ["## At equal error", "", NOTE, "", *table(EQUAL, equal)]
        lines += ["## The peer's milliseconds / error", ""]
        lines += table("max_iter|" + "|".join(map(str, MAX_ITERS)), grid)
    else:
        lines += ["No --peer was given: its columns are absent.", ""]
    if batches:
        lines += [f"## Batches of {args.batch}", "", *table(BATCH, batches)]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


if __name__ == "__main__":
    parser = _common.make_parser(__doc__)
    parser.add_argument(
        "--only", nargs="+", default=list(KINDS), choices=KINDS, metavar="KIND", help=", ".join(KINDS)
    )
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter with lpsmap; none: no such columns")
    parser.add_argument("--peer-path", metavar="PATH", help="PYTHONPATH for it")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=64, help="graphs in a batch; 0: no batches")
    parser.add_argument("--quick", action="store_true", help="one seed, two rounds, batches of 8")
    args = parser.parse_args()
    if args.quick:
        args.seeds, args.rounds, args.batch = 1, 2, min(args.batch, 8)
    sys.exit(main(args))
