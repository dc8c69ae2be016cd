"""Threads: how many the caller asked for, and BLAS on no more."""

from contextlib import nullcontext
from functools import cache


@cache
def _controller():
    # finding the libraries takes milliseconds, limiting them microseconds: look once. SciPy's
    # BLAS is loaded by then, because the kernels link to it.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def blas_threads(n_threads):
    """Context in which BLAS uses ``n_threads``; None leaves it alone."""
    return nullcontext() if n_threads is None else _controller().limit(limits=n_threads)


def count_threads(n_jobs):
    """Number of threads for n_jobs, which means what it means in joblib (None is 1, -1 is all)."""
    if n_jobs is None:
        return 1
    if n_jobs > 0:
        return int(n_jobs)
    import joblib  # costs more than the small calls that come by here

    return joblib.effective_n_jobs(n_jobs)
