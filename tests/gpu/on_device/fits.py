"""One dense and one CSR fit of each estimator, twice: time, objective, bits, and those of the CPU."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
from gpu_data import to_device

from . import problems

TASK_LIMIT, AT_ONCE = 40, False
# cuSPARSE has a part in these fits, and the order of its sums is open (doc/gpu.md)
MAY_DIFFER = {"BoundedRegressor, csr", "BoundedClassifier, csr"}


def tasks(options):
    return problems.task_names()


def _timed(call, wait=lambda: None):
    start = time.perf_counter()
    value = call()
    wait()
    return value, time.perf_counter() - start


def run(task, options):
    cupy = options.cupy()
    warnings.simplefilter("ignore")  # of convergence: the objectives are compared
    problem, form = problems.problem_of(task)
    X, y = problems.draw(problem, form, options)
    there = to_device(cupy, X), cupy.asarray(y)

    def fit():
        return problem.make().fit(*there)

    before, first = _timed(fit, cupy.cuda.runtime.deviceSynchronize)  # compiles
    model, seconds = _timed(fit, cupy.cuda.runtime.deviceSynchronize)
    threads = options.size(len(os.sched_getaffinity(0)), 1)
    here, cpu_seconds = _timed(lambda: problem.make().set_params(n_jobs=threads).fit(X, y))
    ours, theirs = (float(np.sum(m.objective_)) for m in (model, here))
    coef = model.coef_.get()
    if not (np.isfinite(coef).all() and np.isfinite(ours)):
        infinite = np.sum(~np.isfinite(coef))
        raise AssertionError(f"objective {ours}; {infinite} of {coef.size} coefficients are not finite")
    if problem.agree is not None and not abs(ours - theirs) <= problem.agree * max(abs(theirs), 1e-12):
        raise AssertionError(f"objective {ours:.9g} on the device, {theirs:.9g} on the CPU")
    differ = int(np.sum(coef != before.coef_.get()))
    if differ and task not in MAY_DIFFER:
        raise AssertionError(f"{differ} of {coef.size} coefficients differ between two equal fits")
    return {
        "shape": list(X.shape),
        "gpu_seconds": round(seconds, 4),
        "first_seconds": round(first, 2),
        "cpu_seconds": round(cpu_seconds, 4),
        "cpu_threads": threads,
        "iterations": [int(np.sum(m.n_iter_)) for m in (model, here)],
        "objectives": [ours, theirs],
        "score": [round(float(m.score(*data)), 4) for m, data in ((model, there), (here, (X, y)))],
        "differ": differ,
    }
