"""What the benchmark's parts share: choice of solvers, and Markdown with the command that made it."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from sparsekit._compare import peers, report


def solvers(args, default=None):
    """This package and the chosen peers; SystemExit for a key that no solver has."""
    found = peers.all_solvers()
    chosen = args.peers or default
    if chosen is None:
        return found
    known = [s.key for s in found]
    for key in chosen:
        if key not in known:
            raise SystemExit(f"--peers: unknown solver {key!r}; known are {', '.join(known)}")
    return [s for s in found if s.key == report.OURS or s.key in chosen]


def make_parser(doc):
    """A parser that shows a script's text as its help, with the option to write its tables."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", metavar="FILE", help="write the tables")
    return parser


def command():
    """The command that runs."""
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])


def environment(used):
    """Lines that say how and where a table was made."""
    here = report.machine()
    versions = ", ".join(f"{k} {v}" for k, v in report.versions(used).items() if v)
    return [
        f"Made by `{command()}` on {date.today().isoformat()}: {here['cpu']}, "
        f"{here['n_cpus']} CPUs, Python {here['python']}, {versions}.",
        "",
    ]


def markdown_table(columns, rows):
    """Lines of a Markdown table: the first column to the left, the others to the right."""
    lines = [
        "| " + " | ".join(columns) + " |",
        "| " + " | ".join(["---"] + ["---:"] * (len(columns) - 1)) + " |",
    ]
    lines += ["| " + " | ".join(str(value) for value in row) + " |" for row in rows]
    return [*lines, ""]


def write_markdown(path, lines):
    """Write lines to a file, if there is one."""
    if path:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("\n".join(lines).rstrip() + "\n")
