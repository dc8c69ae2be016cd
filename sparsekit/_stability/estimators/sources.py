"""Input of stability selection: the coefficients of fits to some of the rows, as the penalty falls.

X, numbers y and offsets may be on a GPU; codes of classes and weights are in main memory.

A source has ``X``, ``is_on_device``, ``penalties``, ``candidates`` and ``sizes(rows)``. The penalties begin
with the strongest, on the scale of the estimator's parameter for all rows. Candidates are the features that
can be left out. ``sizes`` yields for each penalty the magnitudes of the coefficients (n_features,) and the
outcome of the fit. A half's penalty is scaled so that it has the same weight relative to the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from ..._arrays import as_like, to_host
from ..._estimator.checks import apply_class_weight, in_units
from ..._l1.paths.family_problem import FamilyProblem
from ..._l1.paths.least_squares_problem import LeastSquaresProblem
from ..._l1.paths.magnitudes import sum_in_units
from ..._l1.paths.problems import LogisticProblem
from ..._solver import outcome
from ..._typing import Array


class Step(NamedTuple):
    """One fit: magnitudes of the coefficients, largest over the classes, and how the solver ended."""

    sizes: Array
    status: int
    optimality: float


class PathSource:
    """Warm-started paths of a model of this package."""

    _lambdas: Any  # the penalties of a part of the rows, on its own scale

    def __init__(self, model, whole, penalty):
        self.candidates = np.broadcast_to(to_host(penalty), whole.X.shape[1]) > 0
        self.options = _options(model)
        self.max_time, self.callback = model.max_time, model.callback
        self.whole, self.X = whole.mixing(model.l1_ratio), whole.X
        self.is_on_device = not whole.is_in_main_memory
        self.penalties: Array

    def sizes(self, rows: Array) -> Iterator[Step]:
        part, n_features = self.whole.training((rows,), 0), self.X.shape[1]
        loss, l1, x_null, _ = part.start(self.options)
        lambdas = self._lambdas(part, rows)
        for result in part.path(loss, l1, lambdas, x_null, self.options, self.max_time, self.callback):
            table = to_host(result.x)[: part.n_outputs * n_features].reshape(-1, part.n_outputs)
            yield Step(np.abs(table).max(axis=1), result.status, result.optimality)


class LogisticSource(PathSource):
    """Of L1 logistic regression."""

    parameter = "C"

    def __init__(self, model, X, classes, codes, weight, penalty, shift=None):
        weight = apply_class_weight(model.class_weight, classes, codes, weight)
        self.weight, self.unit = sum_in_units(weight)
        whole = LogisticProblem(
            X, as_like(codes, X), _weight_like(self.weight, X), penalty, model.fit_intercept, 1, classes,
            shift,
        )  # fmt: skip
        whole.scale = 1.0 / self.unit
        super().__init__(model, whole, penalty)

    def strongest(self):
        """The penalty 1 / C from which on no feature is selected on all rows."""
        return self.whole.start(self.options)[3] * self.unit

    def _lambdas(self, part, rows):
        return _share(self.weight, rows, self.X.shape[0]) / (self.penalties * self.unit)


class LassoSource(PathSource):
    """Of the Lasso."""

    parameter = "alpha"

    def __init__(self, model, X, y, weight, penalty, shift=None):
        weight, _ = in_units(weight)  # the objective is a mean
        super().__init__(model, self._problem(model, X, y, _weight_like(weight, X), penalty, shift), penalty)

    def _problem(self, model, X, y, weight, penalty, shift):
        whole = LeastSquaresProblem(
            X, y, weight, penalty, model.fit_intercept, 1, model.positive, model.hessian, shift
        )
        whole.lazily = True
        return whole

    def strongest(self):
        """The alpha from which on no feature is selected on all rows."""
        return self.whole.start(self.options)[3] / self.whole.scale

    def _lambdas(self, part, rows):
        return self.penalties * part.scale


class GLMSource(LassoSource):
    """Of generalised linear models."""

    def _problem(self, model, X, y, weight, penalty, shift):
        family, y = model._make_family(), y.astype(np.float64, copy=False)
        family.check(y)
        return FamilyProblem(X, y, weight, penalty, model.fit_intercept, 1, family, model.positive, shift)


class FittedSource:
    """Any estimator with C or alpha and ``coef_``, fitted anew at each penalty, warm where it can be."""

    def __init__(self, model, parameter, X, y, params, weight):
        self.model, self.parameter, self.X, self.y, self.params = model, parameter, X, y, params
        self.weight, self.is_on_device = weight, False
        self.candidates = np.ones(X.shape[1], dtype=bool)
        self.penalties: Array

    def sizes(self, rows: Array) -> Iterator[Step]:
        X, y = _safe_indexing(self.X, rows), _safe_indexing(self.y, rows)
        params = _check_method_params(self.X, params=self.params, indices=rows)
        model = clone(self.model)
        if "warm_start" in model.get_params(deep=False):
            model.set_params(warm_start=True)
        # C multiplies a sum over the rows, alpha a penalty next to their mean
        factor = 1 / _share(self.weight, rows, self.X.shape[0]) if self.parameter == "C" else 1.0
        for value in self.penalties:
            model.set_params(**{self.parameter: float(value * factor)}).fit(X, y, **params)
            coef = getattr(model, "coef_", None)
            if coef is None:
                raise TypeError(f"estimator must have coef_ after a fit; {type(model).__name__} has none.")
            coef = coef.toarray() if sp.issparse(coef) else np.asarray(coef)
            yield Step(np.abs(np.atleast_2d(coef)).max(axis=0), outcome.CONVERGED, 0.0)


def first_features(
    steps: Iterator[Step], limit: int, candidates: Array, n_penalties: int
) -> tuple[list[Array], int, list[tuple[int, float, int]]]:
    """The features in use at each penalty, until ``limit`` different ones have been.

    If more enter at once than fit, those with the largest coefficients do. From there on the selection stays
    as it is.

    Parameters
    ----------
    steps : iterator of Step
    limit : int
    candidates : ndarray of bool of shape (n_features,)
        Those that count.
    n_penalties : int

    Returns
    -------
    chosen : list of n_penalties ndarrays
        Columns of X.
    count : int
        How many different candidates there are in them.
    ends : list of (int, float, int)
        Status, optimality and number of features of the fits that were needed.
    """
    known = ~candidates
    remaining, chosen, ends = limit, [], []
    for step in steps:
        used = np.flatnonzero(step.sizes)
        ends.append((step.status, step.optimality, len(used)))
        new = used[~known[used]]
        if len(new) > remaining:
            new = new[np.argsort(-step.sizes[new], kind="stable")[:remaining]]
        remaining -= len(new)
        known[new] = True
        chosen.append(used[known[used]])
        if remaining == 0:
            break
    chosen += [chosen[-1]] * (n_penalties - len(chosen))
    return chosen, limit - remaining, ends


def _weight_like(weight, X):
    return None if weight is None else as_like(weight, X)


def _options(model):
    if model.l1_ratio == 0:
        raise ValueError(
            f"l1_ratio of {type(model).__name__} must be above 0 here: a ridge leaves no coefficient at "
            "zero, and hence selects every feature."
        )
    return dict(tol=model.tol, max_iter=model.max_iter, hessian=model.hessian, memory=model.memory)


def _share(weight, rows, n_samples):
    """What part of the weight of all rows ``rows`` have."""
    return len(rows) / n_samples if weight is None else float(weight[rows].sum() / weight.sum())
