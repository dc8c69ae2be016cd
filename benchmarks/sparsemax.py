"""Sparsemax forward and backward against torch.softmax, entmax, a NumPy sort and a plain copy.

    python benchmarks/sparsemax.py --n-threads 2 --markdown sparsemax.md

Every competitor is called in turn, round after round; a figure is the median of the rounds. Inputs are
standard normal times ``--scales``. Outputs are allocated by each call, as in use. Two ratios are printed:
the time of a peer over ours, and ours over a plain copy's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
_parser.add_argument("--markdown", metavar="FILE", help="write the tables")
_parser.add_argument("--n-threads", type=int, default=2)
_parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 1.0, 10.0])
_parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
_parser.add_argument("--shapes", nargs="+", default=["100000x10", "10000x1000", "1000x10000", "100x1000000"])
_parser.add_argument("--rounds", type=int, default=7)
_parser.add_argument(
    "--no-entmax", action="store_true", help="leave out entmax and the sort, which take long"
)
args = _parser.parse_args()
os.environ["OMP_NUM_THREADS"] = str(args.n_threads)  # before torch starts its threads

import _common  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from sparsekit import sparsemax, sparsemax_jvp  # noqa: E402

# one call of a peer longer than this is not repeated
_LONG = 2.0


def forward(z):
    """Name -> call without arguments."""
    tensor = torch.from_numpy(z)
    found = {
        "sparsekit": lambda: sparsemax(z, n_jobs=args.n_threads),
        "copy": z.copy,
        "torch.softmax": lambda: torch.softmax(tensor, -1),
        "sparsekit.torch": lambda: ours(tensor),
    }
    from sparsekit.torch import sparsemax as ours

    if not args.no_entmax:
        import entmax

        found["entmax (sort)"] = lambda: entmax.sparsemax(tensor, -1)
        found["entmax (top-k)"] = lambda: entmax.sparsemax(tensor, -1, k=min(100, z.shape[1]))
        found["numpy sort"] = lambda: np.sort(z, axis=-1)
    return found


def backward(z):
    """The same for the products with the Jacobian, of graphs that stand."""
    from sparsekit.torch import sparsemax as ours

    v = np.random.default_rng(1).standard_normal(z.shape).astype(z.dtype)
    p, slope = sparsemax(z, n_jobs=args.n_threads), torch.from_numpy(v)
    maps = {"torch.softmax": lambda x: torch.softmax(x, -1), "sparsekit.torch": ours}
    if not args.no_entmax:
        import entmax

        maps["entmax (sort)"] = lambda x: entmax.sparsemax(x, -1)
    found = {"sparsekit": lambda: sparsemax_jvp(p, v, n_jobs=args.n_threads), "copy": v.copy}
    for name, f in maps.items():
        x = torch.from_numpy(z).clone().requires_grad_()
        y = f(x)
        found[name] = lambda x=x, y=y: torch.autograd.grad(y, x, slope, retain_graph=True)
    return found


def medians(calls):
    """Median seconds of each call, taken in turn."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(args.rounds):
        for name, call in calls.items():
            if len(times[name]) and times[name][0] > _LONG:
                continue
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(t)) for name, t in times.items()}


def main():
    torch.set_num_threads(args.n_threads)
    lines, worst = [], {}
    for title, make in (("Forward", forward), ("Backward", backward)):
        rows = []
        for shape in args.shapes:
            n, K = map(int, shape.split("x"))
            for dtype in args.dtypes:
                for scale in args.scales:
                    z = np.random.default_rng(0).standard_normal((n, K)).astype(dtype) * np.asarray(
                        scale, dtype
                    )
                    t = medians(make(z))
                    mine = t["sparsekit"]
                    peers = [
                        name
                        for name in t
                        if name not in ("sparsekit", "copy", "sparsekit.torch", "numpy sort")
                    ]
                    ratios = [f"{t[name] / mine:.2f}" for name in peers]
                    for name in peers:
                        for own in ("sparsekit", "sparsekit.torch"):
                            key = title, name, own
                            worst[key] = min(worst.get(key, np.inf), t[name] / t[own])
                    if K >= 1000:
                        key = title, "copy", "sparsekit"
                        worst[key] = max(worst.get(key, 0.0), mine / t["copy"])
                    rows.append(
                        [
                            shape,
                            dtype,
                            f"{scale:g}",
                            *(f"{1e3 * s:.3g}" for s in t.values()),
                            *ratios,
                            f"{mine / t['copy']:.2f}",
                        ]
                    )
                    print(title, *rows[-1], flush=True)
        titles = ["shape", "dtype", "scale", *(f"{name}, ms" for name in t)]
        titles += [*(f"{name} / ours" for name in peers), "ours / copy"]
        lines += [f"## {title}", "", *_common.markdown_table(titles, rows), ""]
    for (title, name, own), value in worst.items():
        if name == "copy":
            lines.append(f"- {title}: {own} takes at most {value:.2f} times a copy's time (K >= 1000)")
        else:
            lines.append(f"- {title}: {own} is at least {value:.2f} times as fast as {name}")
    text = ["# Sparsemax: milliseconds a call", "", *_common.environment(()), "", *lines]
    print("\n".join(text))
    _common.write_markdown(args.markdown, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
