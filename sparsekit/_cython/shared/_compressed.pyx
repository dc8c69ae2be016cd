"""Whether the arrays of a CSR or CSC matrix describe one; the other kernels do not check them."""
from libc.stdint cimport INT32_MAX, int32_t, int64_t

ctypedef fused index:
    int32_t
    int64_t

cdef extern from "shared/compressed.h" nogil:
    Py_ssize_t sk_index_fault_i32(const int32_t*, Py_ssize_t, int32_t)
    Py_ssize_t sk_index_fault_i64(const int64_t*, Py_ssize_t, int64_t)
    Py_ssize_t sk_pointer_fault_i32(const int32_t*, Py_ssize_t, int64_t)
    Py_ssize_t sk_pointer_fault_i64(const int64_t*, Py_ssize_t, int64_t)


def index_fault(const index[::1] indices, Py_ssize_t n):
    """The first position of an index that is not one of 0 .. n - 1, or -1."""
    cdef Py_ssize_t size = indices.shape[0], found
    if size == 0:
        return -1
    with nogil:
        if index is int32_t:
            found = sk_index_fault_i32(&indices[0], size, <int32_t>min(n - 1, <Py_ssize_t>INT32_MAX))
        else:
            found = sk_index_fault_i64(&indices[0], size, n - 1)
    return found


def pointer_fault(const index[::1] indptr, Py_ssize_t n_entries):
    """The first pointer that is not 0 (the first of all), falls, or is beyond ``n_entries``; or -1."""
    cdef Py_ssize_t size = indptr.shape[0], found
    if size == 0:
        return 0
    with nogil:
        if index is int32_t:
            found = sk_pointer_fault_i32(&indptr[0], size - 1, n_entries)
        else:
            found = sk_pointer_fault_i64(&indptr[0], size - 1, n_entries)
    return found
