"""Runs the tasks of a part, each in a process with a limit, and writes one JSON line as each ends.

A fault of a device ends the process that it happens in: every later call there fails. So tasks share none.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

# from the worst: a part has the worst status of its tasks
STATUSES = ("failed", "timeout", "ok", "skipped")
MOST_AT_ONCE = 8
KILL_LIMIT = 10  # seconds that a killed process has to end
LOG_TAIL = 1500  # letters of a log that stand in the line of a task that failed
DRY_RUN_LIMITS = 4  # times those of a device: there, other tests may take the processors


class Lines:
    """JSON lines, printed and appended to ``on_device.jsonl`` at once; logs go to ``on_device.log``."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.log = folder / "on_device.jsonl", folder / "on_device.log"

    def write(self, **fields):
        """One line."""
        text = json.dumps(fields)
        print(text, flush=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")

    def write_log(self, title, text):
        """What a task printed."""
        with self.log.open("a", encoding="utf-8") as stream:
            stream.write(f"== {title}\n{text}\n")


def _end(process):
    """Kill a process and those that it started; whether it ended."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(KILL_LIMIT)
    except subprocess.TimeoutExpired:
        return False
    return True


def _tail(text):
    return text.strip()[-LOG_TAIL:]


def run_task(part, task, options, limit, threads):
    """Fields of the line of a task, and its log; ``limit`` in seconds, ``threads`` of the CPU or None."""
    env = dict(os.environ)
    if threads is not None:
        env.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), OMP_WAIT_POLICY="PASSIVE")
    with tempfile.TemporaryDirectory(prefix="on-device-") as folder:
        result, log = Path(folder, "result.json"), Path(folder, "log")
        given = json.dumps(asdict(options))
        child = [sys.executable, "-P", "-m", "on_device.task", part, task, given, result]
        start = time.perf_counter()
        with log.open("wb") as stream:
            process = subprocess.Popen(
                child, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=env, process_group=0
            )
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
                ended = _end(process)
        seconds = round(time.perf_counter() - start, 2)
        text = log.read_text(encoding="utf-8", errors="replace")
        if status is None:
            error = f"ran over its limit of {limit:.1f} s" + ("" if ended else " and could not be killed")
            fields = {"status": "timeout", "error": f"{error}; last output: {_tail(text)}"}
        elif status or not result.exists():  # a fault may end a process after its result, too
            fields = {"status": "failed", "error": f"ended with status {status}: {_tail(text)}"}
        else:
            fields = json.loads(result.read_text(encoding="utf-8"))
    return {"seconds": seconds, **fields}, text


def run_part(name, options, lines, *, only_task, left, share, task_limit, at_once):
    """Run a part's tasks for its ``share`` of the seconds ``left``, write their lines and its own.

    Returns its status.
    """
    start = time.monotonic()
    try:
        part = importlib.import_module(f"on_device.{name}")
        tasks = [task for task in part.tasks(options) if only_task in (None, task)]
    except Exception as error:  # such as a package that cannot be imported: the other parts say what works
        lines.write(part=name, status="failed", error=f"{type(error).__name__}: {error}")
        return "failed"
    if not tasks:
        lines.write(part=name, status="skipped", reason=f"it has no task {only_task!r}")
        return "skipped"
    patience = options.size(1, DRY_RUN_LIMITS)
    deadline = start + left * min(1.0, patience * share)
    together = part.AT_ONCE or options.dry_run  # in which no time means anything
    threads = max(1, len(os.sched_getaffinity(0)) // at_once) if together else None

    def run(task):
        left = deadline - time.monotonic()
        if left <= 0:
            return {"status": "timeout", "error": "not started: the time of its part was over"}, ""
        return run_task(name, task, options, min(left, patience * part.TASK_LIMIT, task_limit), threads)

    found = {}
    with ThreadPoolExecutor(at_once if together else 1) as pool:
        futures = {pool.submit(run, task): task for task in tasks}
        for future in as_completed(futures):
            task = futures[future]
            fields, text = future.result(0)
            found[task] = fields["status"]
            lines.write(part=name, task=task, **fields)
            lines.write_log(f"{name}: {task}", text)
    status = next(status for status in STATUSES if status in found.values())
    lines.write(
        part=name,
        status=status,
        seconds=round(time.monotonic() - start, 1),
        tasks=len(found),
        **{s: sorted(t for t in found if found[t] == s) for s in ("failed", "timeout", "skipped")},
    )
    return status
