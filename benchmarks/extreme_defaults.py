"""ExtremeSoftmaxSGD with a ridge to zeros against the exact softmax of the same objective; the default ridge.

    python benchmarks/extreme_defaults.py                     # all sets, prior=None
    python benchmarks/extreme_defaults.py --alpha default 0   # and without a ridge
    python benchmarks/extreme_defaults.py --sets iris,digits --seeds 3
    python benchmarks/extreme_defaults.py --prior             # new rows, the default beside prior=None

Defaults may be chosen on the sets of CHOSEN_ON and are judged on those of HELD_BACK. The exact softmax is
SoftmaxClassifier of the same ridge; without one it gets 1e-8, and its mean loss counts. Features are scaled
to at most 1 in absolute value, rows of sparse sets to norm 1. Of several labels the first one counts.
The data folder is --data DIR, $SPARSEKIT_DATA or ../shared/data next to the checkout.
"""

from __future__ import annotations

import time
import warnings

import _common
import _data
import _extreme
import numpy as np
import scipy.sparse as sp
from _extreme_sets import gaussians, graph, skip_grams
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from sparsekit import ExtremeSoftmaxSGD, SoftmaxClassifier
from sparsekit._extreme.estimators.scores import LinearScores, log_losses

CHOSEN_ON = (
    "iris", "digits", "overlap26", "bibtex", "delicious", "sector", "mnist", "fb15k", "graph6k",
)  # fmt: skip
HELD_BACK = ("wine", "breast_cancer", "overlap5", "overlap300", "news20", "graph3k", "graph20k", "skipgrams")
# nodes, relations, facts, factors, seed
GRAPHS = {
    "graph3k": (3000, 20, 10000, 16, 51), "graph6k": (6000, 40, 40000, 12, 5),
    "graph20k": (20000, 60, 120000, 16, 9),
}  # fmt: skip
# where the exact softmax would take hours
TOO_LARGE = ("fb15k", "graph3k", "graph6k", "graph20k", "skipgrams")
WEAKEST = 1e-8
PRIOR_COLUMNS = ("set", "prior", "rows x features, K", "rows a class", "CPU s", "P@1", "hits@10", "log-loss")
COLUMNS = (
    "set", "alpha", "rows x features, K", "s", "epochs", "objective", "exact", "above, % of log K",
    "error of the estimate", "train acc", "exact", "test acc / P@1", "exact", "hits@10",
)  # fmt: skip


def load(folder, name, seed=0):
    """X, y, X_test, y_test."""
    made = {
        "overlap5": (4000, 8, 5, 0.7, 11),
        "overlap26": (15000, 16, 26, 0.9, 12),
        "overlap300": (12000, 40, 300, 0.7, 13),
    }
    if name in GRAPHS:
        return graph(*GRAPHS[name])
    if name == "skipgrams":
        return skip_grams(folder, 200000, 5, 14)
    if name in ("bibtex", "delicious", "sector", "news20", "mnist", "fb15k"):
        if name == "news20":
            d = _data.read(folder, name)
            X, y = _extreme.normalize(sp.csr_array(d["X_train"])), d["y_train"]
        else:
            X, y, X_test, y_test, _ = _extreme.load(folder, name, dtype=np.float64)
            if name != "mnist":
                return X, y, X_test, y_test
            return X.toarray()[:10000], y[:10000], X_test.toarray()[:5000], y_test[:5000]
    elif name in made:
        X, y = gaussians(*made[name])
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X = StandardScaler().fit_transform(X) if name in ("wine", "breast_cancer") else X
        X = X / np.abs(X).max()
    order = np.random.default_rng(seed).permutation(len(y))
    n = len(y) * 3 // 4
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def objective(model, X, y, alpha, n_classes):
    """Mean loss and ridge, intercepts included, of any softmax model."""
    W, b = np.asarray(model.coef_), np.asarray(model.intercept_)
    if len(W) == 1:  # two classes as one score
        W, b = np.vstack([-W / 2, W / 2]), np.concatenate([-b / 2, b / 2])
    codes = np.searchsorted(model.classes_, y)
    loss = log_losses(LinearScores(W.astype(np.float64), b.astype(np.float64)), X, codes).mean()
    return loss + alpha / 2 * ((W**2).sum() + (b**2).sum())


def measure_prior(folder, name, prior, args):
    """A row of the table of --prior; medians over the seeds. X is float32."""
    X, y, X_test, y_test = load(folder, name)
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    counts, ours = np.bincount(np.unique(y, return_inverse=True)[1]), []
    for seed in range(args.seeds):
        start = time.process_time()  # the machine may be busy
        model = ExtremeSoftmaxSGD(prior=prior, random_state=seed).fit(X, y)
        seconds = time.process_time() - start
        labels = model.predict_topk(X_test, k=10)[0]
        codes = np.searchsorted(model.classes_, y_test)
        losses = log_losses(LinearScores(model.coef_, model.intercept_), X_test, codes)
        hits = (labels == y_test[:, None]).any(axis=1).mean()
        ours.append((seconds, (labels[:, 0] == y_test).mean(), hits, losses.mean()))
    seconds, precision, hits, loss = np.median(ours, axis=0)
    mark = " (held back)" if name in HELD_BACK else ""
    return (
        name + mark, model.prior_, f"{X.shape[0]} x {X.shape[1]}, {len(counts)}",
        f"{np.median(np.repeat(counts, counts)):.0f}", f"{seconds:.1f}", f"{precision:.4f}", f"{hits:.4f}",
        f"{loss:.3f}",
    )  # fmt: skip


def measure(folder, name, alpha, args):
    """A row of the table; medians over the seeds."""
    X, y, X_test, y_test = load(folder, name)
    n_classes, default = len(np.unique(y)), alpha is None
    ours, limit = [], None
    for seed in range(args.seeds):
        start = time.perf_counter()
        ridge = {} if default else {"alpha": alpha}
        model = ExtremeSoftmaxSGD(prior=None, random_state=seed, **ridge).fit(X, y)
        seconds = time.perf_counter() - start
        alpha = model.alpha_
        labels = model.predict_topk(X_test, k=10)[0]
        value = objective(model, X, y, alpha, n_classes)
        ours.append(
            (
                seconds, model.n_iter_, value, model.score(X, y), (labels[:, 0] == y_test).mean(),
                (labels == y_test[:, None]).any(axis=1).mean(),
                abs(getattr(model, "objective_", np.nan) - value) / np.log(n_classes),
            )
        )  # fmt: skip
    seconds, epochs, value, train, test, hits, error = np.median(ours, axis=0)
    exact = ("-",) * 4
    if name not in TOO_LARGE and not args.no_exact:
        # the ridge holds for intercepts, in both
        peer = SoftmaxClassifier(alpha=alpha or WEAKEST, max_time=args.max_time).fit(X, y)
        limit = objective(peer, X, y, alpha, n_classes)
        exact = (
            f"{limit:.4f}", f"{100 * (value - limit) / np.log(n_classes):.2f}",
            f"{100 * peer.score(X, y):.1f}", f"{100 * peer.score(X_test, y_test):.1f}",
        )  # fmt: skip
    mark = " (held back)" if name in HELD_BACK else ""
    return (
        name + mark, f"{alpha:.2g}{' (default)' if default else ''}",
        f"{X.shape[0]} x {X.shape[1]}, {n_classes}", f"{seconds:.2f}",
        f"{epochs:.0f}", f"{value:.4f}", exact[0], exact[1],
        "-" if np.isnan(error) else f"{100 * error:.2f} %", f"{100 * train:.1f}", exact[2],
        f"{100 * test:.1f}", exact[3], f"{100 * hits:.1f}" if n_classes > 50 else "",
    )  # fmt: skip


def main(argv=None):
    parser = _common.make_parser(__doc__)
    parser.add_argument("--data", metavar="DIR", help="folder of the .npz files")
    parser.add_argument("--sets", default=",".join(CHOSEN_ON + HELD_BACK), help="data sets (default: all)")
    parser.add_argument("--alpha", nargs="+", default=["default"], help="ridges (default: the default's)")
    parser.add_argument("--seeds", type=int, default=1, help="fits of each set (default: 1)")
    parser.add_argument("--max-time", type=float, default=120.0, help="seconds of the exact softmax")
    parser.add_argument("--prior", action="store_true", help="compare the default prior with None")
    parser.add_argument("--no-exact", action="store_true", help="leave the exact softmax out")
    args = parser.parse_args(argv)
    folder, rows = _data.data_folder(args.data), []
    for name in args.sets.split(","):
        alphas = (None if one == "default" else float(one) for one in args.alpha)
        for one in (None, "auto") if args.prior else alphas:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                rows.append((measure_prior if args.prior else measure)(folder, name, one, args))
            print("| " + " | ".join(rows[-1]) + " |", flush=True)
    columns = PRIOR_COLUMNS if args.prior else COLUMNS
    lines = _common.environment([]) + _common.markdown_table(columns, rows)
    print("\n".join(lines))
    _common.write_markdown(args.markdown, lines)


if __name__ == "__main__":
    main()
