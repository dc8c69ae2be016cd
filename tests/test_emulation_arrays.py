"""The stand-in for CuPy is as strict as CuPy."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def emulated(cupy):
    if not hasattr(cupy, "emulation"):
        pytest.skip("a GPU is there: the stand-in for CuPy is not used")
    return cupy.emulation


def test_numpy_gets_an_array_only_by_get(cupy):
    x = cupy.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        np.asarray(x)
    assert x.get().tolist() == [1.0, 2.0]
