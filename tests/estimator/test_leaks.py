"""Memory does not grow with the number of fits: each estimator in a process of its own.

Some hundred fits here; ``SPARSEKIT_LEAK_FITS=10000 pytest tests/estimator/test_leaks.py`` takes half an hour.
"""

import json
import os
import sys
from pathlib import Path

import leaks
import pytest
from children import run_limited

import sparsekit

FITS = int(os.environ.get("SPARSEKIT_LEAK_FITS", "200"))
# as much as 10^4 fits may take; of 200, what a fit loses is seen from 5 kB on
MOST = 2**20

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc, which is not here"
)


def test_every_estimator_is_tested():
    estimators = {name for name in sparsekit.__all__ if hasattr(getattr(sparsekit, name), "get_params")}
    assert leaks.cases().keys() == estimators


@pytest.mark.timeout(120 + FITS)
@pytest.mark.parametrize("name", leaks.cases())
@pytest.mark.thorough(keep=1)
def test_memory_stays_as_it_is(name):
    command = [sys.executable, Path(leaks.__file__), name, FITS]
    done = run_limited(command, timeout=100 + FITS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["fits"] == FITS and found["grew"] < MOST, found
