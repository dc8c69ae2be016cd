"""SequenceTagger against CRFsuite (python-crfsuite): seconds to the same objective and to the same score.

    python benchmarks/sequence_tagger.py                # sets of its own; not tuned on: "check"
    python benchmarks/sequence_tagger.py --conll FILE   # a tagged corpus: a word a line, its label last

"all" has a coefficient for all pairs of features and labels, which is our default, "seen" for those that
training has together, CRFsuite's default. Ours is timed from the dicts to three points. The first is
CRFsuite's final objective, with the same coefficients. The second is its own default stop. The third is a
score on the rest of the data at most 0.001 below that of CRFsuite's model: F1 of spans, or the share of right
labels, evaluated after some steps only. One thread.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _common  # noqa: E402
import numpy as np  # noqa: E402
from _tagger_data import CHECK, SPANS, TUNE, conll, digits, halves, markov  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402

from sparsekit import SequenceTagger  # noqa: E402
from sparsekit.metrics import span_f1_score  # noqa: E402

COLUMNS = [
    "set", "features x labels", "c1, c2", "all: CRFsuite, s", "ours to its objective, s", "times",
    "seen: CRFsuite, s", "ours to its objective, s", "times", "ours to the end, s", "ours to its score, s",
    "times", "score: CRFsuite", "ours",
]  # fmt: skip
# steps after which the score is evaluated
_PASSES = (2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 140, 200)


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


def chaine(X, y, c1, c2):
    """Seconds of chaine's training with seen pairs."""
    from chaine import train

    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        train(X, y, model_filepath=os.path.join(folder, "model"), verbose=0, algorithm="lbfgs", c1=c1, c2=c2,
              max_iterations=1000)  # fmt: skip
        return time.perf_counter() - begin


def ours(X, y, c1, c2, everything, **options):
    """Seconds, (seconds, objective) of the steps, the model."""
    points, begin = [], time.perf_counter()
    C = 1.0 / (c1 + 2.0 * c2)

    def watch(result):
        points.append((time.perf_counter() - begin, result.fun / C))

    model = SequenceTagger(
        C, l1_ratio=c1 * C, fit_ends=False, all_possible_states=everything,
        all_possible_transitions=everything, callback=watch, **options,
    ).fit(X, y)  # fmt: skip
    return time.perf_counter() - begin, points, model


def first(points, loss):
    """Seconds to the objective."""
    return next((s for s, fun in points if fun <= loss * (1 + 1e-6)), np.inf)


def steps_to(score, X, y, Xt, yt, c1, c2):
    """Steps after which the score is reached, of the evaluated ones; None: it is not."""
    for k in _PASSES:
        model = ours(X, y, c1, c2, False, max_iter=k, tol=1e-6)[2]
        if quality(yt, model.predict(Xt)) >= score - 1e-3:
            return k
    return None


def main():
    parser = _common.make_parser(__doc__)
    parser.add_argument("--conll", help="file with a tagged corpus")
    parser.add_argument("--sets", help="comma-separated; default: all")
    parser.add_argument("--penalties", default="0:1,1:0.1", help="c1:c2, comma-separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chaine", action="store_true", help="time the package chaine as well, seen pairs")
    args = parser.parse_args()
    sets = {name: lambda draw=draw: markov(*draw) for name, draw in {**TUNE, **CHECK}.items()}
    sets.update({name: lambda draw=draw: markov(*draw, spans=True) for name, draw in SPANS.items()})
    sets["digits"] = digits
    if args.conll:
        sets = {os.path.basename(args.conll): lambda: conll(args.conll)}
    warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that are stopped to be evaluated
    rows = []
    for name in args.sets.split(",") if args.sets else sets:
        X, y, Xt, yt = halves(*sets[name]())
        for pair in args.penalties.split(","):
            c1, c2 = map(float, pair.split(":"))
            times, steps = [], None
            for turn in range(args.rounds):
                all_s, all_loss, _ = peer(X, y, Xt, c1, c2, True)
                seen_s, seen_loss, labels = peer(X, y, Xt, c1, c2, False)
                whole = first(ours(X, y, c1, c2, True, tol=1e-6)[1], all_loss)
                end, _, model = ours(X, y, c1, c2, False)
                points = ours(X, y, c1, c2, False, tol=1e-6)[1]
                if turn == 0:
                    score = quality(yt, labels)
                    steps = steps_to(score, X, y, Xt, yt, c1, c2)
                good = np.inf if steps is None else points[min(steps, len(points) - 1)][0]
                times.append((all_s, whole, seen_s, first(points, seen_loss), end, good))
            if args.chaine:
                print(f"{name}, {pair}: chaine {chaine(X, y, c1, c2):.2f} s", flush=True)
            all_s, whole, seen_s, there, end, good = np.median(times, axis=0)
            rows.append([name, f"{model.n_features_in_} x {len(model.classes_)}", f"{c1:g}, {c2:g}",
                         f"{all_s:.2f}", f"{whole:.2f}", f"{all_s / whole:.1f}", f"{seen_s:.2f}",
                         f"{there:.2f}", f"{seen_s / there:.1f}", f"{end:.2f}", f"{good:.2f}",
                         f"{seen_s / good:.1f}", f"{score:.4f}",
                         f"{quality(yt, model.predict(Xt)):.4f}"])  # fmt: skip
            print(rows[-1], flush=True)
    lines = [*_common.environment([]), *_common.markdown_table(COLUMNS, rows)]
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
