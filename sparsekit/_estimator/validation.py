"""scikit-learn's checks of X and y, behind a look at the structure of sparse ones.

scikit-learn trusts the arrays of a sparse matrix, and reads out of bounds where it converts a broken one. So
estimators and paths take these two functions, and none of scikit-learn's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import validation

from .._arrays import aligned
from .._linalg.structure import sound


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """`sklearn.utils.validation.validate_data` of a sound X, and y."""
    return _for_kernels(validation.validate_data(estimator, sound(X), sound(y, "y"), **checks))


def check_X_y(X: Any, y: Any, **checks: Any) -> tuple[Any, Any]:
    """`sklearn.utils.validation.check_X_y` of a sound X and y."""
    return _for_kernels(validation.check_X_y(sound(X), sound(y, "y"), **checks))


def _for_kernels(found: Any) -> Any:
    """X, y or both, dense ones aligned; `sound` has seen to the sparse ones."""
    if isinstance(found, tuple):
        return tuple(map(_for_kernels, found))
    return aligned(found) if isinstance(found, np.ndarray) else found
