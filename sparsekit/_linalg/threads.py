"""BLAS on as many threads as the caller asked for."""

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
