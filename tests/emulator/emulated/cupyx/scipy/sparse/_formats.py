"""The formats, and functions that make matrices."""

import cupy
import numpy as np
import scipy.sparse
from cupy._convert import host, is_array, new, sync, upload

from ._base import _spbase, check_kind, dense_rows, index_dtype, issparse, sparray, spmatrix


class _compressed(_spbase):
    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        data, indices, indptr, shape = self._parts(arg1, shape, dtype)
        dtype = data.dtype if dtype is None else np.dtype(dtype)
        check_kind(dtype)
        self.data = data.astype(dtype, copy=copy)
        kind = indices.dtype if scipy.sparse.issparse(arg1) else index_dtype(indices, indptr)
        self.indices = indices.astype(kind, copy=copy)
        self.indptr = indptr.astype(kind, copy=copy)
        major = shape[self._major]
        if len(indptr) != major + 1:
            raise ValueError(f"index pointer size ({len(indptr)}) should be ({major + 1})")
        self._shape = tuple(int(n) for n in shape)

    def _parts(self, arg1, shape, dtype):
        if issparse(arg1):
            made = arg1.asformat(self.format)
            return made.data, made.indices, made.indptr, shape or arg1.shape
        if scipy.sparse.issparse(arg1):
            made = arg1.asformat(self.format)
            return upload(made.data), upload(made.indices), upload(made.indptr), shape or arg1.shape
        if is_array(arg1):
            made = getattr(scipy.sparse, f"{self.format}_matrix")(dense_rows(arg1))
            return new(made.data), new(made.indices), new(made.indptr), shape or made.shape
        if isinstance(arg1, tuple) and len(arg1) == 3:
            return self._given(*arg1, shape)
        if isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
            made = coo_matrix(arg1, shape=shape, dtype=dtype).asformat(self.format)
            return made.data, made.indices, made.indptr, made.shape
        if isinstance(arg1, tuple) and len(arg1) == 2:
            empty = cupy.zeros(0, "i")
            return cupy.zeros(0, dtype or "d"), empty, cupy.zeros(arg1[self._major] + 1, "i"), arg1
        raise ValueError("Unsupported initializer format")

    def _given(self, data, indices, indptr, shape):
        if not all(is_array(x) and x.ndim == 1 for x in (data, indices, indptr)):
            raise ValueError("data, indices, and indptr must be 1-D cupy arrays")
        if len(data) != len(indices):
            raise ValueError("indices and data should have the same size")
        if indptr.size:
            sync()
            first, last = int(indptr._array[0]), int(indptr._array[-1])
            if first != 0:
                raise ValueError(f"index pointer should start with 0 (got {first})")
            if last > data.size:
                raise ValueError(
                    f"last index pointer ({last}) exceeds the size of data/indices ({data.size})"
                )
            data, indices = data[:last], indices[:last]
        if shape is None:
            sync()
            minor = int(indices._array.max()) + 1
            shape = (len(indptr) - 1, minor) if self._major == 0 else (minor, len(indptr) - 1)
        return data, indices, indptr, shape

    @classmethod
    def _from_host(cls, matrix):
        return cls._from_parts(new(matrix.data), new(matrix.indices), new(matrix.indptr), matrix.shape)

    @classmethod
    def _from_parts(cls, data, indices, indptr, shape):
        made = cls.__new__(cls)
        made.data, made.indices, made.indptr, made._shape = data, indices, indptr, tuple(shape)
        check_kind(data.dtype)
        return made

    def _host(self):
        parts = host(self.data), host(self.indices), host(self.indptr)
        made = self._scipy_class()(parts, shape=self._shape, copy=False)
        return made

    def transpose(self, axes=None, copy=False):
        if axes is not None:
            raise ValueError("Sparse matrices do not support an 'axes' parameter")
        source = self.copy() if copy else self
        kind = "array" if isinstance(self, sparray) else "matrix"
        other = {"csr": "csc", "csc": "csr"}[self.format]
        return globals()[f"{other}_{kind}"]._from_parts(
            source.data, source.indices, source.indptr, self.shape[::-1]
        )

    # what is known of the order of the indices; to find out waits for the device

    def _known(self, name):
        if f"_{name}" not in self.__dict__:
            sync()
            self.__dict__[f"_{name}"] = bool(getattr(self._host(), name))
        return self.__dict__[f"_{name}"]

    has_canonical_format = property(
        lambda self: self._known("has_canonical_format"),
        lambda self, value: self.__dict__.__setitem__("_has_canonical_format", bool(value)),
    )
    has_sorted_indices = property(
        lambda self: self._known("has_sorted_indices"),
        lambda self, value: self.__dict__.__setitem__("_has_sorted_indices", bool(value)),
    )

    def sum_duplicates(self):
        if self.has_canonical_format:
            return
        sync()
        made = self._host().copy()
        made.sum_duplicates()
        self.data, self.indices, self.indptr = new(made.data), new(made.indices), new(made.indptr)
        self.has_canonical_format = self.has_sorted_indices = True

    def eliminate_zeros(self):
        sync()
        made = self._host().copy()
        made.eliminate_zeros()
        self.data, self.indices, self.indptr = new(made.data), new(made.indices), new(made.indptr)


class _csr(_compressed):
    format = "csr"
    _major = 0


class _csc(_compressed):
    format = "csc"
    _major = 1


class _coo(_spbase):
    format = "coo"

    def __init__(self, arg1, shape=None, dtype=None, copy=False, *, maxprint=None):
        if issparse(arg1) or scipy.sparse.issparse(arg1):
            made = arg1.asformat("coo")
            data, row, col = (upload(x) for x in (made.data, made.row, made.col))
            shape = shape or arg1.shape
        elif is_array(arg1):
            made = scipy.sparse.coo_matrix(dense_rows(arg1))
            data, row, col, shape = new(made.data), new(made.row), new(made.col), shape or made.shape
        elif isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
            data, (row, col) = arg1
            if not all(is_array(x) and x.ndim == 1 for x in (data, row, col)):
                raise ValueError("row, column, and data arrays must be 1-D")
            if not len(data) == len(row) == len(col):
                raise ValueError("row, column, and data array must all be the same length")
            sync()
            if shape is None:
                shape = int(row._array.max()) + 1, int(col._array.max()) + 1
            for name, index, length in (("row", row, shape[0]), ("column", col, shape[1])):
                if index.size and int(index._array.max()) >= length:
                    raise ValueError(f"{name} index exceeds matrix dimensions")
                if index.size and int(index._array.min()) < 0:
                    raise ValueError(f"negative {name} index found")
        else:
            raise TypeError("invalid input format")
        dtype = data.dtype if dtype is None else np.dtype(dtype)
        check_kind(dtype)
        kind = index_dtype(row, col)
        self.data = data.astype(dtype, copy=copy)
        self.row, self.col = row.astype(kind, copy=copy), col.astype(kind, copy=copy)
        self._shape = tuple(int(n) for n in shape)
        self.has_canonical_format = False

    @classmethod
    def _from_host(cls, matrix):
        return cls._from_parts(new(matrix.data), new(matrix.row), new(matrix.col), matrix.shape)

    @classmethod
    def _from_parts(cls, data, row, col, shape):
        made = cls.__new__(cls)
        made.data, made.row, made.col, made._shape = data, row, col, tuple(shape)
        made.has_canonical_format = False
        return made

    def _host(self):
        parts = host(self.data), (host(self.row), host(self.col))
        return self._scipy_class()(parts, shape=self._shape, copy=False)

    def sum_duplicates(self):
        sync()
        made = self._host().copy()
        made.sum_duplicates()
        self.data, self.row, self.col = new(made.data), new(made.row), new(made.col)
        self.has_canonical_format = True


class csr_matrix(spmatrix, _csr):
    """Compressed rows, as a matrix."""


class csc_matrix(spmatrix, _csc):
    """Compressed columns, as a matrix."""


class coo_matrix(spmatrix, _coo):
    """Coordinates, as a matrix."""


class csr_array(_csr, sparray):
    """Compressed rows, as an array."""


class csc_array(_csc, sparray):
    """Compressed columns, as an array."""


class coo_array(_coo, sparray):
    """Coordinates, as an array."""


def _stacked(function, blocks, format, dtype):
    if not all(issparse(block) for block in blocks):
        raise ValueError("the emulation stacks sparse matrices only")
    made = function([block._host() for block in blocks], format=format or "coo", dtype=dtype)
    return blocks[0]._wrap(made)


def hstack(blocks, format=None, dtype=None):
    return _stacked(scipy.sparse.hstack, blocks, format, dtype)
