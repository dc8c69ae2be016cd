"""Peak memory of one fit beyond X, over the bytes of X: ``python peak.py NAME`` prints it as JSON (Linux)."""

import ctypes
import gc
import json
import sys
import warnings

import numpy as np
import scipy.sparse as sp

import sparsekit as sk

MODELS = {
    "L1LogisticOBA": sk.L1LogisticOBA,
    "LassoOBA": lambda: sk.LassoOBA(1e-4),
    "BoundedClassifier": lambda: sk.BoundedClassifier(bounds=(0, None)),
    "BoundedRegressor": lambda: sk.BoundedRegressor("squared", alpha=1e-4, bounds=(0, None)),
    "SoftmaxClassifier": sk.SoftmaxClassifier,
    "SparsemaxClassifier": sk.SparsemaxClassifier,
    "ExtremeSoftmaxSGD": lambda: sk.ExtremeSoftmaxSGD(max_iter=2, random_state=0),
}


def text(n=24000, p=47000, words=75, seed=0):
    """X of the shape of rcv1_binary, with columns as frequent as words are, and y, -1 or 1."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(3.0, p + 3.0)
    columns = rng.choice(p, size=(n, words), p=share / share.sum()).astype(np.int32)
    X = sp.csr_array(
        (rng.random(n * words), columns.ravel(), np.arange(0, n * words + 1, words, dtype=np.int32))
    )
    X.resize((n, p))
    X.sum_duplicates()
    scores = X @ np.where(rng.random(p) < 0.05, rng.standard_normal(p), 0.0)
    return X, np.where(scores + 0.5 * rng.standard_normal(n) > np.median(scores), 1, -1)


def status(key):
    """A size of this process in bytes."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def measure(name):
    """The figures of a fit; what imports and first calls take is not counted."""
    warnings.simplefilter("ignore")
    X, y = text()
    MODELS[name]().fit(X[:200], y[:200])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # or else the fit could reuse pages that the data's making left
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    before = status("VmRSS")
    MODELS[name]().fit(X, y)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {"name": name, "X": size, "times": (status("VmHWM") - before) / size}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
