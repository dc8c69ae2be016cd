#!/usr/bin/env python
"""Label sets from defaults: LPSparseMAPClassifier against one-vs-rest and a chain of logistic regressions.

Example, micro and macro F1 on the test parts, and seconds of fit and prediction in one thread. The defaults
were chosen on the sets of `CHOOSE`; those of `CHECK` had no say. Dense sets are standardised, as a user
would; official splits where there are some, else generated or shuffled by the seed. Needs scene, emotions,
cal500, bibtex and delicious (4000 of its rows, 200 of its labels) in the data folder for their rows.
Run it with one thread of BLAS: OMP_NUM_THREADS=1. With --tuned all have their penalty chosen by the best mean
example F1 in the same five folds among seven: LPSparseMAPClassifierCV from its defaults, which also chooses
between its three thresholds, the others with C from 0.01 to 10.
"""

import sys
import time
import warnings

import _common
import _data
import numpy as np
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.preprocessing import StandardScaler

from sparsekit import LPSparseMAPClassifier, LPSparseMAPClassifierCV

CHOOSE = ("emotions", "cal500", "like yeast", "like enron", "one of eight")
CHECK = ("scene", "bibtex", "delicious", "like corel", "one of five", "words")
AVERAGES = ("samples", "micro", "macro")


def latent(n, p, K, cardinality, seed, binary=False, d=12, hidden=4):
    """Labels are thresholds of latent scores, of which the features do not show all."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, d))
    score = z @ (rng.standard_normal((d, K)) * (rng.random((d, K)) < 0.4)) + rng.standard_normal((n, K))
    share = np.clip(rng.dirichlet(np.full(K, 0.6)) * cardinality, 2.5 / n, 0.75)
    Y = np.column_stack([s > np.quantile(s, 1.0 - q) for s, q in zip(score.T, share)]).astype(int)
    to_features = rng.standard_normal((d - hidden, p)) * (rng.random((d - hidden, p)) < 0.3)
    X = z[:, : d - hidden] @ to_features + 1.5 * rng.standard_normal((n, p))
    if not binary:
        return X, Y
    often = 0.1 * rng.random(p).clip(0.05)
    cut = np.array([np.quantile(x, 1.0 - q) for x, q in zip(X.T, often)])
    return sparse.csr_matrix((cut < X).astype(float)), Y


def exclusive(n, p, seed, K):
    """One label a row, sometimes a second one; features are noise around the labels' centres."""
    rng = np.random.default_rng(seed)
    Y, odds = np.zeros((n, K), dtype=int), np.arange(1, K + 1)
    topic = rng.choice(K, n, p=odds / odds.sum())
    Y[np.arange(n), topic] = 1
    two = rng.random(n) < 0.2
    Y[two, (topic[two] + 1) % K] = 1
    centres = 0.35 * rng.standard_normal((K, p))
    noise = 1.2 * rng.standard_normal((n, p)) @ (np.eye(p) + 0.1 * rng.standard_normal((p, p)))
    return Y @ centres + noise, Y


def words(seed):
    """Few rows, many columns, labels that follow counts of words: scikit-learn's generator."""
    X, Y = make_multilabel_classification(
        978, 1449, n_classes=45, n_labels=2, length=40, sparse=True, random_state=seed
    )
    X = sparse.csr_matrix(X, dtype=float)
    X.data[:] = 1.0
    return X, Y


MADE = {
    "like yeast": (1500, lambda seed: latent(2417, 103, 14, 4.2, 100 + seed)),
    "like enron": (1123, lambda seed: latent(1702, 1001, 53, 3.4, 200 + seed, binary=True)),
    "like corel": (2000, lambda seed: latent(3000, 400, 120, 3.0, 300 + seed, binary=True, d=30, hidden=6)),
    "one of eight": (700, lambda seed: exclusive(1500, 80, 777 + seed, 8)),
    "one of five": (1200, lambda seed: exclusive(2000, 135, 400 + seed, 5)),
    "words": (500, words),
}


def dense(A):
    return np.asarray(A.toarray() if sparse.issparse(A) else A)


def read(name, seed, folder):
    """X, Y, X_test, Y_test."""
    if name in MADE:
        n, make = MADE[name]
        X, Y = make(seed)
        parts = [X[:n], Y[:n], X[n:], Y[n:]]
    else:
        d = _data.read(_data.data_folder(folder), name)
        if name == "cal500":
            X, Y = (d.get(key, d.get(f"{key}_train")) for key in "XY")
            if "X_test" in d:
                X, Y = (np.vstack([dense(a), dense(d[k])]) for a, k in ((X, "X_test"), (Y, "Y_test")))
            X, Y = dense(X), dense(Y).astype(int)
            order = np.random.default_rng(seed).permutation(len(X))
            parts = [X[order[:451]], Y[order[:451]], X[order[451:]], Y[order[451:]]]
        else:
            parts = [
                d["X_train"],
                dense(d["Y_train"]).astype(int),
                d["X_test"],
                dense(d["Y_test"]).astype(int),
            ]
        if name == "delicious":
            rng, (X, Y, X_test, Y_test) = np.random.default_rng(0), parts
            top = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:200])
            a, b = rng.choice(len(Y), 4000, False), rng.choice(len(Y_test), 1500, False)
            parts = [X[a], Y[a][:, top], X_test[b], Y_test[b][:, top]]
    X, X_test = parts[0], parts[2]
    if not sparse.issparse(X) or X.nnz > 0.3 * X.shape[0] * X.shape[1]:
        scale = StandardScaler().fit(dense(X))
        parts[0], parts[2] = scale.transform(dense(X)), scale.transform(dense(X_test))
    return parts


def chain(X, Y, X_test, C=1.0):
    """A chain refuses labels that are all alike: they are predicted as they were."""
    vary = Y.min(axis=0) < Y.max(axis=0)
    model = ClassifierChain(LogisticRegression(C=C)).fit(X, Y[:, vary])
    begin = time.perf_counter()
    found = np.tile(Y[:1], (X_test.shape[0], 1))
    found[:, vary] = model.predict(X_test)
    return found, time.perf_counter() - begin


def one_vs_rest(X, Y, X_test, C=1.0):
    return fitted(OneVsRestClassifier(LogisticRegression(C=C)))(X, Y, X_test)


def fitted(model):
    def run(X, Y, X_test):
        model.fit(X, Y)
        begin = time.perf_counter()
        return model.predict(X_test), time.perf_counter() - begin

    return run


def tuned(run):
    def search(X, Y, X_test):
        scores = np.zeros(len(STRENGTHS))
        for train, test in KFold().split(X):
            for i, C in enumerate(STRENGTHS):
                found = run(X[train], Y[train], X[test], C)[0]
                scores[i] += f1_score(Y[test], found, average="samples", zero_division=1.0)
        return run(X, Y, X_test, STRENGTHS[scores.argmax()])

    return search


STRENGTHS = np.logspace(-2, 1, 7)
MODELS = {
    "`LPSparseMAPClassifier()`": fitted(LPSparseMAPClassifier()),
    '`loss="logistic"`': fitted(LPSparseMAPClassifier(loss="logistic")),
    '`pairs="all"`': fitted(LPSparseMAPClassifier(pairs="all")),
    "`OneVsRestClassifier`": one_vs_rest,
    "`ClassifierChain`": chain,
}
TUNED = {
    "`LPSparseMAPClassifierCV()`": fitted(LPSparseMAPClassifierCV()),
    '`LPSparseMAPClassifierCV(loss="logistic")`': fitted(LPSparseMAPClassifierCV(loss="logistic")),
    "`OneVsRestClassifier`": tuned(one_vs_rest),
    "`ClassifierChain`": tuned(chain),
}


def measure(names, models, seeds, folder, most_for_pairs):
    lines = []
    for name in names:
        varies = name in MADE or name == "cal500"
        for label, run in models.items():
            values = []
            for seed in range(seeds if varies else 1):
                X, Y, X_test, Y_test = read(name, seed, folder)
                if "pairs" in label and Y.shape[1] > most_for_pairs:
                    continue
                begin = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of logistic regressions that reach max_iter=100
                    found, predicting = run(X, Y, X_test)
                seconds = time.perf_counter() - begin - predicting
                scores = [100 * f1_score(Y_test, found, average=a, zero_division=0) for a in AVERAGES]
                values.append([*scores, seconds, predicting])
            if values:
                mean = np.mean(values, axis=0)
                cells = [f"{value:.1f}" for value in mean[:3]] + [f"{value:.2f}" for value in mean[3:]]
                lines.append([name, label, *cells])
                print(*lines[-1], flush=True)
    return lines


def main():
    parser = _common.make_parser(__doc__)
    add = parser.add_argument
    add("--data", help="folder of the data sets")
    add("--sets", nargs="*", default=[*CHOOSE, *CHECK], choices=[*CHOOSE, *CHECK])
    add("--seeds", type=int, default=3, help="of sets without an official split (default %(default)s)")
    add(
        "--most-for-pairs", type=int, default=60, help='labels at most with pairs="all" (default %(default)s)'
    )
    add("--tuned", action="store_true", help="penalties chosen in folds, instead of defaults")
    args = parser.parse_args()
    text = [
        "# Label sets, tuned" if args.tuned else "# Label sets from defaults",
        "",
        *_common.environment(()),
    ]
    titles = ["set", "model", "example F1", "micro F1", "macro F1", "fit, s", "predict, s"]
    for title, group in (("Chosen on", CHOOSE), ("Checked on", CHECK)):
        names = [name for name in group if name in args.sets]
        if names:
            rows = measure(names, TUNED if args.tuned else MODELS, args.seeds, args.data, args.most_for_pairs)
            text += [f"## {title}", "", *_common.markdown_table(titles, rows), ""]
    print("\n".join(text))
    _common.write_markdown(args.markdown, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
