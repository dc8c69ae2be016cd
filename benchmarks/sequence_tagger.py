"""SequenceTagger beside CRFsuite (python-crfsuite): seconds to the same objective, from the same dicts.

    python benchmarks/sequence_tagger.py                # sets of its own; not tuned on: "check"
    python benchmarks/sequence_tagger.py --conll FILE   # a tagged corpus: a word a line, its label last

CRFsuite's objective is ours where it has all pairs of features and labels ("all"); by default it leaves
out those that it has not seen together ("seen"), another and smaller problem. Ours is timed from the dicts
until its objective is that at which CRFsuite stopped, and to its own default end. One thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _common  # noqa: E402
import numpy as np  # noqa: E402
from _tagger_data import CHECK, TUNE, conll, digits, halves, markov  # noqa: E402

from sparsekit import SequenceTagger  # noqa: E402
from sparsekit.metrics import span_f1_score  # noqa: E402

COLUMNS = [
    "set", "features x labels", "c1, c2", "ours to CRFsuite's objective, s", "ours to the end, s",
    "CRFsuite all, s", "seen, s", "all / ours", "seen / ours to the end", "score: ours", "all", "seen",
]  # fmt: skip


def quality(y, predicted):
    """F1 of spans where labels mark some, else the share of right labels."""
    if any(label.startswith("B-") for labels in y for label in labels):
        return span_f1_score(y, predicted)
    right = [a == b for one, other in zip(y, predicted) for a, b in zip(one, other)]
    return float(np.mean(right))


def peer(X, y, Xt, c1, c2, everything):
    import pycrfsuite

    begin = time.perf_counter()
    trainer = pycrfsuite.Trainer(verbose=False)
    for words, labels in zip(X, y):
        trainer.append(pycrfsuite.ItemSequence(words), labels)
    flags = {"feature.possible_states": everything, "feature.possible_transitions": everything}
    trainer.set_params({"c1": c1, "c2": c2, "max_iterations": 1000, **flags})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        trainer.train(path)
        seconds = time.perf_counter() - begin
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predicted = [tagger.tag(pycrfsuite.ItemSequence(words)) for words in Xt]
        tagger.close()
    return seconds, trainer.logparser.last_iteration["loss"], predicted


def ours(X, y, Xt, c1, c2, **options):
    points, begin = [], time.perf_counter()
    C = 1.0 / (c1 + 2.0 * c2)

    def watch(result):
        points.append((time.perf_counter() - begin, result.fun / C))

    model = SequenceTagger(C, l1_ratio=c1 * C, fit_ends=False, callback=watch, **options).fit(X, y)
    return time.perf_counter() - begin, points, model.predict(Xt), model.coef_.shape[::-1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conll", help="file with a tagged corpus")
    parser.add_argument("--sets", help="comma-separated; default: all")
    parser.add_argument("--penalties", default="0:1,0.5:0.05", help="c1:c2, comma-separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", help="file to write")
    args = parser.parse_args()
    args.command = "python benchmarks/sequence_tagger.py " + " ".join(sys.argv[1:])
    sets = {name: lambda draw=draw: markov(*draw) for name, draw in {**TUNE, **CHECK}.items()}
    sets["digits"] = digits
    if args.conll:
        sets = {os.path.basename(args.conll): lambda: conll(args.conll)}
    rows = []
    for name in args.sets.split(",") if args.sets else sets:
        X, y, Xt, yt = halves(*sets[name]())
        for pair in args.penalties.split(","):
            c1, c2 = map(float, pair.split(":"))
            times = []
            for _ in range(args.rounds):
                all_s, loss, all_labels = peer(X, y, Xt, c1, c2, True)
                seen_s, _, seen_labels = peer(X, y, Xt, c1, c2, False)
                end, _, labels, shape = ours(X, y, Xt, c1, c2)
                _, points, _, _ = ours(X, y, Xt, c1, c2, tol=1e-6)
                there = next((s for s, fun in points if fun <= loss * (1 + 1e-6)), np.inf)
                times.append((there, end, all_s, seen_s))
            there, end, all_s, seen_s = np.median(times, axis=0)
            scores = [f"{quality(yt, found):.4f}" for found in (labels, all_labels, seen_labels)]
            rows.append([name, f"{shape[0]} x {shape[1]}", f"{c1:g}, {c2:g}", f"{there:.2f}", f"{end:.2f}",
                         f"{all_s:.2f}", f"{seen_s:.2f}", f"{all_s / there:.1f}", f"{seen_s / end:.1f}",
                         *scores])  # fmt: skip
            print(rows[-1], flush=True)
    lines = [*_common.environment(args, []), *_common.markdown_table(COLUMNS, rows)]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
