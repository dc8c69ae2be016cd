"""What may become of a call: a result, or an error that a user can act on."""

import re
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, UndefinedMetricWarning

import sparsekit

PACKAGE, SKLEARN = (str(Path(module.__file__).parent) for module in (sparsekit, sklearn))
# Where errors about arguments come from; those of NumPy, SciPy and compiled code are about something inside.
# joblib hands on what another process or thread raised.
DOORS = (PACKAGE, SKLEARN, str(Path(joblib.__file__).parent))
# what no message to a user says
INSIDES = re.compile(
    r"could not be broadcast|zero-size array|out of bounds|infs or NaNs|cannot reshape|array element with"
    r"|to unpack|NoneType|truth value|has no attribute|unsupported operand|[Ss]ingular|positive definite|"
    r"Buffer|memoryview|math range|must be real|Cannot cast|expected \d+ dim|required positional"
)
ALLOWED = (
    RuntimeWarning,
    ConvergenceWarning,
    DataConversionWarning,
    UndefinedMetricWarning,
    FutureWarning,
    UserWarning,
)


class Refused(Exception):
    """The call was refused by a clear error."""


def _check_error(error):
    frames = traceback.extract_tb(error.__traceback__)
    message, last = str(error), frames[-1].filename
    is_door = last.startswith(DOORS) and not last.endswith((".pyx", ".pxd"))
    # what went wrong inside may be named by who called: `raise ValueError(...) from error`
    if not is_door or len(message) < 15 or INSIDES.search(message):
        raise AssertionError(f"no clear error, from {last}: {type(error).__name__}: {message}") from error


@contextmanager
def clear(*more):
    """Errors that are clear become `Refused`, all others failures, as are warnings about what goes on inside.

    ``more`` are types of errors that the method documents in addition to ValueError and TypeError.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError, *more) as error:
            _check_error(error)
            raise Refused from error
    for warning in caught:
        if not issubclass(warning.category, ALLOWED):
            raise AssertionError(f"{warning.category.__name__}: {warning.message} ({warning.filename})")


def unconverged(caught):
    return any(issubclass(w.category, ConvergenceWarning) for w in caught)


def check_finite(model):
    """All numbers that a fit reports."""
    # estimates are not made where they would cost too much
    estimates = type(model).__name__ == "ExtremeSoftmaxSGD"
    # a stream of SequenceTagger measures none
    assert estimates or hasattr(model, "_sums") or not np.isnan(getattr(model, "optimality_", 0.0))
    for name in ("coef_", "intercept_", "table_", *(() if estimates else ("objective_",))):
        found = getattr(model, name, None)
        if found is not None:
            found = np.asarray(getattr(found, "data", found), dtype=np.float64) if name != "coef_" else found
            found = found.toarray() if hasattr(found, "toarray") else found
            if name == "intercept_" and not getattr(model, "refit", True):
                found = found[~np.isneginf(found)]  # a mean over folds: of a class that one of them lacks
            assert np.isfinite(found).all(), (name, found)
    gap = np.asarray(getattr(model, "dual_gap_", 0.0))
    objective = np.asarray(getattr(model, "objective_", 0.0))
    # a gap is a bound of what is at least 0, but for rounding: that of the loss at zero, which is not at hand
    slack = 1e-6 * np.abs(objective).max() + 1e-300
    assert (np.isnan(gap) | (gap >= -slack)).all(), ("dual_gap_", gap, objective)


def check_probabilities(model, P, distribution=True):
    P = np.asarray(P)
    assert np.isfinite(P).all() and (P >= 0).all() and (P <= 1 + 1e-6).all(), P
    if distribution:
        tolerance = 1e-4 if P.dtype == np.float32 else 1e-6
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=tolerance)
