"""Scores of models on the left-out rows of a fold: one model after another, or all at once."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.metrics import accuracy_score

from ..._arrays import as_like, to_host
from ..._estimator.offset import with_rows_offset
from ..._linalg.matrix import buffer_size
from ..._messages import shown


def is_accuracy(scorer):
    """Whether a scorer of scikit-learn's is plain accuracy."""
    return (
        getattr(scorer, "_score_func", None) is accuracy_score
        and getattr(scorer, "_response_method", None) == "predict"
        and getattr(scorer, "_sign", None) == 1
        and not getattr(scorer, "_kwargs", True)
    )


class Accuracy:
    """The share of a fold's left-out rows whose class each model predicts; scikit-learn's scorer takes ms.

    Parameters
    ----------
    margins : callable
        From coefficients (n_outputs, p) and intercepts (n_outputs,) to scores (n, n_outputs); one for two
        classes.
    codes : ndarray of shape (n,)
        Numbers of the rows' classes.
    """

    def __init__(self, margins, codes):
        self.margins, self.codes = margins, codes
        self._scores: list[float] = []

    def add(self, part, x):
        """Score the solution x of the fold's problem ``part``."""
        margins = self.margins(*part.unpacked(x))
        found = margins.argmax(axis=1) if margins.shape[1] > 1 else margins[:, 0] > 0
        self._scores.append(float((found == self.codes).mean()))

    def scores(self):
        """One a model, in their order."""
        return np.array(self._scores)


class FoldScorer:
    """Scores models one after another on a fold's left-out rows.

    ``seen`` is a function of coefficients to the rows' X and to them; both may lack columns that the
    coefficients do not use. ``model`` gets each model's coefficients in turn; ``offset`` is that of the rows.
    """

    def __init__(self, problem, seen, y, model, scorer, score_params, offset=None):
        self.problem, self.seen, self.y, self.offset = problem, seen, y, offset
        self.model, self.scorer, self.score_params = model, scorer, score_params
        self._scores = []

    def add(self, part, x):
        """Score the solution x of the fold's problem ``part``."""
        coef, intercept = part.unpacked(x)
        X, coef = self.seen(coef)
        columns = self.problem.columns
        X, coef = columns.widen(X), columns.expand(coef)
        self.model.coef_, self.model.intercept_ = self.problem.as_attributes(coef, intercept)
        self.model.n_features_in_ = X.shape[1]
        model = self.model if self.offset is None else with_rows_offset(self.model, self.offset)
        score = self.scorer(model, X, self.y, **self.score_params)
        score = score.item() if hasattr(score, "item") else score
        if not isinstance(score, Real):
            raise ValueError(f"scoring must return a number; got {shown(score)}.")
        self._scores.append(score)

    def scores(self):
        """One a model, in their order."""
        return np.array(self._scores)


class SquaredErrors:
    """Minus the mean squared errors of models on a fold's left-out rows X (n, p), of all models at once.

    X, targets less the offset, and weights (n,) or None are all in main memory or all on a GPU.
    """

    def __init__(self, X, y, weight):
        self.X, self.y, self.weight = X, y, weight
        self._solutions = []

    def add(self, part, x):
        """Take the solution x of the fold's problem ``part``."""
        x, p = to_host(x), self.X.shape[1]
        intercept = float(x[p]) + part.base if part.fit_intercept else 0.0
        at = np.flatnonzero(x[:p])
        self._solutions.append((at, x[at], intercept))

    def scores(self):
        """One a model, in their order."""
        used = np.zeros(self.X.shape[1], dtype=bool)
        for at, _, _ in self._solutions:
            used[at] = True
        columns = np.flatnonzero(used)
        coefs = np.zeros((len(columns), len(self._solutions)))
        for k, (at, values, _) in enumerate(self._solutions):
            coefs[np.searchsorted(columns, at), k] = values
        coefs = as_like(coefs, self.X)
        intercepts = as_like(np.array([intercept for *_, intercept in self._solutions]), self.X)
        X = self.X if len(columns) == self.X.shape[1] else self.X[:, as_like(columns, self.X)]
        errors, size = np.zeros_like(intercepts), max(1, buffer_size(self.X) // len(intercepts))
        for at in range(0, len(self.y), size):
            rows = slice(at, at + size)
            squares = (X[rows] @ coefs + intercepts - self.y[rows, None]) ** 2
            errors += squares.sum(axis=0) if self.weight is None else self.weight[rows] @ squares
        return to_host(-errors / (len(self.y) if self.weight is None else self.weight.sum()))
