"""What the L1 estimators do with arrays of a GPU: penalties, scores, probabilities and their scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.validation import check_is_fitted

from .._arrays import as_like, is_device
from .._linalg.as_design import as_design
from .._linalg.class_design import device_design
from .._linalg.class_products import matmat
from .._linalg.structure import check_sparse
from .._typing import DeviceArray, DeviceMatrix, EitherArray, EitherMatrix
from .device_checks import DeviceEstimatorMixin, check_device_X
from .linear_model import LinearModelMixin


def class_scores(X: EitherMatrix, coef: EitherArray, intercept: EitherArray) -> EitherArray:
    """X coef^T + intercept, (n, K), where X is; on a GPU sums are float64 and in a fixed order."""
    if not is_device(X):
        return X @ coef.T + intercept
    products = matmat(device_design(X), as_like(coef.T.astype(np.float64), X))
    return products + as_like(intercept, X)


class DeviceLinearMixin(LinearModelMixin, DeviceEstimatorMixin, SparseCoefMixin):
    """A linear model, of one output or of one for each class, that predicts where it was fitted."""

    coef_: Any  # an array, where the fit was, or after `sparsify` a matrix of SciPy
    intercept_: EitherArray | float

    def _device_scores(self, X: DeviceArray | DeviceMatrix) -> DeviceArray:
        """X w + b, (n,) or (n, K), in the wider of the types of X and the coefficients; sums are float64."""
        X = check_device_X(self, X, reset=False)
        if len(np.atleast_2d(self.coef_)) == 1:
            scores = as_design(X).matvec(self.coef_.reshape(-1).astype(np.float64)) + self.intercept_
        else:
            scores = class_scores(X, self.coef_, self.intercept_)
        return scores.astype(np.result_type(X.dtype, self.coef_.dtype), copy=False)

    def sparsify(self) -> Self:
        """Hold ``coef_`` as a SciPy CSR matrix, which saves memory where most coefficients are zero.

        A vector becomes a matrix of one row.

        Returns
        -------
        self
            The fitted estimator; a model on a GPU is a TypeError.
        """
        self._refuse_device("sparsify")
        check_is_fitted(self)
        if not sp.issparse(self.coef_):
            # of a vector scikit-learn 1.9 makes a csr_matrix of one dimension, most of whose methods fail
            self.coef_ = np.atleast_2d(self.coef_)
        self.coef_ = check_sparse(self.coef_, "coef_")
        return super().sparsify()

    def densify(self) -> Self:
        """Turn ``coef_`` back into an array, of the shape that it had.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_is_fitted(self)
        self.coef_ = check_sparse(self.coef_, "coef_")
        super().densify()
        if self._has_vector:
            self.coef_ = self.coef_.reshape(-1)
        return self


def refuse_device(who: str, instead: str, **arrays: object) -> None:
    """TypeError where one of the arrays is on a GPU, which ``who`` does not take."""
    for name, values in arrays.items():
        if is_device(values):
            raise TypeError(
                f"{who} takes no arrays of a GPU, and {name} is one: pass cupy.asnumpy({name}) ({name}.get() "
                f"for a sparse matrix), or {instead} on the GPU"
            )
