"""The data of a bounded linear model by where and how it is stored: products, sums of columns, parts."""

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse as sp

from .._arrays import is_device, kernel_module
from .._linalg.as_design import as_design

# rows that centre and scale dense columns
SAMPLE = 5000
# entries of a block of dense rows: half a core's cache
BLOCK = 2**17
# the same where rows are read twice, so that they stay beside the predictors
PASS = 2**14
# entries for each part of such a pass, and the most parts
PART, PARTS = 200000, 16
# rows of a block while a Gram matrix is summed up
GRAM_BLOCK = 2048
# rows of a block of a product of sparse matrices
PRODUCT_BLOCK = 256
# entries of such a block on a GPU, which a product is to fill
DEVICE_BLOCK = 2**26


def as_data(X, n_threads=1):
    """The data behind one face: a NumPy array, CSR or CSC, or either on a GPU."""
    if is_device(X):
        return (DeviceSparseData if hasattr(X, "nnz") else DeviceDenseData)(X)
    return (SparseData if sp.issparse(X) else DenseData)(X, n_threads)


class Data(ABC):
    """Products, which all kinds of data have.

    ``samples`` says whether `sums` look at some of the rows only; `of_column` then has all.
    """

    samples = False

    def __init__(self, X, n_threads=1):
        self.X, self.shape, self.n_threads = X, X.shape, n_threads
        self.design = as_design(X, n_threads).private()

    @property
    def nbytes(self):
        """Bytes of the data, wherever they are."""
        X = self.X
        return X.nbytes if hasattr(X, "nbytes") else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

    def be_exact(self):  # noqa: B027 (kernels are exact already: nothing to do is a good default)
        """From here on sums have float64's digits; they do where a kernel makes them."""

    def matvec(self, w):
        """X w, (n,)."""
        return self.design.matvec(w) if w.any() else np.zeros(self.shape[0])

    def rmatvec(self, u):
        """X^T u, (p,)."""
        return self.design.rmatvec(u)

    def evaluate(self, loss, w, b, rows, smoothing, previous):
        """Fill ``rows`` at (w, b) and return predictor and X^T u, reading X once; None where it can't be."""
        return None

    def sums(self, s, with_means):
        """Mean of each column, or 0, and mean of its squares, under weights ``s``, which sum to 1."""
        return self.rmatvec(s) if with_means else np.zeros(self.shape[1], like=s), self._squares(s)

    def absolute_sums(self, s, cols):
        """Weighted sum of |X| in chosen columns."""
        return np.asarray(s @ abs(self.X[:, cols])).ravel()

    @abstractmethod
    def part(self, rows, cols, intercept):
        """Rows and columns of [X, 1] in float64, dense or CSR."""

    def gram(self, rows, cols, d, intercept):
        """A^T diag(d) A, A being such a part."""
        return _gram_by_blocks(self.part, rows, cols, d, intercept, GRAM_BLOCK)

    def outer(self, A, scale):
        """A diag(scale) A^T of a part A, dense."""
        return (A * scale) @ A.T


class DenseData(Data):
    """A NumPy array."""

    samples = True
    in_blocks = False

    def be_exact(self):
        """From here on sum products of float32 data in float64: BLAS's own sums have seven digits."""
        self.in_blocks = self.X.dtype == np.float32

    def _blocks(self):
        """Ranges of rows, and these rows in float64."""
        height = max(BLOCK // max(self.shape[1], 1), 1)
        for at in range(0, self.shape[0], height):
            rows = slice(at, at + height)
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def matvec(self, w):
        if not self.in_blocks or not w.any():
            return super().matvec(w)
        z = np.empty(self.shape[0])
        for rows, part in self._blocks():
            np.dot(part, w, out=z[rows])
        return z

    def rmatvec(self, u):
        if not self.in_blocks:
            return super().rmatvec(u)
        return sum((u[rows] @ part for rows, part in self._blocks()), np.zeros(self.shape[1]))

    def evaluate(self, loss, w, b, rows, smoothing, previous):
        X = self.X
        if not X.flags.c_contiguous or self.in_blocks or not X.size:
            return None
        z, gradient = np.empty(self.shape[0]), np.empty(self.shape[1])
        # parts by the data alone, so that sums do not depend on the threads
        parts = int(min(max(X.size // PART, 1), PARTS))
        blocks = max(PASS // self.shape[1], 1), parts, min(self.n_threads, parts)
        loss.dense_pass(X, w.astype(X.dtype, copy=False), b, z, rows, gradient, blocks, smoothing, previous)
        return z, gradient

    def sums(self, s, with_means):
        stride = max(self.shape[0] // SAMPLE, 1)
        if not s[::stride].sum() > 0:
            stride = 1
        return _dense_sums(self.X[::stride], s[::stride], with_means)

    def of_column(self, s, j, with_means):
        """What `sums` has of column j, of all rows."""
        return tuple(values[0] for values in _dense_sums(self.X[:, [j]], s, with_means))

    def part(self, rows, cols, intercept):
        A = np.asarray(self.X[rows], dtype=np.float64)
        A = A[:, cols] if len(cols) < self.shape[1] else A
        return np.hstack([A, np.ones((len(rows), 1))]) if intercept else A


class SparseData(Data):
    """A CSR or CSC matrix of SciPy's."""

    def _squares(self, s):
        X = self.X
        with np.errstate(over="ignore", under="ignore"):
            squares = X.data.astype(np.float64) ** 2
        squared = type(X)((squares, X.indices, X.indptr), shape=X.shape)
        return np.asarray(squared.T @ s, dtype=np.float64)

    def part(self, rows, cols, intercept):
        A = self.X[:, cols].tocsr()[rows] if self.X.format == "csc" else self.X[rows][:, cols]
        A = A.astype(np.float64)
        return sp.hstack([A, np.ones((len(rows), 1))], format="csr") if intercept else A

    def gram(self, rows, cols, d, intercept):
        A = self.part(rows, cols, intercept)
        return _dense_product(A.multiply(d[:, None]).T.tocsr(), A)

    def outer(self, A, scale):
        # symmetric, and in the order of LAPACK, which copies others
        return _dense_product(A.multiply(scale).tocsr(), A.T.tocsr()).T


class DeviceData(Data):
    """What data on a GPU shares: its kernels sum in float64, and nothing is read to see that it is zero."""

    def matvec(self, w):
        return self.design.matvec(w)

    def absolute_sums(self, s, cols):
        return as_design(abs(self.X)).rmatvec(s)[cols]

    def gram(self, rows, cols, d, intercept):
        height = max(GRAM_BLOCK, DEVICE_BLOCK // (len(cols) + intercept))
        return _gram_by_blocks(self.part, rows, cols, d, intercept, height)


class DeviceDenseData(DeviceData):
    """A CuPy array."""

    def _squares(self, s):
        second = np.empty(self.shape[1], like=s)
        kernel_module("_dense", self.X).dense_squares(self.X, s, second)
        return second

    def part(self, rows, cols, intercept):
        X = self.X
        A = (X[np.ix_(rows, cols)] if len(cols) < X.shape[1] else X[rows]).astype(np.float64, copy=False)
        return np.hstack([A, np.ones_like(A, shape=(len(rows), 1))]) if intercept else A


class DeviceSparseData(DeviceData):
    """A CSR matrix of CuPy's."""

    def _squares(self, s):
        X = self.X
        squares = type(X)((X.data.astype(np.float64) ** 2, X.indices, X.indptr), shape=X.shape)
        return as_design(squares).rmatvec(s)

    def part(self, rows, cols, intercept):
        from cupyx.scipy.sparse import csr_matrix, hstack

        A = self.X[rows]
        A = (A[:, cols] if len(cols) < self.shape[1] else A).astype(np.float64)
        ones = np.ones_like(A.data, shape=(len(rows), 1))
        return hstack([A, csr_matrix(ones)], format="csr") if intercept else A

    def gram(self, rows, cols, d, intercept):
        height = max(GRAM_BLOCK, DEVICE_BLOCK // (len(cols) + intercept))
        return _gram_by_blocks(lambda *which: self.part(*which).toarray(), rows, cols, d, intercept, height)

    def outer(self, A, scale):
        return (A.multiply(scale) @ A.T).toarray()


def _dense_sums(X, s, with_means):
    X, total = X.astype(np.float64), s.sum()
    with np.errstate(over="ignore", under="ignore"):
        return s @ X / total if with_means else np.zeros(X.shape[1]), s @ X**2 / total


def _dense_product(A, B):
    """A B as an array, by blocks of rows: as a sparse matrix a full one takes three times the memory."""
    out = np.empty((A.shape[0], B.shape[1]))
    for at in range(0, len(out), PRODUCT_BLOCK):
        out[at : at + PRODUCT_BLOCK] = (A[at : at + PRODUCT_BLOCK] @ B).toarray()
    return out


def _gram_by_blocks(part, rows, cols, d, intercept, height):
    size = len(cols) + intercept
    G = np.zeros((size, size), like=d)
    for at in range(0, len(rows), height):
        A = part(rows[at : at + height], cols, intercept)
        A *= np.sqrt(d[at : at + height])[:, None]
        G += A.T @ A
    return G
