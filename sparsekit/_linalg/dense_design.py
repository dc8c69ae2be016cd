"""Dense design matrices, in C or F order.

A design multiplies by X and its transpose, and copies chosen columns into a compact row-major design. It
makes the operator A^T diag(d) A of the quadratic model, A = X or [X, 1]. The data keeps its type; every
vector and every sum is float64.
"""

import numpy as np

from .._cython.shared import _dense
from .._cython.shared._dense import DenseOperator
from .._cython.shared._operators import GramOperator
from .cost import HOST, is_single
from .matrix import BUFFER, Columns, Matrix, is_all

# Part of the diagonal of a Gram matrix in single precision that outweighs its rounding.
SINGLE_RIDGE = 1e-7
# Part of nonzero coefficients below which a product copies their columns first. Without it eight fits to 1500
# x 3000 and 20000 x 300 numbers take 1.26 times as long; with 0.25 for X by columns 0.98 of the time.
MAX_USED = 0.02


class DenseDesign(Matrix):
    """Dense X in either order; products go to BLAS by parts of the rows, a part to a thread."""

    def __init__(self, X, n_threads=1):
        self.X, self.shape, self.n_threads = X, X.shape, n_threads
        self.nnz = X.size

    def single(self):
        """X in single precision and C order, made once."""
        if self._single is None:
            self._single = self.X.astype(np.float32, order="C", copy=False)
        return self._single

    def squares(self, weight):
        out = np.zeros(self.shape[1])
        for rows in self.row_blocks():
            with np.errstate(over="ignore", under="ignore"):
                out += weight[rows] @ np.square(self.X[rows], dtype=np.float64)
        return out

    def absolute_sums(self, weight):
        return sum((weight[rows] @ abs(self.X[rows]) for rows in self.row_blocks()), np.zeros(self.shape[1]))

    def part(self, rows, columns=None, dtype=np.float64):
        """Rows and columns of X, slices or index arrays (None: all columns), as a new array."""
        A, has_all = self.X[rows], is_all(columns, self.shape[1])
        is_view = has_all and isinstance(rows, slice)
        return (A if has_all else A[:, columns]).astype(dtype, copy=is_view)

    def matvec(self, w, out=None):
        used = np.flatnonzero(w)
        if len(used) < MAX_USED * len(w):
            return self.select(used).matvec(w[used], out)
        return self._multiply(self.X, w, out)

    def rmatvec(self, u, out=None):
        return self._multiply(self.X.T, u, out)

    def _multiply(self, A, v, out):
        v = np.ascontiguousarray(v, dtype=np.float64)
        if A.flags.c_contiguous and A.size:
            res = np.empty(A.shape[0])
            _dense.dense_matvec(A, v, res, self._parts(), self.n_threads)
        elif A.flags.f_contiguous and A.size:
            res = np.empty(A.shape[0])
            _dense.dense_rmatvec(A.T, v, res, self._parts(), self.n_threads)
        else:
            res = A @ v
        if out is None:
            return res
        out[:] = res
        return out

    def _parts(self):
        # a function of the data alone, so that sums do not depend on the threads
        return int(min(max(self.nnz // 200000, 1), 16))

    def select(self, cols):
        if is_all(cols, self.shape[1]):
            part = DenseDesign(self.X, self.n_threads)
        elif self.X.flags.c_contiguous:
            part = DenseDesign(np.take(self.X, cols, axis=1), self.n_threads)
        else:
            part = DenseDesign(self.X.T[cols].T, self.n_threads)
        return part

    def norm_bound(self, d, intercept):
        # the trace: loose, but one pass without a copy, and most steps never ask for it
        rows = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        return float(np.dot(d, rows + intercept)) if self.shape[0] else 0.0

    def model(self, cols, d, intercept, ridge):
        """Operator on columns ``cols`` (and the intercept), and the design of their moves."""
        m = len(cols)
        size = m + intercept
        cols = np.asarray(cols, dtype=np.int32)
        if self.gram_pays(cols, intercept):
            G, single = self._gram(cols, d, intercept)
            return GramOperator(G, max(ridge, SINGLE_RIDGE) if single else ridge), Columns(self, cols)
        if not is_all(cols, self.shape[1]):
            part = np.ascontiguousarray(self.select(cols).X, dtype=np.float32)
        else:
            part = self.single()
        diagonal = np.empty(size)
        _dense.dense_squares(part, d, diagonal[:m], 16, self.n_threads)
        if intercept:
            diagonal[-1] = d.sum()
        return DenseOperator(part, d, diagonal, intercept, ridge, self.n_threads), Columns(self, cols)

    def gram_pays(self, cols, intercept, products=0):
        """Whether a Gram matrix of columns ``cols`` costs less than ``products`` with them."""
        n, size = self.shape[0], len(cols) + intercept
        gram, product = 0.5 * n * size * size * HOST.dense, 2.0 * n * size * HOST.stream
        return HOST.gram_pays(gram, size, product, products)

    def gram(self, cols, d, intercept):
        """A^T diag(d) A for columns ``cols`` in any order (and the intercept)."""
        return self._gram(np.asarray(cols, dtype=np.int32), d, intercept)[0]

    def _gram(self, cols, d, intercept):
        # the matrix, and whether it holds sums in single precision
        n, size = self.shape[0], len(cols) + intercept
        # 256 KiB of scaled rows stay in a core's cache between scaling and use. Tall products
        # are summed by float32 within a block: a Hessian of many rows needs no more
        single = self.X.dtype == np.float32 or is_single(n, size)
        dtype = np.float32 if single else np.float64
        # parts for threads, as many as their sums are small relative to the rows they add up
        parts = int(min(max(n // (16 * max(size, 1)), 1), 8, max(BUFFER // max(size, 1) ** 2, 1)))
        block = np.empty((parts, max(16, min(n, 2**15 // max(size, 1))), size), dtype=dtype)
        G, acc = np.empty((parts, size, size)), np.empty((parts, size, size), dtype=dtype)
        _dense.dense_gram(self.X, cols, d, G, intercept, block, acc, self.n_threads)
        return G[0], single
