"""The benchmark's data sets, preprocessed as its tables say."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from sparsekit._compare.peers import Liblinear
from sparsekit._compare.problem import Problem

NAMES = (
    "a9a",
    "ijcnn1",
    "rcv1_binary",
    "imdb",
    "newsgroups_bigrams",
    "news20",
    "madelon",
    "mnist",
    "colon",
    "leukemia",
    "dorothea",
    "synthetic",
)
MULTINOMIAL_NAMES = ("mnist", "news20")
SYNTHETIC_ROWS = 2000


def by_rows(problem):
    """Its X in C order or CSR, with sorted indices."""
    return Liblinear().design(problem)


class MultinomialProblem(Problem):
    r"""Multinomial L1 logistic regression.

    .. math:: F(W, b) = \sum_{jk} |W_{jk}| + C \sum_i (\log \sum_k e^{z_{ik}} - z_{i y_i})

    with one row of W for each class, as in scikit-learn's ``coef_``; y holds codes 0 .. K-1.
    """

    @cached_property
    def lambda_max(self):
        """Smallest lambda with W = 0 as solution."""
        onehot = self.y[:, None] == np.unique(self.y)
        share = onehot.mean(axis=0) if self.fit_intercept else 1.0 / onehot.shape[1]
        return float(np.max(np.abs(self.X.T @ (onehot - share))))

    def objective(self, coef, intercept, C):
        """F(W, b) in float64."""
        z = self.X @ np.asarray(coef, dtype=np.float64).T + np.ravel(intercept)
        losses = logsumexp(z, axis=1) - z[np.arange(len(z)), self.y.astype(np.intp)]
        return float(np.abs(coef).sum() + C * losses.sum())

    def lower_bound(self, coef, intercept, C):
        """nan: no dual point is formed for this problem."""
        return float("nan")

    def held_out(self, coef, intercept):
        """nan: no rows are held out."""
        return float("nan"), float("nan")


def data_folder(path=None):
    """Folder of the .npz files: the argument, $SPARSEKIT_DATA, or shared/data next to the checkout."""
    checkout = Path(__file__).resolve().parent.parent
    folder = Path(path or os.environ.get("SPARSEKIT_DATA") or checkout.parent / "shared" / "data")
    if not folder.is_dir():
        raise SystemExit(f"no data folder at {folder}: pass --data DIR or set SPARSEKIT_DATA")
    return folder


def read(folder, name):
    """Arrays of one file by name; sparse parts as CSR float64, all-one values filled in."""
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as z:
        out = {k: z[k] for k in z.files if not k.startswith(("X_", "Y_"))}
        for part in ("X_train", "X_test", "Y_train", "Y_test"):
            if part in z.files:
                out[part] = z[part].astype(np.float64)
            elif f"{part}_indptr" in z.files:
                indices = z[f"{part}_indices"]
                values = z[f"{part}_data"].astype(np.float64)
                if not values.size:
                    values = np.ones(indices.size)
                shape = tuple(int(v) for v in z[f"{part}_shape"])
                out[part] = sparse.csr_matrix((values, indices, z[f"{part}_indptr"]), shape=shape)
                out[part].sort_indices()
    return out


def tf_idf(X):
    """Counts to tf-idf with idf = log((1 + n) / (1 + df)) + 1 and rows of L2 norm 1 (not sublinear)."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return sparse.csr_matrix(TfidfTransformer(norm="l2", sublinear_tf=False).fit_transform(X))


def synthetic(n=SYNTHETIC_ROWS, seed=0):
    """Problem "Synthetic" of Section 2.7 of the OBA thesis: X = chol(A), upper triangular, n x n.

    A = R + R^T with R uniform, shifted by -2 lambda_min(A) I to be positive definite; random labels.
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) > 0.5, 1.0, -1.0)
    A = rng.random((n, n))
    A = A + A.T
    smallest = np.linalg.eigvalsh(A)[0]
    if smallest < 0:
        A += -2 * smallest * np.eye(n)
    return np.ascontiguousarray(np.linalg.cholesky(A).T), y


def problem(folder, name, fit_intercept=False):
    """Binary problem by name."""
    if name == "synthetic":
        X, y = synthetic()
        return Problem(name, X, y, fit_intercept, notes=[f"n = {SYNTHETIC_ROWS}, seed 0"])
    data = read(folder, name)
    X, y, notes = data["X_train"], data["y_train"].astype(np.float64), []
    if name in ("imdb", "newsgroups_bigrams"):
        X, notes = tf_idf(X), ["tf-idf, rows of L2 norm 1"]
    elif name == "news20":
        y, notes = np.where(y <= 10, 1.0, -1.0), ["classes 1-10 against the rest, raw counts"]
    elif name == "mnist":
        X, y, notes = X / 255, np.where(y % 2 == 0, 1.0, -1.0), ["even against odd, scaled to [0, 1]"]
    return Problem(name, X, y, fit_intercept, notes=notes)


def multinomial_problem(folder, name, fit_intercept=False):
    """Problem with all classes by name."""
    data = read(folder, name)
    X = data["X_train"] / 255 if name == "mnist" else data["X_train"]
    y = np.unique(data["y_train"], return_inverse=True)[1].astype(np.float64)
    return MultinomialProblem(name, X, y, fit_intercept)
