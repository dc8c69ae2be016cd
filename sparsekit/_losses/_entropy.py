"""Entropies of arrays in main memory or on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._device import is_device


def entropies(t: Any) -> Any:
    """-t log t, 0 at 0, for t >= 0."""
    if is_device(t):
        return np.where(t > 0, -t * np.log(np.where(t > 0, t, 1.0)), 0.0)
    from scipy.special import entr

    return entr(t)
