"""Resident memory over many fits of one estimator: ``python leaks.py NAME FITS`` prints it as JSON.

Each estimator needs a process of its own, since an allocator keeps what another one gave back. All of them,
each with 10^4 fits (half an hour on one processor): ``python leaks.py all 10000``.
"""

import gc
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

# fits before memory is looked at first: caches fill, arenas of the allocator reach their size
WARM_UP = 100

# bytes that may come once in a process
ONCE = 2**20


def resident():
    """Bytes of this process that are in memory, after what nobody holds was given back to the system."""
    import ctypes

    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not musl's
    if trim is not None:
        trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cases():
    """{name: the fits of an estimator, one after the other: (estimator, X, y)}."""
    import numpy as np
    import scipy.sparse as sp

    import sparsekit as sk

    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 5))
    kinds = np.arange(24) % 3
    two = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
    several = (rng.random((24, 4)) < 0.4).astype(np.int64)
    several[:, 0] = 1
    numbers = X @ [1.0, -2.0, 0.0, 0.0, 0.5] + 0.1 * rng.standard_normal(24)
    csr, csc, single = sp.csr_array(X), sp.csc_array(X), X.astype(np.float32)
    short = dict(learning_rate=0.1, max_iter=2, random_state=0)
    Extreme, Bounded = sk.ExtremeSoftmaxSGD, sk.BoundedClassifier

    def fenchel_young(kind):
        return [(kind(), X, kinds), (kind(), csr, two), (kind(history=True), single, several)]

    def fenchel_young_cv(kind):
        model = kind(alphas=[0.1, 0.01], cv=2)
        return [(model, X, kinds), (model, csr, several)]

    lp, rule = sk.LPSparseMAPClassifier, [(sk.Or, [0, 1, 2, 3])]
    return {
        "L1LogisticOBA": [
            (sk.L1LogisticOBA(), X, two),
            (sk.L1LogisticOBA(history=True), csr, kinds),
            (sk.L1LogisticOBA(hessian="lbfgs"), single, two),
            (sk.L1LogisticOBA(C=100.0, warm_start=True), csc, two),
        ],
        "L1LogisticOBACV": [
            (sk.L1LogisticOBACV(Cs=[0.1, 1.0], cv=2), X, two),
            (sk.L1LogisticOBACV(Cs=[0.1, 1.0], cv=2), csr, kinds),
        ],
        "LassoOBA": [
            (sk.LassoOBA(0.1), X, numbers),
            (sk.LassoOBA(0.1), csr, numbers),
            (sk.LassoOBA(0.1, hessian="lbfgs", history=True), single, numbers),
            (sk.LassoOBA(0.1, positive=True), X, numbers),
        ],
        "LassoOBACV": [
            (sk.LassoOBACV(alphas=[0.1, 1.0], cv=2), X, numbers),
            (sk.LassoOBACV(alphas=3, l1_ratio=[0.5, 1.0], cv=2), csr, numbers),
        ],
        "BoundedRegressor": [
            (sk.BoundedRegressor(loss, alpha=0.01, bounds=(0, None)), data, numbers)
            for loss, data in [("absolute", X), ("huber", csr), ("squared", single), ("quantile", csc)]
        ],
        "BoundedClassifier": [
            (Bounded(loss, alpha=0.01, bounds=(None, 1)), data, y)
            for loss, data, y in [("log_loss", X, two), ("hinge", csr, two), ("squared_hinge", single, kinds)]
        ],
        "SparsemaxClassifier": fenchel_young(sk.SparsemaxClassifier),
        "SoftmaxClassifier": fenchel_young(sk.SoftmaxClassifier),
        "SparsemaxClassifierCV": fenchel_young_cv(sk.SparsemaxClassifierCV),
        "SoftmaxClassifierCV": fenchel_young_cv(sk.SoftmaxClassifierCV),
        "ExtremeSoftmaxSGD": [
            (Extreme(**short), X, kinds),
            (Extreme("umax", alpha=0.1, average=True, **short), csr, kinds),
            (Extreme("nce", hash_bits=6, **short), csr, kinds),
            (Extreme("is", sampling="blocks", **short), single, several),
        ],
        "LPSparseMAPClassifier": [
            (lp(max_iter=5), X, several),
            (lp(alpha=0.1, max_iter=5, pairs="all"), X, several),
            (lp(alpha=0.1, max_iter=5, factors=rule, loss="hinge"), csr, several),
            (lp(alpha=0.1, loss="logistic", max_iter=5), single, several),
            (lp(alpha=0.1), X, kinds),
        ],
        "LPSparseMAPClassifierCV": [
            (sk.LPSparseMAPClassifierCV([0.1, 0.01], cv=2, max_iter=5), X, several),
            (sk.LPSparseMAPClassifierCV([0.1], cv=2, max_iter=5), csr, kinds),
        ],
        "SequenceTagger": [
            (sk.SequenceTagger(max_iter=5, history=True), [[{"a": "b", "c": 1}] * 3] * 4, [[0, 1, 0]] * 4),
            (sk.SequenceTagger(loss="sparsemap", max_iter=5), [X, single], [kinds, kinds]),
            (sk.SequenceTagger(l1_ratio=0.5, max_iter=5), [csr, csr], [kinds, kinds]),
            (sk.SequenceTagger(loss="hinge", max_iter=5), [X, single], [kinds, kinds]),
            (sk.SequenceTagger(loss="perceptron", max_iter=5, random_state=0), [csr, X], [kinds, kinds]),
            (sk.SequenceTagger(all_possible_states=False, max_iter=5), [csr, X], [kinds, kinds]),
        ],
        "StabilitySelection": [
            (sk.StabilitySelection(n_pairs=1, penalties=2), X, two),
            (sk.StabilitySelection(sk.LassoOBA(), n_pairs=1, penalties=2, n_jobs=2), csr, numbers),
            (sk.StabilitySelection(Bounded(l1_ratio=1.0), n_pairs=1, penalties=[0.3, 0.1]), single, kinds),
        ],
    }  # fmt: skip


def growth(name, fits, warm_up=WARM_UP):
    """Bytes by which ``fits`` fits, with a prediction each, let this process grow, and their seconds."""
    warnings.simplefilter("ignore")  # of two steps none converges
    rounds = cases()[name]

    def run(count):
        for k in range(count):
            model, X, y = rounds[k % len(rounds)]
            model.fit(X, y)
            (model.transform if hasattr(model, "transform") else model.predict)(X)

    run(warm_up)
    before, start = resident(), time.perf_counter()
    run(fits)
    seconds = time.perf_counter() - start
    grew = resident() - before
    if grew >= ONCE:
        # a new thread's heap is of this size and comes once; what a fit loses is lost again
        again = resident()
        run(fits)
        grew = min(grew, resident() - again)
    return {"name": name, "fits": fits, "grew": grew, "resident": before, "seconds": seconds}


def main(name, fits):
    if name != "all":
        print(json.dumps(growth(name, int(fits))), flush=True)
        return
    for one in cases():
        command = [sys.executable, "-P", Path(__file__).resolve(), one, fits]
        subprocess.run(command, check=True, timeout=60 + int(fits))


if __name__ == "__main__":
    main(*sys.argv[1:])
