"""From the checked data of a fit, a path or a search to the problem of all rows.

Each kind of problem is loaded by those who fit it.
"""

import numpy as np

from ..._arrays import to_host
from ..._estimator.block_data import BlockedMatrix
from ..._estimator.checks import in_units
from ..._estimator.offset import check_offset
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..losses.null_intercept import unless_zero
from .coefficients import penalty_of
from .magnitudes import sum_in_units
from .problems import LogisticProblem


def problem_of(model, given, values, kind, *own, n_outputs=1, scale=in_units):
    """The problem of the columns of X that have entries, and what ``scale`` divided the weights by.

    ``model`` is an estimator, or what else has ``fit_intercept``, ``penalty_weights`` and ``n_jobs``. The
    offset of ``given``, `TrainingData`, is checked here. ``kind`` is the problem's class in main memory,
    ``own`` are the last arguments of that.
    """
    X, columns = without_empty_columns(given.X)
    if isinstance(X, BlockedMatrix):  # whose blocks have their own weights
        from .block_problems import IN_BLOCKS

        kind, weight, unit = IN_BLOCKS[kind], given.weight, 1.0
    else:
        weight, unit = scale(given.weight)
    given.offset = check_offset(given.offset, X, n_outputs)
    names = getattr(model, "feature_names_in_", None)
    penalty = columns.restrict(penalty_of(given.X, model.penalty_weights, 1.0, names))
    whole = kind(
        X, values, weight, penalty, model.fit_intercept, count_threads(model.n_jobs), *own,
        shift=unless_zero(given.offset),
    )  # fmt: skip
    whole.columns = columns
    return whole, unit


def problem_of_labels(model, given):
    """The logistic problem of labelled data; the arguments are those of `problem_of`."""
    classes = to_host(given.classes)
    n_outputs = 1 if len(classes) == 2 else len(classes)
    whole, unit = problem_of(
        model, given, given.values, LogisticProblem, classes, n_outputs=n_outputs, scale=sum_in_units
    )
    whole.scale = 1.0 / unit
    return whole


def problem_of_numbers(model, given, positive, hessian):
    """The least-squares problem; the first arguments are those of `problem_of`."""
    from .least_squares_problem import LeastSquaresProblem

    return problem_of(model, given, given.values, LeastSquaresProblem, positive, hessian)[0]


def problem_of_family(model, given, family, positive):
    """The problem of a `Family`; the first arguments are those of `problem_of`."""
    from .family_problem import FamilyProblem

    y = given.values.astype(np.float64, copy=False)
    family.check(y)
    return problem_of(model, given, y, FamilyProblem, family, positive)[0]
