"""Design matrices on a GPU for losses with a score for each class: products with several vectors at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._device import kernel_module, namespace
from .design import DenseDesign


def _double_cost() -> float:
    """Time of a product in double precision, 1 for a device with half as many units for it as for single."""
    import cupy

    # 2 on devices for computing, 32 or 64 on those for graphics
    return cupy.cuda.Device().attributes.get("SingleToDoublePrecisionPerfRatio", 2) / 2.0


class DeviceDense(DenseDesign):
    """Dense rows, multiplied by cuBLAS."""

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self.xp, self.double_cost = namespace(X=X), _double_cost()
        self.kernels = kernel_module("_multinomial", X)


class DeviceRows:
    """Compressed rows, and on request once and for all compressed columns: no product adds atomically."""

    def __init__(self, X: Any) -> None:
        self.xp, self.double_cost = namespace(X=X), _double_cost()
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
        first = int(self.indptr[rows.start]) if rows.start else 0
        last = int(self.indptr[rows.stop]) if rows.stop < self.shape[0] else self.nnz
        at = self.xp.arange(first, last)
        row = self.xp.searchsorted(self.indptr, at, side="right") - 1 - rows.start
        out = self.xp.zeros((rows.stop - rows.start, self.shape[1]), dtype=dtype)
        out[row, self.indices[first:last]] = self.data[first:last]
        return out


def device_design(X: Any) -> DeviceDense | DeviceRows:
    """The design of a CuPy array or a CSR matrix of ``cupyx.scipy.sparse``, of float32 or float64."""
    return DeviceRows(X) if hasattr(X, "nnz") else DeviceDense(X)
