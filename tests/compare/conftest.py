"""Fixtures of the tests of comparisons."""

import numpy as np
import pytest
from compare_problems import InThisProcess
from sklearn.datasets import dump_svmlight_file

from sparsekit._compare import engine


@pytest.fixture
def one_process(monkeypatch):
    """Solvers run in this process: those that tests make up can't be imported by others."""
    monkeypatch.setattr(engine, "Isolated", InThisProcess)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(120) > 0, 1, -1)
    path = tmp_path / "mine.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return path
