"""Data for fits on blocks of rows, and kernels that fail. Workers of a cluster
import this file by name."""

import itertools
import os
import signal
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from blocks_in_memory import ListOfBlocks
from numpy.testing import assert_allclose

from sparsekit import L1LogisticOBA

CUTS = (0, 130, 131, 320, 320, 500)


def text(n=500, p=300, seed=0, density=0.06):
    """Rows of few words, some of which are frequent, of norm 1; and scores."""
    rng = np.random.default_rng(seed)
    often = 1.0 / np.arange(1, p + 1) ** 0.7
    size = int(density * n * p)
    rows, columns = rng.integers(0, n, size), rng.choice(p, size, p=often / often.sum())
    X = sp.csr_matrix((rng.random(size) + 0.5, (rows, columns)), shape=(n, p))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags_array(1.0 / np.maximum(norms, 1e-3)) @ X)
    X.sum_duplicates()
    w = np.where(rng.random(p) < 0.1, rng.normal(size=p), 0.0)
    return X, 6.0 * (X @ w) + 0.5 * rng.normal(size=n)


def labels(scores, n_classes=2):
    """Strings for the classes of scores, as many of each."""
    inner = np.quantile(scores, np.arange(1, n_classes) / n_classes)
    return np.array(["low", "mid", "top", "tip"])[np.digitize(scores, inner)]


def targets(scores):
    """Targets of the families of generalised linear models."""
    rng = np.random.default_rng(0)
    mean = np.exp(np.clip(scores - scores.mean(), -2.0, 2.0))
    return {
        "poisson": rng.poisson(mean).astype(float),
        "gamma": rng.gamma(2.0, mean / 2.0),
        "tweedie": rng.gamma(np.maximum(rng.poisson(mean), 1e-12)),
        "negative-binomial": rng.poisson(mean * rng.gamma(1.0, 1.0, len(mean))).astype(float),
        "binomial": (rng.random(len(mean)) < mean / (1.0 + mean)).astype(float),
        "gaussian": scores + 30.0,
        "huber": scores - scores.mean(),
    }


def strength(X, y, share):
    """C at ``share`` of the penalty from which on the model is empty, for classes as many."""
    codes = np.unique(y, return_inverse=True)[1]
    indicator = np.eye(codes.max() + 1)[codes]
    return 1.0 / (share * np.abs(X.T @ (indicator - indicator.mean(axis=0))).max())


def cut(X, cuts=CUTS):
    return [X[a:b] for a, b in itertools.pairwise(cuts)]


def in_blocks(X, cuts=CUTS):
    """A source of the rows of X; the third block has no rows if the cuts are CUTS."""
    return ListOfBlocks(cut(X, cuts))


def as_dask(X, cuts=CUTS, sizes=True):
    """A Dask array whose blocks are the rows of X as they are, also where that is no NumPy array.

    Dask leaves out the blocks without rows, unless it knows of no sizes.
    """
    import dask
    import dask.array as da

    shapes = [(part.shape[0] if sizes else np.nan, part.shape[1]) for part in cut(X, cuts)]
    parts = [
        da.from_delayed(dask.delayed(part), shape, dtype=part.dtype, meta=part[:0])
        for part, shape in zip(cut(X, cuts), shapes)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def read(folder, i, name="block"):
    """A block from the disk; while the file ``kill`` names it, its first reader dies."""
    if name == "block":
        strike(Path(folder), f"read {i}")
    with np.load(Path(folder) / f"{name}{i}.npz") as found:
        if "indptr" not in found:
            return found["rows"]
        shape = tuple(found["shape"])
        return sp.csr_matrix((found["data"], found["indices"], found["indptr"]), shape=shape)


def write(folder, X, y, cuts=CUTS):
    """Blocks for `read`."""
    for i, (part, rows) in enumerate(zip(cut(X, cuts), cut(y, cuts))):
        arrays = dict(data=part.data, indices=part.indices, indptr=part.indptr, shape=part.shape)
        np.savez(Path(folder) / f"block{i}.npz", **arrays)
        np.savez(Path(folder) / f"y{i}.npz", rows=rows)


def from_disk(folder, p, dtype, cuts=CUTS):
    """Dask arrays X and y that `read` makes."""
    import dask
    import dask.array as da

    folder, sizes = str(folder), np.diff(cuts)
    task = dask.delayed(read, pure=False)
    meta = sp.csr_matrix((0, 0))
    X = [da.from_delayed(task(folder, i), (n, p), dtype=np.float64, meta=meta) for i, n in enumerate(sizes)]
    y = [da.from_delayed(task(folder, i, "y"), (n,), dtype=dtype) for i, n in enumerate(sizes)]
    return da.concatenate(X), da.concatenate(y)


def strike(folder, where):
    """Do what a file in the folder says, if it is meant for here: die, once, or hang until it is gone."""
    if said(folder / "kill") == where:
        os.unlink(folder / "kill")
        os.kill(os.getpid(), signal.SIGKILL)
    elif said(folder / "hang") == where:
        (folder / "hangs").touch()
        end = time.monotonic() + 60
        while (folder / "hang").exists() and time.monotonic() < end:
            time.sleep(0.02)


def said(file):
    try:
        return file.read_text()
    except FileNotFoundError:
        return None


def pause(on, dask_worker):
    """As the watch over a worker's memory does."""
    from distributed import Status

    dask_worker.status = Status.paused if on else Status.running


def allow_no_deaths(dask_scheduler):
    """A task is given up when a worker has died of it."""
    dask_scheduler.allowed_failures = 0


class Struck:
    """A kernel that dies or hangs at its end, where the folder says so."""

    def __init__(self, kernel, folder, where, block):
        self.kernel, self.folder, self.where, self.block = kernel, str(folder), where, block

    def __call__(self, block, *arguments):
        found = self.kernel(block, *arguments)
        if block.number == self.block:
            strike(Path(self.folder), self.where)
        return found


def assert_holds_an_iterate(model, X, y):
    """One that predicts, and with which a warm start goes on to the solution of main memory."""
    assert model.coef_.any() and model.intercept_.shape == (1,) and len(model.classes_) == 2
    assert np.isnan(model.dual_gap_) and model.n_iter_ > 0
    assert model.score(X, y) > 0.7
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    value = np.logaddexp(0, -margins).sum() + np.abs(model.coef_).sum() / model.C
    assert_allclose(model.objective_, value, rtol=1e-10)
    wanted = L1LogisticOBA(C=model.C, tol=1e-8).fit(X, y)
    cold = L1LogisticOBA(C=model.C, tol=1e-8).fit(in_blocks(X), y)
    model.set_params(callback=None, warm_start=True, tol=1e-8).fit(in_blocks(X), y)
    assert_allclose(model.objective_, wanted.objective_, rtol=1e-8)
    assert model.n_iter_ <= cold.n_iter_
