"""What was measured: rungs of accuracy, the track of a solver, and the cell of a problem at one penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

# why a track ended early: a fit overran its solver's limit; the next one would
CUT_OFF, OUT_OF_TIME = "cut off", "out of time"


@dataclass
class Rung:
    """One accuracy setting of one solver on one cell."""

    tol: float
    times: list[float]
    objective: float
    nnz: int
    n_iter: int
    warnings: list[str]

    @property
    def median(self):
        """Median time of the runs, seconds."""
        return float(np.median(self.times))

    @property
    def columns(self):
        """What the written files say of it."""
        return {**vars(self), "median": self.median}


@dataclass(eq=False)
class Track:
    """All rungs of one solver on one cell."""

    solver: object
    rungs: list[Rung] = field(default_factory=list)
    first_fit: float = float("nan")
    spent: float = 0.0
    cut_off: float = float("nan")
    stopped: str = ""
    failure: str = ""
    best_fit: object = None

    @property
    def best(self):
        """Rung with the lowest objective, or None."""
        return min(self.rungs, key=lambda r: r.objective, default=None)

    @property
    def longest(self):
        """Longest fit, seconds, one that was cut off included; nan if there is none."""
        times = [r.median for r in self.rungs] + [t for t in (self.cut_off,) if t == t]
        return max(times, default=float("nan"))


@dataclass(eq=False)
class Cell:
    """One problem at one C with one number of threads, measured."""

    problem: object
    C: float
    n_threads: int
    tracks: list[Track] = field(default_factory=list)
    left_out: list[tuple[object, str]] = field(default_factory=list)
    best_objective: float = float("inf")
    certified_gap: float = float("nan")
    referenced: bool = False
    interrupted: bool = False
    max_time: float = float("nan")

    def gap(self, objective):
        """(F - F*) / F*."""
        return (objective - self.best_objective) / max(abs(self.best_objective), np.finfo(float).tiny)

    def time_to(self, track, gap):
        """Smallest median time among the rungs within the gap, seconds; inf if none is."""
        return min((r.median for r in track.rungs if self.gap(r.objective) <= gap), default=float("inf"))

    @property
    def columns(self):
        """What the written files say of the problem and the penalty."""
        problem = self.problem
        n_samples, n_features = problem.X.shape
        return {
            "data": problem.name,
            "n_samples": n_samples,
            "n_features": n_features,
            "fit_intercept": problem.fit_intercept,
            **dict([problem.strength(self.C)]),
            "lambda_ratio": 1.0 / (self.C * problem.lambda_max),
            "n_threads": self.n_threads,
        }

    def scores(self, track):
        """Scores of the best fit on held-out rows by name; NaN where there is no fit or no such row."""
        values = math.nan, math.nan
        if track.best is not None:
            values = self.problem.held_out(track.best_fit.coef, track.best_fit.intercept)
        return dict(zip(self.problem.scores, values))

    def out_of_time(self, gap):
        """Tracks that their own limit of seconds kept from a gap."""
        late = [t for t in self.tracks if t.stopped in (CUT_OFF, OUT_OF_TIME)]
        return [t for t in late if math.isinf(self.time_to(t, gap))]

    def track(self, key):
        """Track of the solver with this key, or None."""
        return next((t for t in self.tracks if t.solver.key == key), None)
