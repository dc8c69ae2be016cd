"""Threads: how many the caller asked for, and BLAS on no more."""

import math
import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import cache


@cache
def _libraries():
    # finding the libraries takes milliseconds, limiting them microseconds: search once. SciPy's BLAS is
    # loaded by then: the kernels look its routines up in SciPy's modules.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set(library, n_threads):
    # Since threadpoolctl 3.8 only the first thread that asks may change OpenBLAS, and others are ignored
    # silently. Here the last to leave has to, who need not be the first; a lock keeps them in order.
    if library.get_num_threads() == n_threads:
        return
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


class _BlasLimit:
    """BLAS has one limit for the whole process: the first to come notes it, the last to leave restores it.

    Suppose each fit restored what it had found. A fit that began during another would restore the other's
    limit, for good. One that ended during another would take that one's limit away. Only a BLAS that takes
    its threads from OpenMP has a limit for each thread that calls it.
    """

    def __init__(self):
        # a thread that limits may be interrupted by a signal whose handler forks
        self._lock = threading.RLock()
        self._inside = Counter()  # how often each thread is
        self._before = []

    @contextmanager
    def __call__(self, n_threads):
        libraries = _libraries()
        me = threading.get_ident()
        with self._lock:
            found = [library.get_num_threads() for library in libraries]
            if not self._inside:
                self._before = found
            for library in libraries:
                _set(library, n_threads)
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[me] -= 1
                self._inside = +self._inside
                for library, own, shared in zip(libraries, found, self._before):
                    if getattr(library, "threading_layer", None) == "openmp":
                        _set(library, own)
                    elif not self._inside:
                        _set(library, shared)

    def before_fork(self):
        """Wait until no other thread changes a limit: a child would find its locks taken for ever."""
        self._lock.acquire()

    def after_fork_in_parent(self):
        """Let others go on."""
        self._lock.release()

    def after_fork_in_child(self):
        """Forget the threads that are not there, as if they had left."""
        self._lock = threading.RLock()
        if not self._inside:
            return
        me = threading.get_ident()
        self._inside = +Counter({me: self._inside[me]})
        if not self._inside:
            for library, shared in zip(_libraries(), self._before):
                if getattr(library, "threading_layer", None) != "openmp":
                    _set(library, shared)


_limit_blas = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_limit_blas.before_fork,
        after_in_parent=_limit_blas.after_fork_in_parent,
        after_in_child=_limit_blas.after_fork_in_child,
    )


def blas_threads(n_threads):
    """Context in which BLAS uses ``n_threads``; None leaves it alone."""
    return nullcontext() if n_threads is None else _limit_blas(n_threads)


def count_threads(n_jobs):
    """Number of threads for n_jobs, which means what it means in joblib (None is 1, -1 is all).

    A task that runs in parallel with others (of joblib's backends or on a worker of Dask) is limited to its
    share of the processors. It gets no more, whatever it asks for.
    """
    if n_jobs is None or n_jobs == 1:
        return 1
    if n_jobs > 0:
        return min(int(n_jobs), _share())
    import joblib  # costs more than the small calls that come by here

    if n_jobs == 0 or isinstance(joblib.parallel.get_active_backend()[0], _sequential()):
        return joblib.effective_n_jobs(n_jobs)
    # not effective_n_jobs, which counts the processors of all machines where joblib works on a cluster
    return min(max(joblib.cpu_count() + 1 + int(n_jobs), 1), _share())


def nested_n_jobs(n_jobs):
    """n_jobs for an estimator's own Parallel: as it is, or the share of a task that runs with others."""
    return n_jobs if n_jobs is None or math.isinf(_share()) else count_threads(n_jobs)


def _sequential():
    from joblib._parallel_backends import SequentialBackend

    return SequentialBackend


def _share():
    """Threads that this task may use while others run; infinity where nothing says so.

    A process of loky, Ray or Dask's nanny has it in OMP_NUM_THREADS, which joblib's ``inner_max_num_threads``
    sets. Threads of one process share what the process has.
    """
    worker = _dask_worker()
    # who did not import these runs in none of their tasks
    parallel = sys.modules.get("joblib.parallel")
    if worker is None and (parallel is None or not parallel.get_active_backend()[0].nesting_level):
        return math.inf
    import multiprocessing.dummy

    import joblib

    granted = os.environ.get("OMP_NUM_THREADS", "")
    if granted.isdigit() and int(granted) > 0:
        processors = int(granted)
    elif multiprocessing.current_process().daemon:
        processors = 1  # one of a pool, whose size is not known
    else:
        processors = joblib.cpu_count()
    if worker is not None:
        siblings = worker.state.nthreads
    else:
        pooled = multiprocessing.dummy.DummyProcess  # what joblib's threads are
        siblings = sum(isinstance(thread, pooled) for thread in threading.enumerate())
    return max(processors // max(siblings, 1), 1)


def _dask_worker():
    """The worker whose task this thread runs, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except ValueError:
        return None
