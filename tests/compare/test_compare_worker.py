"""What runs a solver's fits for `sparsekit compare`: it answers when its threads are at rest."""

import multiprocessing
import os
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from children import run_limited

from sparsekit._compare import worker
from sparsekit._compare.peers import Liblinear
from sparsekit._compare.problem import Problem
from sparsekit._compare.tables import DataError


def test_a_fit_ends_before_the_wait(monkeypatch, tmp_path):
    """The wait is no part of the time of the fit, and comes behind it."""
    order = []
    solver = SimpleNamespace(
        design=lambda problem: None,
        fit=lambda *args, **settings: order.append("fit") or "fitted",
    )
    joblib.dump("a problem", tmp_path / "problem.joblib")
    requests = [str(tmp_path / "problem.joblib"), (1.0, 0.1, 1), (1.0, 0.1, 2)]

    class Pipe:
        def recv(self):
            if not requests:
                raise EOFError
            return requests.pop(0)

        def send(self, answer):
            order.append(answer.fit)

    monkeypatch.setattr(worker.signal, "signal", lambda *args: None)
    monkeypatch.setattr(worker.os, "dup2", lambda *args: None)
    monkeypatch.setattr(worker.time, "sleep", lambda seconds: order.append("wait"))
    worker._serve(Pipe(), solver)
    assert order == [None, "fit", "fitted", "fit", "wait", "fitted"]


def test_a_process_that_does_not_start_can_be_closed(monkeypatch):
    def refuse(process):
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", refuse)
    isolated = worker.Isolated(SimpleNamespace(title="a solver"))
    with pytest.raises(BlockingIOError):
        isolated.load(None)
    isolated.close()


def test_a_full_disk_is_no_traceback(monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker.joblib, "dump", refuse)
    isolated = worker.Isolated(Liblinear())
    X = np.eye(4)
    with pytest.raises(DataError, match=r"No space left.*TMPDIR"):
        isolated.load(Problem("small", X, np.where(X[:, 0] > 0, 1.0, -1.0)))
    assert isolated._process is None


PROBE = """
import os
from sparsekit._compare.peers import Liblinear
from sparsekit._compare.problem import Problem
from sparsekit._compare.worker import Isolated
import numpy as np

if __name__ == "__main__":
    before = dict(os.environ)
    isolated = Isolated(Liblinear())
    X = np.random.default_rng(0).standard_normal((20, 3))
    isolated.load(Problem("small", X, np.where(X[:, 0] > 0, 1.0, -1.0)))
    print(isolated.fit(1.0, 0.1, 1, 60).error or "fitted")
    isolated.close()
    assert dict(os.environ) == before
"""


def test_files_of_the_working_directory_are_not_run(tmp_path):
    """Neither by a solver's process nor by the resource tracker, which import these modules."""
    script, folder = tmp_path / "probe.py", tmp_path / "cwd"
    script.write_text(PROBE)
    folder.mkdir()
    for name in ("pickle", "socket", "signal", "multiprocessing", "numpy", "sparsekit"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'a').write({name!r})")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = run_limited([sys.executable, script], timeout=120, cwd=folder, env=environment)
    assert (done.returncode, done.stdout) == (0, "fitted\n"), done.stderr
    assert not (tmp_path / "run").exists(), (tmp_path / "run").read_text()
