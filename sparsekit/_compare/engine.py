"""Measurement: how long does each solver take to come within a relative gap of the optimum?

A solver is run from zero to a ladder of accuracies, each a complete call as a user would make it. The answers
are judged by one objective function in float64, never by a solver's own account. F* is the lowest objective
that anything reached on this problem. The time to a gap g is the smallest median time among the rungs whose
relative gap (F - F*) / F* is at most g. Solvers take turns rung by rung, so that a drift of the machine's
load hits all alike.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from .cells import CUT_OFF, OUT_OF_TIME, OVER_BUDGET, Cell, Rung, Track
from .solver import MAX_ITER, REFERENCE_TOL
from .worker import Isolated, Local, Outcome


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
    rival : float
        A rung that is slower than the fastest deciding one by this factor cannot become the fastest by
        repetition. A rung that ran only once can, up to twice the factor.
    warm_up_time : float
        Seconds that a first fit may take, JIT compilation included.
    """

    gaps: tuple[float, ...] = (1e-3, 1e-6)
    stop_gap: float = 1e-8
    max_time: float = 10.0
    repeats: int = 1
    max_repeats: int = 7
    min_total: float = 0.2
    rival: float = 1.5
    warm_up_time: float = 120.0


class Bench:
    """Measures cells with one set of solvers; a context manager, since it owns their processes.

    Parameters
    ----------
    solvers : list of Solver
    options : BenchOptions
    progress : callable or None
        Called as ``progress(text)`` before each fit.
    isolate : bool, default=True
        Give each solver a process of its own, so that a fit can be cut off.
    deadline : float, optional
        `time.monotonic` at which all measurements end; tracks that are not done then have
        ``stopped = "budget"``. In each cell every solver has an equal share of the time until then. What
        one does not need of its share the others may use.
    """

    def __init__(self, solvers, options=None, progress=None, isolate=True, deadline=None):
        self.options = options or BenchOptions()
        self.progress = progress or (lambda text: None)
        self.solvers = [s for s in solvers if s.missing() is None]
        self._runners = {s.key: (Isolated if isolate else Local)(s) for s in self.solvers}
        self._first_fits = {}
        self._never_ready = set()  # keys of solvers whose first fit overran their share
        self._deadline = math.inf if deadline is None else deadline

    @property
    def left(self):
        """Seconds until the deadline, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

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
            ours = cell.track("sparsekit")
            if ours is not None:
                self._ready(cell, ours)  # before the shares, or a short budget might leave no row at all
            for track in cell.tracks:
                if track.solver.key in self._never_ready:
                    track.stopped = OVER_BUDGET
            cell.share = self.left / max(1, sum(not track.stopped for track in cell.tracks))
            self._reference(cell)
            for track in cell.tracks:
                if track is not ours and not track.stopped:
                    self._timed(track, self._ready, cell, track)
            self._climb(cell)
            self._repeat(cell)
        except KeyboardInterrupt:
            self.close()
            cell.interrupted = True
        return cell

    def _ready(self, cell, track):
        """Warm the solver's process up where that has not been done, and give it the problem."""
        solver, problem = track.solver, cell.problem
        if not self._left(cell, track):
            track.stopped = OVER_BUDGET
            return
        runner = self._runners[solver.key]
        # what may be compiled or started anew: container, kind of problem, thread pool
        kind = (problem.is_sparse, type(problem), problem.fit_intercept, cell.n_threads)
        if kind not in runner.warm:
            self.progress(f"{solver.title}: warming up")
            sample = problem.sample()
            if not runner.load(sample, self._limit(cell, track)):
                self._never_ready.add(solver.key)
                track.stopped = OVER_BUDGET
                return
            settings = {"tol": 0.0, "max_iter": MAX_ITER, solver.knob: solver.warm_up_setting}
            patience = self.options.warm_up_time
            limit = min(patience, self._left(cell, track))
            out = runner.fit(2.0 / (sample.lambda_max or 1.0), settings, cell.n_threads, limit)
            if out.cut_off and limit < patience:
                self._never_ready.add(solver.key)
                track.stopped = OVER_BUDGET
                return
            self._first_fits.setdefault((solver.key, *kind), out.seconds)
            if out.error or out.cut_off:
                track.failure = out.error or f"first fit not done after {patience:.0f} s"
                return
            runner.warm.add(kind)
        track.first_fit = self._first_fits[(solver.key, *kind)]
        if runner.problem is not problem:
            self.progress(f"{solver.title}: loading")
            if not runner.load(problem, self._limit(cell, track)):
                track.stopped = OVER_BUDGET

    def _left(self, cell, track):
        """Seconds that a solver may use: those left, but for the rest of the shares of others not done."""
        others = (t for t in cell.tracks if t is not track and not t.stopped and not t.failure)
        reserved = 0.0
        if math.isfinite(cell.share):
            reserved = sum(max(0.0, cell.share - other.used) for other in others)
        return max(0.0, self.left - reserved)

    def _limit(self, cell, track):
        """`_left`, or None for no end."""
        return self._left(cell, track) if math.isfinite(self._deadline) else None

    def _timed(self, track, call, *args):
        """What a call returns; its time is taken from the solver's share."""
        start = time.monotonic()
        try:
            return call(*args)
        finally:
            track.used += time.monotonic() - start

    def _call(self, *args):
        """Outcome of one fit, see `_fit`."""
        return self._timed(args[1], self._fit, *args)

    def _fit(self, cell, track, knob, timeout):
        """Outcome of one fit."""
        self._ready(cell, track)
        if track.failure:
            return Outcome(error=track.failure)
        limit = min(timeout, self._left(cell, track))
        if track.stopped == OVER_BUDGET or not limit:
            return Outcome(over_budget=True)
        solver = track.solver
        settings = {"tol": 0.0, "max_iter": MAX_ITER, solver.knob: knob}
        out = self._runners[solver.key].fit(cell.C, settings, cell.n_threads, limit)
        out.over_budget = out.cut_off and limit < timeout
        return out

    def _record(self, cell, track, knob, out):
        """Keep what came of one rung."""
        if out.error:
            track.failure = out.error
            return
        if out.cut_off or out.over_budget:
            track.cut_off, track.stopped = out.seconds, OVER_BUDGET if out.over_budget else CUT_OFF
            return
        fit = out.fit
        if not (np.isfinite(fit.coef).all() and np.isfinite(fit.intercept).all()):
            track.failure = "returned a solution that is not finite"
            return
        objective = cell.problem.objective(fit.coef, fit.intercept, cell.C)
        if track.best is None or objective < track.best.objective:
            track.best_fit = fit
        nnz = int(np.count_nonzero(fit.coef))
        track.rungs.append(Rung(knob, [out.seconds], objective, nnz, fit.n_iter, out.warnings))
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
        if track is None or track.failure or cell.referenced:
            return
        self.progress(f"{track.solver.title}: reference solution")
        # half of its share is for the fits that are timed
        out = self._call(cell, track, REFERENCE_TOL, min(self.options.max_time, self._left(cell, track) / 2))
        if out.fit is not None and np.isfinite(out.fit.coef).all():
            objective = cell.problem.objective(out.fit.coef, out.fit.intercept, cell.C)
            self._lower(cell, objective, out.fit)
            cell.referenced = True

    def _climb(self, cell):
        """Rung after rung, solver after solver, until all are at stop_gap, out of rungs or of time."""
        options = self.options
        while True:
            active = [t for t in cell.tracks if self._has_next(cell, t)]
            if not active:
                return
            # who has used its share waits for what the others leave
            running = [t for t in active if self._left(cell, t)] or active
            for track in running:
                knob = track.solver.ladder[len(track.rungs)]
                self.progress(f"{track.solver.title}: {track.solver.knob} = {knob:g}")
                left = options.max_time - track.spent
                out = self._call(cell, track, knob, left)
                track.spent += 0.0 if math.isnan(out.seconds) else out.seconds
                self._record(cell, track, knob, out)

    def _has_next(self, cell, track):
        options = self.options
        if track.failure or track.stopped in (CUT_OFF, OVER_BUDGET):
            return False
        # without a certificate the reference run has to do; without both, a solver would be its own F*
        if np.isnan(cell.certified_gap):
            uncertain = not cell.referenced
        else:
            uncertain = cell.certified_gap > options.stop_gap
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
                track.stopped = OUT_OF_TIME
                return False
        return True

    def _wants_repeat(self, cell, track, rung):
        n, options = len(rung.times), self.options
        if n >= options.max_repeats or (sum(rung.times) >= options.min_total and n >= options.repeats):
            return False
        rival = 2 * options.rival if n == 1 else options.rival
        return any(
            cell.gap(rung.objective) <= gap and rung.median <= rival * cell.time_to(track, gap)
            for gap in options.gaps
        )

    def _repeat(self, cell):
        """Take turns again until each rung that matters has enough runs."""
        pending, given_up = True, []
        while pending and self.left:
            pending = False
            for i in range(max((len(t.rungs) for t in cell.tracks), default=0)):
                for track in cell.tracks:
                    if i >= len(track.rungs) or track.failure or track in given_up:
                        continue
                    rung = track.rungs[i]
                    if self._wants_repeat(cell, track, rung):
                        if not self.left:
                            return
                        self.progress(f"{track.solver.title}: repeat {track.solver.knob} = {rung.knob:g}")
                        stopped = track.stopped
                        out = self._call(cell, track, rung.knob, 5.0 + 5 * rung.median)
                        track.stopped = stopped  # that of the climb, which is over
                        if out.error:
                            track.failure = out.error
                        elif out.cut_off or out.over_budget:
                            given_up.append(track)
                        else:
                            rung.times.append(out.seconds)
                            pending = True
