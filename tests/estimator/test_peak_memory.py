"""A fit adds at most 2.5 times the memory of X, on data of rcv1's shape; real sets: benchmarks."""

import json
import os
import sys
from pathlib import Path

import peak
import pytest
from children import run_limited

MOST = 2.5


def high_water_mark_can_be_reset():
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
            reset.write("5")
    except OSError:
        return False
    return True


@pytest.mark.skipif(
    not high_water_mark_can_be_reset(), reason="peak memory is read from /proc, which is not here"
)
@pytest.mark.parametrize("name", peak.MODELS)
@pytest.mark.thorough(keep=2)
def test_a_fit_adds_little_to_x(name):
    command = [sys.executable, "-P", Path(peak.__file__), name]
    done = run_limited(command, timeout=240, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["X"] > 15e6 and 0.0 < found["times"] <= MOST, found
