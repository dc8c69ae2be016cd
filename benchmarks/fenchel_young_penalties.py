"""SparsemaxClassifier and SoftmaxClassifier from strong to weak penalties, and CV estimators at defaults.

    python benchmarks/fenchel_young_penalties.py --markdown penalties.md

scikit-learn's own sets and drawn ones, so nothing has to be fetched. A fit's time is the median of
``--rounds`` fits at the estimators' defaults on one thread. Its steps and relative duality gap follow; a fit
that warned has a "!". The script uses the public interface alone: run it in another environment to see
another version of the package.
"""

from __future__ import annotations

import functools
import time
import warnings

import _common
import numpy as np
from sklearn.datasets import load_digits, load_wine, make_classification, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from sparsekit import SoftmaxClassifier, SoftmaxClassifierCV, SparsemaxClassifier, SparsemaxClassifierCV

CLASSIFIERS = {"sparsemax": SparsemaxClassifier, "softmax": SoftmaxClassifier}
WITH_CV = {"sparsemax": SparsemaxClassifierCV, "softmax": SoftmaxClassifierCV}
ALPHAS = [10.0, 1e-2, 1e-4, 1e-6, 1e-8]


def data(name):
    """X and targets."""
    if name.startswith("digits"):
        X, y = load_digits(return_X_y=True)
        return (X / 16.0 if name == "digits / 16" else X), y
    if name == "wine":
        X, y = load_wine(return_X_y=True)
        return scale(X), y
    if name == "wide":
        return make_classification(150, 3000, n_informative=20, n_classes=4, random_state=0)
    if name == "tall":
        return make_classification(
            20000, 30, n_informative=10, n_classes=5, weights=[0.8, 0.1, 0.05, 0.03], random_state=0
        )
    return make_multilabel_classification(1000, 40, n_classes=8, allow_unlabeled=False, random_state=0)


SETS = ["digits", "digits / 16", "wine", "wide", "tall", "labels"]


def timed(make, X, y, rounds):
    """(median seconds, the last model, whether it warned of its end)."""
    times, warned = [], False
    for _ in range(rounds):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            start = time.perf_counter()
            model = make().fit(X, y)
            times.append(time.perf_counter() - start)
        warned = any(issubclass(w.category, ConvergenceWarning) for w in record)
    return float(np.median(times)), model, warned


def main():
    parser = _common.make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-time", type=float, default=20.0, help="of one fit, in seconds")
    parser.add_argument("--no-cv", action="store_true")
    args = parser.parse_args()
    rows, chosen = [], []
    for name in args.sets:
        X, y = data(name)
        for kind, cls in CLASSIFIERS.items():
            cells = []
            for alpha in ALPHAS:
                make = functools.partial(cls, alpha, max_time=args.max_time)
                seconds, model, warned = timed(make, X, y, args.rounds)
                gap = model.dual_gap_ / model.objective_
                cells.append(f"{seconds:.3g} ({int(model.n_iter_[0])}, {gap:.0e}){'!' if warned else ''}")
            rows.append((name, kind, *cells))
            print(*rows[-1], sep="  ", flush=True)
        if name.startswith("digits") and not args.no_cv:
            for kind, cls in WITH_CV.items():
                seconds, model, warned = timed(cls, X, y, 1)
                chosen.append((name, kind, f"{seconds:.3g}{'!' if warned else ''}", f"{model.alpha_:g}",
                               f"{model.mean_score_.max():.4f}"))  # fmt: skip
                print(*chosen[-1], sep="  ", flush=True)
    if args.markdown:
        lines = _common.environment([])
        lines += _common.markdown_table(("data", "map", *(f"alpha = {a:g}" for a in ALPHAS)), rows)
        if chosen:
            columns = ("data", "map", "CV at defaults, s", "alpha chosen", "best mean score")
            lines += _common.markdown_table(columns, chosen)
        _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
