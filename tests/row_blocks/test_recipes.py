"""Blocks as recipes: what gets one, that one block at a time is made, and where."""

import threading
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from row_data import as_dask, cut, in_blocks, labels, text

from sparsekit import L1LogisticOBA
from sparsekit._row_blocks import dask_blocks
from sparsekit._row_blocks.blocks import LocalBlocks
from sparsekit._row_blocks.dask_blocks import DaskBlocks
from sparsekit._row_blocks.recipes import as_recipes, made

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")


def test_what_gets_a_recipe():
    whole = da.ones((10, 4), chunks=(5, 4))
    found = as_recipes([*whole.to_delayed().ravel(), None, 2.0])
    assert [type(part) for part in found] == [partial, partial, type(None), float]
    assert_array_equal(made(found[1]), np.ones((5, 4)))
    assert made(2.0) == 2.0 and made(None) is None
    # the sum over all blocks would be made for each
    shared = whole - whole.sum(axis=0)
    assert as_recipes(list(shared.to_delayed().ravel())) is None


class Alive:
    """How many blocks there are at once."""

    def __init__(self):
        self.now = self.most = 0
        self.lock = threading.Lock()

    def make(self, block):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        return Tracked(block, self)


class Tracked(np.ndarray):
    def __new__(cls, block, alive):
        found = block.view(cls)
        found.alive = alive
        return found

    def __array_finalize__(self, other):
        self.alive = None

    def __del__(self):
        if self.alive is not None:
            with self.alive.lock:
                self.alive.now -= 1


def rows_of(block):
    return len(block.X)


def test_a_task_has_one_block_and_the_next(monkeypatch):
    """However many it sums over."""
    monkeypatch.setattr(dask_blocks, "_n_threads", lambda client: 1)
    alive, rows = Alive(), np.ones((5, 3))
    parts = [
        da.from_delayed(dask.delayed(alive.make, pure=False)(rows.copy()), rows.shape, dtype=float)
        for _ in range(32)
    ]
    with dask.config.set(scheduler="synchronous"):
        assert DaskBlocks(da.concatenate(parts)).map_reduce(rows_of) == 160
    # in use, ready, and being made
    assert alive.now == 0 and alive.most <= 3


def test_blocks_that_share_steps_come_in_small_groups(monkeypatch):
    """Each as often as once, and no more of them in a group than its bytes allow."""
    X, scores = text()
    y, calls = labels(scores), []

    def load():
        calls.append(1)
        return X

    source = dask.delayed(load, pure=True)()
    parts = [
        da.from_delayed(source[a : a + 50], (50, 300), dtype=float, meta=X[:0]) for a in range(0, 500, 50)
    ]
    blocks = da.concatenate(parts)
    sizes = []
    before = dask_blocks.sum_over
    monkeypatch.setattr(dask_blocks, "_n_threads", lambda client: 1)
    monkeypatch.setattr(dask_blocks, "sum_over", lambda blocks, *rest: before(counted(blocks, sizes), *rest))
    monkeypatch.setattr(dask_blocks, "BLOCK_BYTES", 3 * X.nnz * 12 / 10)
    with dask.config.set(scheduler="synchronous"):
        model = L1LogisticOBA().fit(blocks, y)
    assert len(calls) == model.n_rounds_
    # the census knows of no sizes
    assert sizes[:10] == [1] * 10 and max(sizes) == 2
    wanted = L1LogisticOBA().fit(in_blocks(X, range(0, 501, 50)), y)
    assert_array_equal(model.coef_, wanted.coef_)


def counted(leaves, sizes):
    n = 0
    for leaf in leaves:
        n += 1
        yield leaf
    sizes.append(n)


LOADED: list[int] = []
PART_CUTS = (0, 130, 131, 320, 500)


def load_part(i):
    """A function of a module: a worker of this process gets it by its name."""
    LOADED.append(i)
    return cut(text()[0], PART_CUTS)[i]


def test_what_waits_in_a_cluster_is_used_where_it_is():
    """Blocks that were persisted are not made again, nor is what is computed from them."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    X, scores = text()
    y = labels(scores)
    cuts = PART_CUTS
    LOADED.clear()
    wanted = L1LogisticOBA().fit(in_blocks(X, cuts), y)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        parts = [
            da.from_delayed(dask.delayed(load_part, pure=False)(i), part.shape, dtype=float, meta=part[:0])
            for i, part in enumerate(cut(X, cuts))
        ]
        lazy = da.concatenate(parts)
        model = L1LogisticOBA().fit(lazy, y)
        assert sorted(LOADED) == sorted(list(range(4)) * model.n_rounds_)
        LOADED.clear()
        kept = lazy.persist()
        for blocks in (kept, kept * 1.0):
            assert_array_equal(L1LogisticOBA().fit(blocks, y).coef_, wanted.coef_)
        assert sorted(LOADED) == [0, 1, 2, 3]


def fails(block):
    raise ArithmeticError(f"block {block.number}")


@pytest.mark.parametrize("where", ["here", "dask"])
def test_no_thread_is_left_where_a_kernel_fails(where):
    """However long somebody holds on to the error."""
    X, _ = text()
    blocks = LocalBlocks(in_blocks(X)) if where == "here" else DaskBlocks(as_dask(X, (0, 100, 200, 500)))
    others = set(threading.enumerate())
    with dask.config.set(scheduler="synchronous"), pytest.raises(ArithmeticError, match="block") as caught:
        blocks.map_reduce(fails)
    assert not [t for t in set(threading.enumerate()) - others if t.name.startswith("sparsekit-read")]
    del caught
