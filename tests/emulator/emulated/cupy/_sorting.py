"""Searching, sorting, counting and choosing elements."""

import numpy as np

import cupy

from ._convert import deliver, host, is_array, is_scalar, new, operand, sync, upload
from ._methods import check_kind


def sort(a, axis=-1, kind=None):
    check_kind(kind)
    return new(np.sort(host(a), axis=axis, kind="stable"))


def argsort(a, axis=-1, kind=None):
    host(a)
    return a.argsort(axis=axis, kind=kind)


def partition(a, kth, axis=-1):
    made = a.flatten() if axis is None else a.copy()
    made.partition(kth, axis=-1 if axis is None else axis)
    return made


def argpartition(a, kth, axis=-1):
    host(a)
    return a.argpartition(kth, axis=axis)


def lexsort(keys):
    if keys.ndim > 2:
        raise NotImplementedError("Keys with the rank of three or more is not supported in lexsort")
    return new(np.lexsort(host(keys, "keys")))


def searchsorted(a, v, side="left", sorter=None):
    if not is_array(a):
        raise NotImplementedError("Only int or ndarray are supported for a")
    if not is_array(v):
        if not isinstance(v, int | float | complex):
            raise NotImplementedError("Only python scalars or ndarrays are supported for v")
        v = upload(v)
    order = None if sorter is None else host(sorter, "sorter")
    return new(np.searchsorted(a._array, v._array, side, order))


def digitize(x, bins, right=False):
    return new(np.digitize(host(x, "x"), host(bins, "bins"), right))


def argmax(a, axis=None, dtype=None, out=None, keepdims=False):
    host(a)
    return a.argmax(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def argmin(a, axis=None, dtype=None, out=None, keepdims=False):
    host(a)
    return a.argmin(axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def nonzero(a):
    host(a)
    return a.nonzero()


def flatnonzero(a):
    host(a)
    return a.ravel().nonzero()[0]


def argwhere(a):
    sync()
    return new(np.argwhere(host(a)))


def count_nonzero(a, axis=None):
    return new(np.count_nonzero(host(a), axis=axis))


def where(condition, x=None, y=None):
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        return nonzero(condition)
    return new(np.where(host(condition, "condition"), operand(x), operand(y)))


def take(a, indices, axis=None, out=None):
    host(a)
    return a.take(indices, axis, out)


def take_along_axis(a, indices, axis):
    return new(np.take_along_axis(host(a), host(indices, "indices"), axis))


def compress(condition, a, axis=None, out=None):
    host(a)
    return a.compress(condition, axis, out)


def extract(condition, a):
    sync()
    return new(np.extract(upload(condition)._array, host(a)))


def put(a, ind, v, mode="wrap"):
    host(a)
    a.put(ind, v, mode=mode)


def putmask(a, mask, values):
    if not is_scalar(values) and not np.can_cast(host(values, "values").dtype, a.dtype):
        raise TypeError(
            f"Cannot cast array data from {values.dtype} to {a.dtype} according to the rule 'safe'"
        )
    np.putmask(host(a), host(mask, "mask"), operand(values))


def place(arr, mask, vals):
    sync()
    np.place(host(arr, "arr"), upload(mask)._array, upload(vals)._array)


def fill_diagonal(a, val, wrap=False):
    np.fill_diagonal(host(a), operand(val), wrap)


def diagonal(a, offset=0, axis1=0, axis2=1):
    host(a)
    return a.diagonal(offset, axis1, axis2)


def bincount(x, weights=None, minlength=None):
    """Weighted sums are atomic on a device: their last bits depend on the run."""
    if x.ndim != 1:
        raise ValueError("object too deep or of too small depth for desired array")
    if x.dtype.kind == "f":
        raise TypeError("x must be int array")
    if bool((x < 0).any()):
        raise ValueError("The first argument of bincount must be non-negative")
    if weights is not None and x.shape != weights.shape:
        raise ValueError("The weights and list don't have the same length.")
    if x.size:
        sync()
    counted = np.bincount(host(x, "x"), None if weights is None else host(weights, "weights"), minlength or 0)
    return new(counted)


def histogram(x, bins=10, range=None, density=False, weights=None):
    edges = bins._array if is_array(bins) else bins
    weights = None if weights is None else host(weights, "weights")
    made = np.histogram(host(x, "x"), edges, range, density or None, weights)
    sync()
    return new(made[0]), bins if is_array(bins) else new(made[1])


def in1d(ar1, ar2, assume_unique=False, invert=False):
    return new(np.isin(host(ar1, "ar1").ravel(), host(ar2, "ar2").ravel(), invert=invert))


def isin(element, test_elements, assume_unique=False, invert=False):
    return new(np.isin(host(element, "element"), host(test_elements, "test_elements"), invert=invert))


def intersect1d(arr1, arr2, assume_unique=False, return_indices=False):
    sync()
    made = np.intersect1d(host(arr1), host(arr2), assume_unique, return_indices)
    return tuple(map(new, made)) if return_indices else new(made)


def setdiff1d(ar1, ar2, assume_unique=False):
    sync()
    return new(np.setdiff1d(host(ar1, "ar1"), host(ar2, "ar2"), assume_unique))


def union1d(arr1, arr2):
    sync()
    return new(np.union1d(host(arr1, "arr1"), host(arr2, "arr2")))


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return new(np.isclose(operand(a), operand(b), rtol, atol, equal_nan))


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1, a2, equal_nan=False):
    return new(np.array_equal(host(a1, "a1"), host(a2, "a2"), equal_nan))


def array_equiv(a1, a2):
    return new(np.array_equiv(host(a1, "a1"), host(a2, "a2")))


def isscalar(element):
    return not is_array(element) and np.isscalar(element)


def result_type(*arrays_and_dtypes):
    return np.result_type(*(x._array if is_array(x) else x for x in arrays_and_dtypes))


def can_cast(from_, to, casting="safe"):
    return np.can_cast(from_.dtype if is_array(from_) else from_, to, casting)


def may_share_memory(a, b, max_work=None):
    return np.may_share_memory(host(a), host(b, "b"), max_work=max_work)


def shares_memory(a, b, max_work=None):
    return np.shares_memory(host(a), host(b, "b"), max_work=max_work)


def ndim(a):
    return a.ndim if is_array(a) else np.ndim(a)


def shape(a):
    return a.shape if is_array(a) else np.shape(a)


def size(a, axis=None):
    return np.size(a._array if is_array(a) else a, axis)


def iscomplexobj(x):
    return issubclass(x.dtype.type if is_array(x) else np.asarray(x).dtype.type, np.complexfloating)


def isrealobj(x):
    return not iscomplexobj(x)


def real(val):
    return val.real if is_array(val) else cupy.asarray(val).real


def imag(val):
    return val.imag if is_array(val) else cupy.asarray(val).imag


def isneginf(x, out=None):
    return deliver(np.isneginf(host(x, "x")), out)


def isposinf(x, out=None):
    return deliver(np.isposinf(host(x, "x")), out)


def delete(arr, indices, axis=None):
    sync()
    return new(np.delete(host(arr, "arr"), indices._array if is_array(indices) else indices, axis))


def diag_indices(n, ndim=2):
    return (cupy.arange(n),) * ndim


def clip(a, a_min, a_max, out=None):
    host(a)
    return a.clip(a_min, a_max, out=out)


def ix_(*args):
    return tuple(new(part) for part in np.ix_(*(host(x) for x in args)))


def unravel_index(indices, dims, order="C"):
    return tuple(new(part) for part in np.unravel_index(host(indices, "indices"), dims, order))


def ravel_multi_index(multi_index, dims, mode="wrap", order="C"):
    return new(np.ravel_multi_index([host(i) for i in multi_index], dims, mode, order))


def round(a, decimals=0, out=None):
    host(a)
    return a.round(decimals, out)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    made = np.nan_to_num(host(x, "x"), nan=nan, posinf=posinf, neginf=neginf)
    return new(made) if copy else deliver(made, x)
