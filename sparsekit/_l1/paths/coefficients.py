"""From checked arrays to the variables of OBA's problems and back: penalties, losses, coefficients."""

from collections.abc import Mapping
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from ..._arrays import host_values, namespace
from ..._estimator.checks import by_feature
from ..._linalg.special import largest
from ..._linalg.structure import check_sparse
from ..._messages import numbers, shown
from ..._typing import Array, DeviceArray, EitherArray, EitherMatrix, PenaltyWeights
from .magnitudes import check_squares_of_target


def check_penalty_weights(penalty_weights, n_features, feature_names=None):
    """Return the L1 weights per feature as float64 of shape (n_features,), or 1.0 for None.

    Parameters
    ----------
    penalty_weights : array-like of shape (n_features,), dict or None
        A dict has the weights of some features, by their names or column numbers; others weigh 1. A pandas
        Series whose index has the names of all features goes by them.
    n_features : int
    feature_names : ndarray of str or None

    Raises
    ------
    ValueError
        If the shape or a key does not fit, or a weight is negative, NaN or infinite.
    """
    if penalty_weights is None:
        return 1.0
    if isinstance(penalty_weights, Mapping):
        weights = np.ones(n_features)
        for j, key, value in by_feature(penalty_weights, n_features, feature_names, "penalty_weights"):
            if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(
                    f"penalty_weights[{shown(key)}] must be a finite number >= 0 (0 leaves the feature "
                    f"unpenalised); got {shown(value)}."
                )
            weights[j] = value
        return weights
    if feature_names is not None and hasattr(penalty_weights, "reindex"):
        # in another order than the columns they would be those of other features
        index = list(penalty_weights.index)
        if len(index) == n_features and set(index) == set(feature_names):
            penalty_weights = penalty_weights.reindex(feature_names)
    weights = check_array(
        numbers(penalty_weights, "penalty_weights"),
        ensure_2d=False,
        allow_nd=True,
        dtype=np.float64,
        order="C",
        input_name="penalty_weights",
    )
    if weights.shape != (n_features,):
        raise ValueError(
            f"penalty_weights.shape == {weights.shape}, expected {(n_features,)}: one weight per column of X."
        )
    if (weights < 0).any():
        j = int(weights.argmin())
        raise ValueError(
            f"Negative values in penalty_weights: penalty_weights[{j}] is {weights[j]:g}, "
            "weights must be >= 0 (0 leaves the feature unpenalised)."
        )
    return weights


def l1_weights(penalty_weights, strength):
    """``strength * penalty_weights`` without overflow to infinity (and without 0 * inf = NaN)."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.multiply(penalty_weights, strength)
    found = np.where(np.equal(penalty_weights, 0), 0.0, np.minimum(scaled, np.finfo(np.float64).max))
    return found if found.ndim else float(found)


def mixed(penalty, l1_ratio):
    """L1 penalties, and the solver's option ``l2``, of the penalties (n_variables,) of an elastic net.

    l1_ratio |x| + (1 - l1_ratio) / 2 x^2 is multiplied by the penalty.
    """
    if l1_ratio == 1.0:
        return penalty, {}
    return l1_ratio * penalty, {"l2": (1.0 - l1_ratio) * penalty}


def unpack(x, n_outputs, n_features, fit_intercept, penalty=1.0):
    """Split variables in main memory into coef (n_outputs, n_features) and intercept (n_outputs,), float64.

    The variables of more than one output are ordered as ``W`` of shape (n_features, n_outputs) in
    C order, then the intercepts. ``penalty``, a number or (n_features,), is 0 for features without one: of
    several classes these sum to zero, as intercepts do.
    """
    end = n_features * n_outputs
    coef = np.array(x[:end].reshape(n_features, n_outputs).T, dtype=np.float64, order="C")
    intercept = np.zeros(n_outputs)
    if fit_intercept:
        intercept[:] = x[end:]
    if n_outputs > 1:
        # A constant added to every class changes no probability. Take the representative that sums to zero,
        # so that the answer does not depend on the solver's trajectory.
        intercept -= intercept.mean()
        coef -= np.where(np.equal(penalty, 0.0), coef.mean(axis=0), 0.0)
    return coef, intercept


def pack(coef, intercept, fit_intercept):
    """The inverse of `unpack`, as a new float64 vector (coef may be sparse)."""
    xp = namespace(coef=coef)
    coef = check_sparse(coef, "coef_").toarray() if sp.issparse(coef) else xp.asarray(coef)
    coef = np.atleast_2d(coef).astype(np.float64)
    parts = [coef.T.ravel()]
    if fit_intercept:
        parts.append(np.broadcast_to(xp.asarray(intercept, dtype=np.float64), (coef.shape[0],)))
    return np.concatenate(parts)


def center_target(y, sample_weight, fit_intercept, dtype):
    """Return float64 ``y - offset`` and the offset: y's weighted mean with an intercept, else 0.

    The intercept absorbs the offset. A large mean of y would otherwise be most of the gradient at
    zero, which the tolerance is relative to, and drown the features. A target that is constant up to the
    rounding of its mean becomes zero: no feature explains it. ``dtype`` is that of X.
    """
    y = y.astype(np.float64, copy=False)
    check_squares_of_target(y, dtype)
    offset = float(np.average(y, weights=sample_weight)) if fit_intercept else 0.0
    if not offset:
        return y, offset
    y = y - offset
    if largest(np.abs(y)) <= 2.0 * np.finfo(np.float64).eps * abs(offset):
        y = np.zeros_like(y)
    return y, offset


def penalty_of(
    X: EitherMatrix,
    penalty_weights: PenaltyWeights | DeviceArray,
    strength: float,
    feature_names: Array | None,
) -> float | EitherArray:
    """L1 penalty of each feature, where X is, from weights as users give them; one number for None.

    Weights on a GPU go with an X there only; weights in main memory, a dict too, go with both.
    """
    penalty_weights = host_values(X, "penalty_weights", penalty_weights)
    penalty = l1_weights(check_penalty_weights(penalty_weights, X.shape[1], feature_names), strength)
    return penalty if penalty_weights is None else namespace(X=X).asarray(penalty)


def all_classes(coef, intercept, present, n_classes):
    """Add the classes that a fold lacks, with probability zero."""
    if len(present) == n_classes:
        return coef, intercept
    if len(present) == 2:  # a binary model, as scores of its two classes
        coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
    full = np.zeros((n_classes, coef.shape[1]), dtype=coef.dtype)
    scores = np.full(n_classes, -np.inf, dtype=intercept.dtype)
    full[present], scores[present] = coef, intercept
    return full, scores
