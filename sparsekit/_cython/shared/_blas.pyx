"""The routines of SciPy's BLAS and LAPACK that kernels call.

They are looked up when this module is imported, in the table in which Cython modules publish their functions.
A ``cimport`` would need SciPy to build the package. It would also have Cython read two thousand declarations
of LAPACK for each of six modules, a tenth of the whole compilation.
"""
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from scipy.linalg import cython_blas, cython_lapack


cdef void* _routine(module, str name, int n_integers) except NULL:
    # the capsule's name is the declaration, in which pointers to C's int show that indices have 32 bits
    published = module.__pyx_capi__[name]
    cdef const char* declaration = PyCapsule_GetName(published)
    text = (<bytes>declaration).decode()
    if text.count("int *") != n_integers:
        raise ImportError(f"{module.__name__}.{name} is {text!r}; {n_integers} pointers to int were expected")
    return PyCapsule_GetPointer(published, declaration)


dgemv = <dgemv_type*>_routine(cython_blas, "dgemv", 5)
sgemv = <sgemv_type*>_routine(cython_blas, "sgemv", 5)
dsyrk = <dsyrk_type*>_routine(cython_blas, "dsyrk", 4)
ssyrk = <ssyrk_type*>_routine(cython_blas, "ssyrk", 4)
sgemm = <sgemm_type*>_routine(cython_blas, "sgemm", 6)
dgesv = <dgesv_type*>_routine(cython_lapack, "dgesv", 6)
dposv = <dposv_type*>_routine(cython_lapack, "dposv", 5)
dpotrf = <dpotrf_type*>_routine(cython_lapack, "dpotrf", 3)
spotrf = <spotrf_type*>_routine(cython_lapack, "spotrf", 3)
strsv = <strsv_type*>_routine(cython_blas, "strsv", 3)
strsm = <strsm_type*>_routine(cython_blas, "strsm", 4)
dtrsv = <dtrsv_type*>_routine(cython_blas, "dtrsv", 3)
dpotrs = <dpotrs_type*>_routine(cython_lapack, "dpotrs", 5)
dtrsm = <dtrsm_type*>_routine(cython_blas, "dtrsm", 4)
