"""Which design a loss with a score for each class has; those of a GPU are imported when one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._arrays import namespace
from .._typing import DeviceArray, DeviceMatrix
from .as_design import as_design

if TYPE_CHECKING:
    from .device_class_design import DeviceDense, DeviceRows


# The same as `SPARSE_SHARE` with a score for each class: fits to five shapes take 0.7 of the time at 0.25.
CLASS_SHARE = 0.3


def device_design(X: DeviceArray | DeviceMatrix) -> DeviceDense | DeviceRows:
    """The design of a CuPy array, or of a CSR or CSC matrix of ``cupyx.scipy.sparse``."""
    from .device_class_design import device_class_design  # CuPy's users alone pay for its import

    return device_class_design(X)


def design_of(X, n_threads):
    """The design of X, on the GPU where X is there."""
    if namespace(X=X) is np:
        return as_design(X, n_threads, CLASS_SHARE)
    if hasattr(X, "nnz") and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # entries of a row are worked on at once
    return device_design(X)
