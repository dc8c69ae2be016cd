"""Logistic losses of centred columns, with the variables of the columns as they are.

A column whose mean is large relative to its spread is nearly a multiple of the intercept's column of ones.
Hessian and gradient then lose the digits in which the two differ. X - 1 c^T has the same models: w stays, and
the intercept of X is that of the centred columns minus c^T w.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..._arrays import is_sparse

# Rows by which a column is judged.
SAMPLED_ROWS = 32
# Range of a column on these rows, as a part of its largest entry there, up to which it is centred: that of a
# normal column whose mean is about 34 times its standard deviation. Evidence: mean iterations of 40 random
# fits to normal columns plus a constant. Without centring there are 6.0 at a ratio of 0, 6.3 at 10, 7.0 at
# 30, 9.4 at 100 and 19 at 1e3. At 1e4 there are 95 (5 fits not solved), at 1e6 170 (20 not solved). With
# centring there are always 6.0.
MAX_RANGE = 0.12


def centre_of(X):
    """What to subtract from each column, (p,) in the dtype of X; None if no column has to be centred.

    Entries are 0 for columns that stay as they are, and an entry of the column for others: any number near
    the mean will do. One that lies within a factor of two of the entries is subtracted without rounding.

    Parameters
    ----------
    X : {ndarray, CSR or CSC matrix} of shape (n, p)
        On a GPU, dense.
    """
    n, p = X.shape
    step = max(n // SAMPLED_ROWS, 1)
    columns, sample = _sample(X, step) if sp.issparse(X) else (slice(None), X[::step])
    if not sample.size:
        return None
    low, high = sample.min(axis=0), sample.max(axis=0)
    with np.errstate(over="ignore"):  # an infinite range is no reason to centre
        far = high - low <= MAX_RANGE * np.maximum(np.abs(low), np.abs(high))
    far &= high != 0.0
    if not far.any():
        return None
    centre = np.zeros(p, dtype=X.dtype, like=low)
    centre[columns] = np.where(far, sample[0], 0.0)
    return centre


def _sample(X, step):
    """Numbers of the columns of a sparse X that have next to no zeros, and every ``step``-th row of them."""
    n = X.shape[0]
    if X.format == "csc":
        columns = np.flatnonzero(np.diff(X.indptr) >= (1.0 - 1.0 / SAMPLED_ROWS) * n)
        return columns, X[:, columns][::step].toarray()
    rows = X[::step]
    columns = np.flatnonzero(np.bincount(rows.indices, minlength=X.shape[1]) >= rows.shape[0])
    return columns, rows[:, columns].toarray()


def subtract_centre(X, centre):
    """X - 1 centre^T as a new matrix of the form of X."""
    if not sp.issparse(X):
        return X - centre
    columns = np.flatnonzero(centre)
    # such columns have next to no zeros
    data = np.tile(centre[columns], X.shape[0])
    indices = np.tile(columns.astype(X.indices.dtype), X.shape[0])
    indptr = np.arange(X.shape[0] + 1, dtype=X.indptr.dtype) * len(columns)
    return (X - sp.csr_array((data, indices, indptr), shape=X.shape)).asformat(X.format)


def can_be_centred(X, fit_intercept):
    """Whether there is an intercept that takes what is subtracted; sparse X on a GPU stays as it is."""
    return fit_intercept and (sp.issparse(X) or not is_sparse(X))


class CentredLoss:
    """A loss of X - 1 c^T whose points are those of X: coefficients, then intercepts.

    Parameters
    ----------
    loss : RowLoss
        Of the centred columns, with an intercept.
    X : matrix of shape (n, p)
        The centred columns.
    centre : ndarray of shape (p,)
        c.
    """

    def __init__(self, loss, X, centre):
        self.loss, self.X = loss, X
        self.columns = np.flatnonzero(centre)
        self.centre = centre[self.columns].astype(np.float64)
        self.n_variables, self.n_features = loss.n_variables, loss.n_features
        self.l1_vector, self.s = loss.l1_vector, loss.s
        self.one_sided = getattr(loss, "one_sided", False)
        self.n_outputs = loss.n_variables // (loss.n_features + 1)

    def to_centred(self, x):
        """The variables of the centred columns at x (n_variables,)."""
        return self._moved(x, 1.0)

    def from_centred(self, x):
        """The inverse of `to_centred`."""
        return self._moved(x, -1.0)

    def _moved(self, x, sign):
        x, K = x.copy(), self.n_outputs
        coef = x[:-K].reshape(self.n_features, K)[self.columns]
        x[-K:] += sign * (self.centre @ coef)
        return x

    def value(self, x):
        """Value at x (n_variables,)."""
        return self.loss.value(self.to_centred(x))

    def gradient(self, x):
        """Gradient in the variables of the centred columns, at x, (n_variables,).

        Where the intercept is optimal both gradients are equal, and this one has more digits.
        """
        return self.loss.gradient(self.to_centred(x))

    def minimize(self, solver, l1, x0=None, *, callback=None, **options):
        """Minimise by a ``solver`` of ``loss``, from x0 (n_variables,); the result has no ``grad``."""

        def report(intermediate_result):
            intermediate_result.x = self.from_centred(intermediate_result.x)
            return callback(intermediate_result)

        start = None if x0 is None else self.to_centred(x0)
        result = solver(l1, start, callback=None if callback is None else report, **options)
        result.x = self.from_centred(result.x)
        result.grad = None
        return result
