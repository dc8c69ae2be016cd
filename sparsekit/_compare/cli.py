"""Command line: ``sparsekit compare`` sets solvers of L1 models side by side on the user's data,
``sparsekit versions`` prints what a report of a problem needs.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from enum import IntEnum
from functools import partial
from pathlib import Path

from .._messages import shown
from .options import DEFAULT_RATIOS, FAMILIES, MAX_TIME, MAX_TIME_SHIPPED, make_parser
from .show_versions import show_versions


class ExitCode(IntEnum):
    """What the program returns to the shell."""

    OK = 0
    FAILED = 1  # a file could not be used, the comparison was interrupted, or sparsekit failed
    USAGE = 2
    NO_READER = 141  # the output's reader has gone: what a shell reports of a program that SIGPIPE ended


# options that say how a file is read
OF_FILES = ("test", "test_size", "seed", "target", "positive", "drop", "standardize")


def main(argv=None):
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program name; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        An `ExitCode`.
    """
    _open_closed_streams()
    try:
        status = _main(argv)
        sys.stdout.flush()  # here and not at the interpreter's end, where an error could not be caught
        return status
    except BrokenPipeError:
        # what is still buffered goes nowhere, silently
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.NO_READER


def _open_closed_streams():
    """Let streams that the shell closed lead nowhere: as None, many packages fail with them."""
    # a pipe to a solver's process must not get one of the descriptors 0, 1 and 2
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
            setattr(sys, name, nowhere)


def _main(argv):
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed help, version or the error
        return int(stop.code or 0)
    if args.command is None:
        parser.print_help()
        return ExitCode.USAGE
    if args.command == "versions":
        show_versions()
        return ExitCode.OK
    return _compare(args)


def _compare(args):
    from . import io, paths, peers, report

    fit_intercept = args.family != "binomial" if args.intercept is None else args.intercept
    solvers = (peers.all_solvers if args.path is None else paths.all_path_solvers)(args.family)
    # all of this is asked before the work, not after it
    fault = _faulty_task(args) or _faulty_peers(args, solvers) or _faulty_outputs(args)
    if fault:
        return _fail(fault, ExitCode.USAGE)
    if args.peers is not None:
        solvers = [s for s in solvers if s.key == report.OURS or s.key in args.peers]
    model = dict(family=args.family, l1_ratio=args.l1_ratio, fit_intercept=fit_intercept)
    try:
        if args.files:
            options = {name: getattr(args, name) for name in OF_FILES}
            problems = [io.read_problem(path, **options, **model) for path in args.files]
        else:
            problems = io.shipped_problems(test_size=args.test_size, seed=args.seed, **model)
        for problem in problems:
            if not problem.lambda_max > 0:
                raise io.DataError(
                    f"{problem.name}: no feature is related to the target (X^T y = 0): w = 0 for every "
                    "penalty"
                )
    except io.DataError as error:
        return _fail(str(error), ExitCode.FAILED)
    width = shutil.get_terminal_size((0, 0)).columns or None
    times = report.TIMES if args.path is None else paths.TIMES
    head = [report.header(solvers, problems[0], times), *map(report.data_line, problems)]
    print(report.fold("\n".join(head), width))
    try:
        if args.path is not None:
            return _compare_paths(args, problems, solvers)
        return _compare_penalties(args, problems, solvers, width)
    except io.DataError as error:
        return _fail(str(error), ExitCode.FAILED)


def _compare_penalties(args, problems, solvers, width):
    from . import json_output, plot, report
    from .engine import Bench, BenchOptions

    grids = [(p, C) for p in problems for C in _grid(args, p)]
    progress = report.Progress(len(grids))
    max_time = args.max_time or (MAX_TIME if args.files else MAX_TIME_SHIPPED)
    options = BenchOptions(max_time=max_time)
    cells = []
    with Bench(solvers, options, progress) as bench:
        for problem, C in grids:
            progress.cell = "{} {}={:.3g}".format(problem.name, *problem.strength(C))
            cell = bench.measure(problem, C, args.n_jobs)
            progress.clear()
            cells.append(cell)
            print("\n" + report.table(cell, options.gaps, width), flush=True)
            progress.done += 1
            if cell.interrupted:
                break
    last = [report.summary(cells, options.gaps), report.left_out_line(cells, solvers)]
    print("\n" + report.fold("\n".join(filter(None, last)), width))
    settings = {
        "gaps": options.gaps,
        "stop_gap": options.stop_gap,
        "max_time": options.max_time,
        "n_threads": args.n_jobs,
        "fit_intercept": problems[0].fit_intercept,
    }
    content = json_output.as_dict(cells, solvers, settings)
    status = _write("json", args.json, partial(json_output.write_json, content=content))
    status = _write("plot", args.plot, partial(plot.plot, cells)) or status
    if status:
        return status
    if cells[-1].interrupted:
        return _fail("interrupted", ExitCode.FAILED)
    failed = [t for cell in cells for t in cell.tracks if t.solver.key == report.OURS and t.failure]
    return ExitCode.FAILED if failed else ExitCode.OK


def _compare_paths(args, problems, solvers):
    from . import json_output, paths

    found = []
    options = {} if args.max_time is None else {"max_time": args.max_time}
    for problem in problems:
        print(f"\n{problem.name}, {args.path} penalties\n{paths.table_line(solvers)}", flush=True)
        own = None
        for run in paths.compare_paths(problem, solvers, args.path, n_threads=args.n_jobs, **options):
            own = own or run
            found.append(run)
            print(paths.table_line(solvers, run, own), flush=True)
    content = [asdict(run) for run in found]
    status = _write("json", args.json, partial(json_output.write_json, content=content))
    failed = [run for run in found if run.solver == solvers[0].path_title and run.failure]
    return status or (ExitCode.FAILED if failed else ExitCode.OK)


def _faulty_task(args):
    """What options do not go together, or None."""
    has_classes, has_link = args.family == "binomial", args.family in FAMILIES
    faults = {
        "--path has no --plot": args.path is not None and args.plot is not None,
        "--C is for classes; with --lasso and --family the penalty is --alpha or --lambda-ratio": (
            not has_classes and args.C is not None
        ),
        "--alpha needs --lasso or --family; classes have --C or --lambda-ratio": (
            has_classes and args.alpha is not None
        ),
        "--l1-ratio needs --family": args.l1_ratio != 1.0 and not has_link,
        "--path has classes and --lasso, and no --family": has_link and args.path is not None,
        "--standardize and --no-standardize are for files": args.standardize is not None and not args.files,
        "--positive is for classes; --lasso and --family take numbers": (
            not has_classes and args.positive is not None
        ),
        "--test needs exactly one FILE": args.test is not None and len(args.files) != 1,
    }
    return next((fault for fault, is_there in faults.items() if is_there), None)


def _faulty_peers(args, solvers):
    """Which of the peers is none, or None."""
    known = {s.key for s in solvers}
    unknown = [name for name in args.peers or () if name not in known]
    if unknown:
        return f"--peers: unknown solver {shown(unknown[0])}; known are {', '.join(sorted(known))}"
    return None


def _faulty_outputs(args):
    """Why a picture or a file cannot be written, or None."""
    from . import plot

    if args.plot is not None:
        try:
            fault = plot.fault_of_name(args.plot)
        except ImportError:
            fault = "needs matplotlib: pip install matplotlib"
        if fault:
            return f"--plot {fault}"
    for option in ("plot", "json"):
        path = getattr(args, option)
        fault = None if path is None else _why_not_writable(Path(path))
        if fault:
            return f"--{option} {path}: {fault}"
    return None


def _why_not_writable(path):
    """Why nothing can be written there, or None."""
    target = Path(os.path.realpath(path))  # a link may lead to a file that is still to be made
    if not target.parent.is_dir():
        return "there is no such folder"
    is_ring = target.is_symlink()
    if is_ring or target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        return "cannot be written"
    return None


def _write(option, path, write):
    """Write a file if one is asked for; the exit status where that fails, or 0."""
    try:
        if path is not None:
            write(path)
    except OSError as error:
        return _fail(f"--{option} {path}: cannot be written: {error.strerror or error}", ExitCode.FAILED)
    return ExitCode.OK


def _grid(args, problem):
    """Values of C (for the Lasso 1 / (n alpha)) for one problem, the strongest penalty first."""
    if args.C is not None:
        return sorted(args.C)
    if args.alpha is not None:
        return [1.0 / (problem.X.shape[0] * alpha) for alpha in sorted(args.alpha, reverse=True)]
    ratios = args.lambda_ratio or DEFAULT_RATIOS
    return [1.0 / (r * problem.lambda_max) for r in sorted(ratios, reverse=True)]


def _fail(message, code):
    print(f"sparsekit compare: error: {message}", file=sys.stderr)
    return code
