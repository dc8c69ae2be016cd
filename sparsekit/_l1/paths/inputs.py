"""From the checked data of a fit, a path or a search to the problem of all rows.

``model`` is an estimator, or what else has ``fit_intercept``, ``penalty_weights`` and ``n_jobs``. ``given``
are `TrainingData`, whose offset is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import to_host
from ..._estimator.block_data import BlockedMatrix
from ..._estimator.checks import in_units
from ..._estimator.offset import check_offset
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..losses.null_intercept import unless_zero
from .block_problems import FamilyBlockProblem, LeastSquaresBlockProblem, LogisticBlockProblem
from .coefficients import penalty_of
from .family_problem import FamilyProblem
from .least_squares_problem import LeastSquaresProblem
from .magnitudes import sum_in_units
from .problems import LogisticProblem


def problem_of_labels(model: Any, given: Any) -> LogisticProblem:
    """The logistic problem of labelled data."""
    classes = to_host(given.classes)
    n_outputs, kinds = 1 if len(classes) == 2 else len(classes), (LogisticProblem, LogisticBlockProblem)
    whole, unit = problem_of(
        model, given, given.values, *kinds, classes, n_outputs=n_outputs, scale=sum_in_units
    )
    whole.scale = 1.0 / unit
    return whole


def problem_of_numbers(model: Any, given: Any, positive: bool, hessian: str) -> LeastSquaresProblem:
    """The least-squares problem."""
    kinds = LeastSquaresProblem, LeastSquaresBlockProblem
    return problem_of(model, given, given.values, *kinds, positive, hessian)[0]


def problem_of_family(model: Any, given: Any, family: Any, positive: bool) -> FamilyProblem:
    """The problem of a `Family`."""
    y = given.values.astype(np.float64, copy=False)
    family.check(y)
    return problem_of(model, given, y, FamilyProblem, FamilyBlockProblem, family, positive)[0]


def problem_of(
    model: Any, given: Any, values: Any, in_memory: Any, in_blocks: Any, *own: Any, n_outputs: int = 1,
    scale: Any = in_units,
) -> tuple[Any, float]:  # fmt: skip
    """The problem of the columns of X that have entries, and what ``scale`` divided the weights by.

    ``own`` are the last arguments of its class.
    """
    X, columns = without_empty_columns(given.X)
    make, weight, unit = in_blocks, given.weight, 1.0
    if not isinstance(X, BlockedMatrix):  # whose blocks have their own weights
        make, (weight, unit) = in_memory, scale(given.weight)
    given.offset = check_offset(given.offset, X, n_outputs)
    names = getattr(model, "feature_names_in_", None)
    penalty = columns.restrict(penalty_of(given.X, model.penalty_weights, 1.0, names))
    whole = make(
        X, values, weight, penalty, model.fit_intercept, count_threads(model.n_jobs), *own,
        shift=unless_zero(given.offset),
    )  # fmt: skip
    whole.columns = columns
    return whole, unit
