"""Command line of the checks on a device; see doc/gpu.md for what the lines mean."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from . import engine
from .options import Options

# Seconds of each part, together those of --limit; of less time each gets the same share.
# In this order: what makes the others pointless comes first.
PARTS = {
    "environment": 50, "compilation": 110, "parity": 110,
    "sanitizer": 70, "sparsemax": 50, "fits": 145, "waits": 55,
}  # fmt: skip


def parse(argv):
    """Command line."""
    parser = argparse.ArgumentParser(prog="on_device.sh", description=__doc__)
    add = parser.add_argument
    add("--dry-run", action="store_true", help="in the emulation, without a GPU, with tiny sizes")
    add("--out", type=Path, help="folder of the lines and logs (default: $OUT, else a new one)")
    add("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    add("--task", help="only the task of this name, of each part")
    add("--limit", type=float, default=590.0, help="seconds of all parts together (default: 590)")
    add("--task-limit", type=float, default=float("inf"), help="seconds of a task, at most")
    add("--jobs", type=int, help="tasks at once, where no time is measured (default: processors, up to 8)")
    add("--widths", type=int, nargs="+", default=[], help="row lengths of the part sparsemax")
    add("--sanitizer", help="program of the part sanitizer (default: compute-sanitizer)")
    return parser.parse_args(argv)


def main(argv=None):
    """Run the parts one after another; the status is 1 where a task failed or ran over its limit."""
    args = parse(argv)
    # one key ends this process, and its tasks with it; the lines are written
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    start = time.monotonic()
    out = args.out or os.environ.get("OUT") or tempfile.mkdtemp(prefix="on-device-")
    lines = engine.Lines(Path(out))
    options = Options(dry_run=args.dry_run, widths=tuple(args.widths), sanitizer=args.sanitizer)
    at_once = args.jobs or min(len(os.sched_getaffinity(0)), engine.MOST_AT_ONCE)
    common = {"only_task": args.task, "task_limit": args.task_limit, "at_once": at_once}
    statuses, parts = {}, [name for name in PARTS if name in args.only]
    for k, name in enumerate(parts):
        # what a part leaves of its time goes to those after it, none of which has to do without
        share = PARTS[name] / sum(PARTS[later] for later in parts[k:])
        left = start + args.limit - time.monotonic()
        statuses[name] = engine.run_part(name, options, lines, left=left, share=share, **common)
    bad = [name for name, status in statuses.items() if status in ("failed", "timeout")]
    lines.write(
        summary="failed" if bad else "ok",
        seconds=round(time.monotonic() - start, 1),
        parts=statuses,
        lines=str(lines.path),
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
