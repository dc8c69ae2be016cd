"""One solver in a process of its own: `python _extreme_worker.py SOLVER DATA.npz OUT.jsonl LIMIT CLOCK`.

It needs NumPy and the solver, not sparsekit, so that a peer may live in an environment with versions of its
own. Each finished fit, or each evaluation of a running one, is a line of JSON in OUT. It has label, seconds
(of training alone), and p1, hits10, loss (or null) on the test rows. A line with "missing" says why there is
none. After LIMIT seconds of training no further fit begins (trees always begin a second one). The parent
kills a process that writes nothing for long, and keeps its lines.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

TOP, LOSS_ROWS, SMALLEST = 10, 1000, 1e-12
# "perf_counter", or "process_time" where other work shares the processors
clock = getattr(time, sys.argv[-1], time.perf_counter)
PATIENCE = 3  # evaluations of torch, each half as late again as the one before
HS_FROM = 1000  # classes from which fastText takes its hierarchical softmax


class Data:
    """Arrays of a set: CSR parts of X and X_test, codes y and y_test."""

    def __init__(self, path):
        with np.load(path) as z:
            self.parts = {k: z[k] for k in z.files}
        self.y, self.y_test = self.parts["y"], self.parts["y_test"]
        self.n_features, self.n_classes = (int(v) for v in self.parts["shape"])

    def csr(self, which):
        """A csr_matrix, "X" or "X_test"."""
        from scipy.sparse import csr_matrix

        return csr_matrix(self.arrays(which), shape=(len(self.arrays(which)[2]) - 1, self.n_features))

    def arrays(self, which):
        return tuple(self.parts[f"{which}_{part}"] for part in ("data", "indices", "indptr"))

    def words(self, which):
        """Lines of the words f0, f1, ...: fastText knows no values."""
        _, indices, indptr = self.arrays(which)
        names = [f"f{j}" for j in range(self.n_features)]
        return [" ".join(names[j] for j in indices[begin:end]) for begin, end in pairwise(indptr)]


class Out:
    """Where results go, and the time that is left."""

    def __init__(self, path, data, limit):
        self.path, self.data, self.limit, self.spent = path, data, limit, 0.0

    def write(self, **line):
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    @property
    def over(self):
        return self.spent > self.limit

    def result(self, label, seconds, top, loss=None):
        """Note a fit by its TOP best classes of each test row."""
        hit = np.asarray(top) == self.data.y_test[:, None]
        loss = None if loss is None else float(loss)
        self.write(
            label=label, seconds=seconds, p1=float(hit[:, 0].mean()), hits10=float(hit.any(axis=1).mean()),
            loss=loss if loss is None or math.isfinite(loss) else None,
        )  # fmt: skip
        return float(hit[:, 0].mean())


def _padded(lists):
    """(n, TOP) codes from lists of them, -1 where there are fewer."""
    top = np.full((len(lists), TOP), -1, dtype=np.int64)
    for i, row in enumerate(lists):
        top[i, : min(TOP, len(row))] = row[:TOP]
    return top


# ------------------------------------------------------------------ ours


def ours(data, out):
    """The bare constructor, by its number of epochs; then a ridge to zeros, and none."""
    import warnings

    from sparsekit import ExtremeSoftmaxSGD

    warnings.simplefilter("ignore")
    X, X_test = data.csr("X"), data.csr("X_test")
    # compiled parts are loaded, and pages of the table given, before the clock runs
    ExtremeSoftmaxSGD(random_state=0, max_iter=1).fit(X, data.y)

    def fit(label, **params):
        model = ExtremeSoftmaxSGD(random_state=0, **params)
        start = clock()
        model.fit(X, data.y)
        seconds = clock() - start
        out.spent += seconds
        codes = model.classes_
        top = model.predict_topk(X_test, k=min(TOP, len(codes)))[0]
        out.result(label, seconds, top, model.log_loss(X_test, data.y_test))
        return model

    bare = fit("ours")  # first: whatever the limit, its own end is there
    out.spent = 0.0
    for epochs in (1, 2, 3, 5, 8, 12, 20, 30):
        if out.over or epochs >= bare.n_iter_:
            break
        fit("ours", max_iter=epochs)
    for label, params in (("ours, prior=None", dict(prior=None)), ("ours, alpha=0", dict(alpha=0.0))):
        out.spent = 0.0
        fit(label, **params)
        for epochs in (1, 3, 10):
            if out.over:
                break
            fit(label, max_iter=epochs, **params)


# ------------------------------------------------------------------ napkinXC


def napkin(name):
    def run(data, out):
        from napkinxc import models

        X, X_test = data.csr("X"), data.csr("X_test")
        labels = [[int(k)] for k in data.y]
        few = X_test[:LOSS_ROWS]
        # iterations of LIBLINEAR in each node; 100 is the default
        for i, iterations in enumerate((100, 3, 10, 1)):
            if out.over and i > 1:
                break
            with tempfile.TemporaryDirectory() as folder:
                model = getattr(models, name)(folder, threads=1, seed=0, liblinear_max_iter=iterations)
                start = clock()
                model.fit(X, labels)
                seconds = clock() - start
                out.spent += seconds
                top = _padded(model.predict(X_test, top_k=TOP))
                loss = None
                if name == "HSM":  # of its distribution; the others give each label a probability of its own
                    pairs = model.predict_proba(few, top_k=data.n_classes)
                    truth = data.y_test[:LOSS_ROWS]
                    loss = -np.mean(
                        [math.log(max(dict(p).get(int(k), 0.0), SMALLEST)) for p, k in zip(pairs, truth)]
                    )
                out.result(f"napkinXC {name}", seconds, top, loss)

    return run


# ------------------------------------------------------------------ PECOS


def pecos(data, out):
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel
    from scipy.sparse import csc_matrix

    X, X_test = (data.csr(which).astype(np.float32) for which in ("X", "X_test"))
    n = X.shape[0]
    Y = csc_matrix((np.ones(n, dtype=np.float32), (np.arange(n), data.y)), shape=(n, data.n_classes))
    for iterations in (100, 3, 10, 1):  # 100 is the default
        if out.over:
            break
        start = clock()
        features = LabelEmbeddingFactory.create(Y.tocsr(), X, method="pifa", threads=1)
        chain = Indexer.gen(features, threads=1)
        model = XLinearModel.train(X, Y, C=chain, threads=1, max_iter=iterations)
        seconds = clock() - start
        out.spent += seconds
        scores = model.predict(X_test, only_topk=TOP, threads=1).tocsr()
        lists = []
        for begin, end in zip(scores.indptr[:-1], scores.indptr[1:]):
            best = np.argsort(-scores.data[begin:end], kind="stable")
            lists.append(scores.indices[begin:end][best])
        out.result("PECOS XLinear", seconds, _padded(lists))


# ------------------------------------------------------------------ omikuji


def omikuji(data, out):
    """Its defaults: three trees as in Parabel. Reading the file that it trains on counts."""
    from omikuji import Model

    test = [
        list(zip(part.indices.tolist(), part.data.tolist()))
        for part in (data.csr("X_test")[i] for i in range(len(data.y_test)))
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        values, indices, indptr = data.arrays("X")
        lines = [f"{len(data.y)} {data.n_features} {data.n_classes}"]
        for label, (begin, end) in zip(data.y, pairwise(indptr)):
            pairs = zip(indices[begin:end], values[begin:end])
            lines.append(f"{label} " + " ".join(f"{j}:{v:.8g}" for j, v in pairs))
        path.write_text("\n".join(lines) + "\n")
        start = clock()
        model = Model.train_on_data(str(path), n_threads=1)
        seconds = clock() - start
        out.spent += seconds
        out.result("omikuji", seconds, _padded([[k for k, _ in model.predict(x, top_k=TOP)] for x in test]))


# ------------------------------------------------------------------ fastText


def fasttext(data, out):
    """Its defaults (rate 0.1, 5 epochs), and more of both; the hierarchical softmax for many classes."""
    import fasttext as package

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        lines = data.words("X")
        path.write_text("\n".join(f"__label__{k} {line}" for k, line in zip(data.y, lines)) + "\n")
        test = data.words("X_test")
        loss = "softmax" if data.n_classes < HS_FROM else "hs"
        for rate, epochs in ((0.1, 5), (1.0, 25), (0.3, 25), (1.0, 5)):
            if out.over:
                break
            start = clock()
            try:
                model = package.train_supervised(
                    str(path), loss=loss, thread=1, lr=rate, epoch=epochs, verbose=0
                )
            except RuntimeError as error:  # "Encountered NaN"
                out.write(missing=f"fastText {loss}", why=f"rate {rate:g}, {epochs} epochs: {error}")
                continue
            seconds = clock() - start
            out.spent += seconds
            # one row at a time: predict of many rows returns arrays that NumPy 2 refuses
            found = [model.f.predict(line + "\n", TOP, 0.0, "strict") for line in test]
            top = _padded([[int(word[len("__label__") :]) for _, word in row] for row in found])
            out.result(f"fastText {loss}", seconds, top, _fasttext_loss(model, data, test))


def _fasttext_loss(model, data, test):
    total = 0.0
    rows = list(zip(test, data.y_test))[:LOSS_ROWS]
    for line, code in rows:
        wanted = f"__label__{code}"
        found = model.f.predict(line + "\n", data.n_classes, -1.0, "strict")
        total -= math.log(max(next((p for p, word in found if word == wanted), 0.0), SMALLEST))
    return total / len(rows)


# ------------------------------------------------------------------ torch


def torch_adam(data, out):
    """Full softmax by Adam at two rates, and by AdaGrad, on batches of 256.

    Each goes on for the limit or 50 epochs, or until P@1 has not risen for `PATIENCE` evaluations. Scores are
    an embedding bag. The gradient of a batch's features is a sparse product, and the moments change at those
    alone, as in torch.optim.SparseAdam. That one's gradient has a row of n_classes numbers for each non-zero.
    """
    import torch

    torch.set_num_threads(1)
    values, indices, indptr = (torch.from_numpy(np.asarray(a)) for a in data.arrays("X"))
    values, indices, indptr = values.float(), indices.long(), indptr.long()
    y = torch.from_numpy(data.y.astype(np.int64))
    n, K, batch, (b1, b2) = len(y), data.n_classes, 256, (0.9, 0.999)

    def bag(W, b, values, indices, indptr):
        return b + torch.nn.functional.embedding_bag(
            indices, W, indptr[:-1].contiguous(), mode="sum", per_sample_weights=values
        )

    test = tuple(torch.from_numpy(np.asarray(a)) for a in data.arrays("X_test"))
    test = test[0].float(), test[1].long(), test[2].long()
    truth = torch.from_numpy(data.y_test.astype(np.int64))

    def evaluate(label, W, b, spent):
        tops, loss = [], 0.0
        for at in range(0, len(truth), 1024):
            ptr = test[2][at : at + 1025]
            scores = bag(W, b, test[0][ptr[0] : ptr[-1]], test[1][ptr[0] : ptr[-1]], ptr - ptr[0])
            tops.append(scores.topk(min(TOP, K), dim=1).indices)
            loss += torch.nn.functional.cross_entropy(scores, truth[at : at + 1024], reduction="sum").item()
        return out.result(label, spent, torch.cat(tops).numpy(), loss / len(truth))

    class AdaGrad:
        def __init__(self, *shape):
            self.x, self.v = torch.zeros(*shape), torch.full(shape, 1e-10)

        def step(self, rows, g, rate, t):
            v = self.v[rows].addcmul_(g, g)
            self.v[rows] = v
            self.x[rows] -= g.div_(v.sqrt_()).mul_(rate)

    class Adam:
        def __init__(self, *shape):
            self.x, self.m, self.v = (torch.zeros(*shape) for _ in range(3))

        def step(self, rows, g, rate, t):
            m = self.m[rows].mul_(b1).add_(g, alpha=1 - b1)
            v = self.v[rows].mul_(b2).addcmul_(g, g, value=1 - b2)
            self.m[rows], self.v[rows] = m, v
            length = rate * math.sqrt(1 - b2**t) / (1 - b1**t)
            self.x[rows] -= m.div_(v.sqrt_().add_(1e-8)).mul_(length)

    def train(label, kind, rate):
        torch.manual_seed(0)
        W, b = kind(data.n_features, K), kind(1, K)
        spent, following, t, best, since = 0.0, 0.05, 0, -1.0, 0
        for _ in range(50):
            order = torch.randperm(n)
            for at in range(0, n, batch):
                start = clock()
                part = order[at : at + batch]
                sizes = indptr[part + 1] - indptr[part]
                ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
                entries_at = torch.arange(ptr[-1]) + torch.repeat_interleave(indptr[part] - ptr[:-1], sizes)
                columns, entries = indices[entries_at], values[entries_at]
                P = torch.softmax(bag(W.x, b.x[0], entries, columns, ptr), dim=1)
                P[torch.arange(len(part)), y[part]] -= 1.0
                P /= len(part)
                touched, inverse = torch.unique(columns, return_inverse=True)
                row_of = torch.repeat_interleave(torch.arange(len(part)), sizes)
                T = torch.sparse_coo_tensor(
                    torch.stack([inverse, row_of]), entries, (len(touched), len(part))
                )
                t += 1
                W.step(touched, torch.sparse.mm(T, P), rate, t)
                b.step(slice(None), P.sum(0, keepdim=True), rate, t)
                spent += clock() - start
                if spent > following or spent > out.limit:
                    p1 = evaluate(label, W.x, b.x[0], spent)
                    best, since = (p1, 0) if p1 > best else (best, since + 1)
                    following = 1.5 * spent
                if spent > out.limit or since >= PATIENCE:
                    return
        evaluate(label, W.x, b.x[0], spent)

    for label, kind, rate in (("Adam", Adam, 0.01), ("Adam", Adam, 0.1), ("AdaGrad", AdaGrad, 0.3)):
        train(f"torch {label} {rate:g}", kind, rate)


SOLVERS = {
    "ours": ours,
    "HSM": napkin("HSM"),
    "PLT": napkin("PLT"),
    "OVR": napkin("OVR"),
    "pecos": pecos,
    "omikuji": omikuji,
    "fasttext": fasttext,
    "torch": torch_adam,
}


def main(name, path, to, limit, _clock):
    data = Data(path)
    out = Out(to, data, float(limit))
    try:
        SOLVERS[name](data, out)
    except ImportError as error:
        out.write(missing=name, why=f"not installed ({error})")


if __name__ == "__main__":
    main(*sys.argv[1:])
