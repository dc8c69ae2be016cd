"""Sizes of sparse arrays for Dask: an entry point of the group ``dask.sizeof``, which Dask loads.

Dask has the size of SciPy's sparse matrices, but estimates a sparse array (``csr_array``) at some 50 bytes.
Joblib's Dask backend would then send it with each task, and not once to each worker. A worker whose memory is
full of sparse arrays would not spill them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register(sizeof: Any) -> None:
    """Register the sizes with Dask's ``sizeof`` when it first needs a size of SciPy's."""
    from dask import sizeof as module

    matrices: Callable[[], object] | None = getattr(module, "register_spmatrix", None)

    def register_both():
        if matrices is not None:  # this function replaces it
            matrices()
        import scipy.sparse

        if not any(issubclass(known, scipy.sparse.sparray) for known in sizeof._lookup):
            sizeof.register(scipy.sparse.sparray, _bytes_of)

    sizeof.register_lazy("scipy", register_both)


def _bytes_of(matrix):
    parts = [getattr(matrix, name, None) for name in ("data", "indices", "indptr")]
    return sum(getattr(part, "nbytes", 0) for part in (*parts, *getattr(matrix, "coords", ())))
