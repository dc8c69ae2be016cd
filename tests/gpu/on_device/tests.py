"""All other tests of ``tests/gpu`` that need a device, a file a task, for as long as there is time."""

from __future__ import annotations

from .options import GPU_TESTS, Skipped
from .pytest_cases import run_tests

TASK_LIMIT, LIMIT, AT_ONCE = 300, 300, True
# they read sources and run compilers: no device has a part in them
WITHOUT_DEVICE = {"test_gpu_compile.py", "test_gpu_on_device.py"}


def tasks(options):
    if options.dry_run:
        return ["all"]
    return sorted({path.name for path in GPU_TESTS.glob("test_*.py")} - WITHOUT_DEVICE)


def run(task, options):
    if options.dry_run:
        raise Skipped("a dry run leaves them to the test suite")
    return run_tests([task], options)
