"""ExtremeSoftmaxSGD against full softmax and napkinXC, and on a million classes."""

from __future__ import annotations

import resource
import time

import numpy as np
import scipy.sparse as sp
from _extreme import JUDGED, load

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators.scores import LinearScores, log_losses


def _ours(X, y, X_test, y_test, **params):
    """Seconds of a fit at a fixed rate, and the model."""
    model = ExtremeSoftmaxSGD(random_state=0, **params)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start, model


def adam(X, y, K, targets, rates=(0.01, 0.1), batch=256, limit=20.0, n_threads=2):
    """Seconds in which torch's Adam on the full softmax reaches each mean log-loss, at the better rate."""
    import torch

    torch.set_num_threads(n_threads)
    best = {t: np.inf for t in targets}
    dense = torch.from_numpy(X.toarray())
    labels = torch.from_numpy(y.astype(np.int64))
    for rate in rates:
        torch.manual_seed(0)
        layer = torch.nn.Linear(X.shape[1], K)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
        spent, left = 0.0, sorted(targets, reverse=True)
        while spent < limit and left:
            start = time.perf_counter()
            order = torch.randperm(len(labels))
            for at in range(0, len(labels), batch):
                part = order[at : at + batch]
                loss = torch.nn.functional.cross_entropy(layer(dense[part]), labels[part])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            spent += time.perf_counter() - start
            with torch.no_grad():
                value = torch.nn.functional.cross_entropy(layer(dense), labels).item()
            while left and value <= left[0]:
                best[left[0]] = min(best[left[0]], spent)
                left.pop(0)
    return best


def lbfgs(X, y, targets, limit_iter=(10, 20, 40, 80, 160, 320, 640), limit=60.0):
    """The same for scikit-learn's lbfgs, by growing max_iter (each from scratch)."""
    import warnings

    from sklearn.linear_model import LogisticRegression

    best = {t: np.inf for t in targets}
    for n in limit_iter:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=np.inf, max_iter=n, tol=1e-12)
            start = time.perf_counter()
            model.fit(X, y)
        spent = time.perf_counter() - start
        value = float(np.mean(log_losses(LinearScores(model.coef_, model.intercept_), X, y)))
        for t in targets:
            if value <= t:
                best[t] = min(best[t], spent)
        if spent > limit or all(np.isfinite(v) for v in best.values()):
            break
    return best


def _adaptive(n_negatives, max_iter, decay):
    """Settings of a run of the default's steps without a ridge."""
    return dict(alpha=0.0, n_negatives=n_negatives, max_iter=max_iter, decay=decay)


# settings that reach each log-loss with something to spare: adaptive steps, and implicit steps with negatives
# that are drawn one by one
FULL = {
    "bibtex": {
        0.047: (
            _adaptive(32, 12, 0.8),
            dict(max_iter=50, decay=0.9, n_negatives=10, learning_rate=1000.0),
        ),
        0.013: (
            _adaptive(64, 16, 0.87),
            dict(max_iter=50, decay=0.9, n_negatives=20, learning_rate=1000.0, noise="frequency"),
        ),
    },
    "delicious": {
        2.13: (
            _adaptive(64, 12, 0.75),
            dict(max_iter=30, decay=0.85, n_negatives=20, learning_rate=6.0, noise="frequency"),
        ),
        1.85: (
            _adaptive(96, 30, 0.85),
            dict(max_iter=60, decay=0.92, n_negatives=50, learning_rate=6.0, noise="frequency"),
        ),
        1.77: (
            _adaptive(96, 40, 0.9),
            dict(max_iter=120, decay=0.96, n_negatives=50, learning_rate=6.0, noise="frequency"),
        ),
    },
}


def full_softmax(args):
    """Seconds to a mean train log-loss: ours, Adam, lbfgs, in turn."""
    rows = []
    for name, cases in FULL.items():
        X, y, X_test, y_test, K = load(args.folder, name)
        ours, theirs = {t: [] for t in cases}, []
        for _ in range(args.repeats):  # in turn: this machine has fast and slow minutes
            for target, both in cases.items():
                times = []
                for params in both:
                    seconds, model = _ours(X, y, X_test, y_test, n_jobs=args.n_jobs, **params)
                    times += [seconds, model.log_loss(X, y)]
                ours[target].append(times)
                print(name, target, "ours", times, flush=True)
            theirs.append(adam(X, y, K, list(cases)))
            print(name, "Adam", theirs[-1], flush=True)
        slow = lbfgs(X, y, list(cases))
        for target in cases:
            seconds, losses, one_by_one, _ = zip(*ours[target])
            peers = float(np.median([t[target] for t in theirs])), slow[target]
            rows.append([
                f"{name} {target}", f"{np.median(seconds):.2f}", f"{max(losses):.4f}",
                f"{np.median(one_by_one):.2f}",
                *(f"{p:.2f}" if np.isfinite(p) else "not reached" for p in peers),
                f"{peers[0] / np.median(seconds):.2f}",
            ])  # fmt: skip
            print(rows[-1], flush=True)
    return [
        "data, log-loss",
        "ours, s",
        "reached (worst run)",
        "implicit, one by one, s",
        "torch Adam, s",
        "lbfgs, s",
        "Adam / ours",
    ], rows


PTB = {
    "auto, one epoch": dict(max_iter=1),
    "implicit, 20 negatives": dict(
        method="implicit", n_negatives=20, noise="frequency", learning_rate=0.2, max_iter=1
    ),
    "is, 20 negatives": dict(method="is", n_negatives=20, learning_rate=0.2, max_iter=1),
    "nce, 25 negatives": dict(method="nce", n_negatives=25, learning_rate=1.0, max_iter=1),
    "ove, 5 negatives": dict(method="ove", n_negatives=5, learning_rate=3e-4, max_iter=1),
}


def ptb(args):
    """Validation perplexity: ours, after one epoch or as said, against an epoch of full softmax by SGD."""
    X, y, X_test, y_test, K = load(args.folder, "ptb")
    # one-hot rows: the norm is sqrt(3), and rates are per row of norm 1
    rows = []
    keep = np.random.default_rng(0).choice(len(y_test), JUDGED, replace=False)
    for name, params in PTB.items():
        runs = [_ours(X, y, X_test, y_test, n_jobs=args.n_jobs, **params) for _ in range(args.repeats)]
        seconds = float(np.median([s for s, _ in runs]))
        perplexity = float(np.exp(runs[-1][1].log_loss(X_test[keep], y_test[keep])))
        rate = f", rate {params['learning_rate']:g}" if "learning_rate" in params else ""
        rows.append([name + rate, f"{seconds:.2f}", f"{perplexity:.0f}"])
        print(rows[-1], flush=True)
    for rate in (0.9, 3.0):
        seconds, perplexity = full_sgd(X, y, X_test[keep], y_test[keep], K, rate)
        rows.append([f"full softmax, SGD in torch, rate {rate:g}", f"{seconds:.1f}", f"{perplexity:.0f}"])
        print(rows[-1], flush=True)
    return ["one epoch of ptb", "seconds", "validation perplexity"], rows


def full_sgd(X, y, X_test, y_test, K, rate, batch=64, n_threads=2):
    """One epoch of SGD on the full softmax for rows with the same few ones; (seconds, perplexity)."""
    import torch

    torch.set_num_threads(n_threads)
    all_columns = torch.from_numpy(X.indices.reshape(len(y), -1).astype(np.int64))
    labels = torch.from_numpy(y.astype(np.int64))
    entry = float(X.data[0])
    table, bias = torch.zeros(X.shape[1], K), torch.zeros(K)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    start = time.perf_counter()
    for at in range(0, len(labels), batch):
        part = order[at : at + batch]
        columns = all_columns[part]
        scores = table[columns[:, 0]]
        for j in range(1, columns.shape[1]):
            scores += table[columns[:, j]]
        P = torch.softmax(scores * entry + bias, 1)
        P[torch.arange(len(part)), labels[part]] -= 1.0
        P *= -rate
        bias += P.sum(0)
        P *= entry
        for j in range(columns.shape[1]):
            table.index_add_(0, columns[:, j], P)
    seconds = time.perf_counter() - start
    scores = LinearScores(table.numpy().T, bias.numpy())
    return seconds, float(np.exp(np.mean(log_losses(scores, X_test, y_test))))


def napkin(args):
    """Precision at 1 on the test rows, against napkinXC's HSM; on each row's first label."""
    import shutil
    import tempfile

    from napkinxc.models import HSM

    rows = []
    for name in args.sets:
        if name == "mnist":
            continue
        X, y, X_test, y_test, _ = load(args.folder, name)
        labels, results = [[int(k)] for k in y], {}
        for which in ("ours", "napkinXC") * args.repeats:
            start = time.perf_counter()
            if which == "ours":
                model = _ours(X, y, X_test, y_test, n_jobs=args.n_jobs)[1]
            else:
                folder = tempfile.mkdtemp()
                model = HSM(folder, threads=args.n_jobs, seed=0)
                model.fit(sp.csr_matrix(X), labels)
            seconds = time.perf_counter() - start
            start = time.perf_counter()
            if which == "ours":
                top = model.predict(X_test)
            else:
                top = np.array([p[0] if p else -1 for p in model.predict(sp.csr_matrix(X_test), top_k=1)])
                shutil.rmtree(folder)
            predicting = time.perf_counter() - start
            results.setdefault(which, []).append((seconds, predicting, float(np.mean(top == y_test))))
        for which, runs in results.items():
            rows.append([name, which, *(f"{v:.3f}" for v in np.median(runs, axis=0))])
            print(rows[-1], flush=True)
    return ["data", "", "fit, s", "predict, s", "precision at 1"], rows


def million(args, K=10**6, D=1000, batches=100, size=10**5, nonzeros=10):
    """A stream of 10^7 synthetic rows with 10^6 classes through partial_fit.

    Each class has ``nonzeros`` features of its own; a row shows each with probability 0.9,
    and two others.
    """
    rng = np.random.default_rng(0)
    own = rng.integers(0, D, size=(K, nonzeros), dtype=np.int32)

    def draw(n):
        y = rng.integers(0, K, n)
        columns = np.hstack([own[y], rng.integers(0, D, size=(n, 2), dtype=np.int32)])
        seen = np.hstack([rng.random((n, nonzeros)) < 0.9, np.ones((n, 2), dtype=bool)])
        i = np.repeat(np.arange(n), nonzeros + 2)[seen.ravel()]
        X = sp.csr_array(
            (np.ones(len(i), dtype=np.float32), (i, columns.ravel()[seen.ravel()])), shape=(n, D)
        )
        X.sum_duplicates()
        X.data[:] = 1.0 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))
        return X, y

    model = ExtremeSoftmaxSGD(
        args.million_method, n_negatives=args.million_negatives, learning_rate=args.million_rate,
        n_jobs=args.n_jobs, fit_intercept=False, random_state=0,
    )  # fmt: skip
    X_test, y_test = draw(1000)
    fitting, lines = 0.0, []
    for b in range(batches):
        X, y = draw(size)
        start = time.perf_counter()
        model.partial_fit(X, y, classes=np.arange(K) if b == 0 else None)
        fitting += time.perf_counter() - start
        if b + 1 in (1, 10, 30, batches):
            start = time.perf_counter()
            top, _ = model.predict_topk(X_test, 5)
            predicting = time.perf_counter() - start
            first = float(np.mean(top[:, 0] == y_test))
            five = float(np.mean((top == y_test[:, None]).any(axis=1)))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            figures = f"{fitting:.1f}", f"{predicting:.2f}", f"{first:.3f}", f"{five:.3f}", f"{memory:.2f}"
            lines.append([f"{(b + 1) * size:.0e}", *figures])
            print(lines[-1], flush=True)
    return [
        "rows",
        "partial_fit, s",
        "top 5 of 1000 rows, s",
        "accuracy",
        "in the top 5",
        "peak memory, GB",
    ], lines
