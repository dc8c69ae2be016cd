"""Multinomial L1LogisticOBA from strong to weak penalties: time, iterations and certificate of default fits.

    python benchmarks/weak_multinomial.py                      # sets that need no files
    python benchmarks/weak_multinomial.py --sets mnist,news20 --max-time 30 --markdown multinomial.md

The estimator at its defaults but for ``max_time``, float64, CSR or C-ordered, an intercept for each class.
The time is that of a whole fit, the median of ``--repeats`` (one where it takes more than a second). A fit
that warned, or that ``max_time`` ended, has a "!" and says with its gap how far it is proved to be from the
optimum.
"""

from __future__ import annotations

import time
import warnings

import _common
import _data
import _weak_data
import numpy as np
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.preprocessing import scale

from sparsekit import L1LogisticOBA

WEAK_TO_STRONG = [10.0**k for k in range(-3, 5)]


def _wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def _one_hot():
    X, _ = _weak_data.one_hot(5000, 300, seed=3)
    rng = np.random.default_rng(0)
    scores = X @ rng.standard_normal((300, 4))
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def _issue():
    return make_classification(n_samples=20, n_features=20, n_informative=10, n_classes=3, random_state=0)


def _tall():
    return make_classification(n_samples=2000, n_features=40, n_informative=10, n_classes=5, random_state=1)


def _wide():
    return make_classification(n_samples=150, n_features=2000, n_informative=20, n_classes=4, random_state=2)


GENERATED = {
    "20 x 20": _issue,
    "digits": lambda: load_digits(return_X_y=True),
    "wine": _wine,
    "tall": _tall,
    "wide": _wide,
    "one_hot": _one_hot,
}
REAL = ("mnist", "news20", "news20_tf_idf", "newsgroups_bigrams", "sector")


def load(name, folder):
    """X and labels."""
    if name in GENERATED:
        return GENERATED[name]()
    data = _data.read(folder, name.removesuffix("_tf_idf"))
    X = data["X_train"]
    if name == "mnist":
        X = X / 255
    elif name.startswith("news"):
        X = X if name == "news20" else _data.tf_idf(X)
    return X, data["group"] if name == "newsgroups_bigrams" else data["y_train"]


def fit(X, y, C, repeats, max_time):
    """A cell of the table."""
    seconds = []
    while not seconds or (len(seconds) < repeats and seconds[0] < 1.0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            model = L1LogisticOBA(C=C, max_time=max_time).fit(X, y)
            seconds.append(time.perf_counter() - start)
    gap = model.dual_gap_ / model.objective_
    mark = "!" if caught else ""
    return f"{np.median(seconds):.3g} ({int(np.max(model.n_iter_))}, {gap:.0e}){mark}"


def main():
    parser = _common.make_parser(__doc__)
    parser.add_argument("--sets", default=",".join(GENERATED), help=f"of {','.join([*GENERATED, *REAL])}")
    parser.add_argument("--data", metavar="DIR", help="folder of the real sets")
    parser.add_argument("--C", default=",".join(f"{C:g}" for C in WEAK_TO_STRONG))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-time", type=float, default=30.0, help="of one fit, in seconds")
    args = parser.parse_args()
    values, rows = [float(C) for C in args.C.split(",")], []
    for name in args.sets.split(","):
        X, y = load(name, None if name in GENERATED else _data.data_folder(args.data))
        rows.append((name, *(fit(X, y, C, args.repeats, args.max_time) for C in values)))
        print(*rows[-1], sep="  ", flush=True)
    lines = _common.environment([])
    lines += _common.markdown_table(("data", *(f"C = {C:g}" for C in values)), rows)
    _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
