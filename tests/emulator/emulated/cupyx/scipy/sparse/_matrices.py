"""The sparse formats, over the matrices of SciPy."""

import numpy as np
import scipy.sparse
from cupy._convert import deliver, host, indices, is_array, is_scalar, new, sync, upload

KINDS = "?fdFD"


def is_scalar_like(x):
    return is_scalar(x) or (is_array(x) and x.ndim == 0)


def check_kind(dtype):
    if np.dtype(dtype).char not in KINDS:
        raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")


def issparse(x):
    return isinstance(x, spmatrix)


class spmatrix:
    """``data`` and the index arrays lie on the device; ``_host()`` is SciPy's view of them."""

    __array_priority__ = 101
    ndim = 2
    _index = ()  # names of the index arrays

    dtype = property(lambda self: self.data.dtype)
    shape = property(lambda self: self._shape)
    nnz = property(lambda self: self.data.size)
    device = property(lambda self: self.data.device)
    T = property(lambda self: self.transpose())

    def _set(self, data, parts, shape, dtype, copy):
        dtype = data.dtype if dtype is None else np.dtype(dtype)
        check_kind(dtype)
        self.data = data.astype(dtype, copy=copy)
        kind = _index_dtype(*parts)
        for name, part in zip(self._index, parts):
            setattr(self, name, part.astype(kind, copy=copy))
        self._shape = tuple(int(n) for n in shape)

    @classmethod
    def _from(cls, data, parts, shape):
        check_kind(data.dtype)
        made = cls.__new__(cls)
        made.data, made._shape = data, tuple(shape)
        made.__dict__ |= dict(zip(cls._index, parts))
        return made

    @staticmethod
    def _wrap(matrix):
        """A matrix of SciPy as one of its own format."""
        cls = globals()[f"{matrix.format}_matrix"]
        return cls._from(new(matrix.data), [new(getattr(matrix, n)) for n in cls._index], matrix.shape)

    def _replace(self, matrix):
        self.__dict__ |= {name: new(getattr(matrix, name)) for name in ("data", *self._index)}

    def __len__(self):
        raise TypeError("sparse array length is ambiguous; use shape[0] or .nnz")

    # ndarray's __array__ would be asked for by np.asarray: CuPy's sparse matrices have none, NumPy then makes
    # an object array, which no caller wants

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a sparse matrix on the device becomes no NumPy array: use its get()")

    def get(self, stream=None):
        sync()
        return self._host().copy()

    def toarray(self, order=None, out=None):
        return new(self._host().toarray(), order=order or "C")

    def asformat(self, format):
        return self if format in (None, self.format) else self._wrap(self._host().asformat(format, copy=True))

    def tocoo(self, copy=False):
        return self.copy() if copy else self.asformat("coo")

    def tocsr(self, copy=False):
        return self.copy() if copy else self.asformat("csr")

    def copy(self):
        return self._wrap(self._host().copy())

    def astype(self, dtype, copy=True):
        dtype = np.dtype(dtype)
        if dtype == self.dtype and not copy:
            return self
        check_kind(dtype)
        return self._wrap(self._host().astype(dtype, copy=True))

    def __abs__(self):
        return self._wrap(abs(self._host()))

    # products; CuPy sums duplicates of the left side before, in place

    def __matmul__(self, other):
        if is_scalar_like(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if issparse(other):
            self.sum_duplicates()
            other.sum_duplicates()
            return self._wrap((self._host() @ other._host()).tocsr())
        if not is_array(other):
            return NotImplemented
        self.sum_duplicates()
        if other.shape[0] != self.shape[1]:
            raise ValueError("dimension mismatch")
        made = self._host() @ other._array
        # cuSPARSE's products of matrices come in Fortran's order
        return new(np.asarray(made), order="F" if made.ndim == 2 else "C")

    def __rmatmul__(self, other):
        return (self.T @ other.T).T if is_array(other) else NotImplemented

    def multiply(self, other):
        if is_scalar_like(other):
            return self._wrap(self._host() * (other._array if is_array(other) else other))
        if issparse(other):
            return self._wrap(self._host().multiply(other._host()).tocsr())
        if not is_array(other):
            raise TypeError("expected scalar, dense matrix/vector or csr matrix")
        self.sum_duplicates()
        made = self._host().multiply(np.atleast_2d(other._array))
        return self._wrap(made.tocoo() if self.format == "coo" else made.tocsr())

    def __sub__(self, other):
        return self._wrap((self._host() - other._host()).tocsr()) if issparse(other) else NotImplemented

    def sum(self, axis=None, dtype=None, out=None):
        made = np.asarray(self._host().sum(axis=axis, dtype=dtype))
        kind = np.int64 if self.dtype == np.bool_ else self.dtype
        return deliver(made if dtype is not None else made.astype(kind), out)

    def __getitem__(self, key):
        made = self._host()[indices(key)]
        return self._wrap(made) if scipy.sparse.issparse(made) else new(np.asarray(made))

    def sum_duplicates(self):
        if getattr(self, "has_canonical_format", False):
            return
        sync()
        made = self._host().copy()
        made.sum_duplicates()
        self._replace(made)
        self.has_canonical_format = True

    def eliminate_zeros(self):
        sync()
        made = self._host().copy()
        made.eliminate_zeros()
        self._replace(made)


def _index_dtype(*arrays):
    """int32, unless an index of 64 bits needs more (asking for that waits for the device)."""
    for array in arrays:
        if not np.can_cast(array.dtype, np.int32):
            sync()
            if array.size and int(np.abs(host(array)).max()) > np.iinfo(np.int32).max:
                return np.int64
    return np.int32


def _dense(array):
    """A dense device array for SciPy; the count of its nonzero elements waits for the device."""
    check_kind(array.dtype)
    sync()
    return np.atleast_2d(host(array))


class _compressed(spmatrix):
    _index = "indices", "indptr"

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        data, parts, shape = self._parts(arg1, shape, dtype)
        self._set(data, parts, shape, dtype, copy)
        major = self._shape[self._major]
        if len(self.indptr) != major + 1:
            raise ValueError(f"index pointer size ({len(self.indptr)}) should be ({major + 1})")

    def _parts(self, arg1, shape, dtype):
        if scipy.sparse.issparse(arg1):
            made = arg1.asformat(self.format)
            return upload(made.data), (upload(made.indices), upload(made.indptr)), shape or arg1.shape
        if is_array(arg1):
            made = getattr(scipy.sparse, f"{self.format}_matrix")(_dense(arg1))
            return new(made.data), (new(made.indices), new(made.indptr)), shape or made.shape
        if isinstance(arg1, tuple) and len(arg1) == 3:
            return *self._given(*arg1), shape
        if isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
            made = coo_matrix(arg1, shape=shape, dtype=dtype).asformat(self.format)
            return made.data, (made.indices, made.indptr), made.shape
        raise NotImplementedError("the emulation makes no such matrix")

    def _given(self, data, indices, indptr):
        if not all(is_array(x) and x.ndim == 1 for x in (data, indices, indptr)):
            raise ValueError("data, indices, and indptr must be 1-D cupy arrays")
        if len(data) != len(indices):
            raise ValueError("indices and data should have the same size")
        sync()
        first, last = int(indptr._array[0]), int(indptr._array[-1])
        if first != 0:
            raise ValueError(f"index pointer should start with 0 (got {first})")
        if last > data.size:
            raise ValueError(f"last index pointer ({last}) exceeds the size of data/indices ({data.size})")
        return data[:last], (indices[:last], indptr)

    def _host(self):
        parts = host(self.data), host(self.indices), host(self.indptr)
        return getattr(scipy.sparse, f"{self.format}_matrix")(parts, shape=self._shape, copy=False)

    def transpose(self, axes=None, copy=False):
        if axes is not None:
            raise ValueError("Sparse matrices do not support an 'axes' parameter")
        source = self.copy() if copy else self
        other = {"csr": csc_matrix, "csc": csr_matrix}[self.format]
        return other._from(source.data, (source.indices, source.indptr), self.shape[::-1])

    # what is known of the order of the indices; to find out waits for the device

    @property
    def has_canonical_format(self):
        if "_is_canonical" not in self.__dict__:
            sync()
            self._is_canonical = bool(self._host().has_canonical_format)
        return self._is_canonical

    @has_canonical_format.setter
    def has_canonical_format(self, value):
        self._is_canonical = bool(value)


class csr_matrix(_compressed):
    """Compressed rows."""

    format = "csr"
    _major = 0


class csc_matrix(_compressed):
    """Compressed columns."""

    format = "csc"
    _major = 1


class coo_matrix(spmatrix):
    """Coordinates."""

    format = "coo"
    _index = "row", "col"

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if issparse(arg1) or scipy.sparse.issparse(arg1):
            made = arg1.asformat("coo")
            data, *parts = (upload(x) for x in (made.data, made.row, made.col))
            shape = shape or arg1.shape
        elif isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
            data, parts = arg1
            if not all(is_array(x) and x.ndim == 1 for x in (data, *parts)):
                raise ValueError("row, column, and data arrays must be 1-D")
            sync()
            for name, index, length in zip(("row", "column"), parts, shape):
                if index.size and int(index._array.max()) >= length:
                    raise ValueError(f"{name} index exceeds matrix dimensions")
                if index.size and int(index._array.min()) < 0:
                    raise ValueError(f"negative {name} index found")
        else:
            raise NotImplementedError("the emulation makes no such matrix")
        self._set(data, parts, shape, dtype, copy)

    def _host(self):
        parts = host(self.data), (host(self.row), host(self.col))
        return scipy.sparse.coo_matrix(parts, shape=self._shape, copy=False)


def hstack(blocks, format=None, dtype=None):
    if not all(issparse(block) for block in blocks):
        raise ValueError("the emulation stacks sparse matrices only")
    made = scipy.sparse.hstack([block._host() for block in blocks], format=format or "coo", dtype=dtype)
    return spmatrix._wrap(made)
