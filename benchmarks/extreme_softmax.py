"""Softmax with very many classes: the papers' tables, the cost of a step, peers, a million classes.

    python benchmarks/extreme_softmax.py --what table3 --plot figure1.png   # six methods, as in the paper
    python benchmarks/extreme_softmax.py --what biased --plot table3.png    # and why biased ones win
    python benchmarks/extreme_softmax.py --what sensitivity --plot figure3.png
    python benchmarks/extreme_softmax.py --what ove        # Table 2 of the One-vs-Each paper
    python benchmarks/extreme_softmax.py --what toy --plot toy.png
    python benchmarks/extreme_softmax.py --what cost       # a step, by classes and by rows
    python benchmarks/extreme_softmax.py --what full       # seconds to a log-loss, against Adam and lbfgs
    python benchmarks/extreme_softmax.py --what ptb        # one epoch against full softmax
    python benchmarks/extreme_softmax.py --what napkin     # precision and time against napkinXC
    python benchmarks/extreme_softmax.py --what million    # 10^6 classes, 10^7 rows, a stream

The data folder is --data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout; rows are brought to
norm 1, and several labels mean the first. PyTorch is needed for ``full`` and ``ptb``, napkinXC for
``napkin``.
"""

from __future__ import annotations

import sys

import _common
import _data
from _extreme import NAMES


def main(argv=None):
    parser = _common.make_parser(__doc__)
    what = ("table3", "biased", "sensitivity", "ove", "toy", "cost", "full", "ptb", "napkin", "million")
    parser.add_argument("--what", choices=what, required=True, help="what to measure")
    parser.add_argument("--data", metavar="DIR", help="folder of the .npz files")
    parser.add_argument("--sets", default=",".join(NAMES), help="data sets (default: all)")
    parser.add_argument(
        "--epochs", type=int, default=50, help="epochs of table3 and sensitivity (default: 50)"
    )
    parser.add_argument(
        "--n-jobs", type=int, default=2, help="threads, where a table has no own (default: 2)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each timed fit (default: 3)")
    parser.add_argument("--max-iter", type=int, default=400, help="L-BFGS iterations of ove (default: 400)")
    parser.add_argument(
        "--ove-rate", type=float, default=0.05, help="learning rate of OVE-SGD (default: 0.05)"
    )
    parser.add_argument("--million-method", default="implicit", help="method of million (default: implicit)")
    parser.add_argument("--million-negatives", type=int, default=5, help="its negatives (default: 5)")
    parser.add_argument("--million-rate", type=float, default=10.0, help="its learning rate (default: 10)")
    parser.add_argument(
        "--plot", metavar="FILE", default="extreme.png", help="picture of table3, sensitivity, toy"
    )
    args = parser.parse_args(argv)
    args.sets = args.sets.split(",")
    if args.what != "million" and args.what != "toy":
        args.folder = _data.data_folder(args.data)
    blocks = run(args)
    lines = [*_common.environment([])]
    for title, columns, rows in blocks:
        lines += [f"**{title}**", "", *_common.markdown_table(columns, rows)]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)
    return 0


def run(args):
    """Blocks (title, columns, rows) of what was asked for."""
    if args.what in ("table3", "sensitivity", "ove", "toy"):
        import _extreme_papers as papers

        if args.what == "table3":
            blocks, curves = papers.table3(args)
            papers.plot_curves(curves, args.plot)
            return blocks
        if args.what == "sensitivity":
            return [("Log-loss on bibtex by learning rate", *papers.sensitivity(args, args.plot))]
        if args.what == "ove":
            return [("Table 2, lambda = 1", *papers.ove_table2(args))]
        points, seconds = papers.ove_toy(args.plot)
        shown = points[:: max(1, len(points) // 10)]
        rows = [[f"{n:.0f}", f"{e:.4f}"] for n, e in shown]
        return [
            (f"Sum of absolute differences, 10^4 classes; {seconds:.1f} s in all", ["steps", "error"], rows)
        ]
    if args.what == "biased":
        from _extreme_bias import biased

        return biased(args)
    if args.what == "cost":
        from _extreme_cost import cost

        return cost(args)
    import _extreme_peers as peers

    parts = {
        "full": ("Seconds to a mean train log-loss", peers.full_softmax),
        "ptb": ("One epoch", peers.ptb),
        "napkin": ("Beside napkinXC (HSM)", peers.napkin),
        "million": ("10^6 classes, 1000 features", peers.million),
    }
    title, measure = parts[args.what]
    return [(title, *measure(args))]


if __name__ == "__main__":
    sys.exit(main())
