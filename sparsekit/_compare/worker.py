"""Running one solver's fits in a process of its own that can be stopped.

Compiled solvers cannot be interrupted from Python, and some settings never end (a tolerance below what
the solver's arithmetic reaches). Each solver therefore gets its own process, which is killed when a fit
overruns its time. Until then, imports, compiled code and data stay loaded in it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
import warnings
from dataclasses import dataclass, field

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from .tables import DataError

# Seconds after a fit until idle threads of OpenMP and BLAS no longer spin, which takes 0.1 to 0.2: the next
# fit would share the cores with them, and ten times its time was seen.
REST = 0.2
# Seconds for a process that closed its pipe to end.
EXIT_TIME = 5.0


@dataclass
class Outcome:
    """What became of one fit: the answer or the error, or neither if it was cut off."""

    fit: object = None
    seconds: float = float("nan")
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    cut_off: bool = False


def timed_fit(solver, X, problem, C, tol, n_threads):
    """Time one call of a solver with that many threads; whatever it raises or warns is kept as text."""
    out = Outcome()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(n_threads):
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            out.fit = solver.fit(X, problem, C, tol, n_threads)
        except Exception as error:  # a peer may raise anything; it becomes that peer's line in the table
            out.error = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        out.seconds = time.perf_counter() - start
    out.warnings = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    return out


class Isolated:
    """Runs a solver in a process of its own, killed when a fit takes longer than it may."""

    def __init__(self, solver):
        self.solver = solver
        self._process = None
        self._forget()

    def _forget(self):
        self.problem = None
        self.warm = set()

    def load(self, problem):
        """Start the process if need be and give it the data, by a file: a pipe would take two more copies."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self.solver), daemon=True)
            _start(process)
            self._process = process
            theirs.close()
        with tempfile.TemporaryDirectory(prefix="sparsekit-") as folder:
            path = os.path.join(folder, "problem.joblib")
            try:
                joblib.dump(problem.training_part(), path)
            except OSError as error:
                self.close()
                raise DataError(f"no room for the data in {folder} ({error}); set TMPDIR") from None
            out = self._ask(path, None)
        if out.error:
            raise RuntimeError(f"{self.solver.title}: {out.error}")
        self.problem = problem

    def fit(self, C, tol, n_threads, timeout):
        """Outcome of one fit; after a cut-off the process is gone and `load` starts another."""
        return self._ask((C, tol, n_threads), timeout)

    def _ask(self, message, timeout):
        try:
            self._pipe.send(message)
            if self._pipe.poll(timeout):
                return self._pipe.recv()
        except (EOFError, OSError):  # a broken pipe has several names on Windows
            self._process.join(EXIT_TIME)  # its own status, and not that of being killed
            status = self._process.exitcode
            self.close()
            return Outcome(error=f"its process ended with exit status {status}")
        self.close()
        return Outcome(cut_off=True, seconds=float(timeout))

    def close(self):
        """Kill the process, which also ends a fit that is running."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None
        self._forget()


def _start(process):
    """Start a process that imports nothing from the working directory, nor does its resource tracker."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        process.start()
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _serve(pipe, solver):
    """Loop of the process: the file of a problem, or a fit, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which kills this process
    os.dup2(2, 1)  # what a solver prints is no part of the tables
    X = problem = None
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        if isinstance(request, str):
            X = problem = None  # one problem at a time is in memory
            problem = joblib.load(request)
            with contextlib.suppress(OSError):  # an open file, on Windows; the parent removes it too
                os.unlink(request)
            X = solver.design(problem)
            if isinstance(X, np.ndarray):
                problem.X = X  # not twice in memory
            answer = Outcome()
        else:
            answer = timed_fit(solver, X, problem, *request)
            if request[-1] > 1:
                time.sleep(REST)
        pipe.send(answer)
