"""Searches, cross-validation and paths on joblib's backends: one X for all, and shares of the threads."""

import contextlib
import functools
import json
import os
import sys
import types
import uuid
from unittest import mock

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

import sparsekit as sk
from sparsekit._linalg.threads import count_threads

# arrays of more bytes than joblib's max_nbytes (1 MiB) are memory-mapped
ROWS, COLUMNS = 1500, 120
MODELS = {
    "a grid over L1LogisticOBA": lambda scoring: GridSearchCV(
        sk.L1LogisticOBA(n_jobs=2), {"C": [0.1, 1.0]}, cv=2, n_jobs=2, scoring=scoring, error_score="raise"
    ),
    "a grid over SoftmaxClassifier": lambda scoring: GridSearchCV(
        sk.SoftmaxClassifier(n_jobs=-1), {"alpha": [0.1, 0.01]}, cv=2, n_jobs=2, scoring=scoring,
        error_score="raise",
    ),
    "a grid over ExtremeSoftmaxSGD": lambda scoring: GridSearchCV(
        sk.ExtremeSoftmaxSGD(learning_rate=1.0, max_iter=2, random_state=0), {"alpha": [0.0, 0.1]}, cv=2,
        n_jobs=2, scoring=scoring, error_score="raise",
    ),
    "L1LogisticOBACV": lambda scoring: sk.L1LogisticOBACV(
        Cs=[1e-3, 1e-2, 0.1], cv=3, n_jobs=2, scoring=scoring
    ),
    "SparsemaxClassifierCV": lambda scoring: sk.SparsemaxClassifierCV(
        alphas=[0.1, 0.01], cv=3, n_jobs=2, scoring=scoring
    ),
    "a grid over L1LogisticOBACV": lambda scoring: GridSearchCV(
        sk.L1LogisticOBACV(Cs=2, eps=0.1, cv=2, n_jobs=2), {"fit_intercept": [True, False]}, cv=2, n_jobs=2,
        scoring=scoring, error_score="raise",
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=["dense", "CSR"])
def data(request):
    X, y = make_classification(ROWS, COLUMNS, n_informative=10, n_classes=3, random_state=0)
    X[np.abs(X) < 0.1] = 0.0
    return (X if request.param == "dense" else sp.csr_array(X)), y


@contextlib.contextmanager
def nothing_changed(folder):
    """What imports and starts of clusters do to this process is taken back; they happen in the folder."""
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        patch.setattr(sys, "path", list(sys.path))
        patch.chdir(folder)
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with contextlib.ExitStack() as stack:
        with nothing_changed(tmp_path_factory.mktemp("dask")):
            distributed = pytest.importorskip("distributed")
            cluster = stack.enter_context(distributed.LocalCluster(**options))
            client = stack.enter_context(distributed.Client(cluster, timeout=60))
        yield client


@pytest.fixture(params=["threading", "loky", "multiprocessing", "dask"])
def backend(request):
    if request.param == "dask":
        request.getfixturevalue("cluster")
    elif request.param == "multiprocessing" and not hasattr(os, "fork"):
        pytest.skip("the tests of multiprocessing are of forked processes")
    return request.param


def record_and_score(folder, model, X, y):
    """A scorer that writes the state of the task that calls it to the folder."""
    frame = sys._getframe()
    while frame.f_code.co_name not in ("_score_fold", "_fit_and_score"):
        frame = frame.f_back
    whole = frame.f_locals["X"]
    values = whole.data if sp.issparse(whole) else whole
    note = {
        "pid": os.getpid(),
        "at": values.ctypes.data,
        "file": str(getattr(values, "filename", None)),
        "writeable": bool(values.flags.writeable),
        "threads": [count_threads(n) for n in (None, 1, 2, joblib.cpu_count(), -1)],
    }
    (folder / uuid.uuid4().hex).write_text(json.dumps(note))
    return model.score(X, y)


def spy(folder, backend):
    """`record_and_score`, for multiprocessing by its name, for others by value: their processes lack these
    tests.
    """
    function = record_and_score
    if backend != "multiprocessing":
        function = types.FunctionType(record_and_score.__code__, record_and_score.__globals__)
        function.__module__ = "__main__"
    return functools.partial(function, folder)


def scores_of(model):
    return model.cv_results_["mean_test_score"] if isinstance(model, GridSearchCV) else model.scores_


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.thorough(keep=8)
def test_all_backends_give_the_same_and_share_data_and_threads(name, backend, data, tmp_path):
    X, y = data
    expected = scores_of(MODELS[name](None).fit(X, y))
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = MODELS[name](spy(tmp_path, backend)).fit(X, y)
    np.testing.assert_allclose(scores_of(found), expected, rtol=0, atol=1e-12)
    notes = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    assert len(notes) >= 4
    here = os.getpid()
    assert {note["pid"] == here for note in notes} == {backend == "threading"}

    # X is there once: itself, in one file that all map, or one copy in each process
    values = X.data if sp.issparse(X) else X
    if backend == "threading":
        assert {note["at"] for note in notes} == {values.ctypes.data}
    elif backend in ("loky", "multiprocessing"):
        files = {note["file"] for note in notes}
        assert len(files) == 1 and "None" not in files
        assert not any(note["writeable"] for note in notes)
    elif backend == "dask":
        assert len({note["at"] for note in notes}) == len({note["pid"] for note in notes})

    # two tasks at once, each with half of the processors at most
    half = max(joblib.cpu_count() // 2, 1)
    for note in notes:
        assert note["threads"][:2] == [1, 1] and max(note["threads"]) <= half


def test_threads_outside_of_tasks_are_what_was_asked_for(monkeypatch):
    everything = joblib.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which n_jobs overrides, as it always did
    assert [count_threads(n) for n in (None, 1, 2, 7, -1)] == [1, 1, 2, 7, everything]
    assert count_threads(-1 - everything) == 1
    with pytest.raises(ValueError, match="n_jobs == 0"):
        count_threads(0)
    with joblib.parallel_config(backend="sequential"):
        assert [count_threads(n) for n in (2, -1)] == [2, 1]


def test_threads_of_tasks_that_are_no_joblib_tasks(cluster):
    """A worker of Dask has as many threads as it runs tasks at once."""
    found = cluster.gather(cluster.map(count_threads, [None, 2, 50, -1], pure=False))
    assert found == [1, 1, 1, 1]


def test_dask_knows_the_size_of_sparse_arrays():
    sizeof = pytest.importorskip("dask.sizeof").sizeof
    dense = np.random.default_rng(0).random((100, 50))
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array):
        there = kind(dense)
        parts = [there.data, *getattr(there, "coords", ())]
        assert sizeof(there) >= sum(part.nbytes for part in parts)
    assert sizeof(sp.csr_matrix(dense)) >= dense.nbytes and sizeof(dense) >= dense.nbytes


def estimators():
    classes = (getattr(sk, name) for name in sk.__all__)
    found = [one for one in classes if isinstance(one, type) and hasattr(one, "fit")]
    return [one for one in found if one is not sk.SequenceTagger]  # of lists of arrays: tests/tagger


def small(kind):
    model = kind()
    if kind is sk.ExtremeSoftmaxSGD:  # one thread, which repeats itself
        return model.set_params(learning_rate=1.0, max_iter=3, random_state=0)
    chosen = {"n_jobs": 2, "Cs": 2, "cv": 2, "n_pairs": 2, "penalties": 3}
    model.set_params(**({"random_state": 0} if "n_pairs" in model.get_params() else {}))
    return model.set_params(**{name: chosen[name] for name in chosen.keys() & model.get_params().keys()})


def answer(model, X):
    if hasattr(model, "predict"):
        return model.predict(X)
    out = model.transform(X)
    return out.toarray() if sp.issparse(out) else out


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_arrays_that_are_memory_mapped_are_never_written_to(kind, tmp_path):
    """As joblib hands them to tasks: X dense or CSR, y, weights, and fitted models."""
    X, y = make_classification(120, 12, n_informative=6, n_classes=3, random_state=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[np.abs(X) < 0.1] = 0.0

    def mapped(thing):
        path = tmp_path / uuid.uuid4().hex
        joblib.dump(thing, path)
        return joblib.load(path, mmap_mode="r")

    backwards = sp.csr_array(X)[:, ::-1]
    assert not backwards.has_sorted_indices
    backwards = sp.csr_array((backwards.data, backwards.indices, backwards.indptr), shape=X.shape)
    y, weight = mapped(y), mapped(np.linspace(0.5, 1.5, len(y)))
    assert not y.flags.writeable
    for given in (X, np.asfortranarray(X), X.astype(np.float32), sp.csr_array(X), backwards):
        there = mapped(given)
        assert not (there.data if sp.issparse(there) else there).flags.writeable
        model = small(kind).fit(there, y, sample_weight=weight)
        expected = answer(model, there)
        np.testing.assert_array_equal(
            expected, answer(small(kind).fit(given, y, sample_weight=weight), given)
        )
        model = mapped(model)
        np.testing.assert_array_equal(answer(model, there), expected)
        if "warm_start" in model.get_params():
            model.set_params(warm_start=True).fit(there, y)
