"""Which pairs of a feature and a label have a coefficient: all of them, or those seen together in training.

Coefficients of pairs come first in the vector of variables. Both classes give scores (N, K) of the positions,
sums of derivatives over them, and the table (p, K).
"""

import numpy as np
import scipy.sparse as sp

from ..._linalg.class_products import class_sums, matmat
from ..._linalg.dense_design import DenseDesign


def _squares(design, weights):
    """sum_i c_i x_ij^2, (p,)."""
    if isinstance(design, DenseDesign):
        return np.einsum("i,ij,ij->j", weights, design.X, design.X)
    each = np.square(design.data, dtype=np.float64) * np.repeat(weights, np.diff(design.indptr))
    return np.bincount(design.indices, each, design.shape[1])


class AllStates:
    """A coefficient for every feature (p) and label (K)."""

    def __init__(self, design, K):
        self.design, self.K = design, K
        self.n = design.shape[1] * K

    def scores(self, x):
        """X W, (N, K)."""
        return matmat(self.design, x.reshape(-1, self.K))

    def sums(self, D):
        """X^T D for D (N, K), as variables."""
        return class_sums(self.design, D, False).ravel()

    def squares(self, weights, each):
        """sum_i c_i x_ij^2 times ``each`` (K,), as variables."""
        return np.outer(_squares(self.design, weights), each).ravel()

    def table(self, x):
        """W (p, K); the variables' own memory."""
        return x.reshape(-1, self.K)

    def pick(self, table):
        """The variables of a table (p, K)."""
        return table.ravel()


class SeenStates(AllStates):
    """Coefficients of the features and labels that occur together at some position."""

    def __init__(self, design, y, K):
        super().__init__(design, K)
        rows = sp.csr_matrix(design.X) if isinstance(design, DenseDesign) else design
        used = rows.indices.astype(np.int64) * K + np.repeat(y, np.diff(rows.indptr))
        # stored zeros do not count
        self._index = np.unique(used[rows.data != 0])
        self.n = len(self._index)

    def scores(self, x):
        return super().scores(self.table(x))

    def sums(self, D):
        return super().sums(D)[self._index]

    def squares(self, weights, each):
        return super().squares(weights, each)[self._index]

    def table(self, x):
        table = np.zeros(self.design.shape[1] * self.K)
        table[self._index] = x
        return table.reshape(-1, self.K)

    def pick(self, table):
        return table.ravel()[self._index]
