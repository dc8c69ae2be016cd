"""LP-SparseMAP over arrays: states of graphs, and solves of them."""

import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace

import numpy as np

from ..._arrays import as_like, kernel_module, namespace, thread_arguments, to_host
from ..._solver import outcome
from ..factors.asking import being_asked, lock_of, refuse_own_graph
from ..factors.structure_rows import own_indices
from ..plan import MARGINAL_TOL, PASSES, plan_of
from . import finish

# Times the sum of all scores, stands for -inf. Costs of a knapsack may differ by as much: with -1e3 some
# graphs whose costs differ by 2000 count as infeasible.
LOSS = -1e4
# Times the sum of all larger scores: lower scores count as -inf where they need not be on. In 592 random
# graphs of up to 8 coupled logic factors none was on from 1 (LP-MAP) and 10 (LP-SparseMAP) times the sum.
MASK = -1e3


def _mask_limit(values, below):
    """The largest mask of each graph that is less than ``below``, (n,); -inf where there is none.

    A mask is a score for which all larger scores together cannot make up: it acts as -inf does. Masks may
    have several sizes, each of which is one for the next.
    """
    ordered = np.sort(values, axis=1)
    larger = np.zeros_like(ordered)
    # a sum from the largest down, so that no mask's digits are lost in it
    larger[:, :-1] = np.cumsum(np.abs(ordered[:, :0:-1]), axis=1)[:, ::-1]
    is_mask = (ordered < MASK * (1.0 + larger)) & (ordered < below[:, None])
    return np.where(is_mask, ordered, -np.inf).max(axis=1, initial=-np.inf)


def _without_masks(scores, additional, limit):
    """Scores with a number instead of those up to ``limit`` (n,), and where these are.

    It is a loss that nothing in the same graph can make up for. Factors keep clear of it wherever they can,
    so its size costs no digits.
    """
    limit = as_like(limit[:, None], scores)
    low, low_too = scores <= limit, additional <= limit
    if not (low.any() or low_too.any()):
        return scores, additional, low, low_too
    size = 1.0 + np.where(low, 0.0, np.abs(scores)).sum(axis=1)
    size += np.where(low_too, 0.0, np.abs(additional)).sum(axis=1)
    loss = np.maximum(LOSS * size, -1e290)[:, None]
    return np.where(low, loss, scores), np.where(low_too, loss, additional), low, low_too


class GraphRun:
    """States of graphs where the scores ``like`` are, and what is to be said of them after a solve."""

    def __init__(self, layout, n, like=None):
        self.layout, self.n = layout, n
        self.kernels = kernel_module("factor_graph._factor_graph", like)
        self.is_on_device = namespace(like=like) is not np
        self.plan = layout.plan_for(like)
        self.states = self.kernels.States(self.plan, n)
        # the solver that finished each graph
        self.solver = np.full(n, PASSES, dtype=object)
        # derivatives work in the states' own memory
        self.lock = lock_of(self)

    def suits(self, layout, n, like):
        """Whether it is of this layout and number of graphs, and where ``like`` is."""
        # a layout has a plan for main memory, and one for each GPU
        return self.layout is layout and self.n == n and self.plan is layout.plan_for(like)

    def prepare(self, scores, additional):
        """Take scores (n, n_variables) and additional ones (n, n_additional); finite masks count as -inf."""
        self._given = scores, additional
        self.limit = np.full(self.n, -np.inf)
        if (scores < MASK).any() or (additional < MASK).any():
            self.limit = _mask_limit(self._on_host(), -self.limit)
        self._set_scores()

    def relax_masks(self):
        """Give the largest masks their own scores where graphs are infeasible without; whether any is."""
        has_masks = self.limit > -np.inf
        if not has_masks.any():
            return False
        infeasible = has_masks & (self.finish()[0]["status"] == outcome.INFEASIBLE)
        if not infeasible.any():
            return False
        smaller = _mask_limit(self._on_host(), self.limit)
        self.limit = np.where(infeasible, smaller, self.limit)
        self._set_scores()
        return True

    def _on_host(self):
        return np.concatenate([to_host(given) for given in self._given], axis=1)

    def _set_scores(self):
        scores, additional, self.low, self.low_too = _without_masks(*self._given, self.limit)
        self.scores, self.additional = scores, additional
        # marginals of the structures' additional scores, if a general solver finished the graph
        self.own = {}
        self.states.set_scores(
            *map(
                namespace(scores=scores, additional_scores=additional).ascontiguousarray,
                (scores, additional, self.low.view(np.uint8), self.low_too.view(np.uint8)),
            )
        )

    def additionals(self):
        """Marginals of the additional scores, (n, n_additional)."""
        found = self.states.additionals()
        for i, own in self.own.items():
            found[i, own_indices(self.layout)] = own
        return found

    def finish(self):
        """Report of all graphs, marginals (n, n_variables), additional marginals (n, n_additional)."""
        report, mu, extra = self.states.report(), self.states.marginals(), self.additionals()
        on = ((mu > MARGINAL_TOL) & self.low).any(axis=1) | ((extra > MARGINAL_TOL) & self.low_too).any(
            axis=1
        )
        report["status"][on & (report["status"] == outcome.CONVERGED)] = outcome.INFEASIBLE
        return report, mu, extra


def solve_runs(runs, options, warm, n_threads):
    """Solve the graphs of all runs, which are on one side, by ``n_threads`` threads over graphs."""
    refuse_own_graph([run.layout for run in runs], "solves")
    # threads without a graph would spin
    n_threads = max(1, min(n_threads, sum(run.n for run in runs)))
    deadline = time.perf_counter() + options.max_time
    with _working(runs):
        while runs:
            _solve_masked(runs, options, warm, n_threads, deadline)
            runs, warm = [run for run in runs if run.relax_masks()], False


def _solve_masked(runs, options, warm, n_threads, deadline):
    """Solve the graphs of all runs, their masks being forbidden."""
    groups = {}
    for run in runs:
        run.solver[:] = PASSES
        plan = plan_of(run.layout, options, run.is_on_device)
        groups.setdefault((run.kernels, plan), []).append(run)
    for (kernels, plan), some in groups.items():
        threads = thread_arguments(some[0].low, n_threads)
        # the options are checked already: checking takes longer than a small graph
        limits = {"max_iter": plan.passes, "max_flows": plan.flows, "max_time": _left(deadline)}
        kernels.solve([run.states for run in some], vars(options) | limits, warm, *threads)
    for (_, plan), some in groups.items():
        for run in some if plan.finisher else ():
            _finish(run, options, plan, deadline)


def _left(deadline):
    """Seconds until then, as an option."""
    return max(deadline - time.perf_counter(), 1e-9)


def _finish(run, options, plan, deadline):
    """What the first passes left open, graph after graph: by a general solver, else by more passes."""
    states, report = run.states, run.states.report()
    for i in np.flatnonzero(report["status"] == outcome.MAX_ITER):
        given = run.layout, run.scores[i], run.additional[i], run.low[i], run.low_too[i]
        passes = int(report["n_iter"][i])
        left = options.max_iter - passes
        if options.quadratic:
            found = finish.marginals(*given, left, deadline)
            if found is not None:
                states.set_start(i, *found[:2])
                left -= found[2]
        else:
            found = finish.assignment(*given, left, deadline)
            if found is not None:
                x, run.own[i], violation, nit = found
                states.set_solution(i, x, violation, passes + nit)
        run.solver[i] = plan.finisher if found is not None else f"{PASSES} after {plan.finisher}"
        if found is not None and not options.quadratic:
            continue
        limits = replace(options, max_iter=max(left, 1), max_time=_left(deadline))
        run.kernels.solve_one(states, i, asdict(limits))
        states.count(i, options.max_iter - limits.max_iter)


def differentiate(run, what, *args):
    """Call ``vjp`` or ``jvp`` of a run's states, which may ask its users' factors."""
    refuse_own_graph([run.layout], "differentiates")
    with _working([run]):
        for oracle in run.layout.plan.oracles:
            oracle.errors.clear()
        return getattr(run.states, what)(*args)


@contextmanager
def _working(runs):
    """Hold the locks of runs, and of the layouts whose users' factors they may ask."""
    with ExitStack() as stack:
        # a user's factor stores its error for the call that used it; one order prevents deadlocks
        asking = {id(run.layout): run.layout for run in runs if run.layout.plan.oracles}
        for _, layout in sorted(asking.items()):
            stack.enter_context(layout.lock)
        solving = (*being_asked(), *(run.layout for run in runs))
        for layout in asking.values():
            for oracle in layout.plan.oracles:
                oracle.solving = solving
        for run in runs:
            stack.enter_context(run.lock)
        yield
