"""Design matrices on a GPU for losses with a score for each class: products with several vectors at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._device import kernel_module, namespace
from .design import DenseDesign


class DeviceDense(DenseDesign):
    """Dense rows, multiplied by cuBLAS."""

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self.xp = namespace(X=X)
        self.kernels = kernel_module("_multinomial", X)


class DeviceRows:
    """Compressed rows, and on request once and for all compressed columns: no product adds atomically."""

    def __init__(self, X: Any) -> None:
        self.xp = namespace(X=X)
        self.kernels = kernel_module("_multinomial", X)
        self.shape, self.nnz, self.n_threads = X.shape, int(X.nnz), 1
        # places in the data may be beyond int32 where column numbers are not
        self.indptr, self.indices, self.data = X.indptr.astype(np.int64), X.indices, X.data
        self._columns: tuple[Any, Any, Any] | None = None

    def columns(self) -> tuple[Any, Any, Any]:
        """The transpose's compressed rows."""
        if self._columns is None:
            self._columns = self.kernels.transpose(self.indptr, self.indices, self.data, self.shape[1])
        return self._columns

    def part(self, rows: slice, dtype: Any) -> Any:
        """Some rows as a dense array."""
        first, last = (int(place) for place in self.indptr[[rows.start, rows.stop]].get())
        at = self.xp.arange(first, last)
        row = self.xp.searchsorted(self.indptr, at, side="right") - 1 - rows.start
        out = self.xp.zeros((rows.stop - rows.start, self.shape[1]), dtype=dtype)
        out[row, self.indices[first:last]] = self.data[first:last]
        return out


def device_design(X: Any) -> DeviceDense | DeviceRows:
    """The design of a CuPy array or a CSR matrix of ``cupyx.scipy.sparse``, of float32 or float64."""
    return DeviceRows(X) if hasattr(X, "nnz") else DeviceDense(X)
