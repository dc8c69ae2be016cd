"""What the sparse formats share."""

import numpy as np
import scipy.sparse
from cupy._convert import deliver, host, indices, is_array, is_scalar, new, sync

KINDS = "?fdFD"


def is_scalar_like(x):
    return is_scalar(x) or (is_array(x) and x.ndim == 0)


class _spbase:
    """``data`` and the index arrays lie on the device; ``_host()`` is SciPy's view of them."""

    __array_priority__ = 101
    maxprint = 50
    ndim = 2

    @property
    def dtype(self):
        return self.data.dtype

    @property
    def shape(self):
        return self._shape

    nnz = property(lambda self: self.data.size)
    size = property(lambda self: self.data.size)
    device = property(lambda self: self.data.device)
    T = property(lambda self: self.transpose())

    def __len__(self):
        raise TypeError("sparse array length is ambiguous; use shape[0] or .nnz")

    def __bool__(self):
        if self.shape == (1, 1):
            return self.nnz != 0
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()."
        )

    def __repr__(self):
        return (
            f"<{self.format} sparse {type(self).__name__} of dtype '{self.dtype}'\n\twith {self.nnz} stored "
            f"elements and shape {self.shape}>"
        )

    # ndarray's __array__ would be asked for by np.asarray: CuPy's sparse matrices have none, NumPy then makes
    # an object array, which no caller wants

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a sparse matrix on the device becomes no NumPy array: use its get()")

    def _wrap(self, matrix):
        """A matrix of SciPy as one of this kind, of its own format."""
        from . import _formats

        kind = "array" if isinstance(self, sparray) else "matrix"
        return getattr(_formats, f"{matrix.format}_{kind}")._from_host(matrix)

    def get(self, stream=None):
        sync()
        return self._scipy_class()(self._host().copy())

    def _scipy_class(self):
        kind = "array" if isinstance(self, sparray) else "matrix"
        return getattr(scipy.sparse, f"{self.format}_{kind}")

    def toarray(self, order=None, out=None):
        return new(self._host().toarray(), order=order or "C")

    def asformat(self, format):
        return self if format in (None, self.format) else getattr(self, f"to{format}")()

    def _converted(self, format):
        host_matrix = self._host()
        return self._wrap(getattr(host_matrix, f"to{format}")(copy=True))

    def tocoo(self, copy=False):
        return self.copy() if copy else self if self.format == "coo" else self._converted("coo")

    def tocsr(self, copy=False):
        return self.copy() if copy else self if self.format == "csr" else self._converted("csr")

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
        return self._product(other)

    def __rmatmul__(self, other):
        if is_scalar_like(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if not is_array(other):
            return NotImplemented
        made = self.transpose()._product(other.T)
        return made if made is NotImplemented else made.T

    def _product(self, other):
        if issparse(other):
            self.sum_duplicates()
            other.sum_duplicates()
            return self._wrap((self._host() @ other._host()).tocsr())
        if not is_array(other):
            return NotImplemented
        self.sum_duplicates()
        if other.ndim > 2:
            raise ValueError("could not interpret dimensions")
        if other.shape[0] != self.shape[1]:
            raise ValueError("dimension mismatch")
        made = self._host() @ other._array
        # cuSPARSE's products of matrices come in Fortran's order
        return new(np.asarray(made), order="F" if made.ndim == 2 else "C")

    def __mul__(self, other):
        return (
            self.multiply(other)
            if is_scalar_like(other) or isinstance(self, sparray)
            else self._product(other)
        )

    def __rmul__(self, other):
        if is_scalar_like(other):
            return self.multiply(other)
        return self.multiply(other) if isinstance(self, sparray) else self.__rmatmul__(other)

    def multiply(self, other):
        if is_scalar_like(other):
            factor = other._array if is_array(other) else other
            return self._wrap(self._host() * factor)
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
        if axis is not None and not isinstance(self, sparray):
            made = made.reshape((1, -1) if axis in (0, -2) else (-1, 1))
        return deliver(made if dtype is not None else made.astype(self._sum_type()), out)

    def _sum_type(self):
        return np.int64 if self.dtype == np.bool_ else self.dtype

    def __getitem__(self, key):
        if self.format == "coo":
            raise TypeError(f"'{type(self).__name__}' object is not subscriptable")
        made = self._host()[indices(key)]
        if scipy.sparse.issparse(made):
            return self._wrap(made)
        return new(np.asarray(made))

    def __getattr__(self, name):
        if name in _ELEMENTWISE:
            return lambda: self._wrap(getattr(self._host(), name)())
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


_NAMES = """
arcsin arcsinh arctan arctanh ceil deg2rad expm1 floor log1p rad2deg rint sign sin sinh sqrt tan tanh trunc
"""
_ELEMENTWISE = frozenset(_NAMES.split())


class sparray:
    """Arrays: ``*`` is elementwise, and sums along an axis have one dimension."""


class spmatrix:
    """Matrices: ``*`` is the matrix product, and sums along an axis keep two dimensions."""


def check_kind(dtype):
    if np.dtype(dtype).char not in KINDS:
        raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")


def issparse(x):
    return isinstance(x, _spbase)


def index_dtype(*arrays):
    """int32, unless an index of 64 bits needs more (asking for that waits for the device)."""
    for array in arrays:
        if array.dtype.kind not in "iu":
            raise ValueError("index arrays should have integer data types")
        if not np.can_cast(array.dtype, np.int32):
            sync()
            if array.size and int(np.abs(host(array)).max()) > np.iinfo(np.int32).max:
                return np.int64
    return np.int32


def dense_rows(array):
    """A dense device array as a SciPy matrix; the count of its nonzero elements waits for the device."""
    if array.ndim > 2:
        raise ValueError("expected dimension <= 2 array or matrix")
    check_kind(array.dtype)
    sync()
    return np.atleast_2d(host(array))
