"""Triangular systems. A singular system gives NaN, never an error."""

import numpy as np
import scipy.linalg
from cupy._convert import host, new


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=False):
    host(a)
    host(b, "b")
    if a.ndim != 2:
        raise NotImplementedError("the emulation solves one system")
    if a.shape != (len(b), len(b)):
        raise ValueError("incompatible dimensions")
    left = a._array.astype(a.dtype if a.dtype.char in "fd" else np.promote_types(a.dtype, np.float32))
    right = b._array.astype(left.dtype)
    try:
        made = scipy.linalg.solve_triangular(left, right, trans, lower, unit_diagonal, check_finite=False)
    except scipy.linalg.LinAlgError:
        made = np.full_like(right, np.nan)
    return new(made)
