"""The process of one task: ``python -m on_device.task PART TASK OPTIONS RESULT``.

Writes the task's fields to the file RESULT: status "ok", "failed" or "skipped", and what the task found.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import signal
import sys
import traceback
from pathlib import Path

from .options import Options, Skipped

PR_SET_PDEATHSIG = 1


def _end_with_parent():
    """A task does not outlive the process that started it, which may be killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(part, task, options, result):
    """Run the task; a failure is in the result, and its traceback in the output."""
    _end_with_parent()
    options = json.loads(options)
    options = Options(**{**options, "widths": tuple(options["widths"])})
    try:
        found = importlib.import_module(f"on_device.{part}").run(task, options)
        fields = {"status": "ok", **found}
    except Skipped as reason:
        fields = {"status": "skipped", "reason": str(reason)}
    except Exception as error:  # of any kind, by what is wrong with the device or the package
        traceback.print_exc()
        fields = {"status": "failed", "error": f"{type(error).__name__}: {str(error)[-1500:]}"}
    Path(result).write_text(json.dumps(fields), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
