"""The fits of the parts ``fits`` and ``waits``: an estimator each, with data of its kind, dense and CSR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

FORMS = ("dense", "csr")
DRY_SCALE = 0.002  # times rows and columns, in a dry run


@dataclass(frozen=True)
class Problem:
    """An estimator and the size of its data; ``p`` of dense rows, ``p_sparse`` of sparse ones."""

    make: Callable[[], object]
    target: str  # "numbers", "counts", "labels" or "classes"
    n: int
    p: int
    p_sparse: int
    n_outputs: int = 2
    # largest relative difference of the objectives of CPU and GPU; None: the algorithms differ
    agree: float | None = 1e-4


def problems():
    """Name -> Problem."""
    import sparsekit as sk

    ten_classes = "classes", 30_000, 100, 5_000, 10
    return {
        "L1LogisticOBA": Problem(lambda: sk.L1LogisticOBA(C=0.1), "classes", 100_000, 300, 20_000),
        "L1LogisticOBA, 10 classes": Problem(lambda: sk.L1LogisticOBA(C=0.1), *ten_classes),
        "LassoOBA": Problem(lambda: sk.LassoOBA(alpha=1e-4), "numbers", 100_000, 300, 20_000),
        "GLMOBA": Problem(lambda: sk.GLMOBA("poisson", alpha=1e-3), "counts", 30_000, 300, 20_000),
        "SparsemaxClassifier": Problem(lambda: sk.SparsemaxClassifier(alpha=1e-3), *ten_classes),
        "SoftmaxClassifier": Problem(lambda: sk.SoftmaxClassifier(alpha=1e-3), *ten_classes),
        "ExtremeSoftmaxSGD": Problem(
            lambda: sk.ExtremeSoftmaxSGD(max_iter=3, random_state=0),
            "classes", 50_000, 100, 20_000, 1000, agree=None,
        ),
        "BoundedRegressor": Problem(
            lambda: sk.BoundedRegressor("absolute", bounds=(0.0, None), alpha=1e-3),
            "numbers", 30_000, 100, 2_000,
        ),
        "BoundedClassifier": Problem(
            lambda: sk.BoundedClassifier("log_loss", bounds=(0.0, None), alpha=1e-3),
            "classes", 30_000, 100, 2_000,
        ),
        "LPSparseMAPClassifier": Problem(
            lambda: sk.LPSparseMAPClassifier(alpha=1e-2, pairs="all"), "labels", 3_000, 50, 1_000, 8
        ),
    }  # fmt: skip


def draw(problem, form, options, scale=1.0):
    """X in main memory, float32, and y; ``scale`` times the rows and columns of ``problem``."""
    rng = np.random.default_rng(0)
    scale *= options.size(1.0, DRY_SCALE)
    n, p = (int(scale * size) for size in (problem.n, problem.p if form == "dense" else problem.p_sparse))
    n, p, outputs = max(n, 30), max(p, 4), options.size(problem.n_outputs, min(problem.n_outputs, 3))
    if form == "dense":
        X = rng.standard_normal((n, p), dtype=np.float32)
    else:
        X = sp.random_array((n, p), density=min(0.5, 40 / p), format="csr", dtype=np.float32, rng=rng)
        X = sp.csr_matrix(X)
    W = rng.standard_normal((p, outputs)) * (rng.random((p, outputs)) < 0.2)
    scores = X @ W + 0.5 * rng.standard_normal((n, outputs))
    if problem.target == "numbers":
        return X, np.asarray(scores[:, 0])
    if problem.target == "counts":
        return X, rng.poisson(np.exp(np.clip(scores[:, 0], -2.0, 2.0))) * 1.0
    if problem.target == "labels":
        return X, (scores > 0).astype(np.int64)
    y = np.argmax(scores, axis=1)
    y[:outputs] = np.arange(outputs)  # every class occurs
    return X, y


def task_names():
    """One task of each problem and form."""
    return [f"{name}, {form}" for name in problems() for form in FORMS]


def problem_of(task):
    """Problem and form that a task names."""
    name, form = task.rsplit(", ", 1)
    return problems()[name], form
