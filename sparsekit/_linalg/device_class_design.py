"""Design matrices on a GPU for losses with a score for each class: products with several vectors at once."""

from __future__ import annotations

import functools

import numpy as np

from .._arrays import kernel_module, namespace
from .._typing import CompressedParts, DeviceArray, DeviceMatrix
from . import device_design as devices
from .dense_design import DenseDesign


@functools.cache
def _double_cost(device: int) -> float:
    """Time of a product in double precision, 1 for a device with half as many units for it as for single."""
    import cupy

    # 2 on devices for computing, 32 or 64 on those for graphics
    return cupy.cuda.Device(device).attributes.get("SingleToDoublePrecisionPerfRatio", 2) / 2.0


class DeviceDense(devices.DeviceDense, DenseDesign):
    """Dense rows, multiplied by cuBLAS."""

    def __init__(self, X: DeviceArray) -> None:
        super().__init__(X)
        self.xp, self.double_cost = namespace(X=X), _double_cost(X.device.id)
        self.kernels = kernel_module("shared._multinomial", X)

    def select(self, cols: DeviceArray) -> DeviceDense:
        """The columns ``cols`` as a design of their own."""
        return DeviceDense(super().select(cols).X)


class DeviceRows(devices.DeviceSparse):
    """Compressed rows, and on request once and for all compressed columns: no product adds atomically."""

    def __init__(
        self, shape: tuple[int, int], rows: CompressedParts, columns: CompressedParts | None = None
    ) -> None:
        super().__init__(shape, rows, columns)
        self.xp, self.double_cost = namespace(X=self.data), _double_cost(self.data.device.id)
        self.kernels = kernel_module("shared._multinomial", self.data)

    def lines(self) -> CompressedParts:
        """The rows with int64 pointers, as the kernels of several classes take them."""
        return self.by_rows.parts

    def columns(self) -> CompressedParts:
        """The transpose's compressed rows, likewise."""
        return self.by_columns.parts

    def matmat(self, W: DeviceArray, Z: DeviceArray) -> None:
        """Z (n, K) = X W."""
        self.kernels.matmat(*self.lines(), W, Z)

    def rmatmat(self, U: DeviceArray, G: DeviceArray) -> None:
        """G (p, K) = X^T U."""
        self.kernels.matmat(*self.columns(), U, G)

    def squares_rmatmat(self, U: DeviceArray, G: DeviceArray) -> None:
        """G (p, K) = (X^2)^T U."""
        cut, rows, values = self.columns()
        self.kernels.matmat(cut, rows, np.square(values), U, G)

    def single(self) -> tuple[CompressedParts, CompressedParts]:
        """Rows and columns in single precision, made once."""
        if self._single is None:
            self._single = _single_lines(self.lines()), _single_lines(self.columns())
        return self._single

    def select(self, cols: DeviceArray) -> DeviceRows:
        """The columns ``cols`` as a design of their own."""
        part = super().select(cols)
        return DeviceRows(part.shape, (part.indptr, part.indices, part.data), part._columns)


def _single_lines(lines: CompressedParts) -> CompressedParts:
    indptr, indices, data = lines
    return indptr, indices.astype(np.int32, copy=False), data.astype(np.float32, copy=False)


def device_class_design(X: DeviceArray | DeviceMatrix) -> DeviceDense | DeviceRows:
    """The design of a CuPy array, or of a CSR or CSC matrix of ``cupyx.scipy.sparse``."""
    design = devices.as_device_design(X)
    if isinstance(design, devices.DeviceDense):
        return DeviceDense(design.X)
    return DeviceRows(design.shape, (design.indptr, design.indices, design.data), design._columns)
