"""Fits on Dask collections without a cluster."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from row_data import as_dask, assert_holds_an_iterate, from_disk, in_blocks, labels, text, write
from threadpoolctl import threadpool_info

from sparsekit import L1LogisticOBA, LassoOBA
from sparsekit._row_blocks import dask_blocks
from sparsekit._row_blocks.blocks import RoundError

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

CUTS = (0, 130, 131, 320, 500)


@pytest.fixture(scope="module")
def data():
    X, scores = text()
    return X, labels(scores), scores


def test_the_bits_are_those_of_blocks_in_this_process(data):
    X, y, scores = data
    for make, target in ((L1LogisticOBA, y), (lambda: LassoOBA(2e-4), scores)):
        local = make().fit(in_blocks(X, CUTS), target)
        for scheduler in ("synchronous", "threads"):
            with dask.config.set(scheduler=scheduler, num_workers=3):
                lazy = make().fit(as_dask(X, CUTS), target)
            assert_array_equal(lazy.coef_, local.coef_)
            assert lazy.dual_gap_ == local.dual_gap_ and lazy.n_rounds_ == local.n_rounds_


@pytest.mark.parametrize("n_workers", [1, 2, 3, 8, 100])
def test_the_bits_are_the_same_for_any_number_of_workers(n_workers, data, monkeypatch):
    X, y, _ = data
    cuts = tuple(range(0, 501, 20))
    monkeypatch.setattr(dask_blocks, "_n_threads", lambda client: n_workers)
    assert_array_equal(
        L1LogisticOBA().fit(as_dask(X, cuts), y).coef_, L1LogisticOBA().fit(in_blocks(X, cuts), y).coef_
    )


def test_x_stays_in_its_blocks(data, monkeypatch):
    """Nothing is joined, cut anew, computed as a whole, kept or made dense."""
    X, y, _ = data
    blocks, targets = as_dask(X, CUTS), da.from_array(y, chunks=100)
    for name in ("compute", "persist", "compute_chunk_sizes", "map_blocks", "__getitem__"):
        monkeypatch.setattr(da.Array, name, lambda *_, **__: pytest.fail("touched"))
    before = da.Array.rechunk

    def rechunk(self, *args, **kwargs):
        assert self.ndim == 1  # targets are cut as X is
        return before(self, *args, **kwargs)

    monkeypatch.setattr(da.Array, "rechunk", rechunk)
    for name in ("concatenate", "vstack", "from_array"):
        monkeypatch.setattr(da, name, lambda *_, **__: pytest.fail("joined"))
    for name in ("toarray", "todense"):
        for kind in (sp.csr_matrix, sp.csr_array, sp.csc_array, sp.csc_matrix):
            monkeypatch.setattr(kind, name, lambda *_: pytest.fail("made dense"))
    assert L1LogisticOBA().fit(blocks, targets).n_rounds_ > 3


@pytest.mark.parametrize("kind", ["sparse", "dense", "multinomial", "lasso"])
def test_tasks_use_one_thread_each(kind, data):
    """Dask has as many as there are processors; BLAS and OpenMP would take as many each."""
    X, y, scores = data
    X = np.asfortranarray(X.toarray()) if kind == "dense" else X
    y = scores if kind == "lasso" else labels(scores, 3) if kind == "multinomial" else y
    seen = set()
    before = dask_blocks.sum_over

    def record(*arguments):
        # of BLAS; the kernels' own are asked for by number, which is one
        seen.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return before(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_blocks, "sum_over", record)
        (LassoOBA() if kind == "lasso" else L1LogisticOBA(n_jobs=2)).fit(
            as_dask(X, CUTS) if sp.issparse(X) else da.from_array(X, chunks=(100, -1)), y
        )
    assert seen == {1}


def test_a_block_that_cannot_be_read(tmp_path, data):
    """From the start, and in the middle of a fit, which keeps what it has."""
    X, y, _ = data
    write(tmp_path, X, y)
    lazy = from_disk(tmp_path, X.shape[1], y.dtype)
    (tmp_path / "block2.npz").rename(tmp_path / "away")
    model = L1LogisticOBA(C=20.0)
    with pytest.raises(RoundError, match=r"could not be read:.*block2\.npz") as caught:
        model.fit(*lazy)
    assert isinstance(caught.value.__cause__, FileNotFoundError) and not hasattr(model, "coef_")
    (tmp_path / "away").rename(tmp_path / "block2.npz")

    def lose(intermediate_result):
        if intermediate_result.nit == 3:
            (tmp_path / "block2.npz").unlink()

    model.set_params(callback=lose)
    with pytest.raises(
        RuntimeError, match=r"could not be read.*holds the last iterate.*iteration ([3-9]|1\d)"
    ):
        model.fit(*lazy)
    assert_holds_an_iterate(model, X, y)


def test_blocks_on_disk_that_fail_by_number(data):
    X, y, _ = data
    source = in_blocks(X)
    before = source.block

    def fail(i):
        if i == 2:
            raise OSError("disk is gone")
        return before(i)

    source.block = fail
    with pytest.raises(RoundError, match="block 2 of X could not be read: disk is gone"):
        L1LogisticOBA().fit(source, y)


def test_dask_is_imported_by_its_users_alone(run_python):
    code = """
import sys
import numpy as np
from sparsekit import L1LogisticOBA, LassoOBA
from types import SimpleNamespace
X = np.random.default_rng(0).normal(size=(60, 4))
source = SimpleNamespace(
    shape=X.shape, n_blocks=2, starts=[0, 30, 60], block=lambda i: X[30 * i : 30 * i + 30]
)
for blocks in (X, source):
    L1LogisticOBA().fit(blocks, X[:, 0] > 0)
    LassoOBA().fit(blocks, X[:, 0])
print(sorted(name for name in sys.modules if name.split(".")[0] in ("dask", "distributed")))
"""
    assert run_python(code).strip() == "[]"
