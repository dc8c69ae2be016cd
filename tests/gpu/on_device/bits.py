"""Whether two equal calls give equal bits: array functions, and two fits of each estimator."""

from __future__ import annotations

import warnings

import numpy as np

from . import problems

TASK_LIMIT, LIMIT, AT_ONCE = 40, 60, True
SCALE = 0.1  # of the sizes of the part fits
WIDTHS = (100, 5000, 200_000)
# cuSPARSE has a part in these fits, and the order of its sums is open (doc/gpu.md)
MAY_DIFFER = {"BoundedRegressor, csr", "BoundedClassifier, csr"}
IN_DRY_RUN = ("sparsemax", "LassoOBA, dense", "BoundedClassifier, csr")


def tasks(options):
    names = ["sparsemax", *problems.task_names()]
    return [name for name in names if name in IN_DRY_RUN or not options.dry_run]


def _fit(cupy, task, options):
    problem, form = problems.problem_of(task)
    X, y = problems.draw(problem, form, options, SCALE)
    model = problem.make().fit(problems.to_device(cupy, X), cupy.asarray(y))
    return [cupy.asnumpy(model.coef_), cupy.asnumpy(model.intercept_)]


def _arrays(cupy, options):
    import sparsekit

    for K in options.size(WIDTHS, (100, 2048)):
        z = cupy.asarray(np.random.default_rng(K).standard_normal((3, K)))
        p = sparsekit.sparsemax(z)
        yield from (part.get() for part in (p, sparsekit.sparsemax_jvp(p, z), sparsekit.sparsemax_loss(z, p)))


def run(task, options):
    cupy = options.cupy()
    warnings.simplefilter("ignore")
    runs = []
    for k in range(2):
        # memory that others wrote to comes before the second run
        waste = [cupy.full(1000 * (j + 1), np.nan) for j in range(20 * k)]
        del waste
        if task == "sparsemax":
            runs.append(list(_arrays(cupy, options)))
        else:
            runs.append(_fit(cupy, task, options))
    differ = sum(int(np.sum(np.asarray(a) != np.asarray(b))) for a, b in zip(*runs))
    numbers = sum(np.size(a) for a in runs[0])
    if differ and task not in MAY_DIFFER:
        raise AssertionError(f"{differ} of {numbers} numbers differ between two equal calls")
    return {"numbers": numbers, "differ": differ}
