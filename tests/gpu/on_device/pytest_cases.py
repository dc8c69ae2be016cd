"""Runs tests of ``tests/gpu`` in this process and counts what they say."""

from __future__ import annotations

import os

from .options import CHECKOUT, GPU_TESTS, Skipped


class _Watcher:
    """pytest plugin: keeps some cases of each test, counts outcomes, and gives arrays memory of their own."""

    def __init__(self, cases, check_memory):
        self.cases, self.check_memory = cases, check_memory
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures, self.reasons = [], []

    def pytest_configure(self, config):
        if self.check_memory:
            import cupy

            cupy.cuda.set_allocator(None)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-600:]}")
            self.counts["failed"] += 1

    def pytest_collection_modifyitems(self, config, items):
        groups = {}
        for item in items:
            groups.setdefault((item.path, item.originalname), []).append(item)
        # spread over a test's parameters, the first and the last among them
        kept = [
            group[k * (len(group) - 1) // max(self.cases - 1, 1)]
            for group in groups.values()
            for k in range(self.cases)
        ]
        items[:] = dict.fromkeys(kept)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.outcome == "failed":
            self.failures.append(f"{report.nodeid.split('/')[-1]}: {report.longreprtext[-600:]}")
        elif report.outcome == "skipped":
            self.reasons.append(report.longreprtext[-200:])


def run_tests(names, options, cases):
    """Counts of the tests ``names`` of tests/gpu, at most ``cases`` of each; AssertionError where one fails.

    Names are as pytest's: "file.py::function" or "file.py".
    """
    import pytest

    os.environ["SPARSEKIT_TEST_GPU"] = "emulated" if options.dry_run else "device"
    watcher = _Watcher(cases, options.check_memory)
    # each of these processes is one of several
    settings = ["-q", "-n", "0", "--thorough=all", "-p", "no:cacheprovider", "--rootdir", str(CHECKOUT)]
    status = pytest.main([*settings, *(str(GPU_TESTS / name) for name in names)], plugins=[watcher])
    if watcher.failures:
        first = watcher.failures[0]
        raise AssertionError(f"{watcher.counts['failed']} of {sum(watcher.counts.values())}: {first}")
    if status != pytest.ExitCode.OK:
        raise AssertionError(f"pytest ended with {pytest.ExitCode(status).name}")
    if not watcher.counts["passed"]:
        raise Skipped(watcher.reasons[0])
    return watcher.counts
