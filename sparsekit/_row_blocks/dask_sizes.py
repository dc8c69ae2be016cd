"""What Dask reckons sparse arrays at: an entry point of the group ``dask.sizeof``, which Dask loads.

Dask knows the size of SciPy's sparse matrices and takes a sparse array (``csr_array``) for some 50 bytes.
So joblib's Dask backend sends one anew with each task, in place of once to each worker, and a worker whose
memory is full of them spills none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register(sizeof: Any) -> None:
    """Tell Dask's ``sizeof``, once something of SciPy is asked for."""
    from dask import sizeof as module

    matrices: Callable[[], object] | None = getattr(module, "register_spmatrix", None)

    def register_both():
        if matrices is not None:  # which this takes the place of
            matrices()
        import scipy.sparse

        if not any(issubclass(known, scipy.sparse.sparray) for known in sizeof._lookup):
            sizeof.register(scipy.sparse.sparray, _bytes_of)

    sizeof.register_lazy("scipy", register_both)


def _bytes_of(matrix):
    parts = [getattr(matrix, name, None) for name in ("data", "indices", "indptr")]
    return sum(getattr(part, "nbytes", 0) for part in (*parts, *getattr(matrix, "coords", ())))
