"""Functions of rows of scores against SciPy's, at the ends of the numbers too."""

import numpy as np
import pytest
from scipy import special

from sparsekit._linalg.special import log_expit, log_softmax, softmax

EDGES = np.array([0.0, -0.0, 1e-300, 36.0, 40.0, 745.0, 1e5, np.inf])


def test_log_expit():
    z = np.concatenate([EDGES, -EDGES, np.random.default_rng(0).normal(size=100) * 10])
    np.testing.assert_allclose(log_expit(z), special.log_expit(z), rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_scores(dtype):
    Z = np.random.default_rng(0).normal(size=(20, 7)) * 10
    Z[0, 2], Z[1], Z[2, 0], Z[3] = -np.inf, 1e4, 1e4, -1e4
    Z = Z.astype(dtype)
    eps = np.finfo(dtype).eps
    for ours, theirs in ((softmax, special.softmax), (log_softmax, special.log_softmax)):
        found = ours(Z)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, theirs(Z, axis=1), rtol=20 * eps, atol=eps)
