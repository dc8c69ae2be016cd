"""The dry run of the script that checks a device: every part reports, and so does what fails."""

import ast
import ctypes
import json
import os
import shutil
import subprocess
import sys
import zipfile

import emulation
import pytest
from children import run_limited
from gpu_sources import FILES
from on_device import driver_calls, parity
from on_device.__main__ import PARTS, parse
from on_device.options import GPU_TESTS

SCRIPT = GPU_TESTS / "on_device.sh"


@pytest.fixture
def dry_run(tmp_path):
    """``dry_run(*options)`` returns the status of the script and its JSON lines."""
    emulation.cuda_build()  # skips where kernels cannot be emulated
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")

    def run(*options, python=sys.executable, limit=280, package=("--installed",)):
        command = ["bash", SCRIPT, *package, "--dry-run", "--out", tmp_path, *options]
        done = run_limited(command, timeout=limit, env={**os.environ, "PYTHON": python}, cwd=tmp_path)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert lines, done.stderr
        if (tmp_path / "on_device.jsonl").exists():
            assert (tmp_path / "on_device.jsonl").read_text(encoding="utf-8") == done.stdout
        return done.returncode, lines

    return run


def of_part(lines, name):
    """The lines of a part's tasks by the task, and the part's own."""
    tasks = {line["task"]: line for line in lines if line.get("part") == name and "task" in line}
    (part,) = [line for line in lines if line.get("part") == name and "task" not in line]
    return tasks, part


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_every_part_reports(dry_run):
    status, lines = dry_run(limit=550)
    assert lines[-1]["summary"] == "ok", lines
    assert status == 0
    assert list(lines[-1]["parts"]) == list(PARTS)
    for name in PARTS:
        tasks, part = of_part(lines, name)
        assert part["status"] in ("ok", "skipped") and part["tasks"] == len(tasks) > 0
        for task in tasks.values():
            assert task["status"] == "ok" or (task["status"] == "skipped" and task["reason"])
    assert all(fit["differ"] == 0 for fit in of_part(lines, "fits")[0].values())
    assert all(fit["waits"] > 0 and fit["launches"] > 0 for fit in of_part(lines, "waits")[0].values())
    assert {part for part, status in lines[-1]["parts"].items() if status == "skipped"} == {"sanitizer"}


def test_a_failure_is_reported_and_stops_nothing(dry_run):
    status, lines = dry_run("--only", "sparsemax", "waits", "--widths", "0", "100", "--task", "K=0")
    assert status == 1
    tasks, part = of_part(lines, "sparsemax")
    assert tasks["K=0"]["status"] == part["status"] == "failed"
    assert part["failed"] == ["K=0"]
    assert "ValueError: a row has at least 1 score; got K=0" in tasks["K=0"]["error"]
    assert lines[-2] == {"part": "waits", "status": "skipped", "reason": "it has no task 'K=0'"}
    assert lines[-1]["summary"] == "failed"
    assert lines[-1]["parts"] == {"sparsemax": "failed", "waits": "skipped"}


def test_a_task_over_its_limit_is_reported(dry_run):
    status, lines = dry_run("--only", "environment", "--task", "versions", "--task-limit", "0.01")
    assert status == 1
    tasks, part = of_part(lines, "environment")
    assert tasks["versions"]["status"] == part["status"] == "timeout"
    assert "ran over its limit of 0.0 s" in tasks["versions"]["error"]
    assert part["timeout"] == ["versions"]
    assert lines[-1]["parts"] == {"environment": "timeout"}


def test_tasks_that_no_time_is_left_for_are_named(dry_run):
    assert sum(PARTS.values()) <= parse([]).limit
    status, lines = dry_run("--only", "environment", "sanitizer", "--limit", "0")
    assert status == 1
    assert lines[-1]["parts"] == {"environment": "timeout", "sanitizer": "timeout"}
    tasks, _ = of_part(lines, "environment")
    assert {task["error"] for task in tasks.values()} == {"not started: the time of its part was over"}


def test_what_a_sanitizer_finds_is_reported(dry_run, tmp_path):
    tool = tmp_path / "sanitizer"
    tool.write_text(
        "#!/usr/bin/env bash\n"
        'case "$*" in\n'
        '*"--tool memcheck"*) echo "========= Invalid __global__ write"\n'
        '    echo "========= ERROR SUMMARY: 1 error"; exit 86 ;;\n'
        '*) shift 4; "$@"; status=$?\n'
        '    echo "========= RACECHECK SUMMARY: 0 hazards displayed"; exit "$status" ;;\n'
        "esac\n",
        encoding="utf-8",
    )
    tool.chmod(0o755)
    status, lines = dry_run("--only", "sanitizer", "--sanitizer", tool)
    assert status == 1
    tasks, part = of_part(lines, "sanitizer")
    assert part["failed"] == ["memcheck fenchel_young/sparsemax"]
    assert "ERROR SUMMARY: 1 error" in tasks["memcheck fenchel_young/sparsemax"]["error"]
    assert "Invalid __global__ write" in tasks["memcheck fenchel_young/sparsemax"]["error"]
    raced = tasks["racecheck fenchel_young/sparsemax"]
    assert raced["status"] == "ok" and raced["passed"] == 1
    assert raced["said"] == ["RACECHECK SUMMARY: 0 hazards displayed"]


def test_without_a_python_the_script_says_so(dry_run):
    status, lines = dry_run(python="no-such-python")
    assert status == 2
    assert lines == [{"summary": "failed", "error": "no Python 3.11 to 3.14 found; set PYTHON"}]


def test_the_package_is_that_of_the_folder_of_wheels(dry_run, tmp_path):
    pytest.importorskip("pip")
    with zipfile.ZipFile(tmp_path / "sparsekit-99-py3-none-any.whl", "w") as wheel:
        for name, text in {
            "METADATA": "Metadata-Version: 2.1\nName: sparsekit\nVersion: 99\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }.items():
            wheel.writestr(f"sparsekit-99.dist-info/{name}", text)
    given = ("--only", "environment", "--task", "versions")
    status, lines = dry_run(*given, package=("--wheels", tmp_path))
    assert status == 0 and "sparsekit 99" in lines[0]["packages"]


def test_every_source_has_a_check_that_exists():
    assert set(FILES) <= set(parity.CHECKS)
    for name in parity.CHECKS.values():
        file, function = name.split("::")
        tree = ast.parse((GPU_TESTS / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


CUPTI = """
#include <stdint.h>
typedef void (*Callback)(void *, int, uint32_t, const void *);
static Callback callback;
static const char *names[] = {
    "", "cuLaunchKernel", "cuStreamSynchronize_ptsz", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoH_v2"};
extern "C" int cuptiSubscribe(void **subscriber, Callback given, void *)
{
    callback = given;
    *subscriber = &callback;
    return 0;
}
extern "C" int cuptiEnableDomain(uint32_t enable, void *subscriber, int domain)
{
    return enable == 1 && subscriber == &callback && domain == 1 ? 0 : 2;
}
extern "C" int cuptiUnsubscribe(void *subscriber) { return subscriber == &callback ? 0 : 2; }
extern "C" int cuptiGetCallbackName(int, uint32_t number, const char **name)
{
    *name = names[number];
    return 0;
}
extern "C" void call_driver(uint32_t number)
{
    for (int site = 0; site < 2; site++) callback(0, 1, number, &site);
}
"""


def test_driver_calls_are_counted(tmp_path):
    compiler = emulation.cuda_build().compiler()
    source, library = tmp_path / "cupti.cpp", tmp_path / "libcupti.so"
    source.write_text(CUPTI, encoding="utf-8")
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    with driver_calls.driver_calls(library) as calls:
        driver = ctypes.CDLL(str(library))
        for number in (1, 1, 1, 2, 2, 3, 4):
            driver.call_driver(number)
    assert calls == {
        "cuLaunchKernel": 3, "cuStreamSynchronize": 2, "cuMemcpyDtoHAsync_v2": 1, "cuMemcpyDtoH_v2": 1
    }  # fmt: skip
    counts = {"waits": 3, "launches": 3, "copies_to_host": 2, "driver_calls": 7}
    assert driver_calls.summarize(calls) == counts
