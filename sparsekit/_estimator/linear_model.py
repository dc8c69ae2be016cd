"""What fitted linear models show of themselves: a table of coefficients."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._arrays import as_like, to_host
from .._linalg.structure import check_sparse
from .._typing import Array, DataFrame


class LinearModelMixin:
    """A fitted model with ``coef_`` of shape (n_features,) or (n_outputs, n_features)."""

    _has_vector: ClassVar[bool] = False  # whether ``coef_`` is a vector, which `sparsify` makes a row

    def coefficients(self, feature_names: ArrayLike | Any = None) -> DataFrame:
        """Table of the coefficients: those that are not zero first, by falling magnitude.

        Parameters
        ----------
        feature_names : array-like of shape (n_features,), Pipeline or transformer, default=None
            Names of the columns of X. A fitted vectorizer, transformer or pipeline gives its own, as in
            ``pipe[-1].coefficients(pipe)``. None: the names that X had in the fit, else x0, x1 ...

        Returns
        -------
        pandas.DataFrame
            A row for each feature, by its name, and a column "coefficient", or for several classes a
            column for each class. The row's largest magnitude decides the order. Of sparse weights of several
            classes the columns are sparse. The intercept is not among them.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If the model has no coefficients by feature (hashed weights), or there are not as many names as
            features.
        sklearn.exceptions.NotFittedError
            If the model was not fitted.
        """
        check_is_fitted(self)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("coefficients() makes a table of pandas: pip install pandas") from error
        coef = coefficients_of(self)
        order = by_magnitude(coef)
        index = pd.Index(feature_names_of(self, feature_names)[order], name="feature")
        columns = _column_names(self, coef.shape[0])
        if sp.issparse(coef):
            table = sp.csc_array(coef.T)[order]
            return pd.DataFrame.sparse.from_spmatrix(table, index=index, columns=columns)
        return pd.DataFrame(coef.T[order], index=index, columns=columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of the class that this is mixed into
        tags.input_tags.sparse = True
        return tags


class PenaltyNameMixin:
    """`penalty` of estimators with an ``l1_ratio``, and after cross-validation an ``l1_ratio_``."""

    l1_ratio: Any

    @property
    def penalty(self) -> str:
        """Name of the penalty as in scikit-learn: "l1", "l2" or "elasticnet", as ``l1_ratio`` says.

        By it :class:`sklearn.feature_selection.SelectFromModel` sees an L1 model, and keeps features whose
        coefficients are above 1e-5 and not above their mean.
        """
        ratios = np.unique(getattr(self, "l1_ratio_", self.l1_ratio))
        return {0.0: "l2", 1.0: "l1"}.get(ratios[0], "elasticnet") if len(ratios) == 1 else "elasticnet"


def last_fit(model: Any, like: Any, columns: Any, n_outputs: int) -> tuple[Any, Any] | None:
    """Coefficients (n_outputs, n_kept) and intercepts (n_outputs,) to start from, float64, where ``like`` is.

    None where ``warm_start`` is false, or the last fit had another shape or is not finite.
    """
    coef = getattr(model, "coef_", None)
    if not model.warm_start or coef is None:
        return None
    coef = check_sparse(coef, "coef_").toarray() if sp.issparse(coef) else coef
    intercept = getattr(model, "intercept_", 0.0)  # ordered classes have thresholds in its place
    coef, intercept = np.atleast_2d(as_like(coef, like)), np.ravel(as_like(intercept, like))
    is_finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
    if coef.shape != (n_outputs, columns.n_features) or not is_finite:
        return None
    intercept = np.broadcast_to(intercept.astype(np.float64), (n_outputs,))
    return columns.restrict(coef).astype(np.float64), intercept


def coefficients_of(model: Any) -> Any:
    """Coefficients (n_outputs, n_features) in main memory, an array or a CSR matrix."""
    coef = getattr(model, "coef_", None)
    if coef is None:
        raise ValueError(
            f"this {type(model).__name__} has no coefficients by feature"
            + (": its weights are hashed (hash_bits)." if getattr(model, "hash_bits", None) else ".")
        )
    if sp.issparse(coef):
        return sp.csr_array(check_sparse(coef, "coef_"))
    return np.atleast_2d(to_host(coef))


def by_magnitude(coef: Any) -> Array:
    """Columns by falling largest magnitude, equal ones as they stand."""
    largest = abs(coef).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(largest) else np.asarray(largest)
    return np.argsort(-largest, kind="stable")


def feature_names_of(model: Any, given: Any = None) -> Array:
    """Names ``given`` as to `coefficients`; None: those that X had in the fit, else x0, x1 ..."""
    if given is None:
        names = getattr(model, "feature_names_in_", None)
        return np.asarray([f"x{j}" for j in range(model.n_features_in_)] if names is None else names, object)
    steps = getattr(given, "steps", None)  # of a pipeline, whose class few have imported
    if steps is not None and steps[-1][1] is model:
        given = given[:-1]
    names = given.get_feature_names_out() if hasattr(given, "get_feature_names_out") else given
    names = np.asarray(names, dtype=object)
    if names.shape != (model.n_features_in_,):
        raise ValueError(
            f"feature_names must name {model.n_features_in_} features, as many as the model has; got an "
            f"array of shape {names.shape}."
        )
    return names


def _column_names(model, n_outputs):
    if n_outputs == 1:
        return ["coefficient"]
    return to_host(getattr(model, "classes_", np.arange(n_outputs)))
