"""Many threads at once, with and without the interpreter's lock: each fit is as if it were alone."""

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import forked
import numpy as np
import pytest
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


# one thread each, and two; threads of ExtremeSoftmaxSGD race for the same weights by intent
FITS = forked.cases(1) | {f"{name}, two threads each": forked.cases(2)[name] for name in forked.ALSO}


def same(found, expected, name):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_same_fit_in_many_threads(name):
    alone = FITS[name]()
    for together in at_once([FITS[name]] * THREADS):
        same(together, alone, name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_different_fits_in_many_threads():
    alone = {name: fit() for name, fit in FITS.items()}
    before = [library["num_threads"] for library in threadpool_info()]
    for together in at_once(list(FITS.values())), at_once(list(reversed(FITS.values())))[::-1]:
        for name, result in zip(FITS, together, strict=True):
            same(result, alone[name], name)
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_one_graph_is_solved_by_many_threads():
    def assignment():
        graph = sparsekit.FactorGraph()
        u = graph.variable(np.random.default_rng(0).random((5, 6)))
        graph.add(sparsekit.Xor(u))
        graph.add(sparsekit.AtMostOne(u.T))
        return graph

    alone = assignment().solve().x
    graph = assignment()  # what it keeps for the next solve, the threads make at once
    for together in at_once([lambda: graph.solve().x] * THREADS):
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
