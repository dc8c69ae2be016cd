"""compute-sanitizer's memcheck and racecheck over the tests of kernels with shared memory or atomics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from . import parity
from .options import Skipped

TASK_LIMIT, AT_ONCE = 70, True
FOUND_ERRORS = 86  # exit status that stands for what the tool found
TRIAL = "import cupy; assert int(cupy.arange(3).sum()) == 3"
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: .*")


def _shared_or_atomic():
    """Sources with shared memory or atomics, those with most barriers and atomics first."""
    import gpu_sources

    found = {file: len(re.findall("__syncthreads|__syncwarp|atomic", gpu_sources.own_text(file)))
             for file in gpu_sources.FILES}  # fmt: skip
    shared = [file for file in found if re.search("__shared__|atomic", gpu_sources.own_text(file))]
    return sorted(shared, key=lambda file: -found[file])


def tasks(options):
    try:
        _program(options)
    except Skipped:
        return ["all"]
    files = _shared_or_atomic()
    if options.dry_run:
        files = [file for file in files if file in parity.IN_DRY_RUN][:1]
    return [f"{tool} {file}" for file in files for tool in ("racecheck", "memcheck")]


def _program(options):
    if options.dry_run and options.sanitizer is None:
        raise Skipped("a dry run launches nothing on a device; the emulation checks bounds and barriers")
    name = options.sanitizer or "compute-sanitizer"
    program = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if program is None:
        raise Skipped(f"{name} is not installed")
    return program


def _run(command):
    # the task has a shorter limit on a device; a dry run has more patience
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, timeout=10 * TASK_LIMIT, **output)


def run(task, options):
    """The test of the task's source under the tool; AssertionError with what the tool found."""
    program = _program(options)
    tool, file = task.split()
    # calls of the driver that fail on purpose are no fault of a kernel
    quiet = ["--report-api-errors", "no"] if tool == "memcheck" else []
    command = [program, "--tool", tool, *quiet, "--error-exitcode", str(FOUND_ERRORS), sys.executable]
    with tempfile.TemporaryDirectory(prefix="sanitizer-") as folder:
        result = Path(folder, "result.json")
        arguments = json.dumps(asdict(replace(options, check_memory=not options.dry_run)))
        done = _run([*command, "-P", "-m", "on_device.task", "parity", file, arguments, str(result)])
        print(done.stdout)
        fields = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    if done.returncode == FOUND_ERRORS:
        first = max(done.stdout.find("========="), 0)
        raise AssertionError(f"{SUMMARY.findall(done.stdout)[-1:]}: {done.stdout[first:][:1200]}")
    if fields.get("status") == "ok" and not done.returncode:
        return {**fields, "said": SUMMARY.findall(done.stdout)[-1:]}
    trial = _run([*command, "-P", "-c", TRIAL])
    if trial.returncode and not options.dry_run:
        raise Skipped(f"{program} does not work here: {trial.stdout[-600:]}")
    raise AssertionError(f"the test fails under {tool}: {fields.get('error', done.stdout[-600:])}")
