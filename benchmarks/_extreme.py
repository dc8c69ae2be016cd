"""What the parts of extreme_softmax.py share: data sets, single runs, tuned rates."""

from __future__ import annotations

import time

import _data
import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sparsekit._extreme.estimators.scores import LinearScores, log_losses
from sparsekit._extreme.estimators.targets import ExtremeTargets, make_rows
from sparsekit._extreme.solver.noise import Noise
from sparsekit._extreme.solver.sgd import epoch, init_work
from sparsekit._extreme.solver.state import SamplingOptions, init_state, settled

NAMES = ("mnist", "bibtex", "delicious", "sector", "ptb")
METHODS = ("ove", "nce", "is", "sgd", "umax", "implicit")
HISTORY = 3  # words of ptb that predict the next
JUDGED = 20000  # largest number of rows whose log-loss is evaluated

# In the papers: 100 rows and 5 classes for the biased methods, 1 and 1 for the others
PAPER_SIZES = {m: (100, 5) if m in ("ove", "nce", "is") else (1, 1) for m in METHODS}


def load(folder, name, dtype=np.float32, unit=True):
    """X, codes of the first label, the test part likewise, number of classes.

    X is CSR, with rows of norm 1, or with unit=False entries of at most 1.

    Test rows whose label no training row has are left out.
    """
    d = _data.read(folder, name)
    if name == "ptb":
        X, y = _words(d["train"], len(d["vocab"]))
        X_test, y_test = _words(d["valid"], len(d["vocab"]))
    elif "Y_train" in d:
        X, y = _first_label(d["X_train"], d["Y_train"])
        X_test, y_test = _first_label(d["X_test"], d["Y_test"])
    else:
        X, y, X_test, y_test = (d[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    classes, codes = np.unique(y, return_inverse=True)
    known = np.isin(y_test, classes)
    X, X_test = sp.csr_array(X), sp.csr_array(sp.csr_array(X_test)[known])
    largest = X.data.max()
    X, X_test = (
        normalize(part.astype(dtype)) if unit else part.astype(dtype) / largest for part in (X, X_test)
    )
    for part in (X, X_test):
        part.sort_indices()
    return X, codes, X_test, np.searchsorted(classes, np.asarray(y_test)[known]), len(classes)


def _first_label(X, Y):
    Y = sp.csr_array(Y)
    Y.sort_indices()
    rows = np.flatnonzero(np.diff(Y.indptr))
    return sp.csr_array(X)[rows], Y.indices[Y.indptr[:-1][rows]]


def _words(ids, n_words):
    """One-hot by position: column j * n_words + w for word w, j + 1 positions back."""
    ids = np.asarray(ids, dtype=np.int64)
    n = len(ids) - HISTORY
    columns = np.stack(
        [ids[HISTORY - 1 - j : HISTORY - 1 - j + n] + j * n_words for j in range(HISTORY)], axis=1
    )
    indptr = np.arange(0, HISTORY * n + 1, HISTORY)
    X = sp.csr_array(
        (np.ones(HISTORY * n, dtype=np.float32), columns.ravel().astype(np.int32), indptr.astype(np.int32)),
        shape=(n, HISTORY * n_words),
    )
    return X, ids[HISTORY:]


class Run:
    """One method on one set of rows; epochs are stepped from outside, so that the loss can be evaluated."""

    def __init__(
        self, X, y, n_classes, method, rate, seed=0, *, sizes=None, n_threads=1, noise=None, decay=0.9,
        alpha=0.0,
    ):  # fmt: skip
        batch, negatives = sizes or PAPER_SIZES[method]
        self.X, self.y = X, y
        self.options = SamplingOptions(
            method=method, learning_rate=rate, decay=decay, batch_size=batch, n_negatives=negatives,
            n_threads=n_threads, alpha=alpha,
        )  # fmt: skip
        self.rng = np.random.default_rng(seed)
        self.rows = make_rows(X, ExtremeTargets(y, None, np.arange(n_classes), None), "first")
        counts = np.bincount(y, minlength=n_classes).astype(np.float64)
        noise = noise or ("frequency" if method in ("nce", "is") else "uniform")
        noise = Noise(counts / counts.sum()) if noise == "frequency" else None
        self.state = init_state(n_classes, X.shape[1], X.dtype, self.options, fit_intercept=False)
        self.work = init_work(self.rows, n_classes, self.options, self.rng, counts=counts, noise=noise)
        self.n_epochs, self.seconds, self.bad = 0, 0.0, False

    def step(self):
        """One epoch; returns whether every step was finite."""
        rate = self.options.learning_rate * self.options.decay**self.n_epochs
        start = time.perf_counter()
        bad, _ = epoch(self.state, self.rows, self.options, self.work, rate, self.rng)
        self.seconds += time.perf_counter() - start
        self.n_epochs += 1
        self.bad |= bad >= 0
        return not self.bad

    def losses(self, X=None, y=None):
        """-log p of each row (of the training data, at most JUDGED of them)."""
        X, y = (self.X, self.y) if X is None else (X, y)
        if X.shape[0] > JUDGED:
            keep = np.random.default_rng(0).choice(X.shape[0], JUDGED, replace=False)
            X, y = X[keep], y[keep]
        W, _ = settled(self.state, self.options)
        with np.errstate(all="ignore"):
            return log_losses(LinearScores(W, np.zeros(len(W), dtype=W.dtype)), X, y)

    def loss(self, X=None, y=None):
        """Mean log-loss; inf where the run diverged."""
        if self.bad:
            return np.inf
        value = float(np.mean(self.losses(X, y)))
        return value if np.isfinite(value) else np.inf


def tune(X, y, n_classes, method, n_epochs, rates, **kwargs):
    """{rate: log-loss} on a tenth of the rows after n_epochs there; beyond the ends if the best is one."""
    keep = np.random.default_rng(1).choice(len(y), max(500, len(y) // 10), replace=False)
    X, y = X[keep], y[keep]
    losses = {}

    def evaluate(rate):
        run = Run(X, y, n_classes, method, rate, **kwargs)
        while run.n_epochs < n_epochs and run.step():
            pass
        losses[rate] = run.loss()

    for rate in rates:
        evaluate(rate)
    for factor, end in ((10.0, max), (0.1, min)):
        while losses[end(losses)] == min(losses.values()) < np.inf and len(losses) < len(rates) + 4:
            evaluate(end(losses) * factor)
    return losses
