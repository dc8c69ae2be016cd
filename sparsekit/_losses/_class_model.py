"""Products and Hessian operators of the multinomial model: a design times one column a class.

``place`` (m,), ascending, says where the working variables are in a table of features (and one
row of intercepts) by K classes; ``parts`` are the row probabilities of
``MultinomialLoss.probabilities``.
"""

import numpy as np
import scipy.sparse as sp

from .._cython import _multinomial as kernels
from .._linalg.design import CSCDesign, DenseDesign

# Costs in nanoseconds of one core, which choose between a Gram matrix and products by passes over
# rows.
_PAIR = 1.5  # one scattered multiply-add
_DENSE_FLOP = 0.05  # one multiply-add of a matrix product
_SINGLE_WORK = 2e9  # multiply-adds beyond which blocks of a Gram matrix are float32
_FACTOR_FLOP = 0.1  # one of a Cholesky factor
_ROW_STEP = 1.5  # one entry of a row times eight classes, there and back
_EXPECTED_PRODUCTS = 300  # products that one model minimisation asks for
_CHEAP = 5e6  # a Gram matrix of so little cost is always formed


def _pointers(design):
    return design.indptr.astype(np.int64, copy=False), design.indices, design.data


def _row_blocks(X):
    # float32 data is widened by blocks, so that sums are float64
    step = len(X) if X.dtype == np.float64 else max(1, 2**20 // max(X.shape[1], 1))
    for lo in range(0, len(X), max(step, 1)):
        yield slice(lo, lo + step), X[lo : lo + step].astype(np.float64, copy=False)


def matmat(design, W):
    """X W, (n, K)."""
    W = np.ascontiguousarray(W)
    Z = np.empty((design.shape[0], W.shape[1]))
    if isinstance(design, DenseDesign):
        for rows, X in _row_blocks(design.X):
            np.matmul(X, W, out=Z[rows])
        return Z
    product = kernels.rmatmat if isinstance(design, CSCDesign) else kernels.matmat
    product(*_pointers(design), W, Z, design.n_threads)
    return Z


def rmatmat(design, U, G):
    """G = X^T U, (p, K)."""
    if isinstance(design, DenseDesign):
        G[:] = 0.0
        for rows, X in _row_blocks(design.X):
            G += X.T @ U[rows]
        return G
    product = kernels.matmat if isinstance(design, CSCDesign) else kernels.rmatmat
    product(*_pointers(design), U, G, design.n_threads)
    return G


def _entries(design, place, K):
    """Entries of each row of a sparse design, counted once for every variable of their feature."""
    held = np.bincount(place // K, minlength=design.shape[1] + 1)
    total = np.concatenate([[0], np.cumsum(held[design.indices])])
    return np.diff(total[design.indptr]) + held[-1]


def gram_pays(design, place, K):
    """Whether a Gram matrix and its factor cost less than the products that they save."""
    m, n = len(place), design.shape[0]
    factor = _FACTOR_FLOP * m**3 / 3.0
    product = 2.0 * n * design.shape[1] * K * _DENSE_FLOP
    cost = 0.5 * n * m * m * _DENSE_FLOP
    if not isinstance(design, DenseDesign):
        wide = -(-K // 8)
        product = design.nnz * wide * _ROW_STEP + n * wide
        cost = min(cost, _pair_cost(design, place, K))
    return cost + factor <= max(_EXPECTED_PRODUCTS * product, _CHEAP)


def _pair_cost(design, place, K):
    entries = _entries(design, place, K).astype(np.float64)
    return _PAIR * 0.5 * float(entries @ entries)


def gram(design, place, parts, s, has):
    """The Hessian on ``place`` as a matrix, float64: by pairs of a row's entries, or by BLAS."""
    n, K = parts[0].shape
    m = len(place)
    if isinstance(design, DenseDesign) or _pair_cost(design, place, K) > 0.5 * n * m * m * _DENSE_FLOP:
        return _gram_blas(design, place, parts, s)
    entries = _entries(design, place, K)
    rows, classes = np.divmod(place, K)
    first = np.searchsorted(rows, np.arange(design.shape[1] + 2)).astype(np.int32)
    # two partial sums if the matrix is small beside the work that fills it
    square = float(entries.astype(np.float64) @ entries)
    work = np.empty((2 if 8.0 * m * m < square else 1, m, m))
    indptr, indices, data = _pointers(design)
    kernels.class_gram(
        indptr, indices.astype(np.int32, copy=False), data, *parts, s, first, classes.astype(np.int32), has,
        int(entries.max(initial=0)), work, design.n_threads,
    )  # fmt: skip
    return work[0]


def _gram_blas(design, place, parts, s):
    """With R = diag(s)^(1/2) [x_ij p_ik], blocks of two classes are -R^T R. Those of one class have
    weights p (1 - p), formed without cancellation. Large ones are products of float32 blocks of rows,
    summed in float64.
    """
    P, rest, top = parts
    n, K = P.shape
    m, p = len(place), design.shape[1]
    real = np.float64 if 0.5 * n * m * m <= _SINGLE_WORK else np.float32
    rows, classes = np.divmod(place, K)
    members = [np.flatnonzero(classes == k) for k in range(K)]
    G = np.zeros((m, m))
    diagonal = [np.zeros((len(j), len(j))) for j in members]
    if isinstance(design, DenseDesign):
        X = design.X
    else:
        X = sp.csr_matrix((design.data, design.indices, design.indptr), shape=design.shape)
    step = max(512, 2**20 // max(m, p, 1))
    for lo in range(0, n, step):
        part = slice(lo, min(lo + step, n))
        nb = part.stop - lo
        A = np.ones((nb, p + 1), dtype=real)
        A[:, :p] = X[part].toarray() if sp.issparse(X) else X[part]
        full = P[part].copy()
        high = np.arange(nb), top[part]
        full[high] = 1.0 - rest[part]
        weight = full * (1.0 - full)
        weight[high] = full[high] * rest[part]
        weight *= s[part, None]
        full *= np.sqrt(s[part])[:, None]
        full, weight = full.astype(real, copy=False), weight.astype(real, copy=False)
        columns = A[:, rows]
        for k, j in enumerate(members):
            if len(j):
                B = columns[:, j]
                diagonal[k] += B.T @ (B * weight[:, k : k + 1])
        columns *= full[:, classes]
        G -= columns.T @ columns
    for k, j in enumerate(members):
        G[np.ix_(j, j)] = diagonal[k]
    return G


def _diagonal(square, place, parts, s, K):
    """H's diagonal on ``place``: sum_i s_i x_ij^2 p_ik (1 - p_ik); ``square`` is A -> (A^2)^T A."""
    P, rest, top = parts
    weight = P * (1.0 - P)
    weight[np.arange(len(top)), top] = rest * (1.0 - rest)
    weight *= s[:, None]
    table = np.concatenate([square(weight), weight.sum(axis=0)[None]])
    return table.ravel()[place]


def _padded(P, K):
    out = np.zeros((len(P), K), dtype=np.float32)
    out[:, : P.shape[1]] = P
    return out


def row_operator(design, place, parts, s, has, ridge):
    P, _, top = parts
    K = P.shape[1]
    wide = -(-K // 8) * 8
    indptr, indices, data = _pointers(design)

    def square(weight):
        out = np.empty((design.shape[1], K))
        kernels.rmatmat(indptr, indices, np.square(data), weight, out, design.n_threads)
        return out

    diagonal = _diagonal(square, place, parts, s, K)
    rows, classes = np.divmod(place, K)
    return kernels.ClassRowOperator(
        indptr, indices.astype(np.int32, copy=False), data.astype(np.float32, copy=False), design.shape[1],
        _padded(P, wide), top, s.astype(np.float32), (rows * wide + classes).astype(np.int64), diagonal, has,
        ridge, design.n_threads,
    )  # fmt: skip


def dense_operator(design, place, parts, s, has, ridge):
    P, _, top = parts
    K = P.shape[1]
    A = np.ascontiguousarray(design.X, dtype=np.float32)
    diagonal = _diagonal(lambda weight: np.square(A).T @ weight.astype(np.float32), place, parts, s, K)
    return kernels.ClassDenseOperator(
        A, _padded(P, K), top, s.astype(np.float32), place.astype(np.int64), diagonal, has, ridge
    )
