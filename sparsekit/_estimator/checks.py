"""From checked arrays to the solver's problem and back: weights, labels, losses, coefficients.

The solver sees one vector of variables; scikit-learn's users see ``coef_`` and ``intercept_``.
Everything that translates between the two stands here, for the estimators and the paths alike.
"""

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._arrays import aligned, host_only, is_device
from .._linalg.special import largest
from .._linalg.structure import canonical
from .._messages import numbers, shown

# the losses take the two types without a copy; anything else is converted to float64
X_CHECKS = dict(
    accept_sparse=("csr", "csc"), accept_large_sparse=True, dtype=[np.float64, np.float32], order=None,
    copy=False,
)  # fmt: skip


def as_kernel_input(X):
    """Return X itself where the kernels can read it, else the cheapest equivalent copy.

    The kernels need contiguous dense arrays, and sparse ones with sorted, unique indices of one
    integer type. The user's X is never changed. A checked X on a GPU is returned as it is.
    """
    if is_device(X):
        return X
    if sp.issparse(X):
        return canonical(X)
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        return np.ascontiguousarray(X)
    return X


def weight_of_metric(sample_weight):
    """Weights of rows for a metric of scikit-learn: one positive number for all of them counts as None.

    Raises
    ------
    ValueError
        If it is one number that is not positive and finite.
    """
    if sample_weight is None or np.ndim(sample_weight):
        return sample_weight
    if not isinstance(sample_weight, Real) or not 0 < float(sample_weight) < np.inf:
        raise ValueError(
            f"sample_weight must be a finite number > 0, or one weight a row; got {shown(sample_weight)}"
        )
    return None


def array_of(values, name, **checks):
    """Finite numbers that the user gave as ``name``, float64, of any number of dimensions."""
    return check_array(
        numbers(values, name), ensure_2d=False, allow_nd=True, dtype=np.float64, order="C", input_name=name,
        **checks,
    )  # fmt: skip


def check_sample_weight(sample_weight, n_samples):
    """Return the sample weights as float64 of shape (n_samples,), or None for "all equal to one".

    Raises
    ------
    ValueError
        If the shape does not fit, a weight is negative, NaN or infinite, or all are zero.
    """
    if sample_weight is None:
        return None
    host_only(sample_weight=sample_weight)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, sample_weight, dtype=np.float64)
    weight = array_of(sample_weight, "sample_weight")
    if weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim}D array. Expected either a scalar "
            f"value or a 1D array of length {n_samples}."
        )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_samples,)}: one weight per row of X."
        )
    smallest = weight.min()
    if smallest < 0:
        raise ValueError(
            f"Negative values in sample_weight: sample_weight[{int(weight.argmin())}] is {smallest:g}, "
            "weights must be >= 0."
        )
    if not weight.any():
        raise ValueError(
            "Sample weights must contain at least one non-zero number: all of sample_weight is 0."
        )
    return aligned(weight)


# weights between these are taken as they are
_PLAIN = 2.0**-300, 2.0**300


def in_units(weight):
    """Weights, or None for ones, over a power of two that brings extreme ones near to 1; and that power.

    A sum over the rows and its penalty may be divided by any number; a mean depends on ratios alone. A power
    of two rounds nothing.
    """
    if weight is None:
        return None, 1.0
    top = largest(weight)
    if _PLAIN[0] < top < _PLAIN[1]:
        return weight, 1.0
    # the inverse of a subnormal number overflows
    exponent = max(int(np.frexp(top)[1]) - 1, -1020)
    return weight * 2.0**-exponent, 2.0**exponent


def in_type(values, dtype):
    """Coefficients, float64, in the type of X, without a copy if it is the same; ValueError if beyond it."""
    with np.errstate(over="ignore"):
        found = values.astype(dtype, copy=False)
    if found.dtype != values.dtype and bool((np.isinf(found) & np.isfinite(values)).any()):
        raise ValueError(
            f"coefficients are beyond the numbers of {found.dtype}, the type of X: pass float64 data, or "
            "bring X and y to sizes near 1."
        )
    return found


def check_names(names, known):
    """ValueError where features have other names than at the fit; how many there are is checked elsewhere."""
    wrong = next(((name, old) for name, old in zip(names, known) if name != old), None)
    if wrong is not None:
        name, old = map(shown, wrong)
        raise ValueError(f"X has the feature {name} where {old} was at the fit: names must agree.")


def by_feature(given, n_features, feature_names, what):
    """Columns, keys and values of a dict ``given`` by the columns' names or numbers.

    Raises
    ------
    ValueError
        If a key is no feature, or a feature is there twice; it names the argument ``what``.
    """
    numbers = {} if feature_names is None else {name: j for j, name in enumerate(feature_names)}
    seen = set()
    for key, value in given.items():
        j = key if isinstance(key, Integral) and not isinstance(key, bool) else numbers.get(key)
        if j is None or not 0 <= int(j) < n_features:
            known = f"0 .. {n_features - 1}" + (
                " or a column's name" if numbers else "; X has no column names"
            )
            raise ValueError(f"{what} has the key {shown(key)}, which is no feature: {known}.")
        if int(j) in seen:
            raise ValueError(f"{what} has feature {j} twice, by name and by number.")
        seen.add(int(j))
        yield int(j), key, value


def weights_by_label(class_weight, classes):
    """Weights of ``classes``, (n_classes,), from a dict ``{label: weight}``; a class without a key weighs 1.

    As in scikit-learn, keys may be more than the classes where each class has one: a fold may lack some.

    Raises
    ------
    ValueError
        If a weight is not a finite number >= 0, or a key is not a class while a class has no key.
    """
    labels = classes.tolist()
    for label, value in class_weight.items():
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(
                f"class_weight[{shown(label)}] must be a finite number >= 0, got {shown(value)}."
            )
    known = set(labels)
    unknown = [label for label in class_weight if label not in known]
    unweighted = [label for label in labels if label not in class_weight]
    if unknown and unweighted:
        raise ValueError(
            f"class_weight has the key {shown(unknown[0])}, which is not a class, and none for the class "
            f"{shown(unweighted[0])}; the classes are {shown(labels)}. There may be more keys (folds may "
            "lack some) where each class has one."
        )
    return np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)


def apply_class_weight(class_weight, classes, codes, sample_weight, least=2):
    """Fold ``class_weight`` into the sample weights.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        As in scikit-learn. "balanced" gives class k the weight ``sum(s) / (K * sum of s in k)``.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n_samples,)
        Index of each row's class.
    sample_weight : ndarray of shape (n_samples,) or None
    least : int, default=2
        Classes that must be left with a positive weight.

    Returns
    -------
    ndarray of shape (n_samples,) or None

    Raises
    ------
    ValueError
        As `weights_by_label`, or if fewer classes than ``least`` are left with a positive weight.
    """
    if class_weight is None and sample_weight is None:
        return None
    n_classes = len(classes)
    # of totals the ratios matter
    totals = np.bincount(codes, weights=in_units(sample_weight)[0], minlength=n_classes)
    weight = sample_weight
    if class_weight is not None:
        if isinstance(class_weight, str):
            per_class = np.divide(totals.sum(), n_classes * totals, out=np.zeros(n_classes), where=totals > 0)
        else:
            per_class = weights_by_label(class_weight, classes)
        with np.errstate(over="ignore"):
            weight = per_class[codes] if sample_weight is None else per_class[codes] * sample_weight
            totals = totals * per_class
        if not np.isfinite(weight).all():
            raise ValueError("class_weight times sample_weight is too large: it overflows. Divide both.")
    if np.count_nonzero(totals) < least:
        raise ValueError(
            f"This solver needs samples of at least {least} classes with a positive weight (sample_weight "
            f"times class_weight), but only these have one: {shown(classes[totals > 0].tolist())}"
        )
    return weight


def check_penalties(values, name):
    """Positive finite penalties (or Cs) as a float64 vector.

    Raises
    ------
    ValueError
        If there is none, or one is not a finite number > 0.
    """
    host_only(**{name: values})
    values = array_of(values, name, ensure_min_samples=0)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got an array of shape {values.shape}.")
    if not values.size:
        raise ValueError(f"{name} is empty; give at least one value > 0.")
    if not (values > 0).all():
        raise ValueError(f"{name} must be > 0, got {values[~(values > 0)][0]:g}.")
    return values
