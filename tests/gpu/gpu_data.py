"""What tests of the GPU share: matrices there, and the same numbers on both sides."""

import numpy as np
import scipy.sparse as sp


def to_device(cupy, X):
    """X on the device: dense, CSR or CSC, as it is here; None stays None."""
    if X is None or not sp.issparse(X):
        return X if X is None else cupy.asarray(X)
    import cupyx.scipy.sparse

    made = cupyx.scipy.sparse.csc_matrix if X.format == "csc" else cupyx.scipy.sparse.csr_matrix
    return made(X)


def same(mine, theirs, **tolerances):
    """An array of the device against one in main memory."""
    np.testing.assert_allclose(mine.get(), theirs, **tolerances)
