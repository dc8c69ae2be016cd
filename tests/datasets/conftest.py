"""Fixtures of the tests of data sets."""

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_files import packed

from sparsekit.datasets import write_csr


@pytest.fixture
def write(tmp_path):
    """``write(name, text)`` makes a file, packed as its ending says."""
    return lambda name, text: packed(tmp_path, name, text)


@pytest.fixture
def X():
    """With rows and a whole stretch of rows that hold nothing."""
    X = sp.random_array((300, 40), density=0.1, rng=0, format="csr").tolil()
    X[[0, 7, 299]] = 0
    X[100:180] = 0
    return sp.csr_array(X)


@pytest.fixture
def folder(X, tmp_path):
    return write_csr(tmp_path / "folder", X, np.arange(300) % 7, block_bytes=2000)
