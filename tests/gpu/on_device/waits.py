"""How often a fit of each estimator, dense and CSR, waits for the device, and how many kernels it starts."""

from __future__ import annotations

import warnings

import numpy as np
from gpu_data import to_device

from . import problems
from .driver_calls import NoCounts, count_calls
from .options import Skipped

TASK_LIMIT, AT_ONCE = 40, True
IN_DRY_RUN = ("LassoOBA, csr", "SparsemaxClassifier, dense")


def tasks(options):
    return [name for name in problems.task_names() if name in IN_DRY_RUN or not options.dry_run]


def run(task, options):
    cupy = options.cupy()
    warnings.simplefilter("ignore")
    problem, form = problems.problem_of(task)
    X, y = problems.draw(problem, form, options)
    there = to_device(cupy, X), cupy.asarray(y)
    model = problem.make().fit(*there)  # compiles
    try:
        counts = count_calls(cupy, lambda: problem.make().fit(*there), options.dry_run)
    except NoCounts as reason:
        raise Skipped(str(reason)) from reason
    return {"iterations": int(np.sum(model.n_iter_)), **counts}
