"""Extremes of arrays that may be empty, in main memory or on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np


def largest(values: Any) -> float:
    """Largest of values that are at least 0; 0 of none (CuPy's ``max`` has no ``initial``)."""
    return float(np.max(values)) if values.size else 0.0
