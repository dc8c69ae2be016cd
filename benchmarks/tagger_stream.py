"""One pass of SequenceTagger.partial_fit against its fit and against CRFsuite's algorithms for streams.

    python benchmarks/tagger_stream.py                # sets of its own; not tuned on: "check"

The score is that on the rest of the data (F1 of spans, or the share of right labels). Times are medians of
processor seconds, from the dicts on. The data come in batches of 100 sequences. CRFsuite's "ap" (averaged
perceptron), "pa" (passive-aggressive), "arow" and "l2sgd" make one pass, then more until ours with loss="crf"
ends. C = 1, and c2 = 0.5 of "l2sgd". One thread.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from functools import partial

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _common  # noqa: E402
import numpy as np  # noqa: E402
from _tagger_data import CHECK, SPANS, TUNE, digits, halves, markov  # noqa: E402
from sequence_tagger import quality  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402

from sparsekit import SequenceTagger  # noqa: E402

COLUMNS = ["set", "way", "passes", "s", "score"]
_BATCH = 100


def stream(X, y, labels, **options):
    begin, model = time.process_time(), SequenceTagger(**options)
    for lo in range(0, len(X), _BATCH):
        model.partial_fit(X[lo : lo + _BATCH], y[lo : lo + _BATCH], labels)
    return time.process_time() - begin, model


def batch(X, y, **options):
    begin = time.process_time()
    model = SequenceTagger(**options).fit(X, y)
    return time.process_time() - begin, model


def peer(X, y, Xt, algorithm, passes):
    import pycrfsuite

    begin = time.process_time()
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    for words, labels in zip(X, y):
        trainer.append(pycrfsuite.ItemSequence(words), labels)
    trainer.set_params({"max_iterations": passes, "feature.possible_transitions": True})
    if algorithm == "l2sgd":
        trainer.set_params({"c2": 0.5})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        trainer.train(path)
        seconds = time.process_time() - begin
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predicted = [tagger.tag(pycrfsuite.ItemSequence(words)) for words in Xt]
        tagger.close()
    return seconds, predicted


def passes_within(X, y, algorithm, seconds):
    """The largest number of passes, at least 1, that takes no longer."""
    one, three = (peer(X, y, X[:1], algorithm, n)[0] for n in (1, 3))
    return max(1, int(1 + (seconds - one) / max((three - one) / 2, 1e-3)))


def main():
    parser = _common.make_parser(__doc__)
    parser.add_argument("--sets", help="comma-separated; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    sets = {name: lambda draw=draw: markov(*draw) for name, draw in {**TUNE, **CHECK}.items()}
    sets.update({name: lambda draw=draw: markov(*draw, spans=True) for name, draw in SPANS.items()})
    sets["digits"] = digits
    warnings.simplefilter("ignore", ConvergenceWarning)  # of peers' and our early ends
    rows = []
    for name in args.sets.split(",") if args.sets else sets:
        X, y, Xt, yt = halves(*sets[name]())
        labels = sorted({label for one in y for label in one})
        ways = {"fit": partial(batch, X, y)}
        for loss in ("crf", "hinge"):
            ways[f"partial_fit, {loss}"] = partial(stream, X, y, labels, loss=loss)
        limit = stream(X, y, labels)[0]
        for algorithm in ("ap", "pa", "arow", "l2sgd"):
            for n in sorted({1, passes_within(X, y, algorithm, limit)}):
                ways[f"CRFsuite {algorithm}", n] = partial(peer, X, y, Xt, algorithm, n)
        found = {way: [] for way in ways}
        for _ in range(args.rounds):
            for way, run in ways.items():
                found[way].append(run())
        for way, runs in found.items():
            last = runs[-1][1]
            predicted = last if isinstance(last, list) else last.predict(Xt)
            text, n = way if isinstance(way, tuple) else (way, "" if way == "fit" else 1)
            seconds = float(np.median([run[0] for run in runs]))
            rows.append([name, text, f"{n}", f"{seconds:.2f}", f"{quality(yt, predicted):.4f}"])
            print(rows[-1], flush=True)
    lines = [*_common.environment([]), *_common.markdown_table(COLUMNS, rows)]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
