"""Scores of cross-validation's models on left-out rows that are on a GPU."""

from __future__ import annotations

import numpy as np

from .._arrays import beside
from .._linalg.class_design import device_design
from .._linalg.class_products import matmat

# predictions that are made at once
_AT_ONCE = 2**26


class DeviceAccuracy:
    """The share of the left-out rows whose class each model predicts.

    Parameters
    ----------
    X : cupy.ndarray or cupyx matrix of shape (n, p)
    codes : cupy.ndarray of shape (n,)
        Numbers of the rows' classes.
    """

    def __init__(self, X, codes):
        self.design, self.codes = device_design(X), codes
        self._scores: list[float] = []

    def add(self, part, x):
        """Score the solution x of the fold's problem ``part``."""
        coef, intercept = (beside(values.astype(np.float64), self.codes) for values in part.unpacked(x))
        margins = matmat(self.design, coef.T) + intercept
        found = margins.argmax(axis=1) if len(coef) > 1 else margins[:, 0] > 0
        self._scores.append(float((found == self.codes).mean()))

    def scores(self):
        """One a model, in their order."""
        return np.array(self._scores)


class DeviceSquaredErrors:
    """Minus the mean squared errors of models on left-out rows, of many models at once.

    Parameters
    ----------
    X : cupy.ndarray or cupyx matrix of shape (n, p)
    y : cupy.ndarray of shape (n,)
        Less the rows' offset.
    weight : cupy.ndarray of shape (n,) or None
    """

    def __init__(self, X, y, weight):
        self.design, self.y, self.weight = device_design(X), y, weight
        self._solutions: list = []
        self._scores: list[float] = []

    def add(self, part, x):
        """Take the solution x of the fold's problem ``part``."""
        p = self.design.shape[1]
        self._solutions.append((x[:p], float(x[p]) + part.offset if part.fit_intercept else 0.0))
        if len(self._solutions) * max(self.design.shape) > _AT_ONCE:
            self._score()

    def _score(self):
        coefs = np.stack([coef for coef, _ in self._solutions], axis=1)
        intercepts = beside(np.array([intercept for _, intercept in self._solutions]), self.y)
        squares = (matmat(self.design, coefs) + intercepts - self.y[:, None]) ** 2
        errors = squares.mean(axis=0) if self.weight is None else self.weight @ squares / self.weight.sum()
        self._scores += (-errors).tolist()
        self._solutions = []

    def scores(self):
        """One a model, in their order."""
        if self._solutions:
            self._score()
        return np.array(self._scores)
