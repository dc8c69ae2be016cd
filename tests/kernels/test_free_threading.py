"""Many threads at once, with and without the interpreter's lock: each fit is as if it were alone."""

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

import sparsekit
from sparsekit._linalg.threads import blas_threads

THREADS = 8
SECONDS = 200  # no thread waits without a limit


def at_once(calls):
    """Results of the functions, which start together, each in a thread of its own."""
    start = threading.Barrier(len(calls))

    def run(call):
        start.wait(SECONDS)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(SECONDS) for future in [pool.submit(run, call) for call in calls]]


def cancer(sparse=False):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return (sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0)) if sparse else X), y


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def coefficients(model, X, y):
    model.fit(X, y)
    return np.append(np.ravel(model.coef_), model.intercept_)


def kinks(x):
    return float(np.abs(x - 1.0).sum() + 0.5 * (x @ x)), np.sign(x - 1.0) + x


def assignment():
    graph = sparsekit.FactorGraph()
    u = graph.variable(np.random.default_rng(0).random((5, 6)))
    graph.add(sparsekit.Xor(u))
    graph.add(sparsekit.AtMostOne(u.T))
    return graph, u


def solved_graph():
    graph, u = assignment()
    return graph.solve()[u]


def several_labels():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    Y = (X @ rng.normal(size=(5, 4)) > 0).astype(int)
    return sparsekit.LPSparseMAPClassifier(1e-4, pairs="all", max_iter=20).fit(X, Y).predict(X)


FITS = {
    "logistic": lambda: coefficients(sparsekit.L1LogisticOBA(C=1.0), *cancer()),
    "logistic, sparse": lambda: coefficients(sparsekit.L1LogisticOBA(C=1.0), *cancer(sparse=True)),
    "logistic, two threads each": lambda: coefficients(sparsekit.L1LogisticOBA(C=1.0, n_jobs=2), *cancer()),
    "multinomial": lambda: coefficients(sparsekit.L1LogisticOBA(C=1.0), *iris()),
    "lasso": lambda: coefficients(sparsekit.LassoOBA(alpha=0.5), *load_diabetes(return_X_y=True)),
    "bounded": lambda: coefficients(sparsekit.BoundedClassifier(bounds=(0.0, None)), *cancer()),
    "sparsemax": lambda: coefficients(sparsekit.SparsemaxClassifier(), *iris()),
    "extreme": lambda: coefficients(sparsekit.ExtremeSoftmaxSGD(random_state=0, max_iter=3), *iris()),
    "nqn": lambda: sparsekit.minimize_nqn(kinks, np.linspace(-2, 2, 30), jac=True, bounds=[(-1, 3)] * 30).x,
    "factor graph": solved_graph,
    "several labels": several_labels,
    "sparsemax of rows": lambda: sparsekit.sparsemax(np.random.default_rng(2).normal(size=(40, 70))),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_same_fit_in_many_threads(name):
    alone = FITS[name]()
    for together in at_once([FITS[name]] * THREADS):
        np.testing.assert_array_equal(together, alone)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_different_fits_in_many_threads():
    alone = {name: fit() for name, fit in FITS.items()}
    before = [library["num_threads"] for library in threadpool_info()]
    for together in at_once(list(FITS.values())), at_once(list(reversed(FITS.values())))[::-1]:
        for name, result in zip(FITS, together, strict=True):
            np.testing.assert_array_equal(result, alone[name], err_msg=name)
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_one_graph_is_solved_by_many_threads():
    alone = solved_graph()
    graph, u = assignment()  # what it keeps for the next solve, the threads make at once
    for together in at_once([lambda: graph.solve()[u]] * THREADS):
        np.testing.assert_array_equal(together, alone)


def blas():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_limits_of_blas_that_overlap_leave_no_trace():
    found = blas()
    with blas_threads(2):  # so that it is no limit of one that is to come back
        two = blas()
        first, second = blas_threads(1), blas_threads(1)
        first.__enter__()
        second.__enter__()
        one = blas()
        first.__exit__(None, None, None)
        assert blas() == one, "the end of the first took the second's limit away"
        second.__exit__(None, None, None)
    assert found and one == [1] * len(found) and max(two) <= 2
    assert blas() == found


IMPORT_ALL = """
import importlib, pkgutil, sys
import sparsekit
assert not sys._is_gil_enabled(), "numpy, scipy or scikit-learn switched the lock on"
for module in pkgutil.walk_packages(sparsekit.__path__, "sparsekit."):
    if module.name.startswith("sparsekit._cython"):
        importlib.import_module(module.name)
        assert not sys._is_gil_enabled(), f"{module.name} switched the interpreter's lock on"
for name in sparsekit.__all__:
    getattr(sparsekit, name)
assert not sys._is_gil_enabled()
print("free")
"""


def test_an_import_leaves_the_lock_off(run_python):
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip(f"Python {sys.version.split()[0]} is no free-threaded build")
    assert run_python(IMPORT_ALL) == "free\n"
