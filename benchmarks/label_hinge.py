#!/usr/bin/env python
"""The hinge loss of label sets: LPSparseMAPClassifier to its tolerance against LinearSVC, one a label.

Objective, certified gap relative to it, steps and processor seconds, with the penalty of alpha="auto".
Without pairs LinearSVC solves the same problem, except that its intercept is the penalised coefficient of a
column of 10. Its objective here leaves that penalty out. Dense sets are standardised; needs emotions and
scene in the data folder. Run it with one thread of BLAS: OMP_NUM_THREADS=1.
"""

import statistics
import time
import warnings

import _common
import numpy as np
from label_sets import read
from sklearn.svm import LinearSVC

from sparsekit import LPSparseMAPClassifier

SETS = ("emotions", "scene", "like yeast", "like enron")


def ours(X, Y, options, repeats=3):
    """A fitted model, and the median of its fits' processor seconds."""
    taken, model = [], LPSparseMAPClassifier(loss="hinge", **options)
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, Y)
        taken.append(time.process_time() - start)
    return model, statistics.median(taken)


def linear_svc(X, Y, alpha):
    """Objective of a LinearSVC for each label, and the processor seconds of their fits."""
    total, taken = 0.0, 0.0
    for y in Y.T:
        svc = LinearSVC(loss="hinge", C=1.0 / (alpha * len(Y)), intercept_scaling=10.0, max_iter=100000)
        start = time.process_time()
        svc.fit(X, y)
        taken += time.process_time() - start
        loss = np.maximum(1.0 - (2 * y - 1) * svc.decision_function(X), 0.0).mean()
        total += loss + 0.5 * alpha * (svc.coef_**2).sum()
    return total, taken


def main():
    warnings.simplefilter("ignore")
    lines = []
    for name in SETS:
        X, Y, _, _ = read(name, 0, None)
        for title, options in (("no pairs", {}), ('`pairs="all"`', {"pairs": "all"})):
            if options and Y.shape[1] > 20:
                continue
            model, taken = ours(X, Y, options)
            gap = f"{model.dual_gap_ / model.objective_:.1e}"
            lines.append([name, title, f"{model.objective_:.6f}", gap, model.n_iter_[0], f"{taken:.2f}"])
            if not options:
                fun, taken = linear_svc(X, Y, model.alpha_)
                lines.append([name, "`LinearSVC`", f"{fun:.6f}", "", "", f"{taken:.2f}"])
    print("\n".join(_common.markdown_table(["set", "model", "objective", "gap", "steps", "fit, s"], lines)))


if __name__ == "__main__":
    main()
