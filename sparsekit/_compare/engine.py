"""Measurement: how long does each solver take to come within a relative gap of the optimum?

A solver is run from zero to a ladder of accuracies, each a complete call as a user would make it. The answers
are judged by one objective function in float64, never by a solver's own account. F* is the lowest objective
that anything reached on this problem. The time to a gap g is the smallest median time among the rungs whose
relative gap (F - F*) / F* is at most g. Solvers take turns rung by rung, so that a drift of the machine's
load hits all alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .cells import CUT_OFF, OUT_OF_TIME, Cell, Rung, Track
from .solver import REFERENCE_TOL
from .worker import Isolated, Outcome


@dataclass
class BenchOptions:
    """How to measure.

    Parameters
    ----------
    gaps : tuple of float
        Relative gaps whose times are wanted.
    stop_gap : float
        A solver climbs no further once this relative gap is reached.
    max_time : float
        Seconds of fitting that one solver may spend climbing one cell. A fit that is expected to overrun
        is not started; one that does overrun is cut off.
    repeats, max_repeats : int
        Least and largest number of runs of the rungs that decide a reported time.
    min_total : float
        They are repeated until their runs took so many seconds together.
    warm_up_time : float
        Seconds that a first fit may take, JIT compilation included.
    """

    gaps: tuple[float, ...] = (1e-3, 1e-6)
    stop_gap: float = 1e-8
    max_time: float = 10.0
    repeats: int = 1
    max_repeats: int = 7
    min_total: float = 0.2
    warm_up_time: float = 120.0


class Bench:
    """Measures cells with one set of solvers; a context manager, since it owns their processes.

    Parameters
    ----------
    solvers : list of Solver
    options : BenchOptions
    progress : callable or None
        Called as ``progress(text)`` before each fit.
    """

    def __init__(self, solvers, options=None, progress=None):
        self.options = options or BenchOptions()
        self.progress = progress or (lambda text: None)
        self.solvers = [s for s in solvers if s.missing() is None]
        self._runners = {s.key: Isolated(s) for s in self.solvers}
        self._first_fits = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Stop the solvers' processes."""
        for runner in self._runners.values():
            runner.close()

    def measure(self, problem, C, n_threads=1, known=None):
        """Measure one cell.

        Parameters
        ----------
        problem : Problem
        C : float
        n_threads : int, default=1
        known : float, optional
            The lowest objective as it was found elsewhere; no reference solution is computed then.

        Returns
        -------
        Cell
            With ``interrupted=True`` and what was measured so far if Ctrl-C came in between.
        """
        cell = Cell(problem, float(C), int(n_threads), max_time=self.options.max_time)
        if known is not None:
            cell.best_objective, cell.referenced = float(known), True
        for solver in self.solvers:
            reason = solver.refuses(problem)
            if reason:
                cell.left_out.append((solver, reason))
            else:
                cell.tracks.append(Track(solver))
        try:
            self._reference(cell)
            for track in cell.tracks:
                self._prepare(cell, track)
            self._climb(cell)
            self._repeat(cell)
        except KeyboardInterrupt:
            self.close()
            cell.interrupted = True
        return cell

    def _prepare(self, cell, track):
        """Warm the solver's process up where that has not been done, and give it the problem."""
        solver, problem = track.solver, cell.problem
        runner = self._runners[solver.key]
        # what may be compiled or started anew: container, family, intercept, thread pool
        kind = (problem.is_sparse, problem.family, problem.fit_intercept, cell.n_threads)
        if kind not in runner.warm:
            self.progress(f"{solver.title}: warming up")
            sample = problem.sample()
            runner.load(sample)
            limit = self.options.warm_up_time
            out = runner.fit(2.0 / (sample.lambda_max or 1.0), solver.warm_up_setting, cell.n_threads, limit)
            self._first_fits.setdefault((solver.key, *kind), out.seconds)
            if out.error or out.cut_off:
                track.failure = out.error or f"first fit not done after {limit:.0f} s"
                return
            runner.warm.add(kind)
        track.first_fit = self._first_fits[(solver.key, *kind)]
        if runner.problem is not problem:
            self.progress(f"{solver.title}: loading")
            runner.load(problem)

    def _fit(self, cell, track, tol, timeout):
        """Outcome of one fit."""
        self._prepare(cell, track)
        if track.failure:
            return Outcome(error=track.failure)
        return self._runners[track.solver.key].fit(cell.C, tol, cell.n_threads, timeout)

    def _record(self, cell, track, tol, out):
        """Keep what came of one rung."""
        if out.error:
            track.failure = out.error
        elif out.cut_off:
            track.cut_off, track.stopped = out.seconds, CUT_OFF
        elif not _is_finite(out.fit):
            track.failure = "returned a solution that is not finite"
        else:
            objective = self._lower(cell, out.fit)
            if track.best is None or objective < track.best.objective:
                track.best_fit = out.fit
            nnz = int(np.count_nonzero(out.fit.coef))
            track.rungs.append(Rung(tol, [out.seconds], objective, nnz, out.fit.n_iter, out.warnings))

    def _lower(self, cell, fit):
        """The objective of a fit; it updates F* and what is certified about it."""
        objective = cell.problem.objective(fit.coef, fit.intercept, cell.C)
        if objective < cell.best_objective:
            cell.best_objective = objective
            bound = cell.problem.lower_bound(fit.coef, fit.intercept, cell.C)
            cell.certified_gap = (objective - bound) / max(abs(objective), np.finfo(float).tiny)
        return objective

    def _reference(self, cell):
        """An untimed run of this package to a tight tolerance; peers are too slow at that to wait for."""
        track = cell.track("sparsekit")
        if track is None or cell.referenced:
            return
        self.progress(f"{track.solver.title}: reference solution")
        out = self._fit(cell, track, REFERENCE_TOL, self.options.max_time)
        if out.fit is not None and _is_finite(out.fit):
            self._lower(cell, out.fit)
            cell.referenced = True

    def _climb(self, cell):
        """Rung after rung, solver after solver, until all are at stop_gap, out of rungs or of time."""
        while active := [track for track in cell.tracks if self._has_next(cell, track)]:
            for track in active:
                tol = track.solver.ladder[len(track.rungs)]
                self.progress(f"{track.solver.title}: tol = {tol:g}")
                out = self._fit(cell, track, tol, self.options.max_time - track.spent)
                track.spent += 0.0 if math.isnan(out.seconds) else out.seconds
                self._record(cell, track, tol, out)

    def _has_next(self, cell, track):
        options = self.options
        if track.failure or track.stopped == CUT_OFF:
            return False
        # without a certificate the reference run has to do; without both, a solver would be its own F*
        if np.isnan(cell.certified_gap):
            uncertain = not cell.referenced
        else:
            uncertain = cell.certified_gap > options.stop_gap
        track.stopped = ""
        if track.rungs and not uncertain and cell.gap(track.best.objective) <= options.stop_gap:
            track.stopped = "reached"
        elif len(track.rungs) >= len(track.solver.ladder):
            track.stopped = "out of rungs"
        elif track.rungs and track.spent + track.rungs[-1].times[0] > options.max_time:
            track.stopped = OUT_OF_TIME
        return not track.stopped

    def _wants_repeat(self, cell, track, rung):
        n, options = len(rung.times), self.options
        if n >= options.max_repeats or (sum(rung.times) >= options.min_total and n >= options.repeats):
            return False
        # one that is much slower than the fastest cannot become the fastest by repetition
        return any(
            cell.gap(rung.objective) <= gap and rung.median <= 2 * cell.time_to(track, gap)
            for gap in options.gaps
        )

    def _repeat(self, cell):
        """Take turns again until each rung that matters has enough runs."""
        tracks = [track for track in cell.tracks if not track.failure]
        pending = True
        while pending:
            pending = False
            for i in range(max((len(track.rungs) for track in tracks), default=0)):
                for track in [track for track in tracks if i < len(track.rungs)]:
                    rung = track.rungs[i]
                    if not self._wants_repeat(cell, track, rung):
                        continue
                    self.progress(f"{track.solver.title}: repeat tol = {rung.tol:g}")
                    out = self._fit(cell, track, rung.tol, 5.0 + 5 * rung.median)
                    if out.error or out.cut_off:
                        track.failure = out.error
                        tracks.remove(track)
                    else:
                        rung.times.append(out.seconds)
                        pending = True


def _is_finite(fit):
    return np.isfinite(fit.coef).all() and np.isfinite(fit.intercept).all()
