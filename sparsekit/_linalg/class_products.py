"""Products and Hessian operators of the multinomial model: a design times one column a class.

``positions`` (m,), ascending, says where the working variables are in a table of features (and one row of
intercepts) by K classes. ``parts`` are the row probabilities of ``MultinomialLoss.probabilities``.
"""

import functools
import operator
from dataclasses import replace

import numpy as np

from .._arrays import DEVICE_BLOCK, kernel_module, to_host
from .._cython.shared import _multinomial
from .cost import DEVICE, HOST, is_single
from .dense_design import DenseDesign
from .matrix import BUFFER
from .sparse_design import CSCDesign


def _backend(design):
    """NumPy or CuPy, where the design is, and the kernels there."""
    return getattr(design, "xp", np), getattr(design, "kernels", _multinomial)


def _rates(design):
    if not design.is_on_device:
        return HOST
    return replace(DEVICE, dense=DEVICE.dense * design.double_cost)


def _row_blocks(design):
    # float32 data is widened by blocks, so that sums are float64
    X, most = design.X, DEVICE_BLOCK if design.is_on_device else 2**20
    step = len(X) if X.dtype == np.float64 else max(1, most // max(X.shape[1], 1))
    for lo in range(0, len(X), max(step, 1)):
        yield slice(lo, lo + step), X[lo : lo + step].astype(np.float64, copy=False)


def matmat(design, W):
    """X W, (n, K)."""
    xp, _ = _backend(design)
    W = xp.ascontiguousarray(W)
    Z = xp.empty((design.shape[0], W.shape[1]))
    if isinstance(design, DenseDesign):
        for rows, X in _row_blocks(design):
            xp.matmul(X, W, out=Z[rows])
        return Z
    design.matmat(W, Z)
    return Z


def rmatmat(design, U, G):
    """G = X^T U, (p, K)."""
    if isinstance(design, DenseDesign):
        G[:] = 0.0
        for rows, X in _row_blocks(design):
            G += X.T @ U[rows]
        return G
    design.rmatmat(U, G)
    return G


def class_sums(design, U, intercept):
    """[X, 1]^T U as a table (p or p + 1, K)."""
    p = design.shape[1]
    G = _backend(design)[0].empty((p + intercept, U.shape[1]))
    rmatmat(design, U, G[:p])
    if intercept:
        G[p] = U.sum(axis=0)
    return G


def squared_norms(design):
    """|x_i|^2, (n,)."""
    xp, _ = _backend(design)
    if isinstance(design, DenseDesign):
        parts = [np.einsum("ij,ij->i", X, X) for _, X in _row_blocks(design)]
        return xp.concatenate(parts) if parts else xp.zeros(0)
    squares, ones = np.square(design.data.astype(np.float64)), xp.ones((design.shape[1], 1))
    if isinstance(design, CSCDesign):
        # `matmat` reads rows; without entries the sums are integers
        return np.bincount(design.indices, squares, design.shape[0]).astype(np.float64, copy=False)
    out = xp.empty((design.shape[0], 1))
    indptr, indices, _ = design.lines()
    _backend(design)[1].matmat(indptr, indices, squares, ones, out, *design.threads)
    return out[:, 0]


def _entries(design, positions, K):
    """Entries of each row of a sparse design, counted once for every variable of their feature."""
    xp, kernels = _backend(design)
    held = np.bincount(positions // K, minlength=design.shape[1] + 1).astype(np.int64, copy=False)
    last, held = held[-1], xp.asarray(held)
    out = xp.empty(design.shape[0], dtype=np.int64)
    indptr, indices, _ = design.lines()
    kernels.row_entries(indptr, indices, held, out, *design.threads)
    return out + last


def product_cost(design, K):
    """Nanoseconds of X times a table of K columns and X^T times another one."""
    if isinstance(design, DenseDesign):
        return 2.0 * design.nnz * K * _rates(design).dense
    # eight classes take four times as long as one
    return 4.0 * -(-K // 8) * design.nnz * _rates(design).entry


def gram_pays(design, positions, K):
    """Whether a Gram matrix and its factor cost less than the products that they save."""
    m, rates = len(positions), _rates(design)
    cost = 0.5 * design.shape[0] * m * m * rates.dense
    if not isinstance(design, DenseDesign) and design.sums_pairs:
        cost = min(cost, _pair_cost(design, positions, K))
    return rates.gram_pays(cost, m, product_cost(design, K))


def _pair_cost(design, positions, K):
    entries = _entries(design, positions, K).astype(np.float64)
    return _rates(design).class_pair * 0.5 * float(entries @ entries)


def gram(design, positions, parts, s, has, exact=False):
    """The Hessian on ``positions`` as a matrix, float64: by pairs of a row's entries, or by BLAS.

    BLAS sums float32 products within a block of rows where `is_single` says so, unless ``exact``.
    """
    positions = to_host(positions)
    n, K = parts[0].shape
    m = len(positions)
    blas_cost = 0.5 * n * m * m * _rates(design).dense
    if not design.sums_pairs or _pair_cost(design, positions, K) > blas_cost:
        return _gram_blas(design, positions, parts, s, has, exact)
    entries = _entries(design, positions, K)
    rows, classes = np.divmod(positions, K)
    first = np.searchsorted(rows, np.arange(design.shape[1] + 2)).astype(np.int32)
    # two partial sums if the matrix is small relative to the work that fills it
    square = float(entries.astype(np.float64) @ entries)
    work = np.empty((2 if 8.0 * m * m < square else 1, m, m))
    indptr, indices, data = design.lines()
    _multinomial.class_gram(
        indptr, indices.astype(np.int32, copy=False), data, parts, s, (first, classes.astype(np.int32)), has,
        int(entries.max(initial=0)), work, design.n_threads,
    )  # fmt: skip
    return work[0]


def _gram_blas(design, positions, parts, s, has, exact=False):
    """With U and V of ``_factors``, blocks of two classes are -U^T U and those of one class V^T V.
    Sums over blocks of rows are float64.
    """
    n, K = parts[0].shape
    m = len(positions)
    xp, _ = _backend(design)
    real = np.float32 if is_single(n, m) and not exact else np.float64
    # the variables of one class side by side, so that their products are of neighbouring columns
    classes = positions % K
    order = np.argsort(classes, kind="stable")
    at = np.empty(m, dtype=np.int32)
    at[order] = np.arange(m)
    cuts = np.searchsorted(classes[order], np.arange(K + 1))
    at = xp.asarray(at)
    shared, inside = xp.zeros((m, m)), [xp.zeros((w, w)) for w in np.diff(cuts)]
    step = min(max(512, (DEVICE_BLOCK if design.is_on_device else BUFFER) // max(m, 1)), max(n, 1))
    U, V = xp.empty((step, m), dtype=real), xp.empty((step, m), dtype=real)
    for lo in range(0, n, step):
        size = min(step, n - lo)
        U, V = U[:size], V[:size]
        _factors(design, positions, parts, s, has, at, cuts, lo, U, V)
        shared += U.T @ U
        for k in np.flatnonzero(np.diff(cuts)):
            B = V[:, cuts[k] : cuts[k + 1]]
            inside[k] += B.T @ B
    np.negative(shared, out=shared)
    for k, block in enumerate(inside):
        shared[cuts[k] : cuts[k + 1], cuts[k] : cuts[k + 1]] = block
    return shared[np.ix_(at, at)]


def _factors(design, positions, parts, s, has, at, cuts, lo, U, V):
    """Rows lo .. of U = diag(s)^(1/2) [x_ij p_ik] and V = diag(s)^(1/2) [x_ij (p_ik (1 - p_ik))^(1/2)].

    Those of class k are the columns ``cuts[k]`` to ``cuts[k + 1]``, that of ``positions[i]`` is ``at[i]``.
    """
    P, rest, top = parts
    p, K = design.shape[1], P.shape[1]
    rows, classes = np.divmod(positions, K)
    xp, kernels = _backend(design)
    is_dense, size = isinstance(design, DenseDesign), len(U)
    if not is_dense and not design.is_on_device:
        indptr, indices, data = design.lines()
        first = np.searchsorted(rows, np.arange(p + 2)).astype(np.int32)
        kernels.class_factors(
            indptr, indices.astype(np.int32, copy=False), data, parts, s,
            (first, classes.astype(np.int32)), at, has, lo, U, V, *design.threads,
        )  # fmt: skip
        return
    part = slice(lo, lo + size)
    features, rows = np.unique(rows, return_inverse=True)
    A = xp.ones((size, len(features)), dtype=U.dtype)
    features = xp.asarray(features[features < p])
    A[:, : len(features)] = design.X[part][:, features] if is_dense else design.part(part, features).toarray()
    full = P[part].copy()
    high = xp.arange(size), top[part]
    full[high] = 1.0 - rest[part]
    weight = full * (1.0 - full)
    weight[high] = full[high] * rest[part]
    root = np.sqrt(s[part])[:, None]
    full, weight = (root * full).astype(U.dtype), (root * np.sqrt(weight)).astype(U.dtype)
    for k in np.flatnonzero(np.diff(cuts)):
        own, here = A[:, xp.asarray(rows[classes == k])], slice(int(cuts[k]), int(cuts[k + 1]))
        np.multiply(own, full[:, k, None], out=U[:, here])
        np.multiply(own, weight[:, k, None], out=V[:, here])


def _diagonal(square, positions, parts, s, has):
    """H's diagonal on ``positions``: sum_i s_i x_ij^2 p_ik (1 - p_ik); ``square`` is A -> (A^2)^T A."""
    P, rest, top = parts
    weight = P * (1.0 - P)
    weight[np.arange(len(top), like=P), top] = rest * (1.0 - rest)
    weight *= s[:, None]
    table = square(weight)
    table = np.concatenate([table, weight.sum(axis=0)[None]]) if has else table
    diagonal = table.ravel().astype(np.float64, copy=False)
    return diagonal if positions is None else diagonal[positions]


def _padded_classes(K):
    """Number of columns of a table of K classes that kernels of the CPU take."""
    return (2 if K <= 2 else 4) if K <= 4 else -(-K // 8) * 8


def _padded(P, K):
    """P in single precision with K columns; a number is set to 0 if its product with eps^2 underflows.

    Processors take a hundred cycles for a number below the smallest normal one. A product with the Hessian of
    almost separable classes took up to 4 times as long.
    """
    single, out = np.finfo(np.float32), np.zeros((len(P), K), dtype=np.float32, like=P)
    out[:, : P.shape[1]] = P
    out[out < single.tiny / single.eps**2] = 0.0
    return out


def _index(positions, K, wide, like):
    """``positions`` in a table of ``wide`` columns; none where all variables are meant."""
    if positions is None:
        return np.empty(0, dtype=np.int64, like=like)
    rows, classes = np.divmod(positions, K)
    return (rows * wide + classes).astype(np.int64)


def row_operator(design, positions, parts, s, has, ridge):
    """Hessian of a sparse design on ``positions``; None: of tables of all variables, by ``multiply``."""
    P, _, top = parts
    K = P.shape[1]
    xp, _ = _backend(design)
    wide = K if design.is_on_device else _padded_classes(K)

    def square(weight):
        out = xp.empty((design.shape[1], K))
        design.squares_rmatmat(weight, out)
        return out

    return kernel_module("shared._class_operators", s).ClassRowOperator(
        *design.single(), design.shape[1], _padded(P, wide), top, s.astype(np.float32),
        _index(positions, K, wide, s), _diagonal(square, positions, parts, s, has), has, ridge,
        *design.threads,
    )  # fmt: skip


def dense_operator(design, positions, parts, s, has, ridge):
    """The same of a dense design."""
    P, _, top = parts
    K = P.shape[1]
    A = design.single()
    step = max(1, DEVICE_BLOCK // max(A.shape[1], 1)) if design.is_on_device else len(A)

    def square(weight):
        weight = weight.astype(np.float32)
        blocks = (slice(lo, lo + step) for lo in range(0, max(len(A), 1), max(step, 1)))
        return functools.reduce(operator.add, (np.square(A[rows]).T @ weight[rows] for rows in blocks))

    return kernel_module("shared._class_operators", s).ClassDenseOperator(
        A, _padded(P, K), top, s.astype(np.float32), _index(positions, K, K, s),
        _diagonal(square, positions, parts, s, has), has, ridge,
    )  # fmt: skip
