"""What goes wrong in a cluster: the fit ends with the same result, or with one error and its last iterate."""

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from unittest import mock

import numpy as np
import pytest
import row_data
from numpy.testing import assert_array_equal

from sparsekit import L1LogisticOBA
from sparsekit._row_blocks import dask_blocks
from sparsekit._row_blocks.blocks import RoundError

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

CUTS = (0, 130, 131, 320, 500)
# a penalty that takes several expansions
C = 20.0


@contextlib.contextmanager
def two_workers(folder):
    """Each a process with one thread. Memory is not watched, so that a test can pause them."""
    options = dict(n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=":0")
    # a worker asks one that has died for its data that long
    patience = {"distributed.comm.timeouts.connect": "5s"}
    with (
        mock.patch.dict(os.environ),  # nannies change it
        distributed.LocalCluster(
            local_directory=str(folder), config=patience, silence_logs=logging.CRITICAL, **options
        ) as cluster,
    ):
        yield cluster


@contextlib.contextmanager
def connected(cluster):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client, client.as_current():
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with two_workers(tmp_path_factory.mktemp("workers")) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with connected(cluster) as client:
        yield client


@pytest.fixture
def mortal(tmp_path):
    """A client of workers of its own: what comes after a death is a matter of its cluster."""
    with two_workers(tmp_path) as cluster, connected(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    X, scores = row_data.text()
    return X, row_data.labels(scores)


@pytest.fixture(scope="module")
def wanted(data):
    """The fit without a cluster."""
    return L1LogisticOBA(C).fit(row_data.in_blocks(data[0], CUTS), data[1])


@pytest.fixture
def lazy(tmp_path, data):
    """X and y that workers read from the disk in every round."""
    row_data.write(tmp_path, *data, cuts=CUTS)
    return row_data.from_disk(tmp_path, data[0].shape[1], data[1].dtype, CUTS)


@pytest.fixture
def strike(monkeypatch, tmp_path):
    """``strike(how, kernel, nth, timeout)``: in that kernel's nth round a worker dies, or hangs."""

    def plan(how, kernel, nth=1, timeout="1h"):
        (tmp_path / how).write_text(kernel)
        seen, before = Counter(), dask_blocks.DaskBlocks.map_reduce

        def map_reduce(self, one, *arguments):
            seen[one.__name__] += 1
            if one.__name__ != kernel or seen[kernel] != nth:
                return before(self, one, *arguments)
            with dask.config.set({"sparsekit.timeout": timeout}):
                return before(self, row_data.Struck(one, tmp_path, kernel, 2), *arguments)

        monkeypatch.setattr(dask_blocks.DaskBlocks, "map_reduce", map_reduce)

    yield plan
    for name in ("kill", "hang"):  # or a worker would hang on
        (tmp_path / name).unlink(missing_ok=True)


def assert_same_bits(model, wanted):
    assert_array_equal(model.coef_, wanted.coef_)
    assert_array_equal(model.intercept_, wanted.intercept_)
    assert (model.objective_, model.dual_gap_) == (wanted.objective_, wanted.dual_gap_)
    assert (model.n_rounds_, *model.n_iter_) == (wanted.n_rounds_, *wanted.n_iter_)


def pids(client):
    return set(client.run(os.getpid).values())


# Workers that die.

DEATHS = {
    "loading": ("read 2", 0),
    "census": ("_of_block", 1),
    "gather": ("columns_of_block", 2),
    "gradient": ("gradient_of_block", 1),
    "certificate": ("gradient_of_block", -1),
}


@pytest.mark.parametrize("where", DEATHS)
@pytest.mark.thorough(keep=1)
def test_a_worker_dies(where, mortal, lazy, wanted, strike, tmp_path):
    kernel, nth = DEATHS[where]
    last = (wanted.n_rounds_ - 2) // 2  # an expansion takes two rounds
    strike("kill", kernel, last if nth < 0 else nth)
    before = pids(mortal)
    model = L1LogisticOBA(C).fit(*lazy)
    assert not (tmp_path / "kill").exists()
    assert_same_bits(model, wanted)
    assert len(pids(mortal) & before) == 1


@pytest.mark.thorough
def test_each_worker_dies_of_a_task(mortal, lazy, data, strike):
    """Dask gives up after some; here at once."""
    mortal.run_on_scheduler(row_data.allow_no_deaths)
    strike("kill", "gradient_of_block", 2)
    model = L1LogisticOBA(C)
    with pytest.raises(RoundError, match=r"workers died.*L1LogisticOBA holds the last iterate") as caught:
        model.fit(*lazy)
    assert isinstance(caught.value.__cause__.__cause__, distributed.KilledWorker)
    row_data.assert_holds_an_iterate(model, *data)


# Workers that do not answer.


def test_a_worker_never_comes_back(client, lazy, data, wanted, strike, tmp_path):
    strike("hang", "gradient_of_block", 2, timeout="2s")
    model = L1LogisticOBA(C)
    with pytest.raises(RoundError, match=r"within 2 s.*sparsekit.timeout.*holds the last iterate") as caught:
        model.fit(*lazy)
    assert isinstance(caught.value.__cause__.__cause__, TimeoutError)
    (tmp_path / "hang").unlink()
    row_data.assert_holds_an_iterate(model, *data)
    # the cluster is as good as new
    assert_same_bits(L1LogisticOBA(C).fit(*lazy), wanted)


def test_a_hang_in_the_first_round_leaves_an_old_model_alone(cluster, client, lazy, strike, wanted):
    strike("hang", "_of_block", timeout=0.5)
    model = L1LogisticOBA(C)
    model.coef_ = wanted.coef_
    with pytest.raises(RoundError, match=r"within 0.5 s") as caught:
        model.fit(*lazy)
    assert "iterate" not in str(caught.value) and model.coef_ is wanted.coef_
    # nobody waits for the answer, though the error's frames hold on to the future
    end = time.monotonic() + 30
    while cluster.scheduler.tasks and time.monotonic() < end:
        time.sleep(0.02)
    assert not cluster.scheduler.tasks


def test_a_worker_is_paused_for_memory(client, data, wanted):
    """The other one does the work, with what the paused one holds."""
    X, y = data
    paused = min(client.scheduler_info()["workers"])
    blocks = client.persist(row_data.as_dask(X, CUTS), workers=[paused])
    distributed.wait(blocks, timeout=60)
    seen = []

    def stop(intermediate_result):
        if intermediate_result.nit == 3:
            client.run(row_data.pause, True, workers=[paused])
        seen.append(intermediate_result.nit)

    try:
        for callback in (stop, None):
            model = L1LogisticOBA(C, callback=callback).fit(blocks, y)
            assert client.scheduler_info()["workers"][paused]["status"] == "paused"
            assert_same_bits(model, wanted)
    finally:
        client.run(row_data.pause, False, workers=[paused])
    assert 3 in seen


# Clients and clusters that go.


def test_the_client_is_closed_between_rounds(cluster, lazy, data):
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client, client.as_current():

        def close(intermediate_result):
            if intermediate_result.nit == 3:
                client.close(timeout=10)

        model = L1LogisticOBA(C, callback=close)
        with pytest.raises(RoundError, match=r"client.*is closed.*holds the last iterate"):
            model.fit(*lazy)
    row_data.assert_holds_an_iterate(model, *data)


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_a_round_is_broken_off(how, cluster, lazy, data, strike, tmp_path):
    """The client is closed, or its tasks are cancelled, as by `Client.restart` or by hand."""
    strike("hang", "gradient_of_block", 2)
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client, client.as_current():

        def break_off():
            end = time.monotonic() + 60
            while not (tmp_path / "hangs").exists() and time.monotonic() < end:
                time.sleep(0.02)
            if how == "closed":
                client.close(timeout=10)
            else:
                futures = [distributed.Future(key, client) for key in list(client.futures)]
                client.cancel(futures, force=True)

        breaker = threading.Thread(target=break_off)
        breaker.start()
        model = L1LogisticOBA(C)
        said = "client.*is clos" if how == "closed" else "the cluster dropped a round"
        with pytest.raises(RoundError, match=f"{said}.*holds the last iterate"):
            model.fit(*lazy)
        breaker.join(60)
    row_data.assert_holds_an_iterate(model, *data)


# What a worker finds.


def test_a_block_with_nan_is_named(client, data):
    X, y = data[0].copy(), data[1]
    X.data[X.indptr[400]] = np.nan
    with pytest.raises(ValueError, match="block 3 of X contains NaN"):
        L1LogisticOBA().fit(row_data.as_dask(X, CUTS), y)
