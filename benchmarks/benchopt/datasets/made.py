"""Made data for benchopt's linear models: dense correlated columns, sparse text-like counts, a one-hot table.

Every kind comes with numbers for the regressions (``target=numbers``) or labels -1 and 1 for the logistic
benchmark (``target=labels``). A twentieth of the columns, at most 50, have nonzero true coefficients.
"""

import numpy as np
from benchopt import BaseDataset
from scipy import sparse

# Rows and columns of the dense data.
DENSE_SHAPE = (1000, 1500)

# Correlation of neighbouring columns of the dense data.
DENSE_CORRELATION = 0.6

# Rows of the text and words of its vocabulary; words that never occur have no column.
TEXT_SHAPE = (3000, 6000)

# Words of a row of the text, repeated ones included.
WORDS_PER_ROW = 60

# Rows of the table.
TABLE_ROWS = 10_000

# Number of categories of each variable of the table.
TABLE_CATEGORIES = (2, 3, 5, 10, 20, 50, 100, 200, 400)


def make_dense(rng):
    """Standard normal columns; columns j and k have correlation DENSE_CORRELATION ** |j - k|."""
    X = rng.standard_normal(DENSE_SHAPE)
    for j in range(1, DENSE_SHAPE[1]):
        X[:, j] *= np.sqrt(1 - DENSE_CORRELATION**2)
        X[:, j] += DENSE_CORRELATION * X[:, j - 1]
    return np.asfortranarray(X)


def make_text(rng):
    """Logarithms of word counts, rows of length 1; the k-th word has a frequency proportional to 1 / k."""
    n, p = TEXT_SHAPE
    frequency = 1 / np.arange(1, p + 1)
    words = rng.choice(p, size=n * WORDS_PER_ROW, p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n), WORDS_PER_ROW)
    X = sparse.coo_matrix((np.ones(len(words)), (rows, words)), shape=TEXT_SHAPE).tocsr()
    X.data = np.log1p(X.data)
    X = sparse.diags(1 / sparse.linalg.norm(X, axis=1)) @ X
    return X.tocsc()[:, X.getnnz(axis=0) > 0]


def make_table(rng):
    """One indicator column a category; the k-th category of a variable has a frequency like 1 / k."""
    blocks = []
    for n_categories in TABLE_CATEGORIES:
        frequency = 1 / np.arange(1, n_categories + 1)
        codes = rng.choice(n_categories, size=TABLE_ROWS, p=frequency / frequency.sum())
        ones = np.ones(TABLE_ROWS)
        blocks.append(sparse.csc_matrix((ones, (np.arange(TABLE_ROWS), codes)), (TABLE_ROWS, n_categories)))
    return sparse.hstack(blocks, format="csc")


class Dataset(BaseDataset):
    """X and y of a sparse linear model with as much noise as signal."""

    name = "made"
    parameters = {"kind": ["dense", "text", "table"], "target": ["numbers"], "random_state": [0]}  # noqa: RUF012

    def get_data(self):
        """X (columns of CSC where sparse) and y."""
        rng = np.random.default_rng(self.random_state)
        X = {"dense": make_dense, "text": make_text, "table": make_table}[self.kind](rng)
        n_nonzero = min(X.shape[1] // 20, 50)
        # The first columns of the text are frequent words; rare ones would leave most rows without signal.
        columns = rng.choice(min(X.shape[1], 20 * n_nonzero), n_nonzero, replace=False)
        scores = X[:, columns] @ rng.standard_normal(n_nonzero)
        scores /= scores.std()
        y = scores + rng.standard_normal(X.shape[0])
        return dict(X=X, y=np.where(y > np.median(y), 1.0, -1.0) if self.target == "labels" else y)
