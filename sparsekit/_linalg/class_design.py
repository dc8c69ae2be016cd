"""Which design a loss with a score for each class has; those of a GPU are imported when one comes."""

from __future__ import annotations

from typing import Any


def device_design(X: Any) -> Any:
    """The design of a CuPy array, or of a CSR or CSC matrix of ``cupyx.scipy.sparse``."""
    from .device_class_design import device_class_design  # CuPy's users alone pay for its import

    return device_class_design(X)


def is_device_rows(design: Any) -> bool:
    """Whether a design has its rows, and columns, on a GPU."""
    return getattr(design, "on_device", None) == "rows"


def is_device_dense(design: Any) -> bool:
    """Whether a design is a dense matrix on a GPU."""
    return getattr(design, "on_device", None) == "dense"
