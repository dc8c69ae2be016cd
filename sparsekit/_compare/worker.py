"""Running one solver's fits, in this process or in one of its own that can be stopped.

Compiled solvers cannot be interrupted from Python, and some settings never end (a tolerance below what
the solver's arithmetic reaches). Each solver therefore gets its own process, which is killed when a fit
overruns its time. Until then, imports, compiled code and data stay loaded in it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass, field

from threadpoolctl import threadpool_limits

START = "from sparsekit._compare.worker import main; main()"
# Seconds of one wait: on Windows Ctrl-C does not end a longer one.
POLL = 0.5
# Threads are at rest if they take less than this part of the processor in so many seconds.
QUIET = 0.005, 0.1
# Seconds to wait for that: threads of OpenMP and BLAS spin for 0.1 to 0.2.
QUIET_LIMIT = 1.0
# Seconds for a process that closed its pipe to end.
EXIT_TIME = 5.0


@dataclass
class Outcome:
    """What became of one fit: the answer or the error, or neither if it was cut off or not begun."""

    fit: object = None
    seconds: float = float("nan")
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    cut_off: bool = False
    over_budget: bool = False


def timed_fit(solver, data, C, settings, fit_intercept, n_threads):
    """Time one call of a solver with that many threads; whatever it raises or warns is kept as text."""
    X, y = data
    out = Outcome()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(n_threads):
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            out.fit = solver.fit(X, y, C, fit_intercept=fit_intercept, n_threads=n_threads, **settings)
        except Exception as error:  # a peer may raise anything; it becomes that peer's line in the table
            out.error = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        out.seconds = time.perf_counter() - start
    out.warnings = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
    return out


def wait_for_rest():
    """Wait until this process's threads no longer spin.

    Thread pools wait for the next parallel region in a busy loop for a while. Whoever is timed next would
    share the cores with them: ten times slower was seen, on a fit of 10 ms.
    """
    end = time.monotonic() + QUIET_LIMIT
    seconds, share = QUIET
    while time.monotonic() < end:
        start, used = time.monotonic(), time.process_time()
        time.sleep(seconds)
        if time.process_time() - used <= share * (time.monotonic() - start):
            return


class Local:
    """Runs a solver in this process; a time limit cannot be kept."""

    def __init__(self, solver):
        self.solver = solver
        self.problem = None
        self.warm = set()

    def load(self, problem, timeout=None):
        """Prepare the data of a problem; True."""
        self.problem, self._data = problem, self.solver.data(problem)
        return True

    def fit(self, C, settings, n_threads, timeout):
        """Outcome of one fit."""
        out = timed_fit(self.solver, self._data, C, settings, self.problem.fit_intercept, n_threads)
        wait_for_rest()
        return out

    def close(self):
        """Nothing to stop."""


class Isolated:
    """Runs a solver in a process of its own, killed when a fit takes longer than it may.

    Parameters
    ----------
    solver : Solver
        Named to the process by module and class.
    """

    def __init__(self, solver):
        self.solver = solver
        self._process = None
        self._forget()

    def _forget(self):
        self.problem = None
        self.warm = set()

    def load(self, problem, timeout=None):
        """Start the process if need be and send it the data; whether that was done in time."""
        if self._process is None:
            # -P: a checkout that happens to be the working directory must not hide the installed package
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # where the shell closed it, another pipe would take its number
                stderr=subprocess.DEVNULL if sys.__stderr__ is None else None,
            )
            self._answers = queue.Queue()
            self._reader = threading.Thread(
                target=_read_answers, args=(self._process.stdout, self._answers), daemon=True
            )
            self._reader.start()
        cls = type(self.solver)
        answer = self._ask(("load", cls.__module__, cls.__qualname__, problem.training_part()), timeout)
        if isinstance(answer, Outcome):
            if answer.cut_off:
                return False
            raise RuntimeError(f"{self.solver.title}: {answer.error}")
        self.problem = problem
        return True

    def fit(self, C, settings, n_threads, timeout):
        """Outcome of one fit; after a cut-off the process is gone and `load` starts another."""
        return self._ask(("fit", C, settings, n_threads), timeout)

    def _ask(self, message, timeout):
        process = self._process
        try:
            pickle.dump(message, process.stdin, protocol=5)
            process.stdin.flush()
            answer = self._answer(timeout)
        except (EOFError, OSError):  # a broken pipe has several names on Windows
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(EXIT_TIME)  # its own status, and not that of being killed
            self.close()
            return Outcome(error=f"its process ended with exit status {process.returncode}")
        except queue.Empty:
            self.close()
            return Outcome(cut_off=True, seconds=float(timeout))
        return answer

    def _answer(self, timeout):
        """The next answer, or raise what reading it raised, or `queue.Empty` after ``timeout`` seconds."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            try:
                answer, error = self._answers.get(timeout=min(left, POLL))
            except queue.Empty:
                if left <= POLL:
                    raise
                continue
            if error is not None:
                raise error
            return answer

    def close(self):
        """Kill the process, which also ends a fit that is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            # the pipe may hold unsent bytes of a message without a reader
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            # the other pipe is the reader's to close: a child of the solver's may hold it open still
            self._reader.join(EXIT_TIME)
        self._process = None
        self._forget()


def _read_answers(stream, answers):
    """Put each answer, or the error that ended the reading, into the queue. Runs in a thread, since `select`
    does not wait for pipes on Windows.
    """
    with stream:
        while True:
            try:
                answers.put((pickle.load(stream), None))
            except pickle.UnpicklingError:  # the process ended within an answer
                answers.put((None, EOFError()))
                return
            except Exception as error:  # raised where the answer is awaited
                answers.put((None, error))
                return


def main():
    """Loop of the process: read requests on stdin, answer on what was stdout, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which kills this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a solver that prints must not disturb the answers
    solver = data = fit_intercept = None
    while True:
        try:
            request, *content = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if request == "load":
            module, name, problem = content
            solver = getattr(importlib.import_module(module), name)()
            data, fit_intercept = solver.data(problem), problem.fit_intercept
            del problem, content
            answer = None
        else:
            C, settings, n_threads = content
            answer = timed_fit(solver, data, C, settings, fit_intercept, n_threads)
            wait_for_rest()
        pickle.dump(answer, answers, protocol=5)
        answers.flush()
