"""A child of a fork does what its parent does, also after the parent has used threads; it never hangs."""

import multiprocessing
import os
import sys
from pathlib import Path

import pytest
from children import run_limited

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork"
)

SCRIPT = Path(__file__).resolve().parent / "forked.py"
ALSO = ["L1LogisticOBA, CSR", "sparsemax", "FactorGraph"]


def outcomes(what, folder):
    """What the script says of each case."""
    # -P: its folder is not on the path; threads for BLAS where the processes of the tests have one
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = run_limited([sys.executable, "-P", "-W", "ignore", SCRIPT, what], cwd=folder, env=env, timeout=240)
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())


def test_child_of_a_fork(tmp_path):
    """Every case in a child of a fork, some in a thread of that child and in a process of multiprocessing."""
    found = outcomes("cases", tmp_path)
    assert (
        len(found) > 25
        and {f"{name} ({how})" for name in ALSO for how in ("thread", "process")} < found.keys()
    )
    assert found == dict.fromkeys(found, "same")


def test_processes_of_joblib(tmp_path):
    assert outcomes("joblib", tmp_path) == dict.fromkeys([f"{name} (joblib)" for name in ALSO], "same")


def test_lock_of_a_graph_that_another_thread_solves(tmp_path):
    assert outcomes("asked", tmp_path) == {"a factor that is asked": "same"}
