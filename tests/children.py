"""Processes that tests start: each wait for one has a limit, and a hang ends with a message."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading

import pytest

# pytest may have been started with SIGINT ignored (nohup, a job runner, the background of a script), which a
# new interpreter keeps
INTERRUPTIBLE = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "pthread_sigmask"):  # not on Windows
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
"""


def _kill(process):
    """The process and what it started, which may hold its pipes open."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def run_limited(command, *, timeout, stdout=subprocess.PIPE, **options):
    """As ``subprocess.run`` with text captured; one that takes too long fails the test."""
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        **options,
    )
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        out, errors = process.communicate(timeout=30)
        said = f"{(out or '')[-2000:]}\n{errors[-2000:]}"
        pytest.fail(f"child not done after {timeout} s: {command[0]} ...\n{said}", pytrace=False)
    except BaseException:  # a key was pressed, or the test's own limit is over
        _kill(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


class Talk:
    """A new interpreter that runs ``code`` and speaks line by line; it does not outlive the block."""

    def __init__(self, code, *args, **options):
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", INTERRUPTIBLE + code, *map(str, args)],
            stdout=subprocess.PIPE,
            start_new_session=True,
            **options,
        )
        # a thread, since Windows has no other way to wait for a pipe with a limit
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.process.stdout as stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _kill(self.process)
        self.process.wait(timeout=30)
        self._reader.join(30)

    def line(self, limit):
        """The next line that it prints, within ``limit`` seconds."""
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            pytest.fail(f"child printed no line within {limit} s", pytrace=False)
        if line is None or not line.endswith(b"\n"):
            status = self.process.wait(timeout=30)
            pytest.fail(f"child ended with status {status} after {line or b''!r}", pytrace=False)
        return line.decode().strip()

    def status(self, limit):
        """Its exit status, within ``limit`` seconds."""
        try:
            return self.process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            pytest.fail(f"child still runs after {limit} s", pytrace=False)
