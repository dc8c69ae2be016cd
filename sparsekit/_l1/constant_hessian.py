"""The Hessian of least squares on dense rows, made once: it is the same everywhere, and for every penalty."""

import numpy as np

from .._linalg.design import DenseDesign

# most columns, and the part of the work of all of them that models have cost from which all are made
_MOST, _PART = 600, 0.5
# a model of a part of the rows costs about that part of one
_ROUGH = 0.25
# rows that are scaled, or widened, at once
_BLOCK = 4096


class ConstantHessian:
    """X^T diag(s) X, or of [X, 1], of a dense design with few columns.

    Parameters
    ----------
    design : DenseDesign
    weight : ndarray of shape (n,)
        s; empty for ones.
    intercept : bool
    """

    def __init__(self, design, weight, intercept):
        self.design, self.weight, self.intercept = design, weight, bool(intercept)
        self.spent, self.matrix = 0.0, None

    @classmethod
    def of(cls, loss):
        """That of a loss, or None where models are better made one by one."""
        design = loss.design
        if not isinstance(design, DenseDesign) or not 0 < design.shape[1] <= _MOST or not design.shape[0]:
            return None
        return cls(design, loss.s, loss.fit_intercept)

    def on(self, variables, rough):
        """The matrix of sorted ``variables``, or None where one of them alone is cheaper so far."""
        size = self.design.shape[1] + self.intercept
        if self.matrix is None:
            self.spent += len(variables) ** 2 * (_ROUGH if rough else 1.0)
            if self.spent < _PART * size**2:
                return None
            with np.errstate(over="ignore", invalid="ignore"):  # the solver sees what is not finite
                self.matrix = self._make(size)
        return self.matrix[np.ix_(variables, variables)]

    def _make(self, size):
        X, p = self.design.X, self.design.shape[1]
        out = np.zeros((size, size))
        for lo in range(0, len(X), _BLOCK):
            rows = X[lo : lo + _BLOCK].astype(np.float64, copy=False)
            weight = self.weight[lo : lo + _BLOCK]
            scaled = rows * np.sqrt(weight)[:, None] if weight.size else rows
            out[:p, :p] += scaled.T @ scaled
            if self.intercept:
                out[p, :p] += weight @ rows if weight.size else rows.sum(axis=0)
        if self.intercept:
            out[:p, p] = out[p, :p]
            out[p, p] = self.weight.sum() if self.weight.size else len(X)
        return out
