"""The comparison's tables as a CSV file."""

from __future__ import annotations

import csv
import math

from .._storage.replacing import replacing


def write_csv(path, cells, gaps):
    """A row for each solver in each cell: what the tables show, with all digits.

    A time is ``inf`` where no fit reached the gap, as the tables have "> t". Unknown values are empty: all of
    a solver that finished no fit, and times that the budget or Ctrl-C prevented.
    """
    rows = []
    for cell in cells:
        for track in cell.tracks:
            best = track.best
            rows.append(
                {
                    **cell.columns,
                    "solver": track.solver.key,
                    "version": track.solver.version,
                    "stopped": _stopped(cell, track),
                    "objective": best.objective if best else math.nan,
                    "relative_gap": cell.gap(best.objective) if best else math.nan,
                    "certified_gap": cell.certified_gap,
                    **{f"seconds_to_{gap:.0e}": _time(cell, track, gap) for gap in gaps},
                    "longest_fit_seconds": track.longest,
                    "nonzeros": best.nnz if best else math.nan,
                    **cell.scores(track),
                    "remark": track.failure,
                }
            )
        rows += [
            {**cell.columns, "solver": s.key, "version": s.version, "stopped": "left out", "remark": reason}
            for s, reason in cell.left_out
        ]
    write_rows(path, rows)


def write_rows(path, rows):
    """A table of dicts, whose columns are all names in the order in which they come."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with replacing(path) as part, open(part, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows({name: _csv_value(value) for name, value in row.items()} for row in rows)


def _stopped(cell, track):
    if track.failure:
        return "failed"
    return "interrupted" if cell.interrupted else track.stopped


def _time(cell, track, gap):
    value = cell.time_to(track, gap)
    kept_from_it = cell.interrupted or (track in cell.unfinished and math.isnan(track.cut_off))
    return math.nan if math.isinf(value) and (kept_from_it or math.isnan(track.longest)) else value


def _csv_value(value):
    return "" if isinstance(value, float) and math.isnan(value) else value
