"""Small problems for the tests of `sparsekit compare`."""

import numpy as np
from scipy import sparse

from sparsekit._compare.lasso_problem import LassoProblem
from sparsekit._compare.problem import Problem


def make_problem(kind="dense", fit_intercept=False, *, n=120, p=15, is_lasso=False, first_label=1.0):
    """Rows with zeros, a sparse model, and labels of which the first is ``first_label``; or numbers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6) + (0.2 if is_lasso else 0.0)
    score = X @ np.where(np.arange(p) % 3 == 0, 1.5, 0.0) + 0.7
    if is_lasso:
        y = score + 6.3 + rng.standard_normal(n)
    else:
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
        first = np.flatnonzero(y == first_label)[0]  # which LIBLINEAR takes for the positive class
        X[[0, first]], y[[0, first]] = X[[first, 0]], y[[first, 0]]
    X = sparse.csr_matrix(X) if kind == "sparse" else X
    return (LassoProblem if is_lasso else Problem)("small", X, y, fit_intercept)
