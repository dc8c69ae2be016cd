"""Measurement: how long does each solver take to come within a relative gap of the optimum?

A solver is run from zero to a ladder of accuracies, each a complete call as a user would make it. The
answers are judged by one objective function in float64. The time to a gap g is the smallest median
time among the rungs whose relative gap (F - F*) / F* is at most g, F* being the lowest objective that
anything reached on this problem. Solvers take turns rung by rung, so that a drift of the machine's
load hits all alike.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

MIN_TOTAL = 0.2  # seconds: shorter fits are repeated until their sum reaches this ...
MAX_REPEATS = 7  # ... or there are this many
MAX_ITER = 10000  # of the solvers whose knob is a tolerance; the time budget is the real limit
# a rung that is this many times slower than the fastest deciding one cannot become the fastest by repetition
RIVAL = 1.5
REFERENCE_TOL, REFERENCE_ITER = 1e-10, 1000
# F* must be known this much better than the gap at which solvers stop, or a gap of zero means nothing
CERTIFIED_SHARE = 0.3


@dataclass
class Options:
    """How to measure.

    Parameters
    ----------
    gaps : tuple of float
        Relative gaps whose times are wanted.
    stop_gap : float
        A solver climbs no further once this relative gap is reached.
    max_time : float
        Seconds of fitting that one solver may spend climbing one cell; a fit is never cut off, but
        none is started that is expected to overrun.
    repeats : int
        Least number of runs of the rungs that decide a reported time.
    """

    gaps: tuple[float, ...] = (1e-3, 1e-6)
    stop_gap: float = 1e-8
    max_time: float = 10.0
    repeats: int = 1


@dataclass
class Rung:
    """One accuracy setting of one solver on one cell."""

    knob: float
    times: list[float]
    objective: float
    nnz: int
    n_iter: int
    warnings: list[str]

    @property
    def median(self):
        """Median time of the runs, seconds."""
        return float(np.median(self.times))


@dataclass
class Track:
    """All rungs of one solver on one cell."""

    solver: object
    rungs: list[Rung] = field(default_factory=list)
    first_fit: float = float("nan")
    spent: float = 0.0
    stopped: str = ""
    failure: str = ""
    best_fit: object = None

    @property
    def best(self):
        """Rung with the lowest objective, or None."""
        return min(self.rungs, key=lambda r: r.objective, default=None)


@dataclass
class Cell:
    """One problem at one C with one number of threads, measured."""

    problem: object
    C: float
    n_threads: int
    tracks: list[Track] = field(default_factory=list)
    left_out: list[tuple[object, str]] = field(default_factory=list)
    best_objective: float = float("inf")
    certified_gap: float = float("nan")
    interrupted: bool = False

    def gap(self, objective):
        """(F - F*) / F*."""
        return (objective - self.best_objective) / max(abs(self.best_objective), np.finfo(float).tiny)

    def time_to(self, track, gap):
        """Smallest median time among the rungs within the gap, seconds; inf if none is."""
        return min((r.median for r in track.rungs if self.gap(r.objective) <= gap), default=float("inf"))

    def track(self, key):
        """Track of the solver with this key, or None."""
        return next((t for t in self.tracks if t.solver.key == key), None)


class Bench:
    """Measures cells with one set of solvers and remembers which of them are warmed up.

    Parameters
    ----------
    solvers : list of Solver
    options : Options
    progress : callable or None
        Called as ``progress(text)`` before each fit.
    """

    def __init__(self, solvers, options=None, progress=None):
        self.options = options or Options()
        self.progress = progress or (lambda text: None)
        self.solvers = [s for s in solvers if s.missing() is None]
        self.absent = [(s, s.missing()) for s in solvers if s.missing() is not None]
        self.first_fits = {}

    def measure(self, problem, C, n_threads=1):
        """Measure one cell.

        Returns
        -------
        Cell
            With ``interrupted=True`` and what was measured so far if Ctrl-C came in between.
        """
        cell = Cell(problem, float(C), int(n_threads), left_out=list(self.absent))
        for solver in self.solvers:
            reason = solver.refuses(problem)
            if reason:
                cell.left_out.append((solver, reason))
            else:
                cell.tracks.append(Track(solver))
        try:
            for track in cell.tracks:
                self._warm_up(cell, track)
            self._reference(cell)
            self._climb(cell)
            self._repeat(cell)
        except KeyboardInterrupt:
            cell.interrupted = True
        return cell

    def _call(self, cell, track, problem, C, knob, max_iter=MAX_ITER):
        """Run one fit; return (Fit or None, seconds, warnings). A solver's failure is recorded."""
        solver = track.solver
        X, y = solver.data(problem)
        settings = {"tol": 0.0, "max_iter": max_iter, solver.knob: knob}
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(cell.n_threads):
            warnings.simplefilter("always")
            start = time.perf_counter()
            try:
                fit = solver.fit(
                    X, y, C, fit_intercept=problem.fit_intercept, n_threads=cell.n_threads, **settings
                )
            except Exception as error:  # whatever a peer raises becomes its line in the table
                fit, track.failure = None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            seconds = time.perf_counter() - start
        return fit, seconds, sorted({f"{w.category.__name__}: {w.message}" for w in caught})

    def _warm_up(self, cell, track):
        """First fit of a solver on this kind of container: imports, JIT compilation, thread pools."""
        solver, problem = track.solver, cell.problem
        kind = (solver.key, problem.is_sparse, type(problem), problem.fit_intercept, cell.n_threads)
        if kind not in self.first_fits:
            self.progress(f"{solver.title}: warming up")
            sample = problem.sample()
            knob = solver.ladder[2]
            seconds = self._call(cell, track, sample, 2.0 / (sample.lambda_max or 1.0), knob, 100)[1]
            self.first_fits[kind] = seconds, track.failure
        track.first_fit, track.failure = self.first_fits[kind]

    def _record(self, cell, track, fit, seconds, knob, caught):
        objective = cell.problem.objective(fit.coef, fit.intercept, cell.C)
        if not np.isfinite(objective):
            track.failure = "returned a solution that is not finite"
            return
        if track.best is None or objective < track.best.objective:
            track.best_fit = fit
        track.rungs.append(
            Rung(knob, [seconds], objective, int(np.count_nonzero(fit.coef)), fit.n_iter, caught)
        )
        self._lower(cell, objective, fit)

    def _lower(self, cell, objective, fit):
        """Update F* and what is certified about it."""
        if objective < cell.best_objective:
            cell.best_objective = objective
            bound = cell.problem.lower_bound(fit.coef, fit.intercept, cell.C)
            cell.certified_gap = (objective - bound) / max(abs(objective), np.finfo(float).tiny)

    def _reference(self, cell):
        """An untimed run of this package to a tight tolerance; peers are too slow at that to wait for."""
        track = cell.track("sparsekit")
        if track is None or track.failure:
            return
        self.progress(f"{track.solver.title}: reference solution")
        fit, _, _ = self._call(cell, Track(track.solver), cell.problem, cell.C, REFERENCE_TOL, REFERENCE_ITER)
        if fit is not None:
            objective = cell.problem.objective(fit.coef, fit.intercept, cell.C)
            if np.isfinite(objective):
                self._lower(cell, objective, fit)

    def _climb(self, cell):
        """Rung after rung, solver after solver, until all are at stop_gap, out of rungs or of time."""
        options = self.options
        while True:
            active = [t for t in cell.tracks if self._has_next(cell, t)]
            if not active:
                return
            for track in active:
                knob = track.solver.ladder[len(track.rungs)]
                self.progress(f"{track.solver.title}: {track.solver.knob} = {knob:g}")
                max_iter = MAX_ITER
                if track.rungs and track.rungs[-1].n_iter > 0:
                    # a fit cannot be cut off from outside; an iteration count keeps it near the budget
                    last = track.rungs[-1]
                    left = options.max_time - track.spent
                    max_iter = int(np.clip(left / (last.times[0] / last.n_iter), 10, MAX_ITER))
                fit, seconds, caught = self._call(cell, track, cell.problem, cell.C, knob, max_iter)
                track.spent += seconds
                if fit is not None:
                    self._record(cell, track, fit, seconds, knob, caught)

    def _has_next(self, cell, track):
        options = self.options
        if track.failure:
            return False
        uncertain = cell.certified_gap > CERTIFIED_SHARE * options.stop_gap  # False where it is nan
        if track.rungs and not uncertain and cell.gap(track.best.objective) <= options.stop_gap:
            track.stopped = "reached"
            return False
        if len(track.rungs) >= len(track.solver.ladder):
            track.stopped = "out of rungs"
            return False
        track.stopped = ""
        if track.rungs:
            expected = track.rungs[-1].times[0]
            if track.solver.knob == "max_iter":
                expected *= track.solver.ladder[len(track.rungs)] / track.rungs[-1].knob
            if track.spent + expected > options.max_time:
                track.stopped = "out of time"
                return False
        return True

    def _wants_repeat(self, cell, track, rung):
        n = len(rung.times)
        if n >= MAX_REPEATS:
            return False
        if sum(rung.times) < MIN_TOTAL:
            return True
        if n >= self.options.repeats:
            return False
        for gap in self.options.gaps:
            fastest = cell.time_to(track, gap)
            if cell.gap(rung.objective) <= gap and rung.median <= RIVAL * fastest:
                return True
        return False

    def _repeat(self, cell):
        """Take turns again until each rung that matters has enough runs."""
        pending = True
        while pending:
            pending = False
            for i in range(max((len(t.rungs) for t in cell.tracks), default=0)):
                for track in cell.tracks:
                    if i >= len(track.rungs) or track.failure:
                        continue
                    rung = track.rungs[i]
                    if self._wants_repeat(cell, track, rung):
                        self.progress(f"{track.solver.title}: repeat {track.solver.knob} = {rung.knob:g}")
                        max_iter = MAX_ITER if not rung.warnings or rung.n_iter <= 0 else rung.n_iter
                        fit, seconds, _ = self._call(cell, track, cell.problem, cell.C, rung.knob, max_iter)
                        if fit is not None:
                            rung.times.append(seconds)
                            pending = True
