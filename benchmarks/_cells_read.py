"""Cells from the JSON files of earlier runs, so that a table can be measured in pieces."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from sparsekit._compare import peers
from sparsekit._compare.engine import Cell, Rung, Track


@dataclass(eq=False)
class Name:
    """What tables and pictures need of a problem whose data are not at hand."""

    name: str
    lambda_max: float
    ours, baseline = "L1LogisticOBA", ("liblinear", "LIBLINEAR")


def read(path):
    """(cells, the line that says where they were measured) of one file."""
    with open(path, encoding="utf-8") as stream:
        content = json.load(stream)
    machine, settings = content["machine"], content["settings"]
    versions = ", ".join(f"{k} {v}" for k, v in content["versions"].items() if v)
    # files of `sparsekit compare` do not have it
    command = settings.get("command", "sparsekit compare").strip()
    made = f"`{command}`: {machine['cpu']}, {machine['n_cpus']} CPUs, Python {machine['python']}, {versions}."
    solvers = {solver.key: solver for solver in peers.all_solvers()}
    problems = {}
    return [_cell(entry, solvers, problems) for entry in content["cells"]], made


def _cell(entry, solvers, problems):
    # one object for each set of data: the picture has a row for each of them
    problem = problems.setdefault(
        entry["data"], Name(entry["data"], 1.0 / (entry["C"] * entry["lambda_ratio"]))
    )
    cell = Cell(
        problem,
        entry["C"],
        entry["n_threads"],
        best_objective=entry["best_objective"],
        certified_gap=_number(entry["certified_gap"]),
        referenced=True,
        interrupted=entry["interrupted"],
    )
    for found in entry["tracks"]:
        solver = solvers[found["solver"]]
        rungs = [
            Rung(r["tol"], r["times"], r["objective"], r["nnz"], r["n_iter"], r["warnings"])
            for r in found["rungs"]
        ]
        cell.tracks.append(
            Track(
                solver,
                rungs,
                first_fit=_number(found["first_fit"]),
                cut_off=_number(found["cut_off"]),
                stopped=found["stopped"],
                failure=found["failure"],
            )
        )
    return cell


def _number(value):
    return math.nan if value is None else value
