"""A factorised Hessian that preconditions the models near the end, where it hardly changes any more."""

import numpy as np

# sides that are worth a factor, and that fit: 7000 take 392 MB
_SMALLEST, _LARGEST = 200, 7000
# parts of a factor's making that steps without it, or with a poor one, must have cost, and that they must be
# about to cost
_SPENT, _LEFT = 0.5, 1.0
# cost of one model's steps, in parts of a factor's making, from which the next one had better have a factor,
# and the least number of steps that a model may take
_BUDGET, _LEAST_STEPS = 0.5, 40
# how many times that number where no factor helps
_HOPELESS = 5
# multiply-adds of a solve with the factor that cost as much as one of a sparse product
_SOLVE = 0.25
# change of the rows' weights, as a part of their sum, from which a factor helps no more
_DRIFT = 0.3
# shares of the promised decrease between which a model is taken to hold
_LOW, _HIGH = 0.9, 1.1


class Preconditioner:
    """When to factorise the Hessian, and the factor in use.

    Far from the solution the Hessian changes from step to step and models are solved loosely; there the
    diagonal is enough. Near it the same system is solved again and again, to more and more digits, and a
    weak penalty makes it an ill-conditioned one. The rule counts operations and no seconds, so that runs
    can be repeated.
    """

    def __init__(self, ridge):
        self.ridge = ridge
        self.spent, self.since = 0.0, np.inf
        # what the last model cost, if it was cut short, and the optimality before it
        self.last, self.before = 0.0, np.inf
        self.wanted = self.fresh = self.hopeless = self.turn = False
        self.limit = 0
        self.product = self.work = np.inf
        self.factor = self.ids = self.place = None

    def prepare(self, problem, variables, now, aim):
        """Make a factor for ``variables`` if the models so far have cost as much, and so will those to come.

        ``now`` is the optimality, ``aim`` the one to get to.
        """
        self.fresh = False
        before, self.before = self.before, now
        if self.spent == 0.0:
            self.since = before = now
        if not self.wanted:
            return
        if not _SMALLEST <= len(variables) <= _LARGEST:
            # what an earlier set would have cost is no limit for this one
            self.product = self.work = np.inf
            return
        self.work, self.product = problem.factor_cost(variables)
        drifted = self.factor is not None and problem.drift() > _DRIFT
        self.hopeless = self.hopeless and not drifted
        useless = drifted or (self.factor is not None and self.factor.crowded and not self.hopeless)
        # as much again for each digit as for the digits so far, or as for the last, if steps were too few
        digit = max(
            self.spent / max(np.log(self.since / now), 1e-3), self.last / max(np.log(before / now), 1e-3)
        )
        left = digit * np.log(max(now / aim, 1.0))
        costly = self.spent >= _SPENT * self.work and not self.hopeless
        if not (costly or useless) or left < _LEFT * self.work:
            return
        self.spent, self.since = 0.0, now
        try:
            self.factor, self.place = problem.factor(variables, self.ridge)
        except ValueError:
            self.factor = None
            return
        self.fresh, self.hopeless = True, False
        self.ids = _in_all(problem, variables)

    def attach(self, operator, problem, variables):
        """Let the operator of the model use the factor; whether it does."""
        if self.factor is None or not self.wanted or not hasattr(operator, "use_factor"):
            return False
        # where a factor is poor, models take turns without it: which way is the poorer one is not known
        self.turn = self.hopeless and not self.turn
        if self.turn:
            return False
        ids = _in_all(problem, variables)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        operator.use_factor(self.factor, np.where(self.ids[at] == ids, self.place[at], -1).astype(np.int32))
        return True

    def most_steps(self):
        """Steps of CG that a model may take before the next one had better have a factor; 0 for no limit."""
        self.limit = 0
        if np.isfinite(self.work) and self.wanted:
            self.limit = max(int(_BUDGET * self.work / (self.product + self._solve())), _LEAST_STEPS)
            self.limit *= _HOPELESS if self.hopeless else 1
        return self.limit

    def _solve(self):
        return 0.0 if self.factor is None else _SOLVE * len(self.place) ** 2

    def learn(self, kept, steps):
        """Account for a model solved by ``steps`` of CG, which kept that share of its promise."""
        self.wanted = _LOW <= kept <= _HIGH
        # a model that took too long with a factor of its own will not get a better one
        cut = 0 < self.limit <= steps
        poor = self.fresh and (self.factor.crowded or cut)
        self.hopeless = self.wanted and (self.hopeless or poor)
        self.last = 0.0
        if self.wanted and np.isfinite(self.product):
            cost = steps * (self.product + self._solve())
            self.spent += cost
            self.last = cost if cut else 0.0


def _in_all(problem, variables):
    """Sorted numbers of a problem's sorted ``variables`` among those of the loss."""
    while problem.variables is not None:
        variables, problem = problem.variables[variables], problem.parent
    return variables
