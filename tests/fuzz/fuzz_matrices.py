"""Strategies for matrices, targets and weights as users have them, whole and broken.

Hypothesis draws the kind of thing and a seed; NumPy fills it. That is quick, and shrinks to the plain kinds.
"""

import mmap
import warnings

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**20)
N_ROWS = st.sampled_from([6, 12, 3, 2, 1, 25, 0])
N_COLUMNS = st.sampled_from([3, 1, 2, 6, 17, 0])


def _mixed(rng, shape):
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-150, 151, shape)


def _columns(rng, shape):
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-150, 151, shape[1:])


def _almost_copies(rng, shape):
    return rng.standard_normal(shape[:1])[:, None] + 1e-12 * rng.standard_normal(shape)


# plain ones first: that is where examples shrink to
VALUES = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "bits": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "constant": lambda rng, shape: np.full(shape, 3.0),
    "zero": lambda rng, shape: np.zeros(shape),
    "copies": _almost_copies,
    "offset": lambda rng, shape: 1e8 + rng.standard_normal(shape),
    "huge": lambda rng, shape: 1e150 * rng.standard_normal(shape),
    "tiny": lambda rng, shape: 1e-150 * rng.standard_normal(shape),
    "columns": _columns,
    "mixed": _mixed,
    "subnormal": lambda rng, shape: 5e-324 * rng.integers(-3, 4, shape),
    "largest": lambda rng, shape: rng.choice([-1.0, 1.0], shape) * np.finfo(float).max,
    "large32": lambda rng, shape: 1e18 * rng.standard_normal(shape),
}


DTYPES = (np.float64, np.float32, np.int64, np.int8, np.bool_, np.float16, ">f8", np.uint64)


def _memory_mapped(A):
    # anonymous: the same kind of buffer as a file's, which a fork or a copy treats differently from an
    # array's
    out = np.frombuffer(mmap.mmap(-1, max(A.nbytes, 1)), dtype=A.dtype, count=A.size).reshape(A.shape)
    out[...] = A
    return out.view(np.memmap) if A.size else A


def _strided(A):
    wide = np.zeros((2 * A.shape[0], 3 * A.shape[1]), dtype=A.dtype)
    wide[::2, ::3] = A
    return wide[::2, ::3]


def _read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


def unaligned(A):
    buffer = np.zeros(A.nbytes + 1, dtype=np.int8)
    out = buffer[1:].view(A.dtype).reshape(A.shape) if A.size else A
    out[...] = A
    return out


DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "list": lambda A: A.tolist(),
    "strided": _strided,
    "reversed": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": _read_only,
    "memory-mapped": _memory_mapped,
    "unaligned": unaligned,
    "object": lambda A: A.astype(object),
}


def _non_canonical(A, kind=sp.csr_array):
    """Duplicates, zeros that are stored, and indices out of order."""
    rng, (n, p) = np.random.default_rng(A.size), A.shape
    rows, columns = np.nonzero(A)
    whole = A[rows, columns]
    half = whole / 2 if A.dtype.kind == "f" else np.zeros_like(whole)
    rest = whole - half if A.dtype.kind == "f" else whole
    zeros = rng.integers(0, [max(n, 1), max(p, 1)], (3 if A.size else 0, 2))
    rows = np.concatenate([rows, rows, zeros[:, 0]])
    columns = np.concatenate([columns, columns, zeros[:, 1]])
    values = np.concatenate([half, rest, np.zeros(len(zeros), dtype=A.dtype)])
    major, minor = (columns, rows) if kind in (sp.csc_array, sp.csc_matrix) else (rows, columns)
    order = rng.permutation(len(rows))
    order = order[np.argsort(major[order], kind="stable")]
    length = p if kind in (sp.csc_array, sp.csc_matrix) else n
    indptr = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=length))])
    return kind((values[order], minor[order].astype(np.int32), indptr.astype(np.int32)), shape=A.shape)


def _long_indices(A):
    X = sp.csr_array(A)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _mixed_indices(A):
    X = sp.csc_array(A)
    X.indptr = X.indptr.astype(np.int64)
    return X


def _more_than_the_matrix(A):
    X = sp.csr_array(A)
    X.indices = np.append(X.indices, [2**31 - 1, -1]).astype(np.int32)
    X.data = np.append(X.data, [3, 4]).astype(X.dtype)
    return X


def _read_only_sparse(A):
    X = sp.csr_array(A)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


def _strided_sparse(A):
    X = sp.csr_matrix(A)
    X.data, X.indices = np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2]
    return X


def _unaligned_sparse(A):
    X = sp.csr_array(A)
    X.data, X.indices, X.indptr = map(unaligned, (X.data, X.indices, X.indptr))
    return X


SPARSE = {
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "dia": sp.dia_array,
    "bsr": sp.bsr_array,
    "non-canonical CSR": _non_canonical,
    "non-canonical CSC": lambda A: _non_canonical(A, sp.csc_matrix),
    "int64 indices": _long_indices,
    "indices of two types": _mixed_indices,
    "spare entries": _more_than_the_matrix,
    "read-only CSR": _read_only_sparse,
    "strided CSR": _strided_sparse,
    "unaligned CSR": _unaligned_sparse,
}
LAYOUTS = DENSE | SPARSE


def values(draw, shape, kinds=tuple(VALUES), seeds=SEEDS):
    """float64 numbers of a kind that is drawn, some of them zero."""
    kind, rng = draw(st.sampled_from(kinds)), np.random.default_rng(draw(seeds))
    A = np.asarray(VALUES[kind](rng, shape), dtype=np.float64)
    A[rng.random(shape) > draw(st.sampled_from([1.0, 0.5, 0.1]))] = 0.0
    return A


def as_layout(A, layout, dtype=np.float64):
    """A in a layout of `LAYOUTS`; SciPy has no sparse matrices of some types, which then stay float64."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        A = A.astype(dtype)
        if layout in SPARSE and A.dtype in (np.float16, np.dtype(">f8")):
            A = A.astype(np.float64)
        return LAYOUTS[layout](A)


@st.composite
def tables(draw):
    """Matrices of all sizes, the empty ones among them; NaN or an infinity in some."""
    n, p = draw(N_ROWS), draw(N_COLUMNS)
    A, layout = values(draw, (n, p)), draw(st.sampled_from(list(LAYOUTS)))
    dtype = draw(st.sampled_from(DTYPES))
    if A.size and draw(st.integers(0, 15)) == 0:
        at, dtype = (draw(st.integers(0, n - 1)), draw(st.integers(0, p - 1))), np.float64
        A[at] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return as_layout(A, layout, dtype)
