"""The comparison's numbers as a JSON file."""

from __future__ import annotations

import json
import math

from .._messages import plain
from .._storage.replacing import replacing
from .report import geometric_means, machine, versions


def as_dict(cells, solvers, settings):
    """Everything measured, ready for JSON; infinite times become null."""
    return {
        "machine": machine(),
        "versions": versions(solvers),
        "settings": settings,
        "objective": cells[0].problem.formula,
        "not_installed": {s.key: s.missing() for s in solvers if s.missing()},
        "cells": [_cell_dict(cell, settings["gaps"]) for cell in cells],
        "summary": [
            dict(zip(("gap", "rival", "ratio", "n_cells", "n_bounds", "n_slower"), row))
            for row in geometric_means(cells, settings["gaps"])
        ],
    }


def _cell_dict(cell, gaps):
    tracks = []
    for track in cell.tracks:
        entry = {
            "solver": track.solver.key,
            "version": track.solver.version,
            "first_fit": track.first_fit,
            "stopped": track.stopped,
            "cut_off": track.cut_off,
            "failure": track.failure,
            "times": {f"{g:.0e}": cell.time_to(track, g) for g in gaps},
            "rungs": [{**rung.columns, "gap": cell.gap(rung.objective)} for rung in track.rungs],
        }
        if track.best is not None:
            entry |= {**cell.scores(track), "objective": track.best.objective, "nnz": track.best.nnz}
        tracks.append(entry)
    return {
        **cell.columns,
        "notes": cell.problem.notes,
        "best_objective": cell.best_objective,
        "certified_gap": cell.certified_gap,
        "interrupted": cell.interrupted,
        "left_out": [{"solver": s.key, "reason": reason} for s, reason in cell.left_out],
        "tracks": tracks,
    }


def write_json(path, content):
    """Write strict JSON: numbers that JSON cannot hold become null."""
    with replacing(path) as part, open(part, "w", encoding="utf-8") as stream:
        json.dump(_finite(content), stream, indent=1, allow_nan=False)
        stream.write("\n")


def _finite(value):
    value = plain(value)
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
