"""scikit-learn's checks of X and y, after a check of the structure of sparse ones.

scikit-learn does not check the arrays of a sparse matrix, and reads out of bounds where it converts a broken
one. So estimators and paths take these two functions, and none of scikit-learn's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import validation

from .._arrays import aligned
from .._linalg.structure import check_sparse
from .._messages import shown


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """`sklearn.utils.validation.validate_data` of a validated X, and y."""
    y = _as_numbers(y) if checks.get("y_numeric") else y
    with _columns_named(X):
        return _for_kernels(
            validation.validate_data(estimator, check_sparse(X), check_sparse(y, "y"), **checks)
        )


def check_X_y(X: Any, y: Any, **checks: Any) -> tuple[Any, Any]:
    """`sklearn.utils.validation.check_X_y` of a validated X and y."""
    y = _as_numbers(y) if checks.get("y_numeric") else y
    with _columns_named(X):
        return _for_kernels(validation.check_X_y(check_sparse(X), check_sparse(y, "y"), **checks))


@contextmanager
def _columns_named(X: Any) -> Iterator[None]:
    """ValueError that names the column of dense X whose words are no numbers."""
    try:
        yield
    except ValueError as error:
        table = np.asarray(X)
        if "could not convert" not in str(error) or table.ndim != 2:
            raise
        for name, column in zip(getattr(X, "columns", range(table.shape[1])), table.T):
            found = next((value for value in column if not _is_number(value)), None)
            if isinstance(found, str):
                raise ValueError(
                    f"column {shown(name)} of X holds {shown(found)}, and X must hold numbers: encode such "
                    "columns (sklearn.preprocessing.OneHotEncoder), or leave them out."
                ) from error
        raise


def _as_numbers(y: Any) -> Any:
    """Targets of a regression as they are, or words that spell numbers as these; ValueError of others.

    scikit-learn's message would not name y, and it lets dates pass, whose numbers depend on their unit.
    """
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if y is None or sp.issparse(y) or (kind and kind in "fiubc"):
        return y
    try:
        values = np.asarray(y)
    except ValueError:  # of lists of different lengths scikit-learn speaks
        return y
    if values.dtype.kind in "fiubc":
        return y
    try:
        if values.dtype.kind in "mMV":
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    found = next((value for value in values.ravel() if not _is_number(value)), None)
    raise ValueError(f"y must hold numbers; it holds {shown(found)}.")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, np.datetime64 | np.timedelta64)


def _for_kernels(found: Any) -> Any:
    """X, y or both, dense ones aligned; `check_sparse` has checked the sparse ones."""
    if isinstance(found, tuple):
        return tuple(map(_for_kernels, found))
    return aligned(found) if isinstance(found, np.ndarray) else found
