#!/usr/bin/env python
"""The hinge loss of label sets: LPSparseMAPClassifier to its tolerance beside LinearSVC, one a label.

Objective, certified gap relative to it, steps and processor seconds, with the penalty of alpha="auto". Without
pairs LinearSVC's objective is that of the same problem, the intercept a column of 10 in its penalty. Dense sets
are standardised; needs emotions and scene in the data folder. Run it with one thread of BLAS: OMP_NUM_THREADS=1.
"""

import statistics
import time
import warnings

import numpy as np
from label_sets import read
from sklearn.svm import LinearSVC

from sparsekit import LPSparseMAPClassifier

SETS = ("emotions", "scene", "like yeast", "like enron")


def seconds(fit, repeats=3):
    """What a fit gives, and the median of its processor seconds."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        model = fit()
        taken.append(time.process_time() - start)
    return model, statistics.median(taken)


def linear_svc(X, Y, alpha):
    """Objective of a LinearSVC for each label."""
    total = 0.0
    for y in Y.T:
        svc = LinearSVC(loss="hinge", C=1.0 / (alpha * len(Y)), intercept_scaling=10.0, max_iter=100000)
        score = svc.fit(X, y).decision_function(X)
        total += np.maximum(1.0 - (2 * y - 1) * score, 0.0).mean() + 0.5 * alpha * (svc.coef_**2).sum()
    return total


def main():
    warnings.simplefilter("ignore")
    print("| set | model | objective | gap | steps | s |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in SETS:
        X, Y, _, _ = read(name, 0, None)
        for title, options in (("no pairs", {}), ('`pairs="all"`', dict(pairs="all"))):
            if options and Y.shape[1] > 20:
                continue
            classifier = LPSparseMAPClassifier(loss="hinge", **options)
            model, taken = seconds(lambda c=classifier: c.fit(X, Y))
            gap = model.dual_gap_ / model.objective_
            print(
                f"| {name} | {title} | {model.objective_:.6f} | {gap:.1e} | {model.n_iter_[0]} | {taken:.3f} |"
            )
            if not options:
                fun, peer = seconds(lambda: linear_svc(X, Y, model.alpha_), 1)
                print(f"| {name} | `LinearSVC` | {fun:.6f} | | | {peer:.3f} |", flush=True)


if __name__ == "__main__":
    main()
