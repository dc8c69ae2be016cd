"""What tests of ExtremeSoftmaxSGD share."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize


def few_rows(n_classes, n_features, n, seed, dtype=np.float64):
    """Sparse rows of classes that have a few features each."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    words = rng.integers(0, n_features, (n_classes, 4))
    common = rng.integers(0, n_features // 10, (n, 3))
    columns = np.hstack([words[y[:, None], rng.integers(0, 4, (n, 2))], common])
    X = sp.csr_array((np.ones(columns.size), (np.repeat(np.arange(n), 5), columns.ravel())), (n, n_features))
    return normalize(X).astype(dtype), y
