"""A small, strict stand-in for CuPy over NumPy, for tests on machines without a GPU.

It has the names the package uses, with their parameters in CuPy 14, and refuses what real CuPy refuses.
Kernels run through the CPU build in ``cuda_build``; ``cupy.emulation`` counts what was done.

It is stricter where CuPy goes wrong in silence, or only sometimes. It refuses index arrays out of range (a
device wraps them around) and assignments that name an element twice with different values. It refuses device
scalars as bounds of slices, and NumPy arrays and lists given to functions of ``cupy`` (some of which take
them). Elements that nobody wrote are NaN, or integers far out. Reads out of the bounds of an array give NaN,
writes an error at the launch.

It differs from CuPy in what can't be seen from the outside. Sums are added in NumPy's order. Weighted counts
and scattered sums are in a fixed order (on a device their last bits change from run to run). Every sort is
stable, random numbers are NumPy's, streams do everything at once. A failed decomposition gives NaN (there:
anything). A step that makes the host wait is counted once, where CuPy may wait more often.
"""

# ruff: noqa: F401  (a namespace is made of imports)

from numpy import float32, float64, inf, int32, int64

from . import cuda, emulation, linalg, random
from ._creation import (
    arange,
    array,
    asarray,
    ascontiguousarray,
    asnumpy,
    diag,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._kernels import ElementwiseKernel, ReductionKernel
from ._launch import RawModule
from ._manipulation import (
    append,
    atleast_1d,
    atleast_2d,
    broadcast_to,
    column_stack,
    concat,
    concatenate,
    copyto,
    expand_dims,
    hstack,
    moveaxis,
    stack,
    unique,
    vstack,
)
from ._ndarray import ndarray
from ._products import dot, einsum, matmul, vdot
from ._sorting import (
    argwhere,
    array_equal,
    clip,
    count_nonzero,
    flatnonzero,
    isneginf,
    ix_,
    may_share_memory,
    searchsorted,
    size,
    sort,
    take_along_axis,
    where,
)
from ._statistics import (
    all,
    amax,
    amin,
    any,
    argpartition,
    argsort,
    average,
    cumsum,
    diff,
    nonzero,
    prod,
    ravel,
    sum,
    take,
)
from ._ufunc import UFUNCS as _UFUNCS
from ._ufunc import ufunc

__version__ = "14.2.0+emulated"

# the names of the ufuncs, and CuPy's second names of reductions
globals().update(_UFUNCS)
max, min = amax, amin
