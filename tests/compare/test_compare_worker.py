"""What runs a solver's fits for `sparsekit compare`: it answers when its threads are at rest."""

import numpy as np
import pytest

from sparsekit._compare import worker


class Process:
    """Stands for `time` in a process whose threads spin until a moment."""

    def __init__(self, until):
        self.until, self.now, self.used = until, 0.0, 0.0

    def monotonic(self):
        return self.now

    def process_time(self):
        return self.used

    def sleep(self, seconds):
        self.used += max(0.0, min(self.now + seconds, self.until) - self.now)
        self.now += seconds


@pytest.mark.parametrize("until", [0.0, 0.1, 0.2])
def test_waits_as_long_as_threads_spin(monkeypatch, until):
    process = Process(until)
    monkeypatch.setattr(worker, "time", process)
    worker.wait_for_rest()
    assert until <= process.now <= until + 2 * worker.QUIET[0] + 1e-9


def test_ends_within_its_limit(monkeypatch):
    process = Process(np.inf)
    monkeypatch.setattr(worker, "time", process)
    worker.wait_for_rest()
    assert process.now == pytest.approx(worker.QUIET_LIMIT, abs=worker.QUIET[0])
