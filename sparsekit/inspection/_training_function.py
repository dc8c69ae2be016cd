"""An objective over a model's parameters, as `sharpness` and the plots of slices take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class TrainingFunction:
    """f(x), its gradient, and how good the model with parameters x is.

    x : the fitted parameters, float64 (n,).
    fun : maps x to f and its gradient (n,).
    measure : maps x to f and a score, NaN where there is none.
    score_name : what the score is called.
    """

    x: np.ndarray
    fun: Callable[[np.ndarray], tuple[float, np.ndarray]]
    measure: Callable[[np.ndarray], tuple[float, float]]
    score_name: str = "accuracy"
